//! Reads the headers and the messages of an HTTP request.

use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{self, AsHeaderName};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::body::{self, BoxedRefusal};
use super::fair_memory::{MemoryShare, NoRoom};
use super::options::Options;
use super::request_memory::{MAX_WAIT, SHORT_BODY, count_values, parsed_bytes};
use crate::message::Frame;
use crate::off_thread::off_thread;
use crate::revision::code;
use crate::serve::caller::CallerKey;

/// The most values and names in one body. A value takes many times its length when it is
/// parsed, so a limit on the length is not enough.
const MAX_VALUES: usize = 1_000_000;

/// Returns a header as text.
pub(super) fn header_text<B>(request: &Request<B>, name: impl AsHeaderName) -> Option<&str> {
    request.headers().get(name)?.to_str().ok().map(str::trim)
}

/// Returns whether the client accepts a response of this media type.
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

/// Returns whether the content type is JSON.
pub(super) fn is_json<B>(request: &Request<B>) -> bool {
    let kind = header_text(request, header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind.trim());
    kind.eq_ignore_ascii_case("application/json")
}

/// Receives the body of a POST of `caller`, within the limits of `options`.
pub(super) async fn receive<B>(
    body: B,
    caller: CallerKey,
    options: &Options,
) -> Result<Bytes, BoxedRefusal>
where
    B: http_body::Body,
    B::Data: Buf,
    B::Error: Display,
{
    let limit = options.body;
    let n_bytes = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if limit < n_bytes {
        return Err(too_large(limit));
    }
    let mut share = options.request_memory.empty_share(caller);
    if SHORT_BODY < n_bytes {
        share.grow(n_bytes, MAX_WAIT).await.map_err(no_room)?;
    }
    let time = options.body_time;
    let read = timeout(time, read_bytes(body, limit, &mut share)).await;
    let bytes = read.unwrap_or_else(|_| Err(body_timeout(time)))?;
    if SHORT_BODY < bytes.len() {
        let counted = bytes.clone();
        let n_values = off_thread(bytes.len(), move || count_values(&counted)).await;
        if MAX_VALUES < n_values {
            return Err(too_many_values());
        }
        share.grow(parsed_bytes(bytes.len(), n_values), MAX_WAIT).await.map_err(no_room)?;
    }
    Ok(share.hold(bytes))
}

/// Parses the body of a POST.
pub(super) fn parse_frame(bytes: &Bytes) -> Result<Frame, BoxedRefusal> {
    Frame::parse(bytes).map_err(|invalid| {
        let id = invalid.id.clone().unwrap_or_else(tool::Json::null);
        let reply = tool::Reply::Error(invalid.to_error());
        Box::new(body::answer(StatusCode::BAD_REQUEST, &id, &reply))
    })
}

fn too_large(limit: usize) -> BoxedRefusal {
    let message = format!("the body is over the limit of {limit} bytes");
    Box::new(body::refusal(StatusCode::PAYLOAD_TOO_LARGE, code::INVALID_REQUEST, message))
}

fn too_many_values() -> BoxedRefusal {
    let message = format!(
        "the body has more than {MAX_VALUES} values and names; send fewer at a time, or long \
         lists as text"
    );
    Box::new(body::refusal(StatusCode::PAYLOAD_TOO_LARGE, code::INVALID_REQUEST, message))
}

/// Returns the refusal of a body for which there is no memory. The rest of it may still
/// arrive, so the connection is closed unless that is soon.
fn no_room(NoRoom: NoRoom) -> BoxedRefusal {
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    let why = "too many long requests are under way; try again in a moment, or send less at a time";
    let mut response = body::refusal(unavailable, code::SERVER, why);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    Box::new(response)
}

/// Returns the refusal of a body that was not received in time. The rest of it may still
/// arrive, so the connection is closed.
fn body_timeout(time: Duration) -> BoxedRefusal {
    let message = format!("the body did not come within {} s", time.as_secs_f32());
    let mut response = body::refusal(StatusCode::REQUEST_TIMEOUT, code::INVALID_REQUEST, message);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Box::new(response)
}

async fn read_bytes<B>(
    body: B,
    limit: usize,
    share: &mut MemoryShare,
) -> Result<Bytes, BoxedRefusal>
where
    B: http_body::Body,
    B::Data: Buf,
    B::Error: Display,
{
    let mut body = pin!(body);
    let mut whole = Bytes::new();
    let mut more = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|broken| {
            let message = format!("the body broke off: {broken}");
            Box::new(body::refusal(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message))
        })?;
        let Ok(mut data) = frame.into_data() else { continue };
        let n_bytes = whole.len() + more.len() + data.remaining();
        if limit < n_bytes {
            return Err(too_large(limit));
        }
        // Of a body whose length was not told, memory is taken in steps.
        if SHORT_BODY < n_bytes && share.n_bytes() < n_bytes {
            share.grow(n_bytes.next_power_of_two().min(limit), MAX_WAIT).await.map_err(no_room)?;
        }
        // Most bodies come in one chunk, which is not copied.
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
