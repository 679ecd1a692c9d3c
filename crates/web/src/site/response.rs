//! Responses of one piece.

use http::{HeaderValue, Response, StatusCode, header};
use mcp::serve::http::Body;
use serde_json::json;

pub(super) fn problem(status: StatusCode, message: &str) -> Response<Body> {
    plain(status, "application/json", json!({"error": message}).to_string())
}

pub(super) fn plain(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<bytes::Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Body::whole(body));
    *response.status_mut() = status;
    if !kind.is_empty() {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}
