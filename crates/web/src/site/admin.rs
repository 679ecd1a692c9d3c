//! The endpoints for an operator on this machine.
//!
//! Three things are asked of who asks: a connection from this machine, an
//! identity with the scope [`SCOPE`], and no web page behind it. From elsewhere
//! there is nothing here at all.

use std::fmt::Display;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Buf;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use mcp::serve::http::Body;
use serde_json::{Value, json};
use tokio::time::timeout;
use tool::Identity;

use super::response::{full_response, json_error};
use crate::listen::Peer;

/// Where operators ask.
pub const PATH: &str = "/admin/";

/// The scope that operators have.
pub const SCOPE: &str = "admin";

/// The largest question.
const LARGEST: usize = 64 << 10;

/// How long a question may take to come.
const TO_COME: Duration = Duration::from_secs(10);

/// Answers operators.
#[async_trait]
pub trait Admin: Send + Sync {
    /// `path` is what follows `/admin`.
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        body: &[u8],
    ) -> (StatusCode, Value);
}

pub(super) async fn respond<B>(
    admin: &dyn Admin,
    request: Request<B>,
    caller: &Identity,
) -> Response<Body>
where
    B: http_body::Body,
    B::Data: Buf,
    B::Error: Display,
{
    let peer = request.extensions().get::<Peer>();
    if !peer.is_some_and(|peer| peer.0.ip().to_canonical().is_loopback()) {
        return json_error(StatusCode::NOT_FOUND, "nothing is here");
    }
    if !caller.scopes.contains(SCOPE) || request.headers().contains_key(header::ORIGIN) {
        let message = format!("this is for operators: it takes a key with the scope `{SCOPE}`");
        let mut response = json_error(StatusCode::FORBIDDEN, &message);
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"admin\"";
        let challenge = HeaderValue::from_static(challenge);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        return response;
    }
    let (head, body) = request.into_parts();
    let body = Limited::new(body.map_err(|error| error.to_string()), LARGEST);
    let body = match timeout(TO_COME, body.collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let message = format!("the body is over {LARGEST} bytes or broke off");
            return json_error(StatusCode::PAYLOAD_TOO_LARGE, &message);
        }
        Err(_) => return json_error(StatusCode::REQUEST_TIMEOUT, "the body did not come"),
    };
    let path = head.uri.path().strip_prefix("/admin").unwrap_or_default();
    let query = head.uri.query().unwrap_or_default();
    let (status, told) = admin.answer(&head.method, path, query, &body).await;
    full_response(status, "application/json", json!(told).to_string())
}
