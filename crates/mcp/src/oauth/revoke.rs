//! Revokes a grant (RFC 7009), so that a forgotten token no longer works.

use http::header::{ACCEPT, CONTENT_TYPE};

use super::{Grant, web};
use crate::connect::Certificates;

/// The result of revoking a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revoked {
    Done,
    /// The server has no revocation endpoint.
    NotOffered,
    /// Revoking failed; the reason in one line.
    Failed(String),
}

/// Revokes all tokens of a grant at the authorization server.
pub async fn revoke(grant: &Grant, certificates: &Certificates) -> Revoked {
    let Some(endpoint) = grant.revocation_endpoint.as_deref() else { return Revoked::NotOffered };
    let client = match web::client(certificates) {
        Ok(client) => client,
        Err(reason) => return Revoked::Failed(reason),
    };
    // The refresh token first: that usually revokes the access token too.
    let refresh = grant.refresh_token.as_deref().map(|token| (token, "refresh_token"));
    for (token, kind) in refresh.into_iter().chain([(grant.access_token.as_str(), "access_token")])
    {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", token).append_pair("token_type_hint", kind);
        let post = grant.authenticate_client(client.post(endpoint), &mut form);
        let post = post.header(ACCEPT, "application/json");
        let post = post.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        match post.body(form.finish()).send().await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => return Revoked::Failed(format!("HTTP {}", response.status().as_u16())),
            Err(_) => return Revoked::Failed("the server does not answer".to_owned()),
        }
    }
    Revoked::Done
}
