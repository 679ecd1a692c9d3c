//! Who is calling.
//!
//! A request shows at most one credential, as `Authorization: Bearer …` or
//! `X-Api-Key: …`. It is an API key of ours ([`key`]) or a token that somebody
//! we trust signed ([`token`]). The answer is an identity, or the reason why
//! not in the words that HTTP has for it ([`Denied`]).

pub mod key;
pub mod token;

use std::sync::Arc;

use tool::Identity;

/// Why a request is refused, one variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No credential, and this endpoint wants one.
    #[error("credentials are required")]
    Missing,
    /// A credential that is malformed, unknown, forged or for somebody else.
    #[error("the credentials are not valid")]
    Invalid,
    #[error("the credentials have expired")]
    Expired,
    /// A good credential that does not reach this far.
    #[error("the credentials lack the scope `{0}`")]
    Insufficient(String),
}

impl Denied {
    pub fn status(&self) -> u16 {
        match self {
            Denied::Missing | Denied::Invalid | Denied::Expired => 401,
            Denied::Insufficient(_) => 403,
        }
    }

    /// The `WWW-Authenticate` header that makes a client do the right thing.
    pub fn challenge(&self, metadata_url: Option<&str>) -> String {
        let mut parts = Vec::new();
        match self {
            Denied::Missing => {}
            Denied::Invalid => parts.push("error=\"invalid_token\"".to_owned()),
            Denied::Expired => {
                parts.push("error=\"invalid_token\"".to_owned());
                parts.push("error_description=\"the token expired\"".to_owned());
            }
            Denied::Insufficient(scope) => {
                parts.push("error=\"insufficient_scope\"".to_owned());
                parts.push(format!("scope=\"{scope}\""));
            }
        }
        if let Some(url) = metadata_url {
            parts.push(format!("resource_metadata=\"{url}\""));
        }
        if parts.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", parts.join(", ")) }
    }
}

/// What an endpoint accepts.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether a request without credentials is anonymous or refused.
    pub anonymous: Anonymous,
    pub keys: key::Ring,
    pub tokens: Vec<token::Issuer>,
    /// A scope that every caller needs.
    pub scope: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    Allowed,
    Refused,
}

impl Policy {
    /// Everybody is anonymous: what a gate on loopback starts with.
    pub fn open() -> Policy {
        Policy {
            anonymous: Anonymous::Allowed,
            keys: key::Ring::default(),
            tokens: Vec::new(),
            scope: None,
        }
    }

    /// Whether anybody is ever asked who they are.
    pub fn is_open(&self) -> bool {
        self.anonymous == Anonymous::Allowed
    }

    /// Decides who calls. `credential` is the bare key or token; `now` is in
    /// seconds since 1970.
    pub fn identify(&self, credential: Option<&str>, now: u64) -> Result<Arc<Identity>, Denied> {
        let Some(credential) = credential else {
            return match self.anonymous {
                Anonymous::Allowed => Ok(Arc::new(Identity::default())),
                Anonymous::Refused => Err(Denied::Missing),
            };
        };
        // A bad credential is never silently an anonymous caller.
        let identity = if key::looks_like_one(credential) {
            self.keys.identify(credential, now)?
        } else {
            self.tokens
                .iter()
                .map(|issuer| issuer.identify(credential, now))
                .reduce(better)
                .unwrap_or(Err(Denied::Invalid))?
        };
        match &self.scope {
            Some(scope) if !identity.scopes.contains(scope) => {
                Err(Denied::Insufficient(scope.clone()))
            }
            _ => Ok(Arc::new(identity)),
        }
    }
}

/// Of two issuers' answers, the one that says more.
fn better(a: Result<Identity, Denied>, b: Result<Identity, Denied>) -> Result<Identity, Denied> {
    match (&a, &b) {
        (Ok(_), _) | (Err(Denied::Expired), Err(_)) => a,
        _ => b,
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
        assert_eq!(Denied::Missing.challenge(None), "Bearer");
        let url = "https://g.example/.well-known/oauth-protected-resource";
        let challenge = Denied::Insufficient("mcp:call".into()).challenge(Some(url));
        assert_eq!(
            challenge,
            format!(
                "Bearer error=\"insufficient_scope\", scope=\"mcp:call\", resource_metadata=\"{url}\""
            )
        );
        assert_eq!(Denied::Insufficient("x".into()).status(), 403);
    }

    #[test]
    fn a_bad_credential_is_never_an_anonymous_caller() {
        let policy = Policy::open();
        assert!(policy.identify(None, 0).unwrap().is_anonymous());
        assert_eq!(policy.identify(Some("nonsense"), 0), Err(Denied::Invalid));
        assert_eq!(policy.identify(Some(""), 0), Err(Denied::Invalid));
    }

    #[test]
    fn the_bearer_token_comes_before_the_api_key() {
        assert_eq!(credential(Some("Bearer abc"), Some("k")), Some("abc"));
        assert_eq!(credential(Some("bearer  abc "), None), Some("abc"));
        assert_eq!(credential(Some("Basic abc"), Some("k")), Some("Basic abc"));
        assert_eq!(credential(None, Some("k")), Some("k"));
    }
}
