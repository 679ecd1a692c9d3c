//! Accepts HTTP connections, plain or over TLS, within limits.
//!
//! [`Limits`] bound the number of connections, the size of a request's head, and the time
//! for a handshake, for the head and for writing the answer. A client over a limit gets an
//! error where HTTP has one, and is disconnected. When there are too many connections, an
//! idle one is closed for a new one; only when all are busy is a client turned away.
//!
//! A server that is told to stop goes on accepting while requests are in flight, so that
//! the site can tell new clients to come back later.

mod connections;
mod in_flight;
mod request_body;
mod wait;
mod write_timeout;

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
use request_body::Reuse;
use write_timeout::WriteTimeout;

pub use connections::{CallerStanding, Connection};
pub use request_body::RequestBody;

/// The limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections may be open at once.
    pub connections: usize,
    /// How long a client may take to send the head of a request, and how long a connection
    /// may be idle.
    pub head_time: Duration,
    /// The size of the largest head.
    pub head_bytes: usize,
    /// How long a write may be blocked because the client does not read.
    pub write_time: Duration,
    /// How long requests in flight may take when the server is told to stop.
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

/// The address of the client, in the request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Returns the TLS configuration for the next connection. It is asked every time, so that
/// new certificates are used at once.
pub type TlsConfigs = Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>;

/// The path of the health check, which is answered even when there are too many
/// connections.
pub const HEALTH_PATH: &str = "/health";

/// How long a TLS handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How many clients at once are told that there are too many connections, at most.
const MAX_TURNED_AWAY: usize = 64;

/// How long telling a client so may take.
const TURN_AWAY_TIME: Duration = Duration::from_secs(1);

/// How long writing the last answers may take when the server ends.
const FINAL_WRITE_TIME: Duration = Duration::from_millis(500);

/// The body of the answer when there are too many connections.
const FULL: &str = r#"{"error":"too many connections; try again in a moment"}"#;

/// How many idle connections are closed when no descriptor is free.
const CLOSED_AT_ONCE: usize = 32;

/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `site` until `shutdown` is ready, then waits for requests in flight, for at most
/// `drain_time`. New requests still reach the site meanwhile. Connections are over TLS if
/// there is a `tls` configuration.
pub async fn listen<S, F>(
    listener: TcpListener,
    tls: Option<TlsConfigs>,
    limits: Limits,
    site: S,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let limit = connection_limit(limits.connections);
    let connections = Connections::new(limit);
    let turned_away = Arc::new(Semaphore::new((limit / 8).clamp(1, MAX_TURNED_AWAY)));
    let in_flight = InFlight::default();
    let mut drained = pin!(drained(shutdown, limits.drain_time, in_flight.clone()));
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener, &connections) => accepted?,
            () = &mut drained => break,
        };
        let (inner, tls) = (site.clone(), tls.clone());
        let site = move |mut request: Request<RequestBody>| {
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(PeerAddress(peer.ip()));
            inner(request)
        };
        let Some(entry) = connections.admit() else {
            if let Ok(turn) = Arc::clone(&turned_away).try_acquire_owned() {
                tokio::spawn(async move {
                    drop(timeout(TURN_AWAY_TIME, turn_away(stream, tls, site)).await);
                    drop(turn);
                });
            }
            continue;
        };
        let (in_flight, is_full) = (in_flight.clone(), connections.is_full());
        tokio::spawn(async move {
            match tls {
                None => serve(stream, None, limits, site, in_flight, &entry).await,
                Some(tls) => serve_tls(stream, tls(), limits, site, in_flight, &entry).await,
            }
        });
        if is_full {
            // Lets a connection that was told to close do so before the next is accepted.
            tokio::task::yield_now().await;
        }
    }
    drop(listener);
    // Requests without an answer get an error, and streams are cut.
    in_flight.end();
    connections.close();
    drop(timeout(FINAL_WRITE_TIME, connections.none()).await);
    Ok(())
}

/// Serves `site` without TLS, within the default limits, for as long as the program runs.
pub async fn listen_plain<S, F>(listener: TcpListener, site: S) -> io::Result<()>
where
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    listen(listener, None, Limits::default(), site, std::future::pending()).await
}

/// Returns how many connections may be open: as many as wanted, if there are descriptors
/// for them.
fn connection_limit(wanted: usize) -> usize {
    let possible = descriptors::for_connections();
    if possible < wanted {
        tracing::warn!(
            "at most {possible} connections at once, not {wanted}: this process may not open more \
             files (`ulimit -n`)"
        );
    }
    wanted.min(possible)
}

/// Waits for `shutdown`, then until no request is in flight, for at most `drain_time`.
async fn drained(shutdown: impl Future<Output = ()>, drain_time: Duration, in_flight: InFlight) {
    shutdown.await;
    drop(timeout(drain_time, in_flight.none()).await);
}

/// Accepts the next connection. Temporary errors are waited out; when there are no free
/// descriptors, idle connections are closed. A returned error is permanent.
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
            // The client has disconnected already.
            io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted => {}
            _ => {
                if !has_warned {
                    tracing::warn!(%error, "a connection could not be accepted");
                    has_warned = true;
                }
                connections.close_idle(CLOSED_AT_ONCE);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_tls<S, F>(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    limits: Limits,
    site: S,
    in_flight: InFlight,
    entry: &Entry,
) where
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let stream = tokio::select! {
        stream = shake_hands(stream, tls) => stream,
        () = entry.connection.closing() => return,
    };
    let Some(stream) = stream else { return };
    let (_, connection) = stream.get_ref();
    let certificate = connection.peer_certificates().and_then(|chain| chain.first());
    let caller = certificate.map(|certificate| CertificateHolder(Arc::new(holder(certificate))));
    serve(stream, caller, limits, site, in_flight, entry).await;
}

async fn shake_hands(stream: TcpStream, tls: Arc<ServerConfig>) -> Option<TlsStream<TcpStream>> {
    match timeout(HANDSHAKE_TIME, TlsAcceptor::from(tls).accept(stream)).await {
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
        // Without `pipeline_flush`, which would lose the answer to a malformed head.
        .serve_connection(TokioIo::new(WriteTimeout::new(stream, limits.write_time)), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = this.closing() => {
            connection.as_mut().graceful_shutdown();
            match (this.is_busy(), this.has_asked()) {
                (true, _) => connection.await,
                // The last answer may not be sent completely.
                (false, true) => timeout(FINAL_WRITE_TIME, connection).await.unwrap_or(Ok(())),
                (false, false) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Answers one request on a connection over the limit: a health check is answered by the
/// site, any other request gets an error.
async fn turn_away<S, F>(stream: TcpStream, tls: Option<TlsConfigs>, site: S)
where
    S: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    match tls {
        None => serve_over_limit(stream, site).await,
        Some(tls) => {
            if let Some(stream) = shake_hands(stream, tls()).await {
                serve_over_limit(stream, site).await;
            }
        }
    }
}

async fn serve_over_limit<T, S, F>(stream: T, site: S)
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
        .header_read_timeout(TURN_AWAY_TIME)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a client was not told that there is no room");
    }
}

/// Returns the error that there are too many connections, after the body was read: closing
/// a connection with unread bytes would reset it.
async fn full(mut unread: Incoming) -> Response<Body> {
    drop(
        timeout(FINAL_WRITE_TIME, async { while let Some(Ok(_)) = unread.frame().await {} }).await,
    );
    let mut response = Response::new(Body::whole(FULL));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
mod tests;
