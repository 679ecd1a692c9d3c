//! The credentials that gatelet shows to an upstream: its keys `oauth`, `callers` and
//! `per_caller`.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How to log in with OAuth, where the server's own word is not enough.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Oauth")]
pub struct RawOauth {
    /// `"authorization_code"`: somebody logs in; `"client_credentials"`: gatelet is let in as the client
    /// that `client_id` and `client_secret` name, at the `issuer`, and nobody logs in.
    #[serde(default, skip_serializing_if = "GrantType::is_default")]
    pub grant: GrantType,
    /// The only issuer whose tokens are used; whichever the server named at the login when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// A client that was registered by hand; another is registered when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Its secret, if it has one. `${env:NAME}` and `${file:PATH}` are filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// An https address that describes this client, for servers that take that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<String>,
    /// What to ask for; what the server wants when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The port on this machine that a login leads back to; any when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_port: Option<u16>,
}

/// How a token is come by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantType {
    #[default]
    AuthorizationCode,
    ClientCredentials,
}

impl GrantType {
    fn is_default(&self) -> bool {
        *self == GrantType::default()
    }
}

/// What one caller is known by at the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Caller")]
pub struct RawCaller {
    /// Headers in place of the upstream's own, for an address. `${env:NAME}` and `${file:PATH}` are
    /// filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Variables in place of the upstream's own, for a program. `${env:NAME}` and `${file:PATH}` are
    /// filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// The validated credentials for one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub oauth: Oauth,
    /// Whether every caller needs credentials of their own.
    pub per_caller: bool,
    /// Credentials by the name of the identity, or why they cannot be used.
    pub callers: BTreeMap<String, Result<CallerCredential, String>>,
}

/// How gatelet gets a token for the upstream.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Oauth {
    pub grant: GrantType,
    pub issuer: Option<String>,
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub client_metadata_url: Option<String>,
    pub scopes: Vec<String>,
    pub redirect_port: Option<u16>,
}

/// What one caller uses in place of the upstream's own headers or variables.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CallerCredential {
    pub headers: BTreeMap<String, String>,
    pub env: BTreeMap<String, String>,
}

/// Secrets are never printed.
impl fmt::Debug for Oauth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oauth").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

impl fmt::Debug for CallerCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerCredential").finish_non_exhaustive()
    }
}
