//! Serves MCP over HTTP: one endpoint for every revision.
//!
//! A request with the `_meta` of a modern revision is stateless, every other belongs to a
//! session. A reply is sent as JSON, or as an event stream if other messages precede it.
//!
//! [`Endpoint::respond`] is a plain function from request to response, for any HTTP server.
//! The caller comes from the request's extensions (`Arc<tool::Identity>`), anonymous if
//! there is none. A session belongs to the caller who opened it, as long as the caller's
//! rights stay the same.

mod legacy_sse;
mod options;
mod post;
mod remote_stream;
mod replica_routing;
mod replicas;
mod request;
mod request_memory;
mod sse_clients;
mod stateless;

mod answer_memory;
mod batch;
mod fair_memory;
mod resumable;
mod sessions;
mod shared_session;
mod timers;

mod body;
mod event;
mod headers;
mod hosts;
mod path;

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Buf;
use http::{HeaderValue, Method, Request, Response, StatusCode, header as names};
use tokio_util::sync::CancellationToken;
use tool::{Identity, ProviderSource};

use super::caller::{Caller, PerCallerLimit};
use super::server::McpServer;
use crate::revision::{Revision, code, header};
use body::{BoxedRefusal, HttpResult, boxed_refusal};
use sessions::{HttpSession, HttpSessions};
use shared_session::MissingSession;
use sse_clients::SseClients;
use timers::TimerPool;

pub use answer_memory::AnswerMemory;
pub use body::{AnswerTo, Body};
pub use fair_memory::FairMemory;
pub use hosts::Hosts;
pub use options::Options;
pub use path::at;
pub use replicas::{RecordError, ReplicaError, Replicas};
pub use sessions::Limits as SessionLimits;

/// The id of the connection that a request came on, in the request's extensions. It
/// distinguishes anonymous callers without a session.
#[derive(Clone, Debug)]
pub struct ConnectionId(Arc<str>);

impl ConnectionId {
    /// Makes a unique id.
    pub fn new() -> ConnectionId {
        ConnectionId(ConnectionId::unique())
    }

    fn unique() -> Arc<str> {
        format!("{:032x}", rand::random::<u128>()).into()
    }
}

impl Default for ConnectionId {
    fn default() -> ConnectionId {
        ConnectionId::new()
    }
}

/// An MCP endpoint. Clones are the same endpoint.
#[derive(Clone)]
pub struct Endpoint(Arc<Shared>);

struct Shared {
    server: Arc<McpServer>,
    sessions: Arc<HttpSessions>,
    sse_clients: SseClients,
    sse_streams: Arc<PerCallerLimit>,
    timers: TimerPool,
    /// Cancelled when the server stops.
    stopping: CancellationToken,
    options: Options,
}

impl Endpoint {
    pub fn new(source: Arc<dyn ProviderSource>, options: Options) -> Endpoint {
        let tag = options.replicas.as_ref().map_or(0, |replicas| replicas.tag());
        let server = McpServer::new(source, options.parked, tag);
        let sessions = HttpSessions::new(Arc::clone(&server), options.sessions);
        Endpoint(Arc::new(Shared {
            server,
            sessions,
            sse_clients: SseClients::default(),
            sse_streams: PerCallerLimit::new("event streams", options.sessions.per_caller),
            timers: TimerPool::default(),
            stopping: CancellationToken::new(),
            options,
        }))
    }

