//! A small HTTP server.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use super::{Body, ConnectionId, Endpoint, body};
use crate::revision::code;

/// How long a client may take to send the head of a request.
const TO_SEND_HEAD: Duration = Duration::from_secs(30);

/// How long open requests may take when the server is told to stop.
const TO_FINISH: Duration = Duration::from_secs(5);

/// Serves `site` until `shutdown` is ready, then lets open requests finish for
/// a little while.
pub async fn listen<S, F>(
    listener: TcpListener,
    site: S,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let stream = tokio::select! {
            accepted = accept(&listener) => accepted?.0,
            () = &mut shutdown => break,
        };
        let (site, visit) = (site.clone(), ConnectionId::new());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(visit.clone());
            let response = site(request);
            async move { Ok::<_, Infallible>(response.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(TO_SEND_HEAD)
            .pipeline_flush(true)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
    drop(listener);
    // Streams that never end are cut off.
    drop(tokio::time::timeout(TO_FINISH, graceful.shutdown()).await);
    Ok(())
}

/// A site that is the endpoint at one path, and nothing elsewhere.
pub fn at(
    path: &'static str,
    endpoint: Endpoint,
) -> impl Fn(Request<Incoming>) -> futures::future::BoxFuture<'static, Response<Body>>
+ Clone
+ Send
+ 'static {
    move |request| {
        let endpoint = endpoint.clone();
        Box::pin(async move {
            if request.uri().path() == path {
                return endpoint.respond(request).await;
            }
            let message = format!("nothing is here; the endpoint is at `{path}`");
            body::refusal(StatusCode::NOT_FOUND, code::SERVER, message)
        })
    }
}

/// The next connection, for small messages. An error is one for good: what goes
/// wrong at the moment (no descriptor is free, a client is gone again) is
/// waited out.
pub async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Without this, small answers wait for the client's acknowledgement.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY could not be set");
                }
                return Ok((stream, peer));
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Whether accepting will never work again, as opposed to not right now.
fn is_fatal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected | io::ErrorKind::Unsupported
    )
}
