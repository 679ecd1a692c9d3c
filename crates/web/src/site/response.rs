//! Responses whose body is sent whole, not streamed.

use http::{HeaderValue, Response, StatusCode, header};
use mcp::serve::http::Body;
use serde_json::json;

/// Builds an error response with the JSON body `{"error": message}`.
pub(super) fn json_error(status: StatusCode, message: &str) -> Response<Body> {
    full_response(status, "application/json", json!({"error": message}).to_string())
}

/// Builds a response with a complete body. An empty `content_type` leaves the
/// header out.
pub(super) fn full_response(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<bytes::Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Body::whole(body));
    *response.status_mut() = status;
    if !content_type.is_empty() {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    response
}
