//! Responses of the console, each with the headers that keep it to itself.

use bytes::Bytes;
use futures::stream::BoxStream;
use http::{HeaderValue, Response, StatusCode, header};
use maud::Markup;

/// What a response carries.
pub enum Content {
    Whole(Bytes),
    /// A stream of events.
    Events(BoxStream<'static, Bytes>),
}

/// Only our own files are loaded, nothing is written into a page, and nobody puts
/// a page into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub(crate) fn page(status: StatusCode, markup: Markup) -> Response<Content> {
    let text = markup.into_string();
    whole(status, "text/html; charset=utf-8", text, "no-store")
}

/// An answer for a program.
pub(crate) fn json(status: StatusCode, value: &serde_json::Value) -> Response<Content> {
    whole(status, "application/json", value.to_string(), "no-store")
}

/// A file that comes with the program.
pub(crate) fn asset(content_type: &'static str, text: &'static str) -> Response<Content> {
    whole(StatusCode::OK, content_type, Bytes::from_static(text.as_bytes()), "max-age=3600")
}

pub(crate) fn events(stream: BoxStream<'static, Bytes>) -> Response<Content> {
    let mut response = guarded(Response::new(Content::Events(stream)), "no-store");
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Sends the browser to another page of the console.
pub(crate) fn see(path: &str) -> Response<Content> {
    let mut response = whole(StatusCode::SEE_OTHER, "text/plain", "", "no-store");
    let place = HeaderValue::from_str(&format!("{}{path}", crate::PATH));
    let place = place.unwrap_or_else(|_| HeaderValue::from_static(crate::PATH));
    response.headers_mut().insert(header::LOCATION, place);
    response
}

fn whole(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
    cache: &'static str,
) -> Response<Content> {
    let mut response = guarded(Response::new(Content::Whole(body.into())), cache);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn guarded(mut response: Response<Content>, cache: &'static str) -> Response<Content> {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Without any, browsers do not say where a form comes from.
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
