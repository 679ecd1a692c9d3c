//! Obtains a grant with a user who logs in in a browser.
//!
//! The crate rmcp finds the authorization server, registers the client and exchanges the
//! code, as the protocol's authorization chapter says: resource metadata, server metadata
//! with its issuer checked, PKCE with S256, the resource indicator and the issuer in the
//! redirect.

use std::collections::HashSet;
use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest,
    AuthorizationSession,
};
use serde_json::Value;
use url::Url;

use super::grant::is_same_issuer;
use super::reach::LoginReach;
use super::web::{self, GuardedHttpClient};
use super::{ClientAuth, Grant, GrantKind, covers, normalized_server_url};
use crate::connect::{Certificates, Refusal};

/// The server to log in to, and the client to log in as.
#[derive(Clone, Debug, Default)]
pub struct LoginRequest {
    /// The URL of the MCP server.
    pub url: String,
    /// The id of a client that was registered beforehand; `None` to register one.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// A URL with this client's metadata, for servers that accept it as the client id.
    pub client_metadata_url: Option<String>,
    /// The only issuer to log in at; `None` for the one that the server names.
    pub issuer: Option<String>,
    /// The scopes to request; if empty, those that the server names.
    pub scopes: Vec<String>,
    /// Scopes that were granted before. They are requested again, so that a login for more
    /// scopes keeps them.
    pub granted: Vec<String>,
    pub certificates: Certificates,
    /// The `WWW-Authenticate` challenge of the server; `None` to request it.
    pub challenge: Option<String>,
    /// Which addresses the server's metadata may name.
    pub reach: LoginReach,
}

/// A login that waits for the user.
pub struct Login {
    session: AuthorizationSession,
    metadata: AuthorizationMetadata,
    client_id: String,
    client_secret: Option<String>,
    /// The normalized URL of the server.
    server: String,
}

/// Why a login failed. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("`{url}` is no address: {reason}")]
    BadAddress { url: String, reason: String },
    /// The metadata of the server or its authorization server is missing or wrong.
    #[error("the server does not say where to log in: {0}")]
    Undiscovered(String),
    /// The login URL must not be opened in a browser.
    #[error("the server wants `{0}` opened to log in, which is no page of the web")]
    Unsafe(String),
    /// The server names another issuer than the configuration.
    #[error("the server leads to the issuer `{found}`, and the configuration names `{expected}`")]
    Unexpected { found: String, expected: String },
    /// The client is not registered there, and registering failed.
    #[error("{0}; register gatelet there by hand and give `client_id` in the configuration")]
    Unregistered(String),
    /// The user or the server refused.
    #[error("{0}")]
    Denied(String),
}

