//! Serves MCP over HTTP: one endpoint for every revision.
//!
//! Each request is told by itself: one that carries the modern envelope stands
//! alone, every other belongs to a session. An answer goes out in one piece
//! when nothing flows before it, as a stream of events when something does.
//!
//! [`Endpoint::respond`] is a plain function from request to response, to be
//! mounted where you like; [`listen`] is a small server for it. Who the caller is
//! comes from the request's extensions (`Arc<tool::Identity>`), nobody in
//! particular when there is none; a session belongs to the caller who opened it,
//! for as long as that caller may do the same.

mod carrying;
mod legacy_sse;
mod options;
mod post;
mod replicas;
mod request;
mod sse_clients;
mod stateless;

mod answers;
mod batch;
mod resumable;
mod sessions;
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

use super::caller::{Caller, PerCaller};
use super::server::McpServer;
use crate::revision::{Revision, code, header};
use body::{Answered, Refusal, refuse};
use sessions::{HttpSession, HttpSessions};
use sse_clients::SseClients;
use timers::TimerPool;

pub use answers::AnswerMemory;
pub use body::{AnswerTo, Body};
pub use hosts::Hosts;
pub use options::Options;
pub use path::at;
pub use replicas::{NotCarried, Replicas};
pub use sessions::Limits as SessionLimits;

/// The connection that a request came on, in the request's extensions: all that
/// tells one anonymous caller without a session from another.
#[derive(Clone, Debug)]
pub struct ConnectionId(Arc<str>);

impl ConnectionId {
    /// A connection like no other.
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
    sse_streams: Arc<PerCaller>,
    timers: TimerPool,
    /// Cancelled when the server is told to stop.
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
            sse_streams: PerCaller::new("event streams", options.sessions.per_caller),
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
            return *refuse(StatusCode::BAD_REQUEST, "a request names one `Host`");
        }
        if let Err(foreign) = self.0.options.hosts.check(request.headers(), request.uri()) {
            return body::refusal(StatusCode::FORBIDDEN, code::SERVER, foreign.to_string());
        }
        let answered = match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => self.get(&request.map(drop)).await,
            Method::DELETE => self.delete(&request.map(drop)).await,
            _ => Err(Box::new(not_allowed())),
        };
        answered.unwrap_or_else(|refusal| *refusal)
    }

    /// Ends the streams on which clients only listen. Answers under way are not
    /// touched; to be called when the server is told to stop.
    pub fn stop_listening(&self) {
        self.0.stopping.cancel();
        self.0.sessions.stop_listening();
        self.0.sse_clients.stop_listening();
    }

    /// Returns how many sessions there are.
    pub fn n_sessions(&self) -> usize {
        self.0.sessions.len()
    }

    /// Opens the stream of a session that belongs to no request, or takes up
    /// one that broke.
    async fn get(&self, request: &Request<()>) -> Answered {
        let session = self.session(request).await?;
        if !request::accepts(request, "text/event-stream") {
            return Err(refuse(
                StatusCode::NOT_ACCEPTABLE,
                "a GET here answers with events: accept `text/event-stream`",
            ));
        }
        let alive = self.0.options.alive;
        let Some(last) = request::text(request, header::LAST_EVENT_ID) else {
            let replay = session.standalone();
            if resumes(&session) && replay.is_new() {
                replay.prime(self.0.options.retry);
            }
            return Ok(body::events(None, Box::pin(session.read(&replay, replay.last(), alive))));
        };
        let found = resumable::read_id(last)
            .and_then(|(stream, event)| Some((session.resume(stream)?, event)))
            .filter(|(stream, event)| stream.has_said(*event));
        let Some((replay, event)) = found else {
            let message = "that stream is not kept any more; ask again what you asked";
            return Err(refuse(StatusCode::BAD_REQUEST, message));
        };
        Ok(body::events(None, Box::pin(session.read(&replay, Some(event), alive))))
    }

    /// Ends a session.
    async fn delete(&self, request: &Request<()>) -> Answered {
        let session = self.session(request).await?;
        self.forget_session(&session.inner.id).await;
        self.0.sessions.end(&session.inner.id);
        Ok(body::bare(StatusCode::NO_CONTENT))
    }

    /// The session that a request belongs to.
    async fn session(&self, request: &Request<()>) -> Result<Arc<HttpSession>, Refusal> {
        let version = request::text(request, header::PROTOCOL_VERSION);
        let modern = version.and_then(|version| version.parse::<Revision>().ok());
        let modern = modern.is_some_and(Revision::is_modern);
        let Some(id) = request::text(request, header::SESSION_ID).filter(|_| !modern) else {
            if *request.method() != Method::POST {
                return Err(Box::new(not_allowed()));
            }
            let message = "no `Mcp-Session-Id` header: send `initialize` first, or say in `_meta` \
                           which modern revision the request is of";
            return Err(refuse(StatusCode::BAD_REQUEST, message));
        };
        let caller = caller(request);
        let session = self.find_session(id, &caller).await;
        // A session is seen with the rights that it was opened with.
        let session = session.filter(|session| session.inner.caller == caller.identity);
        let session = session.ok_or_else(|| {
            let message = "no such session: it ended, was idle for too long, or what you may do \
                           has changed; send `initialize` again";
            refuse(StatusCode::NOT_FOUND, message)
        })?;
        match version.map(str::parse::<Revision>) {
            Some(Err(unknown)) => Err(refuse(StatusCode::BAD_REQUEST, unknown.to_string())),
            Some(Ok(_)) | None => Ok(session),
        }
    }
}

/// Returns whether clients of this session can come back to a stream.
fn resumes(session: &HttpSession) -> bool {
    Revision::V2025_11_25 <= session.inner.revision
}

/// Where a request comes from, in the request's extensions: all that tells one
/// anonymous caller from another where something is counted.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub IpAddr);

fn identity<B>(request: &Request<B>) -> Arc<Identity> {
    request.extensions().get::<Arc<Identity>>().cloned().unwrap_or_default()
}

fn caller<B>(request: &Request<B>) -> Caller {
    let address = request.extensions().get::<PeerAddress>().map(|address| address.0);
    Caller { identity: identity(request), address, connection: connection(request) }
}

/// Returns what tells this connection from others. Where nobody says, every request
/// is on one of its own, so that strangers never have anything in common.
fn connection<B>(request: &Request<B>) -> Arc<str> {
    let said = request.extensions().get::<ConnectionId>().map(|visit| Arc::clone(&visit.0));
    said.unwrap_or_else(ConnectionId::unique)
}

fn not_allowed() -> Response<Body> {
    let message = "POST messages here; GET and DELETE need the `Mcp-Session-Id` of a session";
    let mut response = body::refusal(StatusCode::METHOD_NOT_ALLOWED, code::SERVER, message);
    response.headers_mut().insert(names::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    response
}
