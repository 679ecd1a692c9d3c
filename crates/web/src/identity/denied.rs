//! The reasons why a caller is refused, and the HTTP challenge for each.

/// Why a caller is refused. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The request has no credential, and one is required.
    #[error("credentials are required")]
    Missing,
    /// The credential is malformed, unknown, forged or meant for another server.
    #[error("the credentials are not valid")]
    Invalid,
    #[error("the credentials have expired")]
    Expired,
    /// The credential is valid, but lacks this scope.
    #[error("the credentials lack the scope `{0}`")]
    Insufficient(String),
}

impl Denied {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Denied::Missing | Denied::Invalid | Denied::Expired => 401,
            Denied::Insufficient(_) => 403,
        }
    }

    /// Renders the `WWW-Authenticate` header. `metadata_url` is where the client learns who
    /// issues tokens; `scope` is the one that every caller needs.
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
