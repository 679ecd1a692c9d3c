//! Identifies callers by their credentials.
//!
//! A request shows at most one credential, as `Authorization: Bearer …` or
//! `X-Api-Key: …`. It is an API key of ours ([`key`]) or a token that somebody
//! we trust signed ([`token`]). A request without one may come on a connection
//! whose client showed a [`certificate`]. The answer is an identity, or the
//! reason why not in the words that HTTP has for it ([`Denied`]).

pub mod certificate;
mod denied;
pub mod key;
pub mod token;

use std::sync::Arc;

use tool::Identity;

pub use denied::Denied;

/// What an endpoint accepts.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether a request without credentials is anonymous or refused.
    pub anonymous: Anonymous,
    pub keys: key::KeyRing,
    pub tokens: Vec<token::Issuer>,
    /// A scope that every caller needs; an anonymous one has none.
    pub scope: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    Allowed,
    Refused,
}

impl Policy {
    /// Everybody is anonymous: what a gatelet on loopback starts with.
    pub fn open() -> Policy {
        Policy {
            anonymous: Anonymous::Allowed,
            keys: key::KeyRing::default(),
            tokens: Vec::new(),
            scope: None,
        }
    }

    /// Decides who calls. `credential` is the bare key or token, `holder` who
    /// the connection's certificate says it is; `now` is in seconds since 1970.
    pub fn identify(
        &self,
        credential: Option<&str>,
        holder: Option<&Identity>,
        now: u64,
    ) -> Result<Arc<Identity>, Denied> {
        // A bad credential is never silently somebody else, or nobody.
        let identity = match (credential, holder, self.anonymous) {
            (Some(key), _, _) if key::looks_like_one(key) => self.keys.identify(key, now)?,
            (Some(token), _, _) => token::all(&self.tokens, token, now)?,
            (None, Some(holder), _) => holder.clone(),
            (None, None, Anonymous::Allowed) => Identity::default(),
            (None, None, Anonymous::Refused) => return Err(Denied::Missing),
        };
        Ok(Arc::new(identity))
    }

    /// Checks whether a caller has the scope that every caller needs.
    pub fn admit(&self, caller: &Identity) -> Result<(), Denied> {
        match &self.scope {
            None => Ok(()),
            Some(scope) if caller.scopes.contains(scope) => Ok(()),
            Some(_) if caller.is_anonymous() => Err(Denied::Missing),
            Some(scope) => Err(Denied::Insufficient(scope.clone())),
        }
    }
}

/// The credential in a request's headers: of `Authorization` the bearer token,
/// else `X-Api-Key`.
pub fn credential<'a>(authorization: Option<&'a str>, api_key: Option<&'a str>) -> Option<&'a str> {
    let bearer = authorization.map(|value| {
        let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
        if scheme.eq_ignore_ascii_case("bearer") { rest.trim() } else { value }
    });
    bearer.or(api_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_says_what_a_client_must_do() {
        assert_eq!(Denied::Missing.challenge(None, None), "Bearer");
        let url = "https://g.example/.well-known/oauth-protected-resource";
        let challenge = Denied::Insufficient("mcp:call".into()).challenge(Some(url), None);
        assert_eq!(
            challenge,
            format!(
                "Bearer error=\"insufficient_scope\", scope=\"mcp:call\", resource_metadata=\"{url}\""
            )
        );
        assert_eq!(Denied::Insufficient("x".into()).status(), 403);
        let challenge = Denied::Missing.challenge(None, Some("mcp:call"));
        assert_eq!(challenge, "Bearer scope=\"mcp:call\"");
    }

    #[test]
    fn a_bad_credential_is_never_an_anonymous_caller() {
        let policy = Policy::open();
        assert!(policy.identify(None, None, 0).unwrap().is_anonymous());
        assert_eq!(policy.identify(Some("nonsense"), None, 0), Err(Denied::Invalid));
        assert_eq!(policy.identify(Some(""), None, 0), Err(Denied::Invalid));
    }

    #[test]
    fn a_certificate_counts_where_no_other_credential_is_shown() {
        let mut policy = Policy { anonymous: Anonymous::Refused, ..Policy::open() };
        let holder = Identity { subject: "cert:ann".into(), ..Identity::default() };
        let who = |policy: &Policy, shown| {
            policy.identify(shown, Some(&holder), 0).map(|who| who.subject.clone())
        };
        assert_eq!(who(&policy, None), Ok("cert:ann".into()));
        assert_eq!(who(&policy, Some("nonsense")), Err(Denied::Invalid));
        policy.scope = Some("mcp:call".into());
        assert_eq!(policy.admit(&holder), Err(Denied::Insufficient("mcp:call".into())));
    }

    #[test]
    fn a_scope_that_everybody_needs_is_needed_by_who_shows_nothing() {
        let mut policy = Policy::open();
        assert_eq!(policy.admit(&Identity::default()), Ok(()));
        policy.scope = Some("mcp:call".into());
        assert_eq!(policy.admit(&Identity::default()), Err(Denied::Missing));
        let scopes = ["mcp:call".to_owned()].into();
        let holder = Identity { subject: "ann".into(), scopes, ..Identity::default() };
        assert_eq!(policy.admit(&holder), Ok(()));
    }

    #[test]
    fn the_bearer_token_comes_before_the_api_key() {
        assert_eq!(credential(Some("Bearer abc"), Some("k")), Some("abc"));
        assert_eq!(credential(Some("bearer  abc "), None), Some("abc"));
        assert_eq!(credential(Some("Basic abc"), Some("k")), Some("Basic abc"));
        assert_eq!(credential(None, Some("k")), Some("k"));
    }
}
