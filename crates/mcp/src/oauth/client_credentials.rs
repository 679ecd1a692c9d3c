//! Discovers the token endpoint for the `client_credentials` grant, which needs no user.
//!
//! The client secret is sent to the configured issuer only: a server that was taken over
//! can name another issuer, but does not get the secret. Addresses in the metadata are
//! checked as for a login.

use super::login::{self, LoginError, LoginRequest};
use super::{Grant, GrantKind, normalized_server_url};

/// Returns a grant without a token, with all that requesting one needs.
pub(super) async fn discover_grant(
    login_request: &LoginRequest,
    challenge: Option<&str>,
) -> Result<Grant, LoginError> {
    let missing = |what: &str| LoginError::Denied(format!("there is no `{what}` in `oauth`"));
    let client_id = login_request.client_id.clone().ok_or_else(|| missing("client_id"))?;
    let client_secret =
        login_request.client_secret.clone().ok_or_else(|| missing("client_secret"))?;
    login_request.issuer.as_ref().ok_or_else(|| missing("issuer"))?;
    let (manager, metadata) = login::discover(login_request, challenge).await?;
    login::check_reach(login_request, &metadata.token_endpoint)?;
    let server = normalized_server_url(&login_request.url);
    Ok(Grant {
        access_token: String::new(),
        refresh_token: None,
        expires_at: None,
        scopes: login::requested_scopes(&manager, login_request).await,
        issuer: metadata.issuer.clone(),
        token_endpoint: metadata.token_endpoint.clone(),
        revocation_endpoint: None,
        resource: server.clone(),
        server,
        client_id,
        method: login::client_auth(&metadata, Some(&client_secret)),
        client_secret: Some(client_secret),
        kind: GrantKind::ClientCredentials,
    })
}
