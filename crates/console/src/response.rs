//! Builds the responses of the console, each with its security headers.

use bytes::Bytes;
use futures::stream::BoxStream;
use http::{HeaderValue, Response, StatusCode, header};
use maud::Markup;

/// The body of a response.
pub enum Content {
    Whole(Bytes),
    /// A stream of events.
    Events(BoxStream<'static, Bytes>),
}

/// Allows only the console's own files, no inline scripts or styles, and no framing.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub(crate) fn page(status: StatusCode, markup: Markup) -> Response<Content> {
    let text = markup.into_string();
    complete(status, "text/html; charset=utf-8", text, "no-store")
}

/// Builds a response for a program.
pub(crate) fn json(status: StatusCode, value: &serde_json::Value) -> Response<Content> {
    complete(status, "application/json", value.to_string(), "no-store")
}

/// Builds a response with a static file.
pub(crate) fn asset(content_type: &'static str, text: &'static str) -> Response<Content> {
    complete(StatusCode::OK, content_type, Bytes::from_static(text.as_bytes()), "max-age=3600")
}

pub(crate) fn events(stream: BoxStream<'static, Bytes>) -> Response<Content> {
    let mut response = with_security_headers(Response::new(Content::Events(stream)), "no-store");
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Redirects the browser to another page of the console.
pub(crate) fn redirect(path: &str) -> Response<Content> {
    let mut response = complete(StatusCode::SEE_OTHER, "text/plain", "", "no-store");
    let location = HeaderValue::from_str(&format!("{}{path}", crate::PATH));
    let location = location.unwrap_or_else(|_| HeaderValue::from_static(crate::PATH));
    response.headers_mut().insert(header::LOCATION, location);
    response
}

fn complete(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
    cache: &'static str,
) -> Response<Content> {
    let mut response = with_security_headers(Response::new(Content::Whole(body.into())), cache);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn with_security_headers(
    mut response: Response<Content>,
    cache: &'static str,
) -> Response<Content> {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Without a referrer policy that allows it, browsers send no origin with forms.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, cache),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}
