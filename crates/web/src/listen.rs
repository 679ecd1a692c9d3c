//! Taking connections, plain or over TLS.
//!
//! A client costs at most what the [`Limits`] say: in connections, in time to
//! shake hands, to send the head of a request and to take what it asked for,
//! and in bytes of head. Whoever is over a limit is told so where the protocol
//! has words for it, and is let go.
//!
//! A server that is told to stop goes on listening for as long as requests are
//! under way, so that the site can tell whoever comes to come back later.

mod open;
mod paced;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mcp::serve::http::{Body, ConnectionId, accept};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::identity::certificate::{Holder, holder};
use open::Open;
use paced::Paced;

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
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 4096,
            head_time: Duration::from_secs(30),
            head_bytes: 64 << 10,
            write_time: Duration::from_secs(30),
            farewell: Duration::from_secs(5),
        }
    }
}

/// Where the other end of a connection is, in the request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// What is shown to the next client; asked for every connection, so that new
/// certificates count at once and connections that stand are not touched.
pub type Showing = Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How many clients at once are told that there is no room for them.
const TURNED_AWAY: usize = 64;

/// How long the last answers may take to be written when all is over.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is told when there are too many connections.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
    content-length: 55\r\nretry-after: 1\r\nconnection: close\r\n\r\n\
    {\"error\":\"too many connections; try again in a moment\"}";

/// Serves `site` until `shutdown` is ready, then lets open requests finish for
/// a little while. Meanwhile the site is still asked: it knows that it closes.
/// Over TLS when something is `shown`.
pub async fn listen<S, F>(
    listener: TcpListener,
    shown: Option<Showing>,
    limits: Limits,
    site: S,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let seats = Arc::new(Semaphore::new(limits.connections));
    let farewells = Arc::new(Semaphore::new(TURNED_AWAY));
    let open = Open::default();
    let mut over = pin!(over(shutdown, limits.farewell, open.clone()));
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted?,
            () = &mut over => break,
        };
        let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else {
            if shown.is_none()
                && let Ok(turn) = Arc::clone(&farewells).try_acquire_owned()
            {
                tokio::spawn(async move {
                    turn_away(stream).await;
                    drop(turn);
                });
            }
            continue;
        };
        let (inner, shown) = (site.clone(), shown.clone());
        let site = move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            inner(request)
        };
        let open = open.clone();
        tokio::spawn(async move {
            match shown {
                None => serve(stream, None, limits, site, open).await,
                Some(shown) => over_tls(stream, shown(), limits, site, open).await,
            }
            drop(seat);
        });
    }
    drop(listener);
    // What has no answer yet gets one, and streams that never end are ended.
    open.end();
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    drop(timeout(LAST_WORDS, seats.acquire_many(all)).await);
    Ok(())
}

/// Ready when it is time to go: told to, and nothing is under way any more or
/// has been for long enough.
async fn over(shutdown: impl Future<Output = ()>, farewell: Duration, open: Open) {
    shutdown.await;
    drop(timeout(farewell, open.none()).await);
}

async fn over_tls<S, F>(
    stream: TcpStream,
    shown: Arc<ServerConfig>,
    limits: Limits,
    site: S,
    open: Open,
) where
    S: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let stream = match timeout(HANDSHAKE, TlsAcceptor::from(shown).accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a client could not shake hands"),
        Err(_) => return tracing::debug!("a client took too long to shake hands"),
    };
    let (_, connection) = stream.get_ref();
    let shown = connection.peer_certificates().and_then(|chain| chain.first());
    let caller = shown.map(|certificate| Holder(Arc::new(holder(certificate))));
    serve(stream, caller, limits, site, open).await;
}

/// Answers the requests of one connection.
async fn serve<T, S, F>(stream: T, caller: Option<Holder>, limits: Limits, site: S, open: Open)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let (visit, requests) = (ConnectionId::new(), open.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(visit.clone());
        if let Some(caller) = &caller {
            request.extensions_mut().insert(caller.clone());
        }
        requests.hold(site(request))
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
        () = open.over() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Says that there is no room, and waits a moment for the client to hear it: a
/// connection that is closed with something unread is reset.
async fn turn_away(mut stream: TcpStream) {
    let told = async {
        stream.write_all(FULL).await?;
        stream.shutdown().await?;
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? != 0 {}
        io::Result::Ok(())
    };
    drop(timeout(Duration::from_secs(1), told).await);
}

#[cfg(test)]
mod tests;
