//! Obtains a grant, with a human in front of a browser.
//!
//! Finding the authorization server, registering there and exchanging the code
//! is rmcp's work, which follows the protocol's authorization chapter: resource
//! metadata, server metadata with its issuer checked, PKCE with S256, the
//! resource indicator and the issuer in the redirect.

use std::collections::HashSet;
use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest,
    AuthorizationSession,
};
use serde_json::Value;
use url::Url;

use super::grant::is_same;
use super::reach::Reach;
use super::web::{self, Web};
use super::{Grant, GrantKind, Method, covers, server_of};
use crate::connect::{Certificates, Refusal};

/// What to log in to, and as whom.
#[derive(Clone, Debug, Default)]
pub struct LoginRequest {
    /// The server's address.
    pub url: String,
    /// A client that was registered beforehand; another is registered when
    /// `None`.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// An address that describes this client, for servers that take that.
    pub client_metadata_url: Option<String>,
    /// The only issuer to log in at; whichever the server names when `None`.
    pub issuer: Option<String>,
    /// What the server asks for when empty.
    pub scopes: Vec<String>,
    /// What was allowed before, which is asked for again: a login for more
    /// must not take away what there is.
    pub granted: Vec<String>,
    pub certificates: Certificates,
    /// What the server said when it refused us; it is asked when `None`.
    pub challenge: Option<String>,
    /// Where the server may lead.
    pub reach: Reach,
}

/// A login that waits for its human.
pub struct Login {
    session: AuthorizationSession,
    metadata: AuthorizationMetadata,
    client_id: String,
    client_secret: Option<String>,
    /// What was logged in to.
    server: String,
}

/// Why there is no grant. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("`{url}` is no address: {reason}")]
    BadAddress { url: String, reason: String },
    /// The server or its authorization server does not do its part.
    #[error("the server does not say where to log in: {0}")]
    Undiscovered(String),
    /// What it wants opened is not a page of the web.
    #[error("the server wants `{0}` opened to log in, which is no page of the web")]
    Unsafe(String),
    /// It leads to somebody else than the operator expects.
    #[error("the server leads to the issuer `{found}`, and the configuration names `{expected}`")]
    Unexpected { found: String, expected: String },
    /// Nobody knows us there, and we cannot introduce ourselves.
    #[error("{0}; register gatelet there by hand and give `client_id` in the configuration")]
    Unregistered(String),
    /// The human, or the server, said no.
    #[error("{0}")]
    Denied(String),
}

impl Login {
    /// Finds out where to log in and makes the address to open in a browser,
    /// which will lead back to `redirect`.
    pub async fn begin(wanted: &LoginRequest, redirect: &str) -> Result<Login, LoginError> {
        let (mut manager, metadata) = discovered(wanted, None).await?;
        let scopes = scopes(&manager, wanted).await;
        let (client_id, client_secret) =
            identify(&mut manager, &metadata, wanted, redirect, &scopes).await?;
        let mut request = AuthorizationRequest::new(redirect)
            .with_initial_scope_selection()
            .with_scopes(scopes)
            .with_preregistered_client(&client_id);
        if let Some(secret) = &client_secret {
            request = request.with_client_secret(secret);
        }
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| LoginError::Undiscovered(said(&error)))?;
        can_be_opened(session.get_authorization_url())?;
        may_lead_to(wanted, session.get_authorization_url())?;
        is_meant(wanted, session.get_authorization_url())?;
        let server = server_of(&wanted.url);
        Ok(Login { session, metadata, client_id, client_secret, server })
    }

    /// Returns what to open in a browser.
    pub fn url(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// Exchanges what the browser brought back. `seconds` is the time now.
    pub async fn finish(self, callback: &str, seconds: u64) -> Result<Grant, LoginError> {
        let parameters = parameters(callback);
        let parameter = |name: &str| parameters.iter().find(|(key, _)| key == name);
        if let Some((_, error)) = parameter("error") {
            let more = parameter("error_description").map_or("", |(_, text)| text.as_str());
            let told: String = format!("{error} {more}").chars().take(200).collect();
            return Err(LoginError::Denied(format!("the login was refused: {}", told.trim())));
        }
        let answer = self.session.handle_callback_url(callback).await;
        let answer = answer.map_err(|error| LoginError::Denied(said(&error)))?;
        let token = serde_json::to_value(&answer).unwrap_or_default();
        self.grant(&token, seconds)
            .ok_or_else(|| LoginError::Denied("the server gave no token".to_owned()))
    }

    fn offered(&self, field: &str) -> Option<String> {
        self.metadata.additional_fields.get(field)?.as_str().map(str::to_owned)
    }

    fn grant(&self, token: &Value, seconds: u64) -> Option<Grant> {
        let text = |key: &str| token[key].as_str().map(str::to_owned);
        let asked = parameters(self.url());
        let asked = |name: &str| asked.iter().find(|(key, _)| key == name).map(|(_, v)| v.clone());
        let scopes = text("scope").or_else(|| asked("scope")).unwrap_or_default();
        Some(Grant {
            access_token: text("access_token")?,
            refresh_token: text("refresh_token"),
            expires_at: token["expires_in"].as_u64().map(|lifetime| seconds + lifetime),
            scopes: scopes.split_whitespace().map(str::to_owned).collect(),
            issuer: self.metadata.issuer.clone(),
            token_endpoint: self.metadata.token_endpoint.clone(),
            revocation_endpoint: self.offered("revocation_endpoint"),
            resource: asked("resource").unwrap_or_default(),
            server: self.server.clone(),
            client_id: self.client_id.clone(),
            method: method(&self.metadata, self.client_secret.as_deref()),
            client_secret: self.client_secret.clone(),
            kind: GrantKind::Login,
        })
    }
}

