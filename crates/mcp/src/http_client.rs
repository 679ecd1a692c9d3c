//! What all outgoing HTTP requests share: client settings, bounded bodies, URL checks.

use bytes::{Bytes, BytesMut};

use crate::memory::{MemoryBudget, OutOfMemory, Reservation};
use crate::off_thread::LONG_MESSAGE;

/// Returns a client builder with gatelet's user agent.
pub fn builder() -> reqwest::ClientBuilder {
    install_crypto_provider();
    reqwest::Client::builder().user_agent(concat!("gatelet/", env!("CARGO_PKG_VERSION")))
}

/// Installs the cryptography that TLS needs, for the whole process.
pub fn install_crypto_provider() {
    // Fails when one is installed already, which is as good.
    rustls::crypto::ring::default_provider().install_default().ok();
}

/// Why a response body could not be read.
#[derive(Debug)]
pub enum BodyError {
    Broken(reqwest::Error),
    TooLong {
        limit: usize,
    },
    /// The shared memory for long messages is used up.
    OutOfMemory(OutOfMemory),
}

/// Reads the whole body, up to `limit` bytes. A body of one chunk is not copied.
pub async fn body(response: reqwest::Response, limit: usize) -> Result<Bytes, BodyError> {
    body_with_memory(response, limit, &MemoryBudget::new(usize::MAX)).await
}

/// Reads the whole body, up to `limit` bytes, and takes the memory of a long one from
/// the shared `memory`.
pub async fn body_with_memory(
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
    // With a `Content-Length` the buffer need not grow.
    let said = usize::try_from(length.unwrap_or_default()).unwrap_or(limit).min(limit);
    let mut body = BytesMut::with_capacity(said.max(first.len() + second.len()));
    body.extend_from_slice(&first);
    body.extend_from_slice(&second);
    let mut reserved: Option<Reservation> = None;
    loop {
        let next = chunk(&mut response, body.len(), limit);
        let more = match &reserved {
            None => next.await?,
            Some(reserved) => tokio::select! {
                biased;
                more = next => more?,
                full = reserved.overdue() => return Err(BodyError::OutOfMemory(full)),
            },
        };
        let Some(more) = more else { break };
        let n_bytes = body.len() + more.len();
        if LONG_MESSAGE < n_bytes {
            let at_most = if length.is_some() { said } else { limit };
            let reserved = reserved.get_or_insert_with(|| memory.reserve_for(at_most));
            reserved.grow(n_bytes).await.map_err(BodyError::OutOfMemory)?;
            // Untouched memory costs nothing; moving the body does.
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

/// Returns whether a URL names this machine.
pub fn is_loopback(url: &url::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_ours = |address: std::net::IpAddr| address.is_loopback();
    host == "localhost" || host.parse().is_ok_and(is_ours)
}

/// Returns whether an address may be opened in a browser: `https:`, or `http:` on this
/// machine. Other schemes start programs, read files or send plain text. A user name is
/// refused, because people read what stands before `@` as the host.
///
/// The address is passed on as it is written, and who opens it may parse it in another way
/// than we do. So only a spelling that everybody takes for the same host is opened.
pub fn may_open_in_browser(address: &str) -> bool {
    let Ok(url) = url::Url::parse(address) else { return false };
    let is_page = match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(&url),
        _ => false,
    };
    is_page && has_one_reading(address)
}

/// Returns whether an address has a host behind `//`, nothing before that host, and no
/// characters that a parser drops or replaces, or that a reader does not see.
fn has_one_reading(address: &str) -> bool {
    let is_odd =
        |c: char| c.is_control() || c.is_whitespace() || c == '\\' || tool::text::is_invisible(c);
    let authority = address.split_once("://").map(|(_, rest)| rest);
    let authority = authority.and_then(|rest| rest.split(['/', '?', '#']).next());
    let is_host = |authority: &str| !authority.is_empty() && !authority.contains('@');
    !address.contains(is_odd) && authority.is_some_and(is_host)
}

/// Returns the innermost cause of an error, without the URL, which may hold a secret.
pub fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
