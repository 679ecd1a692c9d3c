//! Serves MCP to one client over a pipe, usually stdin and stdout.
//!
//! Modern requests are answered without a session, and `initialize` opens the one session
//! that a pipe has. Nothing but messages is ever written to the pipe.

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

/// The limits of serving over a pipe, and the identity of the client.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub limits: peer::Limits,
    pub parked: parked::Limits,
    /// The identity of the client.
    pub caller: Arc<Identity>,
    /// Whether requests carry trace data.
    pub tracing: Tracing,
}

/// Serves one client over a pipe until it ends, and returns why it ended.
///
/// Boxes the ends of the pipe, so that the serving code is compiled once, here.
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
    Box::pin(serve_boxed(source, reader, writer, options))
}

async fn serve_boxed(
    source: Arc<dyn ProviderSource>,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    options: Options,
) -> String {
    let peer = Peer::new(options.limits);
    let pipe = Arc::new(PipeServer {
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

/// The server at our end of the pipe.
struct PipeServer {
    server: Arc<McpServer>,
    peer: Peer,
    caller: Caller,
    session: Mutex<Option<OpenSession>>,
    tracing: Tracing,
}

/// The session of the pipe.
struct OpenSession {
    session: Arc<Session>,
    /// The task that forwards the provider's events.
    forwarding_task: tokio::task::AbortHandle,
}

/// Aborts the task, which would keep the provider alive.
impl Drop for OpenSession {
    fn drop(&mut self) {
        self.forwarding_task.abort();
    }
}

impl PipeServer {
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
                // Subscribe first, so that no event is missed.
                let events = session.provider.events();
                let forwarding_task =
                    forward_events(events, Arc::clone(&session), self.peer.clone());
                let forwarding_task = tokio::spawn(forwarding_task);
                *open =
                    Some(OpenSession { session, forwarding_task: forwarding_task.abort_handle() });
                reply
            }
            Err(error) => Reply::Error(error),
        }
    }

    async fn answer_stateless(&self, request: Request) -> Reply {
        let mut parsed =
            match modern::parse_request(&self.server, request.params.as_ref(), &self.caller) {
                Ok(parsed) => parsed,
                Err(error) => return Reply::Error(error),
            };
        parsed.trace = self.tracing.trace_for(&request.id, None);
        match modern::begin(&self.server, parsed, &request, Some(self.peer.clone())).await {
            ModernAnswer::Immediate(reply) => reply,
            ModernAnswer::Exchange(exchange) => wait_for_answer(exchange).await,
            ModernAnswer::Listen(mut listening) => {
                while let Some(message) = listening.next().await {
                    // If the pipe is gone, this future is dropped anyway.
                    if let Ok(Message::Notification(note)) = Message::parse(&message) {
                        drop(self.peer.notify(&note.method, note.params.as_ref()));
                    }
                }
                listening.final_reply()
            }
        }
    }
}

impl Incoming for PipeServer {
    fn request(self: Arc<Self>, request: Request) -> BoxFuture<'static, Reply> {
        let alone = modern::is_modern(request.params.as_ref());
        if alone || request.method == method::DISCOVER {
            return async move { self.answer_stateless(request).await }.boxed();
        }
        if request.method == method::INITIALIZE {
            return futures::future::ready(self.initialize(&request)).boxed();
        }
        let session = self.session.lock().as_ref().map(|open| Arc::clone(&open.session));
        match session {
            Some(session) => {
                let trace = self.tracing.trace_for(&request.id, None);
                wait_for_answer(self.server.begin(&session, request.method, request.params, trace))
                    .boxed()
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
        if let Some(exchange) = roots::notify_provider(&session, &notification) {
            session.run_roots_task(wait_for_answer(exchange).map(drop));
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

/// Waits for the answer; other messages were written to the pipe already.
async fn wait_for_answer(mut exchange: Exchange) -> Reply {
    loop {
        if let Step::Answer(reply) = exchange.step().await {
            return reply;
        }
    }
}

/// Sends the provider's events to the client, as notifications.
async fn forward_events(mut events: BoxStream<'static, Event>, session: Arc<Session>, peer: Peer) {
    while let Some(event) = events.next().await {
        let Some(note) = session.notification_for(event) else { continue };
        let params = (!note.params.is_empty()).then(|| note.params.to_json());
        if peer.notify(&note.method, params.as_ref()).is_err() && peer.closed().is_some() {
            return;
        }
    }
}
