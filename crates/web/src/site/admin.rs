//! Passes requests below `/admin/` to the operator's API, and checks who may use it.
//!
//! A request must come from this machine, from a caller with the scope [`SCOPE`], and not
//! from a web page. From other machines the answer is 404.

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

/// The path of the operator's API.
pub const PATH: &str = "/admin/";

/// The scope that operators have.
pub const SCOPE: &str = "admin";

/// The size of the largest body.
const MAX_BODY_BYTES: usize = 64 << 10;

/// How long sending a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The operator's API.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Answers a request with a status and a JSON body. `path` is what follows `/admin`.
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
    let body = Limited::new(body.map_err(|error| error.to_string()), MAX_BODY_BYTES);
    let body = match timeout(BODY_TIMEOUT, body.collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let message = format!("the body is over {MAX_BODY_BYTES} bytes or broke off");
            return json_error(StatusCode::PAYLOAD_TOO_LARGE, &message);
        }
        Err(_) => return json_error(StatusCode::REQUEST_TIMEOUT, "the body did not come"),
    };
    let path = head.uri.path().strip_prefix("/admin").unwrap_or_default();
    let query = head.uri.query().unwrap_or_default();
    let (status, answer) = admin.answer(&head.method, path, query, &body).await;
    full_response(status, "application/json", json!(answer).to_string())
}
