//! Accepts connections, plain or over TLS.
//!
//! A client costs at most what the [`Limits`] say: in connections, in time to
//! shake hands, to send the head of a request and to take what it asked for,
//! and in bytes of head. Whoever is over a limit is told so where the protocol
//! has words for it, and is let go. When there are too many connections, an idle
//! one is closed for a new one; only when all are busy is a client turned away.
//!
//! A server that is told to stop goes on listening for as long as requests are
//! under way, so that the site can tell whoever comes to come back later.

mod connections;
mod in_flight;
mod paced;
mod request_body;
mod wait;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mcp::serve::http::{Body, ConnectionId, PeerAddress};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::descriptors;
use crate::identity::certificate::{CertificateHolder, holder};
use connections::{Connections, Entry};
use in_flight::InFlight;
use paced::Paced;
use request_body::Reuse;

pub use connections::{CallerStanding, Connection};
pub use request_body::RequestBody;

/// What a client may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections there may be at once.
    pub connections: usize,
    /// How long the head of a request may take to come, and how long a
    /// connection may stand idle.
    pub head_time: Duration,
    /// The largest head of a request, in bytes.
    pub head_bytes: usize,
    /// How long a client may keep us waiting before it takes what we send.
    pub write_time: Duration,
    /// How long open requests may take when the server is told to stop.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 4096,
            head_time: Duration::from_secs(30),
            head_bytes: 64 << 10,
            write_time: Duration::from_secs(30),
            drain_time: Duration::from_secs(5),
        }
    }
}

/// Where the other end of a connection is, in the request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// What is shown to the next client; asked for every connection, so that new
/// certificates count at once and connections that stand are not touched.
pub type TlsConfigs = Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>;

/// Where is asked whether we are well. Even without room for another
/// connection this is answered.
pub const HEALTH_PATH: &str = "/health";

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How many clients at once are told that there is no room for them, at most.
const TURNED_AWAY: usize = 64;

/// How long one of them may take.
const TO_TURN_AWAY: Duration = Duration::from_secs(1);

/// How long the last answers may take to be written when all is over.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is told when there are too many connections.
const FULL: &str = r#"{"error":"too many connections; try again in a moment"}"#;

/// How many idle connections are closed when no descriptor is free.
const CLOSED_AT_ONCE: usize = 32;

/// How long to wait when a connection could not be accepted.
const UNTIL_NEXT: Duration = Duration::from_millis(50);

/// Serves `site` until `shutdown` is ready, then lets open requests finish for
/// a little while. Meanwhile the site is still asked: it knows that it closes.
/// Over TLS when something is `shown`.
pub async fn listen<S, F>(
    listener: TcpListener,
    shown: Option<TlsConfigs>,
    limits: Limits,
    site: S,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let limit = bound(limits.connections);
    let connections = Connections::new(limit);
    let turned_away = Arc::new(Semaphore::new((limit / 8).clamp(1, TURNED_AWAY)));
    let in_flight = InFlight::default();
    let mut over = pin!(over(shutdown, limits.drain_time, in_flight.clone()));
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener, &connections) => accepted?,
            () = &mut over => break,
        };
        let (inner, shown) = (site.clone(), shown.clone());
        let site = move |mut request: Request<RequestBody>| {
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(PeerAddress(peer.ip()));
            inner(request)
        };
        let Some(entry) = connections.admit() else {
            if let Ok(turn) = Arc::clone(&turned_away).try_acquire_owned() {
                tokio::spawn(async move {
                    drop(timeout(TO_TURN_AWAY, turn_away(stream, shown, site)).await);
                    drop(turn);
                });
            }
            continue;
        };
        let (in_flight, is_full) = (in_flight.clone(), connections.is_full());
        tokio::spawn(async move {
            match shown {
                None => serve(stream, None, limits, site, in_flight, &entry).await,
                Some(shown) => over_tls(stream, shown(), limits, site, in_flight, &entry).await,
            }
        });
        if is_full {
            // What was told to close does so before the next comes in.
            tokio::task::yield_now().await;
        }
    }
    drop(listener);
    // What has no answer yet gets one, and streams that never end are ended.
    in_flight.end();
    connections.close();
    drop(timeout(LAST_WORDS, connections.none()).await);
    Ok(())
}

/// Serves `site` without TLS, within the usual limits, for as long as the
/// program runs.
pub async fn listen_plain<S, F>(listener: TcpListener, site: S) -> io::Result<()>
where
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    listen(listener, None, Limits::default(), site, std::future::pending()).await
}

/// Returns how many connections there may be: as many as wanted, if there are
/// descriptors for them.
fn bound(wanted: usize) -> usize {
    let possible = descriptors::for_connections();
    if possible < wanted {
        tracing::warn!(
            "at most {possible} connections at once, not {wanted}: this process may not open more \
             files (`ulimit -n`)"
        );
    }
    wanted.min(possible)
}