/// What the authorization server of a server says of itself; `challenge` is what
/// the server said when it refused us, where that is known.
pub(super) async fn discovered(
    wanted: &LoginRequest,
    challenge: Option<&str>,
) -> Result<(AuthorizationManager, AuthorizationMetadata), LoginError> {
    crate::http_client::provide();
    let mut manager = manager(wanted).await?;
    let challenge = match challenge.or(wanted.challenge.as_deref()) {
        Some(challenge) => Some(challenge.to_owned()),
        None => challenge_of(wanted).await,
    };
    let resolved = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
    let metadata = resolved.map_err(|error| LoginError::Undiscovered(said(&error)))?.metadata;
    is_expected(wanted, metadata.issuer.as_deref())?;
    manager.set_metadata(metadata.clone());
    Ok((manager, metadata))
}

/// Whether this is the issuer that the operator names, if any is named.
fn is_expected(wanted: &LoginRequest, found: Option<&str>) -> Result<(), LoginError> {
    match (&wanted.issuer, found.unwrap_or_default()) {
        (Some(expected), found) if !is_same(expected, found) => {
            let (found, expected) = (found.chars().take(200).collect(), expected.clone());
            Err(LoginError::Unexpected { found, expected })
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Refuses an address that must not be handed to a browser.
fn can_be_opened(address: &str) -> Result<(), LoginError> {
    let url = url::Url::parse(address).ok();
    let is_page = url.is_some_and(|url| crate::http_client::can_be_opened(&url));
    let shown = || address.chars().filter(|c| c.is_ascii_graphic()).take(80).collect();
    if is_page { Ok(()) } else { Err(LoginError::Unsafe(shown())) }
}

/// Whether the server may lead to this address.
pub(super) fn may_lead_to(wanted: &LoginRequest, address: &str) -> Result<(), LoginError> {
    let (Ok(server), Ok(to)) = (Url::parse(&wanted.url), Url::parse(address)) else {
        return Err(LoginError::Undiscovered("it names no address".to_owned()));
    };
    match wanted.reach.allows(&server, &to) {
        true => Ok(()),
        false => Err(LoginError::Undiscovered(web::elsewhere(&to))),
    }
}

/// Whether the token that is asked for is one for the server that was meant: what
/// another server takes must not be given to this one.
fn is_meant(wanted: &LoginRequest, address: &str) -> Result<(), LoginError> {
    let asked = parameters(address);
    let resource = asked.iter().find(|(name, _)| name == "resource").map(|(_, value)| value);
    match resource {
        Some(resource) if !covers(resource, &wanted.url) => {
            let shown: String =
                resource.chars().filter(|c| c.is_ascii_graphic()).take(80).collect();
            Err(LoginError::Undiscovered(format!(
                "it asks for a token for another server: `{shown}`"
            )))
        }
        Some(_) | None => Ok(()),
    }
}

async fn manager(wanted: &LoginRequest) -> Result<AuthorizationManager, LoginError> {
    let bad = |reason: String| LoginError::BadAddress { url: wanted.url.clone(), reason };
    let url = wanted.url.as_str();
    // Ours reads answers within bounds.
    let server = Url::parse(url).map_err(|error| bad(error.to_string()))?;
    let web = Web::new(&wanted.certificates, server, wanted.reach.clone()).map_err(bad)?;
    let web = Arc::new(web);
    let manager = AuthorizationManager::new_with_oauth_http_client(url, web).await;
    manager.map_err(|error| bad(error.to_string()))
}

/// Returns what the server says to somebody without a token. Many say it to
/// messages only, so that is what it is sent.
async fn challenge_of(wanted: &LoginRequest) -> Option<String> {
    let client = web::client(&wanted.certificates).ok()?;
    let ping = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
    let post = client.post(&wanted.url).header(CONTENT_TYPE, "application/json").body(ping);
    let post = post.header(ACCEPT, "application/json, text/event-stream");
    let response = post.send().await.ok()?;
    Refusal::read(response.status(), response.headers())?.challenge
}

/// Returns what to ask for: what is wanted, or what the server says it needs,
/// beside what was allowed before.
pub(super) async fn scopes(manager: &AuthorizationManager, wanted: &LoginRequest) -> Vec<String> {
    let mut scopes = wanted.granted.clone();
    if wanted.scopes.is_empty() {
        scopes.extend(manager.select_initial_scopes(&[]).await);
    } else {
        scopes.extend(wanted.scopes.iter().cloned());
    }
    let mut known = HashSet::new();
    scopes.retain(|scope| known.insert(scope.clone()));
    scopes
}

/// Returns who we are there: as configured, by our own address, or newly
/// registered.
async fn identify(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    wanted: &LoginRequest,
    redirect: &str,
    scopes: &[String],
) -> Result<(String, Option<String>), LoginError> {
    if let Some(client_id) = &wanted.client_id {
        return Ok((client_id.clone(), wanted.client_secret.clone()));
    }
    let takes_addresses = metadata.additional_fields.get("client_id_metadata_document_supported");
    if let (Some(address), Some(Value::Bool(true))) = (&wanted.client_metadata_url, takes_addresses)
    {
        return Ok((address.clone(), None));
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let registered = manager.register_client("gatelet", redirect, &scopes).await;
    let config = registered.map_err(|error| LoginError::Unregistered(said(&error)))?;
    Ok((config.client_id, config.client_secret))
}

/// The same choice that the exchange makes, for renewals.
pub(super) fn method(metadata: &AuthorizationMetadata, secret: Option<&str>) -> Method {
    if secret.is_none() {
        return Method::None;
    }
    let supported = metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let has = |wanted: &str| {
        let all = supported.and_then(Value::as_array);
        all.is_some_and(|all| all.iter().any(|method| method.as_str() == Some(wanted)))
    };
    if has("client_secret_post") && !has("client_secret_basic") {
        Method::Post
    } else {
        Method::Basic
    }
}

fn parameters(address: &str) -> Vec<(String, String)> {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// An error on one line of bounded length.
fn said(error: &AuthError) -> String {
    let text = error.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secured_pages_and_those_of_this_machine_are_opened() {
        for address in [
            "https://login.example/authorize?x=1",
            "http://127.0.0.1:8080/authorize",
            "http://localhost/authorize",
            "http://[::1]:9/a",
        ] {
            assert!(can_be_opened(address).is_ok(), "{address}");
        }
        for address in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "smb://host/share",
            "data:text/html,x",
            "ftp://host/",
            "http://login.example/authorize",
            "http://127.0.0.1.evil.example/",
            "https://accounts.example@evil.example/",
            "https://a:b@evil.example/",
            "vscode://x",
            "-x",
            "",
        ] {
            assert!(matches!(can_be_opened(address), Err(LoginError::Unsafe(_))), "{address}");
        }
    }
}
