//! An OAuth grant: its tokens, and what it takes to renew them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use url::form_urlencoded::Serializer;

/// An access token and what it takes to get the next one. Stored as JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub access_token: String,
    pub refresh_token: Option<String>,
    /// When the access token expires, in seconds since 1970; `None` if unknown.
    pub expires_at: Option<u64>,
    pub scopes: Vec<String>,
    pub issuer: Option<String>,
    pub token_endpoint: String,
    /// Where the grant can be revoked, if the server offers that.
    #[serde(default)]
    pub revocation_endpoint: Option<String>,
    /// The resource indicator of the token (RFC 8707), as requested.
    pub resource: String,
    /// The URL of the server, from [`normalized_server_url`]. Empty in grants that were
    /// stored by older versions.
    #[serde(default)]
    pub server: String,
    pub client_id: String,
    pub client_secret: Option<String>,
    /// How the client authenticates at the token endpoint.
    pub method: ClientAuth,
    #[serde(default)]
    pub kind: GrantKind,
}

/// How a token was obtained, and so how the next one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantKind {
    /// A user logged in; renewed with a refresh token.
    #[default]
    Login,
    /// With client credentials, without a user.
    ClientCredentials,
}

/// How the client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuth {
    /// Only by its id: it has no secret.
    None,
    Basic,
    Post,
}

impl Grant {
    /// Returns why this grant is not for the server at `url`, if it is not. The operator's
    /// label does not count: it may be reused for another server.
    pub fn why_not_for(&self, url: &str) -> Option<String> {
        let server = normalized_server_url(url);
        if self.server.is_empty() {
            return Some("its token does not say which server it is for".to_owned());
        }
        if self.server != server {
            return Some(format!("its token is for `{}`, not for `{server}`", self.server));
        }
        let is_other = !self.resource.is_empty() && !covers(&self.resource, url);
        is_other.then(|| format!("its token is for another resource than `{server}`"))
    }

    /// Returns whether another token can be requested without a user.
    pub(super) fn is_renewable(&self) -> bool {
        self.refresh_token.is_some() || self.kind == GrantKind::ClientCredentials
    }

    /// Returns whether the grant certainly comes from this issuer.
    pub(super) fn is_issued_by(&self, issuer: &str) -> bool {
        self.issuer.as_deref().is_some_and(|own| is_same_issuer(own, issuer))
    }

    /// Returns whether the grant certainly comes from none of these issuers.
    pub(super) fn is_issued_by_none_of(&self, issuers: &[String]) -> bool {
        let same = |own: &str| issuers.iter().any(|issuer| is_same_issuer(own, issuer));
        !issuers.is_empty() && self.issuer.as_deref().is_some_and(|own| !same(own))
    }

    /// Adds the client authentication to a request: as a header, or in its form.
    pub(super) fn authenticate_client(
        &self,
        post: reqwest::RequestBuilder,
        form: &mut Serializer<'_, String>,
    ) -> reqwest::RequestBuilder {
        match (self.method, self.client_secret.as_deref()) {
            (ClientAuth::Basic, Some(secret)) => {
                let pair = format!("{}:{}", form_encoded(&self.client_id), form_encoded(secret));
                return post.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(pair)));
            }
            (ClientAuth::Post, Some(secret)) => {
                form.append_pair("client_id", &self.client_id);
                form.append_pair("client_secret", secret);
            }
            (ClientAuth::None, _) | (ClientAuth::Basic | ClientAuth::Post, None) => {
                form.append_pair("client_id", &self.client_id);
            }
        }
        post
    }
}

/// Returns a server's URL in the form that grants are bound to: without query, fragment,
/// credentials and trailing slash.
pub fn normalized_server_url(url: &str) -> String {
    let Ok(mut url) = url::Url::parse(url) else { return url.to_owned() };
    url.set_fragment(None);
    url.set_query(None);
    url.set_username("").ok();
    url.set_password(None).ok();
    url.to_string().trim_end_matches('/').to_owned()
}

/// Returns whether a token for `resource` is valid for the server at `url`: same origin,
/// and the path is equal or below.
pub(super) fn covers(resource: &str, url: &str) -> bool {
    let (Ok(resource), Ok(url)) = (url::Url::parse(resource), url::Url::parse(url)) else {
        return false;
    };
    let (above, path) = (resource.path().trim_end_matches('/'), url.path());
    let below = path.strip_prefix(above);
    resource.origin() == url.origin()
        && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

fn form_encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Stores one grant.
pub trait GrantStore: Send + Sync {
    /// Returns the stored grant, if any. An error is one line.
    fn load(&self) -> Result<Option<Grant>, String>;

    fn save(&self, grant: &Grant) -> Result<(), String>;
}

/// Stores a grant in memory only: for client credentials, which can be used again.
#[derive(Default)]
pub struct InMemoryGrant(Mutex<Option<Grant>>);

impl GrantStore for InMemoryGrant {
    fn load(&self) -> Result<Option<Grant>, String> {
        Ok(self.0.lock().clone())
    }

    fn save(&self, grant: &Grant) -> Result<(), String> {
        *self.0.lock() = Some(grant.clone());
        Ok(())
    }
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

/// Returns whether two issuer URLs are the same, apart from a trailing slash.
pub(super) fn is_same_issuer(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_covers_its_own_address_and_what_is_below() {
        for (resource, url, expected) in [
            ("https://wiki.example/mcp", "https://wiki.example/mcp", true),
            ("https://wiki.example/mcp/", "https://wiki.example/mcp", true),
            ("https://wiki.example", "https://wiki.example/mcp?x=1", true),
            ("https://WIKI.example:443/", "https://wiki.example/mcp", true),
            ("https://wiki.example/mc", "https://wiki.example/mcp", false),
            ("https://wiki.example/mcp/a", "https://wiki.example/mcp", false),
            ("https://bank.example/mcp", "https://wiki.example/mcp", false),
            ("http://wiki.example/mcp", "https://wiki.example/mcp", false),
            ("https://wiki.example:8443/mcp", "https://wiki.example/mcp", false),
            ("wiki", "https://wiki.example/mcp", false),
        ] {
            assert_eq!(covers(resource, url), expected, "{resource} and {url}");
        }
    }
}
