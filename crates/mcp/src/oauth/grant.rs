//! An OAuth grant: its tokens, and what it takes to renew them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use url::form_urlencoded::Serializer;

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
    /// Where it can be given back, if anywhere.
    #[serde(default)]
    pub revocation_endpoint: Option<String>,
    /// What the token is for (RFC 8707), as it was asked for.
    pub resource: String,
    /// The address that was logged in to, as [`server_of`] writes it. Empty in
    /// what was kept before this was noted.
    #[serde(default)]
    pub server: String,
    pub client_id: String,
    pub client_secret: Option<String>,
    pub method: Method,
    #[serde(default)]
    pub kind: GrantKind,
}

/// How a token was come by, and so how the next one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantKind {
    /// A human logged in.
    #[default]
    Login,
    /// The client itself is let in.
    ClientCredentials,
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

impl Grant {
    /// Returns why this grant is not for the server at an address, if it is not. A
    /// label is not enough: anybody may call a server `wiki`.
    pub fn stranger_to(&self, url: &str) -> Option<String> {
        let server = server_of(url);
        if self.server.is_empty() {
            return Some("its token does not say which server it is for".to_owned());
        }
        if self.server != server {
            return Some(format!("its token is for `{}`, not for `{server}`", self.server));
        }
        let is_other = !self.resource.is_empty() && !covers(&self.resource, url);
        is_other.then(|| format!("its token is for another resource than `{server}`"))
    }

    /// Whether another token can be had when this one is worth nothing any more.
    pub(super) fn renews(&self) -> bool {
        self.refresh_token.is_some() || self.kind == GrantKind::ClientCredentials
    }

    /// Whether it comes from this issuer, for certain.
    pub(super) fn is_issued_by(&self, issuer: &str) -> bool {
        self.issuer.as_deref().is_some_and(|own| is_same(own, issuer))
    }

    /// Whether it comes from none of these issuers, as far as is known.
    pub(super) fn is_issued_by_none_of(&self, issuers: &[String]) -> bool {
        let same = |own: &str| issuers.iter().any(|issuer| is_same(own, issuer));
        !issuers.is_empty() && self.issuer.as_deref().is_some_and(|own| !same(own))
    }

    /// Says who we are, in the way that the server wants: in a header, or in
    /// the form that goes with the request.
    pub(super) fn sign(
        &self,
        post: reqwest::RequestBuilder,
        form: &mut Serializer<'_, String>,
    ) -> reqwest::RequestBuilder {
        match (self.method, self.client_secret.as_deref()) {
            (Method::Basic, Some(secret)) => {
                let pair = format!("{}:{}", encoded(&self.client_id), encoded(secret));
                return post.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(pair)));
            }
            (Method::Post, Some(secret)) => {
                form.append_pair("client_id", &self.client_id);
                form.append_pair("client_secret", secret);
            }
            (Method::None, _) | (Method::Basic | Method::Post, None) => {
                form.append_pair("client_id", &self.client_id);
            }
        }
        post
    }
}

/// An address as grants are bound to it: without what a server does not see or
/// may see change.
pub fn server_of(url: &str) -> String {
    let Ok(mut url) = url::Url::parse(url) else { return url.to_owned() };
    url.set_fragment(None);
    url.set_query(None);
    url.set_username("").ok();
    url.set_password(None).ok();
    url.to_string().trim_end_matches('/').to_owned()
}

/// Whether a token for a resource is one for the server at an address: the same
/// origin, and the address itself or what it stands under.
pub(super) fn covers(resource: &str, url: &str) -> bool {
    let (Ok(resource), Ok(url)) = (url::Url::parse(resource), url::Url::parse(url)) else {
        return false;
    };
    let (above, path) = (resource.path().trim_end_matches('/'), url.path());
    let below = path.strip_prefix(above);
    resource.origin() == url.origin()
        && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Where one grant is kept.
pub trait GrantStore: Send + Sync {
    /// Returns what is kept; `None` when nothing is. An error is one line.
    fn load(&self) -> Result<Option<Grant>, String>;

    fn save(&self, grant: &Grant) -> Result<(), String>;
}

/// Keeps a grant in this process only: one that needs no human is had again.
#[derive(Default)]
pub struct InMemory(Mutex<Option<Grant>>);

impl GrantStore for InMemory {
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

/// Whether two issuers are the same, which one may write with a slash at its end.
pub(super) fn is_same(one: &str, other: &str) -> bool {
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