    /// Answers one request to the endpoint.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        if 1 < request.headers().get_all(names::HOST).iter().count() {
            return *boxed_refusal(StatusCode::BAD_REQUEST, "a request names one `Host`");
        }
        if let Err(foreign) = self.0.options.hosts.check(request.headers(), request.uri()) {
            return body::refusal(StatusCode::FORBIDDEN, code::SERVER, foreign.to_string());
        }
        let answered = match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => self.get(&request.map(drop)).await,
            Method::DELETE => self.delete(&request.map(drop)).await,
            _ => Err(Box::new(method_not_allowed())),
        };
        answered.unwrap_or_else(|refusal| *refusal)
    }

    /// Ends the streams on which clients only listen, but no request in progress. To be
    /// called when the server stops.
    pub fn stop_listening(&self) {
        self.0.stopping.cancel();
        self.0.sessions.stop_listening();
        self.0.sse_clients.stop_listening();
    }

    /// Returns the number of sessions.
    pub fn n_sessions(&self) -> usize {
        self.0.sessions.len()
    }

    /// Answers a GET: opens the standalone stream of a session, or resumes a broken stream.
    async fn get(&self, request: &Request<()>) -> HttpResult {
        let session = self.session(request).await?;
        if !request::accepts(request, "text/event-stream") {
            return Err(boxed_refusal(
                StatusCode::NOT_ACCEPTABLE,
                "a GET here answers with events: accept `text/event-stream`",
            ));
        }
        let keep_alive = self.0.options.keep_alive;
        let Some(last) = request::header_text(request, header::LAST_EVENT_ID) else {
            let stream = session.standalone();
            if supports_resumption(&session) && stream.is_new() {
                stream.push_priming_event(self.0.options.retry);
            }
            return Ok(body::event_stream(
                None,
                Box::pin(session.open_reader(&stream, stream.last_read(), keep_alive)),
            ));
        };
        let parsed = resumable::parse_event_id(last);
        if let Some((id, event)) = &parsed
            && ![0, self.replica_tag()].contains(&id.replica)
        {
            return Box::pin(self.resume_elsewhere(&session, id.clone(), *event)).await;
        }
        let found = parsed
            .and_then(|(id, event)| Some((session.resume(id.number)?, event)))
            .filter(|(stream, event)| stream.has_event(*event));
        let Some((stream, event)) = found else {
            let message = "that stream is not kept any more; ask again what you asked";
            return Err(boxed_refusal(StatusCode::BAD_REQUEST, message));
        };
        Ok(body::event_stream(
            None,
            Box::pin(session.open_reader(&stream, Some(event), keep_alive)),
        ))
    }

    /// Answers a DELETE: ends a session.
    async fn delete(&self, request: &Request<()>) -> HttpResult {
        let session = self.session(request).await?;
        self.end_session(&session.inner.id).await;
        Ok(body::empty(StatusCode::NO_CONTENT))
    }

    /// Returns the session of a request.
    async fn session(&self, request: &Request<()>) -> Result<Arc<HttpSession>, BoxedRefusal> {
        let version = request::header_text(request, header::PROTOCOL_VERSION);
        let modern = version.and_then(|version| version.parse::<Revision>().ok());
        let modern = modern.is_some_and(Revision::is_modern);
        let Some(id) = request::header_text(request, header::SESSION_ID).filter(|_| !modern) else {
            if *request.method() != Method::POST {
                return Err(Box::new(method_not_allowed()));
            }
            let message = "no `Mcp-Session-Id` header: send `initialize` first, or say in `_meta` \
                           which modern revision the request is of";
            return Err(boxed_refusal(StatusCode::BAD_REQUEST, message));
        };
        let caller = caller(request);
        let session = self.find_session(id, &caller).await.and_then(|session| {
            // A session is only valid with the rights that it was opened with.
            let is_own = session.inner.caller == caller.identity;
            is_own.then_some(session).ok_or(MissingSession::Unknown)
        });
        let session =
            session.map_err(|missing| boxed_refusal(StatusCode::NOT_FOUND, missing.to_string()))?;
        match version.map(str::parse::<Revision>) {
            Some(Err(unknown)) => Err(boxed_refusal(StatusCode::BAD_REQUEST, unknown.to_string())),
            Some(Ok(_)) | None => Ok(session),
        }
    }
}

/// Returns whether the revision of the session has resumable streams.
fn supports_resumption(session: &HttpSession) -> bool {
    Revision::V2025_11_25 <= session.inner.revision
}

/// The client's IP address, in the request's extensions. Limits count anonymous callers
/// by it.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub IpAddr);

fn identity<B>(request: &Request<B>) -> Arc<Identity> {
    request.extensions().get::<Arc<Identity>>().cloned().unwrap_or_default()
}

fn caller<B>(request: &Request<B>) -> Caller {
    let address = request.extensions().get::<PeerAddress>().map(|address| address.0);
    Caller { identity: identity(request), address, connection: connection(request) }
}

/// Returns the id of the connection. Without a [`ConnectionId`] every request gets its own,
/// so that unrelated callers share nothing.
fn connection<B>(request: &Request<B>) -> Arc<str> {
    let said = request.extensions().get::<ConnectionId>().map(|visit| Arc::clone(&visit.0));
    said.unwrap_or_else(ConnectionId::unique)
}

fn method_not_allowed() -> Response<Body> {
    let message = "POST messages here; GET and DELETE need the `Mcp-Session-Id` of a session";
    let mut response = body::refusal(StatusCode::METHOD_NOT_ALLOWED, code::SERVER, message);
    response.headers_mut().insert(names::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    response
}