/// Ready when it is time to go: told to, and nothing is under way any more or
/// has been for long enough.
async fn over(shutdown: impl Future<Output = ()>, drain_time: Duration, in_flight: InFlight) {
    shutdown.await;
    drop(timeout(drain_time, in_flight.none()).await);
}

/// The next connection, for small messages. An error is one for good: what goes
/// wrong at the moment is waited out, and if descriptors are short, idle
/// connections give theirs.
async fn accept(
    listener: &TcpListener,
    connections: &Connections,
) -> io::Result<(TcpStream, SocketAddr)> {
    let mut has_warned = false;
    loop {
        let error = match listener.accept().await {
            Ok((stream, peer)) => {
                // Without this, small answers wait for the client's acknowledgement.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY could not be set");
                }
                return Ok((stream, peer));
            }
            Err(error) => error,
        };
        #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is what we are short of")]
        match error.kind() {
            io::ErrorKind::InvalidInput
            | io::ErrorKind::NotConnected
            | io::ErrorKind::Unsupported => return Err(error),
            // The client is gone again.
            io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted => {}
            _ => {
                if !has_warned {
                    tracing::warn!(%error, "a connection could not be accepted");
                    has_warned = true;
                }
                connections.close_idle(CLOSED_AT_ONCE);
                tokio::time::sleep(UNTIL_NEXT).await;
            }
        }
    }
}

async fn over_tls<S, F>(
    stream: TcpStream,
    shown: Arc<ServerConfig>,
    limits: Limits,
    site: S,
    in_flight: InFlight,
    entry: &Entry,
) where
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let stream = tokio::select! {
        stream = shake_hands(stream, shown) => stream,
        () = entry.connection.closing() => return,
    };
    let Some(stream) = stream else { return };
    let (_, connection) = stream.get_ref();
    let shown = connection.peer_certificates().and_then(|chain| chain.first());
    let caller = shown.map(|certificate| CertificateHolder(Arc::new(holder(certificate))));
    serve(stream, caller, limits, site, in_flight, entry).await;
}

async fn shake_hands(stream: TcpStream, shown: Arc<ServerConfig>) -> Option<TlsStream<TcpStream>> {
    match timeout(HANDSHAKE, TlsAcceptor::from(shown).accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%error, "a client could not shake hands"),
        Err(_) => tracing::debug!("a client took too long to shake hands"),
    }
    None
}

/// Answers the requests of one connection.
async fn serve<T, S, F>(
    stream: T,
    caller: Option<CertificateHolder>,
    limits: Limits,
    site: S,
    in_flight: InFlight,
    entry: &Entry,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let (id, this) = (ConnectionId::new(), &entry.connection);
    let service = service_fn(|request: Request<Incoming>| {
        let (mut request, unread) = RequestBody::wrap(request);
        let extensions = request.extensions_mut();
        extensions.insert(id.clone());
        extensions.insert(this.clone());
        if let Some(caller) = &caller {
            extensions.insert(caller.clone());
        }
        let answer = site(request);
        in_flight.track(this.clone(), async move {
            let mut response = answer.await;
            if let Some(unread) = unread
                && unread.discard().await == Reuse::Impossible
            {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            response
        })
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_header_size(limits.head_bytes)
        // Not `pipeline_flush`: it keeps the answer to a head that cannot be
        // read back, and then there is none.
        .serve_connection(TokioIo::new(Paced::new(stream, limits.write_time)), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = this.closing() => {
            connection.as_mut().graceful_shutdown();
            match (this.is_busy(), this.has_asked()) {
                (true, _) => connection.await,
                // The last answer may not be sent whole.
                (false, true) => timeout(LAST_WORDS, connection).await.unwrap_or(Ok(())),
                (false, false) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Answers one request of a client for whom there is no room: how we are, if
/// that is asked, and else that there is no room.
async fn turn_away<S, F>(stream: TcpStream, shown: Option<TlsConfigs>, site: S)
where
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    match shown {
        None => tell_full(stream, site).await,
        Some(shown) => {
            if let Some(stream) = shake_hands(stream, shown()).await {
                tell_full(stream, site).await;
            }
        }
    }
}

async fn tell_full<T, S, F>(stream: T, site: S)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let site = site.clone();
        async move {
            Ok::<_, Infallible>(match request.uri().path() {
                HEALTH_PATH => site(RequestBody::wrap(request).0).await,
                _ => full(request.into_body()).await,
            })
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TO_TURN_AWAY)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a client was not told that there is no room");
    }
}

/// Says that there is no room, after a look at what the client sends: a
/// connection that is closed with something unread is reset.
async fn full(mut unread: Incoming) -> Response<Body> {
    drop(timeout(LAST_WORDS, async { while let Some(Ok(_)) = unread.frame().await {} }).await);
    let mut response = Response::new(Body::whole(FULL));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
mod tests;