impl Login {
    /// Finds the authorization server and prepares the URL to open in a browser, which will
    /// redirect to `redirect`.
    pub async fn begin(login_request: &LoginRequest, redirect: &str) -> Result<Login, LoginError> {
        let (mut manager, metadata) = discover(login_request, None).await?;
        let scopes = requested_scopes(&manager, login_request).await;
        let (client_id, client_secret) =
            client_identity(&mut manager, &metadata, login_request, redirect, &scopes).await?;
        let mut request = AuthorizationRequest::new(redirect)
            .with_initial_scope_selection()
            .with_scopes(scopes)
            .with_preregistered_client(&client_id);
        if let Some(secret) = &client_secret {
            request = request.with_client_secret(secret);
        }
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| LoginError::Undiscovered(one_line(&error)))?;
        may_open_in_browser(session.get_authorization_url())?;
        check_reach(login_request, session.get_authorization_url())?;
        check_resource(login_request, session.get_authorization_url())?;
        let server = normalized_server_url(&login_request.url);
        Ok(Login { session, metadata, client_id, client_secret, server })
    }

    /// Returns the URL to open in a browser.
    pub fn url(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// Exchanges the code in the callback URL for a grant. `now_seconds` is the time since
    /// 1970.
    pub async fn finish(self, callback: &str, now_seconds: u64) -> Result<Grant, LoginError> {
        let parameters = query_parameters(callback);
        let parameter = |name: &str| parameters.iter().find(|(key, _)| key == name);
        if let Some((_, error)) = parameter("error") {
            let more = parameter("error_description").map_or("", |(_, text)| text.as_str());
            let told: String = format!("{error} {more}").chars().take(200).collect();
            return Err(LoginError::Denied(format!("the login was refused: {}", told.trim())));
        }
        let answer = self.session.handle_callback_url(callback).await;
        let answer = answer.map_err(|error| LoginError::Denied(one_line(&error)))?;
        let token = serde_json::to_value(&answer).unwrap_or_default();
        self.grant(&token, now_seconds)
            .ok_or_else(|| LoginError::Denied("the server gave no token".to_owned()))
    }

    fn metadata_field(&self, field: &str) -> Option<String> {
        self.metadata.additional_fields.get(field)?.as_str().map(str::to_owned)
    }

    fn grant(&self, token: &Value, now_seconds: u64) -> Option<Grant> {
        let text = |key: &str| token[key].as_str().map(str::to_owned);
        let asked = query_parameters(self.url());
        let asked = |name: &str| asked.iter().find(|(key, _)| key == name).map(|(_, v)| v.clone());
        let scopes = text("scope").or_else(|| asked("scope")).unwrap_or_default();
        Some(Grant {
            access_token: text("access_token")?,
            refresh_token: text("refresh_token"),
            expires_at: token["expires_in"].as_u64().map(|lifetime| now_seconds + lifetime),
            scopes: scopes.split_whitespace().map(str::to_owned).collect(),
            issuer: self.metadata.issuer.clone(),
            token_endpoint: self.metadata.token_endpoint.clone(),
            revocation_endpoint: self.metadata_field("revocation_endpoint"),
            resource: asked("resource").unwrap_or_default(),
            server: self.server.clone(),
            client_id: self.client_id.clone(),
            method: client_auth(&self.metadata, self.client_secret.as_deref()),
            client_secret: self.client_secret.clone(),
            kind: GrantKind::Login,
        })
    }
}

/// Discovers the authorization server, and returns its manager and its metadata.
/// `challenge` is the server's challenge, if known.
pub(super) async fn discover(
    login_request: &LoginRequest,
    challenge: Option<&str>,
) -> Result<(AuthorizationManager, AuthorizationMetadata), LoginError> {
    crate::http_client::install_crypto_provider();
    let mut manager = new_manager(login_request).await?;
    let challenge = match challenge.or(login_request.challenge.as_deref()) {
        Some(challenge) => Some(challenge.to_owned()),
        None => request_challenge(login_request).await,
    };
    let resolved = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
    let metadata = resolved.map_err(|error| LoginError::Undiscovered(one_line(&error)))?.metadata;
    check_issuer(login_request, metadata.issuer.as_deref())?;
    manager.set_metadata(metadata.clone());
    Ok((manager, metadata))
}

