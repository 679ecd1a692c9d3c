//! What an authorization server granted, and what it takes to renew it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A token and the way to the next one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub access_token: String,
    pub refresh_token: Option<String>,
    /// Seconds since 1970; unknown when `None`.
    pub expires_at: Option<u64>,
    pub scopes: Vec<String>,
    pub issuer: Option<String>,
    pub token_endpoint: String,
    /// What the token is for (RFC 8707), as it was asked for.
    pub resource: String,
    pub client_id: String,
    pub client_secret: Option<String>,
    pub method: Method,
}

/// How the client says who it is at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// It has no secret.
    None,
    Basic,
    Post,
}

/// Where one grant is kept.
pub trait Keep: Send + Sync {
    /// What is kept; `None` when nothing is. An error is one line.
    fn load(&self) -> Result<Option<Grant>, String>;

    fn save(&self, grant: &Grant) -> Result<(), String>;
}

/// Tokens and secrets are never printed.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("expires_at", &self.expires_at)
            .field("scopes", &self.scopes)
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}
