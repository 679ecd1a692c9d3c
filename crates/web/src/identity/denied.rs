//! The reasons why a request is refused.

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
    /// `scope` is what every caller needs, so that it is asked for at once.
    pub fn challenge(&self, metadata_url: Option<&str>, scope: Option<&str>) -> String {
        let mut parts = Vec::new();
        match self {
            Denied::Missing => {}
            Denied::Invalid => parts.push("error=\"invalid_token\"".to_owned()),
            Denied::Expired => {
                parts.push("error=\"invalid_token\"".to_owned());
                parts.push("error_description=\"the token expired\"".to_owned());
            }
            Denied::Insufficient(_) => parts.push("error=\"insufficient_scope\"".to_owned()),
        }
        let missing = match self {
            Denied::Insufficient(scope) => Some(scope.as_str()),
            Denied::Missing | Denied::Invalid | Denied::Expired => scope,
        };
        parts.extend(missing.map(|scope| format!("scope=\"{scope}\"")));
        if let Some(url) = metadata_url {
            parts.push(format!("resource_metadata=\"{url}\""));
        }
        if parts.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", parts.join(", ")) }
    }
}
