//! Finds out where a token is had without a human (`client_credentials`): the
//! client says who it is, and that is enough.
//!
//! Its secret is sent to the token endpoint of one issuer only, the one that the
//! operator names: a server that was taken over can name another, and gets
//! nothing by it. Where the metadata may lead is decided as for a login.

use super::login::{self, LoginError, LoginRequest};
use super::{Grant, GrantKind, server_of};

/// A grant without a token yet, with all that getting one needs.
pub(super) async fn grant_to_be(
    wanted: &LoginRequest,
    challenge: Option<&str>,
) -> Result<Grant, LoginError> {
    let missing = |what: &str| LoginError::Denied(format!("there is no `{what}` in `oauth`"));
    let client_id = wanted.client_id.clone().ok_or_else(|| missing("client_id"))?;
    let client_secret = wanted.client_secret.clone().ok_or_else(|| missing("client_secret"))?;
    wanted.issuer.as_ref().ok_or_else(|| missing("issuer"))?;
    let (manager, metadata) = login::discovered(wanted, challenge).await?;
    login::may_lead_to(wanted, &metadata.token_endpoint)?;
    let server = server_of(&wanted.url);
    Ok(Grant {
        access_token: String::new(),
        refresh_token: None,
        expires_at: None,
        scopes: login::scopes(&manager, wanted).await,
        issuer: metadata.issuer.clone(),
        token_endpoint: metadata.token_endpoint.clone(),
        revocation_endpoint: None,
        resource: server.clone(),
        server,
        client_id,
        method: login::method(&metadata, Some(&client_secret)),
        client_secret: Some(client_secret),
        kind: GrantKind::ClientCredentials,
    })
}