/// Checks that the issuer is the configured one, if one is configured.
fn check_issuer(login_request: &LoginRequest, found: Option<&str>) -> Result<(), LoginError> {
    match (&login_request.issuer, found.unwrap_or_default()) {
        (Some(expected), found) if !is_same_issuer(expected, found) => {
            let (found, expected) = (found.chars().take(200).collect(), expected.clone());
            Err(LoginError::Unexpected { found, expected })
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Fails for a URL that must not be opened in a browser.
fn may_open_in_browser(address: &str) -> Result<(), LoginError> {
    let is_page = crate::http_client::may_open_in_browser(address);
    let shown = || address.chars().filter(|c| c.is_ascii_graphic()).take(80).collect();
    if is_page { Ok(()) } else { Err(LoginError::Unsafe(shown())) }
}

/// Checks that the server may name this address.
pub(super) fn check_reach(login_request: &LoginRequest, address: &str) -> Result<(), LoginError> {
    let (Ok(server), Ok(to)) = (Url::parse(&login_request.url), Url::parse(address)) else {
        return Err(LoginError::Undiscovered("it names no address".to_owned()));
    };
    match login_request.reach.allows(&server, &to) {
        true => Ok(()),
        false => Err(LoginError::Undiscovered(web::why_out_of_reach(&to))),
    }
}

/// Checks that the requested token is for this server: a token for another server must not
/// be sent to it.
fn check_resource(login_request: &LoginRequest, address: &str) -> Result<(), LoginError> {
    let asked = query_parameters(address);
    let resource = asked.iter().find(|(name, _)| name == "resource").map(|(_, value)| value);
    match resource {
        Some(resource) if !covers(resource, &login_request.url) => {
            let shown: String =
                resource.chars().filter(|c| c.is_ascii_graphic()).take(80).collect();
            Err(LoginError::Undiscovered(format!(
                "it asks for a token for another server: `{shown}`"
            )))
        }
        Some(_) | None => Ok(()),
    }
}

async fn new_manager(login_request: &LoginRequest) -> Result<AuthorizationManager, LoginError> {
    let bad = |reason: String| LoginError::BadAddress { url: login_request.url.clone(), reason };
    let url = login_request.url.as_str();
    // Our own HTTP client bounds responses and checks addresses.
    let server = Url::parse(url).map_err(|error| bad(error.to_string()))?;
    let web =
        GuardedHttpClient::new(&login_request.certificates, server, login_request.reach.clone())
            .map_err(bad)?;
    let web = Arc::new(web);
    let manager = AuthorizationManager::new_with_oauth_http_client(url, web).await;
    manager.map_err(|error| bad(error.to_string()))
}

/// Requests the server's challenge by a `ping` without a token. Many servers send it only
/// in response to a message.
async fn request_challenge(login_request: &LoginRequest) -> Option<String> {
    let client = web::client(&login_request.certificates).ok()?;
    let ping = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
    let post = client.post(&login_request.url).header(CONTENT_TYPE, "application/json").body(ping);
    let post = post.header(ACCEPT, "application/json, text/event-stream");
    let response = post.send().await.ok()?;
    Refusal::parse(response.status(), response.headers())?.challenge
}

/// Returns the scopes to request: those of the request, or those that the server names,
/// besides the scopes granted before.
pub(super) async fn requested_scopes(
    manager: &AuthorizationManager,
    login_request: &LoginRequest,
) -> Vec<String> {
    let mut scopes = login_request.granted.clone();
    if login_request.scopes.is_empty() {
        scopes.extend(manager.select_initial_scopes(&[]).await);
    } else {
        scopes.extend(login_request.scopes.iter().cloned());
    }
    let mut known = HashSet::new();
    scopes.retain(|scope| known.insert(scope.clone()));
    scopes
}

/// Returns client id and secret: as configured, by our metadata URL, or newly registered.
async fn client_identity(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    login_request: &LoginRequest,
    redirect: &str,
    scopes: &[String],
) -> Result<(String, Option<String>), LoginError> {
    if let Some(client_id) = &login_request.client_id {
        return Ok((client_id.clone(), login_request.client_secret.clone()));
    }
    let takes_addresses = metadata.additional_fields.get("client_id_metadata_document_supported");
    if let (Some(address), Some(Value::Bool(true))) =
        (&login_request.client_metadata_url, takes_addresses)
    {
        return Ok((address.clone(), None));
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let registered = manager.register_client("gatelet", redirect, &scopes).await;
    let config = registered.map_err(|error| LoginError::Unregistered(one_line(&error)))?;
    Ok((config.client_id, config.client_secret))
}

/// Returns how the client authenticates for renewals: the same way as rmcp does for the
/// code exchange.
pub(super) fn client_auth(metadata: &AuthorizationMetadata, secret: Option<&str>) -> ClientAuth {
    if secret.is_none() {
        return ClientAuth::None;
    }
    let supported = metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let has = |wanted: &str| {
        let all = supported.and_then(Value::as_array);
        all.is_some_and(|all| all.iter().any(|method| method.as_str() == Some(wanted)))
    };
    if has("client_secret_post") && !has("client_secret_basic") {
        ClientAuth::Post
    } else {
        ClientAuth::Basic
    }
}

fn query_parameters(address: &str) -> Vec<(String, String)> {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// Returns an error on one line of limited length.
fn one_line(error: &AuthError) -> String {
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
            assert!(may_open_in_browser(address).is_ok(), "{address}");
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
            "https://login.example\\@evil.example/",
            "https:///@evil.example/",
            "https://login.example/\u{202e}",
            "vscode://x",
            "-x",
            "",
        ] {
            assert!(
                matches!(may_open_in_browser(address), Err(LoginError::Unsafe(_))),
                "{address}"
            );
        }
    }
}
