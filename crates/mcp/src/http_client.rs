//! The settings that all HTTP clients share.

use bytes::{Bytes, BytesMut};

use crate::aside::LONG;
use crate::memory::{MemoryBudget, OutOfMemory};

/// A client in the making, under our name.
pub fn builder() -> reqwest::ClientBuilder {
    provide();
    reqwest::Client::builder().user_agent(concat!("gatelet/", env!("CARGO_PKG_VERSION")))
}

/// Sees to it that connections can be secured.
pub fn provide() {
    // Whoever installs a provider first wins; any is as good.
    rustls::crypto::ring::default_provider().install_default().ok();
}

/// Why there is no body.
#[derive(Debug)]
pub enum BodyError {
    Broken(reqwest::Error),
    TooLong {
        limit: usize,
    },
    /// There is no memory for it beside others.
    OutOfMemory(OutOfMemory),
}

/// The whole body, within a limit. One chunk is not copied.
pub async fn body(response: reqwest::Response, limit: usize) -> Result<Bytes, BodyError> {
    body_within(response, limit, &MemoryBudget::new(usize::MAX)).await
}

/// The same, with memory for long ones shared with others.
pub async fn body_within(
    mut response: reqwest::Response,
    limit: usize,
    memory: &MemoryBudget,
) -> Result<Bytes, BodyError> {
    let length = response.content_length();
    if length.is_some_and(|length| u64::try_from(limit).unwrap_or(u64::MAX) < length) {
        return Err(BodyError::TooLong { limit });
    }
    let Some(first) = chunk(&mut response, 0, limit).await? else { return Ok(Bytes::new()) };
    let Some(second) = chunk(&mut response, first.len(), limit).await? else { return Ok(first) };
    // Where the server says how long it is, nothing is moved as it grows.
    let said = usize::try_from(length.unwrap_or_default()).unwrap_or(limit).min(limit);
    let mut body = BytesMut::with_capacity(said.max(first.len() + second.len()));
    body.extend_from_slice(&first);
    body.extend_from_slice(&second);
    let mut reserved = None;
    while let Some(more) = chunk(&mut response, body.len(), limit).await? {
        let n_bytes = body.len() + more.len();
        if LONG < n_bytes {
            let reserved = reserved.get_or_insert_with(|| memory.none());
            reserved.grow(n_bytes).map_err(BodyError::OutOfMemory)?;
            // Memory that nobody writes to costs nothing; moving the body does.
            if body.capacity() < n_bytes {
                body.reserve(limit.saturating_sub(body.len()).max(more.len()));
            }
        }
        body.extend_from_slice(&more);
    }
    Ok(match reserved {
        Some(reserved) => reserved.hold(body),
        None => body.freeze(),
    })
}

async fn chunk(
    response: &mut reqwest::Response,
    so_far: usize,
    limit: usize,
) -> Result<Option<Bytes>, BodyError> {
    let chunk = response.chunk().await.map_err(BodyError::Broken)?;
    let is_over = |chunk: &Bytes| limit < so_far + chunk.len();
    if chunk.as_ref().is_some_and(is_over) { Err(BodyError::TooLong { limit }) } else { Ok(chunk) }
}

/// Returns whether an address is on this machine.
pub fn is_loopback(url: &url::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_ours = |address: std::net::IpAddr| address.is_loopback();
    host == "localhost" || host.parse().is_ok_and(is_ours)
}

/// Returns whether an address may be handed to a browser: a secured page, or one on this
/// machine. Anything else starts programs, reads files or shows words in clear. What
/// stands before an `@` is taken for the host by whoever reads it.
pub fn can_be_opened(url: &url::Url) -> bool {
    let is_page = match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(url),
        _ => false,
    };
    is_page && url.username().is_empty() && url.password().is_none()
}

/// The cause of all causes, without the URL, which may hold a secret.
pub fn deepest(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
