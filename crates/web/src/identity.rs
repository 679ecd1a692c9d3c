//! Authenticates callers by API key, bearer token or client certificate.
//!
//! A request has at most one credential, as `Authorization: Bearer …` or
//! `X-Api-Key: …`. It is an API key of ours ([`key`]) or a token that a trusted issuer
//! signed ([`token`]). Without one, the client [`certificate`] of the connection counts.
//! The result is an identity, or the reason why the request is refused ([`Denied`]).

pub mod certificate;
mod denied;
pub mod key;
pub mod token;

use std::sync::Arc;

use tool::Identity;

pub use denied::Denied;

/// Which callers are accepted.
#[derive(Clone, Debug)]
pub struct Policy {
    pub anonymous: Anonymous,
    pub keys: key::KeyRing,
    pub tokens: Vec<token::Issuer>,
    /// A scope that every caller needs; anonymous callers have no scopes.
    pub scope: Option<String>,
}

/// Whether requests without credentials are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    Allowed,
    Refused,
}

impl Policy {
    /// A policy that accepts only anonymous callers, the default on loopback.
    pub fn open() -> Policy {
        Policy {
            anonymous: Anonymous::Allowed,
            keys: key::KeyRing::default(),
            tokens: Vec::new(),
            scope: None,
        }
    }

    /// Authenticates a caller. `credential` is the bare key or token, `holder` the holder of
    /// the connection's client certificate; `now` is in seconds since 1970.
    pub fn identify(
        &self,
        credential: Option<&str>,
        holder: Option<&Identity>,
        now: u64,
    ) -> Result<Arc<Identity>, Denied> {
        // An invalid credential is an error, even if a certificate or an anonymous caller
        // would be accepted.
        let identity = match (credential, holder, self.anonymous) {
            (Some(key), _, _) if key::has_key_prefix(key) => self.keys.identify(key, now)?,
            (Some(token), _, _) => token::identify(&self.tokens, token, now)?,
            (None, Some(holder), _) => holder.clone(),
            (None, None, Anonymous::Allowed) => Identity::default(),
            (None, None, Anonymous::Refused) => return Err(Denied::Missing),
        };
        Ok(Arc::new(identity))
    }

    /// Checks that a caller has the scope that every caller needs.
    pub fn admit(&self, caller: &Identity) -> Result<(), Denied> {
        match &self.scope {
            None => Ok(()),
            Some(scope) if caller.scopes.contains(scope) => Ok(()),
            Some(_) if caller.is_anonymous() => Err(Denied::Missing),
            Some(scope) => Err(Denied::Insufficient(scope.clone())),
        }
    }
}

/// Returns the credential in a request's headers: the bearer token of `Authorization`, or
/// `X-Api-Key`. A request that shows two is refused, because a proxy in front of us may
/// have looked at the other one; the same twice is one.
pub fn credential<'a>(
    authorization: &[&'a str],
    api_keys: &[&'a str],
) -> Result<Option<&'a str>, Denied> {
    let bearers = authorization.iter().map(|value| {
        let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
        if scheme.eq_ignore_ascii_case("bearer") { rest.trim() } else { value }
    });
    let mut all = bearers.chain(api_keys.iter().copied());
    let first = all.next();
    match all.all(|other| Some(other) == first) {
        true => Ok(first),
        false => Err(Denied::Invalid),
    }
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
    fn a_request_shows_one_credential() {
        assert_eq!(credential(&[], &[]), Ok(None));
        assert_eq!(credential(&["bearer  abc "], &[]), Ok(Some("abc")));
        assert_eq!(credential(&["Basic abc"], &[]), Ok(Some("Basic abc")));
        assert_eq!(credential(&[], &["k"]), Ok(Some("k")));
        assert_eq!(credential(&["Bearer k", "bearer k"], &["k"]), Ok(Some("k")));
        for (authorization, keys) in [
            (&["Bearer abc"] as &[&str], &["k"] as &[&str]),
            (&["Bearer abc", "Bearer def"], &[]),
            (&["Bearer abc", ""], &[]),
            (&[], &["k", "l"]),
            (&["Basic abc"], &["k"]),
        ] {
            assert_eq!(credential(authorization, keys), Err(Denied::Invalid), "{authorization:?}");
        }
    }
}
