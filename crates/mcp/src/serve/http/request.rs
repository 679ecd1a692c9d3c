//! Reads the headers and the body of an HTTP request.

use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{self, AsHeaderName};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::body::{self, Refusal};
use super::options::Options;
use crate::message::Frame;
use crate::revision::code;

/// A header as text.
pub(super) fn text<B>(request: &Request<B>, name: impl AsHeaderName) -> Option<&str> {
    request.headers().get(name)?.to_str().ok().map(str::trim)
}

/// Returns whether an answer of this media type is welcome.
pub(super) fn accepts<B>(request: &Request<B>, media_type: &str) -> bool {
    let (kind, _) = media_type.split_once('/').unwrap_or((media_type, ""));
    let mut said = false;
    for value in request.headers().get_all(header::ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            let range = range.split(';').next().unwrap_or_default().trim();
            said |= !range.is_empty();
            let any = range.strip_suffix("/*").is_some_and(|of| of == "*" || of == kind);
            if any || range.eq_ignore_ascii_case(media_type) {
                return true;
            }
        }
    }
    !said
}

/// Returns whether the body says that it is JSON.
pub(super) fn is_json<B>(request: &Request<B>) -> bool {
    let kind = text(request, header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind.trim());
    kind.eq_ignore_ascii_case("application/json")
}

/// Reads the body of a POST as messages.
pub(super) async fn frame<B>(body: B, options: &Options) -> Result<Frame, Refusal>
where
    B: http_body::Body,
    B::Data: Buf,
    B::Error: Display,
{
    let time = options.body_time;
    let read = timeout(time, bytes(body, options.body)).await;
    let bytes = read.unwrap_or_else(|_| Err(late(time)))?;
    Frame::parse(&bytes).map_err(|invalid| {
        let id = invalid.id.clone().unwrap_or_else(tool::Json::null);
        let reply = tool::Reply::Error(invalid.to_error());
        Box::new(body::answer(StatusCode::BAD_REQUEST, &id, &reply))
    })
}

/// Returns what a client gets whose body does not come. The rest of it might come
/// yet, so the connection cannot be used again.
fn late(time: Duration) -> Refusal {
    let message = format!("the body did not come within {} s", time.as_secs_f32());
    let mut response = body::refusal(StatusCode::REQUEST_TIMEOUT, code::INVALID_REQUEST, message);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Box::new(response)
}

async fn bytes<B>(body: B, limit: usize) -> Result<Bytes, Refusal>
where
    B: http_body::Body,
    B::Data: Buf,
    B::Error: Display,
{
    let too_large = || {
        let message = format!("the body is over the limit of {limit} bytes");
        Box::new(body::refusal(StatusCode::PAYLOAD_TOO_LARGE, code::INVALID_REQUEST, message))
    };
    if limit < usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) {
        return Err(too_large());
    }
    let mut body = pin!(body);
    let mut whole = Bytes::new();
    let mut more = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|broken| {
            let message = format!("the body broke off: {broken}");
            Box::new(body::refusal(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message))
        })?;
        let Ok(mut data) = frame.into_data() else { continue };
        if limit < whole.len() + more.len() + data.remaining() {
            return Err(too_large());
        }
        // Most bodies come in one piece, which is not copied.
        if whole.is_empty() && more.is_empty() {
            whole = data.copy_to_bytes(data.remaining());
        } else {
            more.extend_from_slice(&std::mem::take(&mut whole));
            while data.has_remaining() {
                let chunk = data.chunk();
                more.extend_from_slice(chunk);
                let n_read = chunk.len();
                data.advance(n_read);
            }
        }
    }
    Ok(if more.is_empty() { whole } else { more.into() })
}
