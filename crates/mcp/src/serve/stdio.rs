//! Serves MCP over a pipe.
//!
//! One client, both kinds of revisions: requests that stand alone are answered
//! as such, and `initialize` opens the one session that a pipe has. Nothing but
//! messages is ever written to the pipe.

mod pipes;

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{BoxStream, StreamExt};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tool::{Event, Identity, Json, ProviderSource, Reply, RpcError};

use super::caller::Caller;
use super::discovery;
use super::exchange::{Exchange, Step};
use super::modern::{self, ModernAnswer};
use super::parked;
use super::roots;
use super::server::McpServer;
use super::session::Session;
use super::trace::Tracing;
use crate::message::{Invalid, Message, Notification, Request, Response, excerpt};
use crate::peer::{self, Incoming, Peer};
use crate::revision::{code, method};

pub use pipes::{Stdin, Stdout, stdin, stdout};

/// What serving over a pipe may cost, and who is at its other end.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub limits: peer::Limits,
    pub parked: parked::Limits,
    /// Who the client is; a pipe has one.
    pub caller: Arc<Identity>,
    /// Whether questions carry what is known for their trace.
    pub tracing: Tracing,
}

/// Serves one client over a pipe until it ends, and says why it ended.
///
/// The ends of the pipe are boxed, so that what a message goes through is compiled
/// here, once, and not again in every crate that serves a pipe.
pub fn serve<R, W>(
    source: Arc<dyn ProviderSource>,
    reader: R,
    writer: W,
    options: Options,
) -> BoxFuture<'static, String>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    boxed(source, Box::new(reader), Box::new(writer), options)
}

fn boxed(
    source: Arc<dyn ProviderSource>,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    options: Options,
) -> BoxFuture<'static, String> {
    Box::pin(on_pipe(source, reader, writer, options))
}

async fn on_pipe(
    source: Arc<dyn ProviderSource>,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    options: Options,
) -> String {
    let peer = Peer::new(options.limits);
    let pipe = Arc::new(Pipe {
        server: McpServer::new(source, options.parked, 0),
        peer: peer.clone(),
        caller: Caller::on_pipe(options.caller),
        session: Mutex::default(),
        tracing: options.tracing,
    });
    let reason = peer::run(peer, reader, writer, Arc::clone(&pipe) as _).await;
    let open = pipe.session.lock().take();
    if let Some(open) = open {
        pipe.server.close(&open.session).await;
    }
    reason
}

/// Serves the process's own stdin and stdout.
pub async fn stdio(source: Arc<dyn ProviderSource>, options: Options) -> std::io::Result<String> {
    Ok(serve(source, stdin()?, stdout()?, options).await)
}

/// Our end of the pipe.
struct Pipe {
    server: Arc<McpServer>,
    peer: Peer,
    caller: Caller,
    session: Mutex<Option<Open>>,
    tracing: Tracing,
}

/// The session of the pipe.
struct Open {
    session: Arc<Session>,
    /// The task that passes on what the provider tells unasked.
    news: tokio::task::AbortHandle,
}

/// Nobody is left to tell: the news would keep the provider for themselves.
impl Drop for Open {
    fn drop(&mut self) {
        self.news.abort();
    }
}

impl Pipe {
    fn initialize(&self, request: &Request) -> Reply {
        let mut open = self.session.lock();
        if open.is_some() {
            let message = "this session is initialised already";
            return Reply::Error(RpcError::new(code::INVALID_REQUEST, message));
        }
        let (params, peer) = (request.params.as_ref(), Some(self.peer.clone()));
        let opened = self.server.initialize("stdio".into(), params, &self.caller, peer);
        match opened {
            Ok((session, reply)) => {
                let session = Arc::new(session);
                // Before anything else happens, so that nothing is missed.
                let events = session.provider.events();
                let news = pass_on(events, Arc::clone(&session), self.peer.clone());
                let news = tokio::spawn(news);
                *open = Some(Open { session, news: news.abort_handle() });
                reply
            }
            Err(error) => Reply::Error(error),
        }
    }

    async fn alone(&self, request: Request) -> Reply {
        let mut opening = match modern::open(&self.server, request.params.as_ref(), &self.caller) {
            Ok(opening) => opening,
            Err(error) => return Reply::Error(error),
        };
        opening.trace = self.tracing.of(&request.id, None);
        match modern::begin(&self.server, opening, &request, Some(self.peer.clone())).await {
            ModernAnswer::Now(reply) => reply,
            ModernAnswer::Exchange(exchange) => finish(exchange).await,
            ModernAnswer::Listen(mut listening) => {
                while let Some(message) = listening.next().await {
                    // A pipe that is gone ends this future anyway.
                    if let Ok(Message::Notification(note)) = Message::parse(&message) {
                        drop(self.peer.notify(&note.method, note.params.as_ref()));
                    }
                }
                listening.final_reply()
            }
        }
    }
}

impl Incoming for Pipe {
    fn request(self: Arc<Self>, request: Request) -> BoxFuture<'static, Reply> {
        let alone = modern::is_modern(request.params.as_ref());
        if alone || request.method == method::DISCOVER {
            return async move { self.alone(request).await }.boxed();
        }
        if request.method == method::INITIALIZE {
            return futures::future::ready(self.initialize(&request)).boxed();
        }
        let session = self.session.lock().as_ref().map(|open| Arc::clone(&open.session));
        match session {
            Some(session) => {
                let trace = self.tracing.of(&request.id, None);
                finish(self.server.begin(&session, request.method, request.params, trace)).boxed()
            }
            None if request.method == method::PING => {
                futures::future::ready(Reply::Result(Json::empty_object())).boxed()
            }
            None => {
                let versions = discovery::modern_revisions().join(", ");
                let message = format!(
                    "send `initialize` first, or say in `_meta` that the request is of {versions}"
                );
                let error = RpcError::new(code::INVALID_REQUEST, message);
                futures::future::ready(Reply::Error(error)).boxed()
            }
        }
    }

    fn notification(&self, notification: Notification) {
        tracing::trace!(method = notification.method, "notification from the client");
        let session = self.session.lock().as_ref().map(|open| Arc::clone(&open.session));
        let Some(session) = session else { return };
        if let Some(told) = roots::changed(&session, &notification) {
            session.pass_on(finish(told).map(drop));
        }
    }

    fn invalid(&self, invalid: &Invalid, line: &[u8]) -> Option<RpcError> {
        tracing::warn!(%invalid, line = %excerpt(line), "the client sent no message");
        Some(invalid.to_error())
    }

    fn unexpected_response(&self, response: Response) {
        tracing::debug!(id = %response.id, "an answer to a question that nobody asked");
    }
}

/// Waits for the answer; what flows before it went down the pipe already.
async fn finish(mut exchange: Exchange) -> Reply {
    loop {
        if let Step::Answer(reply) = exchange.step().await {
            return reply;
        }
    }
}

/// Tells the client what the provider tells unasked.
async fn pass_on(mut events: BoxStream<'static, Event>, session: Arc<Session>, peer: Peer) {
    while let Some(event) = events.next().await {
        let Some(note) = session.news(event) else { continue };
        let params = (!note.params.is_empty()).then(|| note.params.to_json());
        if peer.notify(&note.method, params.as_ref()).is_err() && peer.closed().is_some() {
            return;
        }
    }
}
