//! The HTTP interface that the eMCP contract defines, without a web server.
//!
//! [`Edge::respond`] is a function from a request to a response. It authenticates the
//! caller, checks scopes, rate limits and sizes in the contract's order, and passes the
//! MCP message to a [`MessageResponder`]. Of a message it knows only the method and the
//! name of the tool.

mod audit;
mod auth;
mod dispatch;
mod envelope;
mod errors;
mod http_reply;
mod incoming;
mod policy;
mod queue;
mod rate;
mod state;
mod tokens;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, Method, Request, Response, StatusCode, header};
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tool::{Identity, Json, Object};

pub use audit::redact;
pub use auth::{Auth, Jwt};
pub use dispatch::payload_hash;
pub use policy::{ScopeMap, Security};
pub use queue::{Failover, Queue};
pub use state::{State, StateError};
pub use tokens::{NewToken, Token};

use crate::contract::{FORBIDDEN, PLATFORM, REASON_META_KEY, RESULT_TOO_LARGE, TOOLSET_VERSION};
use audit::Record;
use auth::Caller;
use envelope::Envelope;
use errors::Refusal;
use http_reply::HttpReply;
use incoming::{Incoming, Route};

/// Answers the MCP messages of callers who were admitted.
#[async_trait]
pub trait MessageResponder: Send + Sync {
    /// Answers one message. `session` is the session id that the client sent.
    async fn respond(
        &self,
        message: Bytes,
        caller: &Arc<Identity>,
        session: Option<&str>,
    ) -> MessageReply;
}

/// The answer of a [`MessageResponder`].
#[derive(Clone, Debug, Default)]
pub struct MessageReply {
    /// The reply; `None` for a notification.
    pub body: Option<Bytes>,
    /// The id of the session that the message opened.
    pub session: Option<String>,
    /// Whether the body is an event stream, all of it.
    pub streamed: bool,
}

/// The configuration of the HTTP interface; [`Config::contract`] has the defaults.
#[derive(Clone, Debug)]
pub struct Config {
    /// The paths under which the servers are, such as `/mcp`.
    pub prefixes: Vec<String>,
    pub auth: Auth,
    pub require_scopes: bool,
    pub scope_map: ScopeMap,
    pub security: Security,
    /// How many requests per minute a caller may send to one server and method.
    pub per_minute: u32,
    pub max_payload_bytes: usize,
    pub max_result_bytes: usize,
    pub stream: Stream,
    pub queue: Queue,
    pub idempotency_ttl: Duration,
    pub servers: Vec<ServerConfig>,
}

/// The configuration of one server; optional values override those of [`Config`].
#[derive(Clone, Debug, Default)]
pub struct ServerConfig {
    /// The name of the server in paths.
    pub handle: String,
    pub scope_map: ScopeMap,
    pub deny_tools: Vec<String>,
    pub per_minute: Option<u32>,
    pub max_payload_bytes: Option<usize>,
    pub max_result_bytes: Option<usize>,
    pub stream: Option<Stream>,
}

/// Whether answers may be event streams; the seconds are only announced in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    pub enabled: bool,
    pub max_seconds: u32,
    pub heartbeat_seconds: u32,
}

/// Returns the time since 1970. A parameter, so that tests can set it.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Takes the lines of the audit log.
pub type AuditSink = Arc<dyn Fn(&str) + Send + Sync>;

/// The HTTP interface: answers requests, and runs dispatched tasks.
pub struct Edge {
    config: Config,
    state: State,
    clock: Clock,
    audit: AuditSink,
    rates: rate::RateWindows,
    /// What answers the messages of each server, by its handle.
    responders: BTreeMap<String, Arc<dyn MessageResponder>>,
    /// Wakes [`Edge::work`] when a task was queued.
    task_queued: tokio::sync::Notify,
}

impl Config {
    /// The contract's defaults, with one server.
    pub fn contract(auth: Auth) -> Config {
        Config {
            prefixes: vec!["/mcp".to_owned(), "/api/v1/mcp".to_owned()],
            auth,
            require_scopes: true,
            scope_map: ScopeMap::contract(),
            security: Security::contract(),
            per_minute: 60,
            max_payload_bytes: 256 * 1024,
            max_result_bytes: 1_048_576,
            stream: Stream { enabled: false, max_seconds: 120, heartbeat_seconds: 15 },
            queue: Queue::Durable,
            idempotency_ttl: Duration::from_secs(86_400),
            servers: vec![ServerConfig::content()],
        }
    }

    fn server(&self, handle: &str) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| server.handle == handle)
    }
}

impl ServerConfig {
    /// The server that the contract ships.
    pub fn content() -> ServerConfig {
        ServerConfig {
            handle: "content".to_owned(),
            per_minute: Some(30),
            max_payload_bytes: Some(128 * 1024),
            ..ServerConfig::default()
        }
    }
}

impl Edge {
    pub fn new(config: Config, state: State, clock: Clock, audit: AuditSink) -> Edge {
        let rates = rate::RateWindows::default();
        let task_queued = tokio::sync::Notify::new();
        Edge { config, state, clock, audit, rates, responders: BTreeMap::new(), task_queued }
    }

    /// Sets what answers the messages of a server.
    #[must_use]
    pub fn with(mut self, handle: &str, responder: Arc<dyn MessageResponder>) -> Edge {
        self.responders.insert(handle.to_owned(), responder);
        self
    }

    /// Returns how many bytes of a body the web server should read: one more than any
    /// server allows, so that a body that is too large is recognised as such.
    pub fn max_body(&self) -> usize {
        let own = self.config.servers.iter().filter_map(|server| server.max_payload_bytes);
        own.chain([self.config.max_payload_bytes]).max().unwrap_or_default() + 1
    }

    /// Answers one request; every error becomes a response.
    pub async fn respond(&self, request: Request<Bytes>, peer: Option<IpAddr>) -> Response<Bytes> {
        let started = (self.clock)();
        let incoming = self.parse_request(request, peer);
        let mut record = Record::new(&incoming, started);
        let reply = match self.admit(&incoming, &mut record).await {
            Ok(caller) => {
                let reply = self.answer(&incoming, &caller, &mut record).await;
                let reply = reply.unwrap_or_else(|refusal| refusal.to_reply(&incoming.trace_id));
                let line = record.line(reply.status, (self.clock)());
                (self.audit)(&line);
                reply
            }
            Err(refusal) => refusal.to_reply(&incoming.trace_id),
        };
        to_response(reply, &incoming.trace_id)
    }

    fn parse_request(&self, request: Request<Bytes>, peer: Option<IpAddr>) -> Incoming {
        let (parts, body) = request.into_parts();
        let route = self.route(parts.uri.path());
        let text = |name: &str| {
            let value = parts.headers.get(name)?.to_str().ok()?.trim();
            (!value.is_empty() && value.len() <= 128).then(|| value.to_owned())
        };
        let fresh = || uuid::Uuid::new_v4().to_string();
        let envelope = if body.len() <= self.max_body() {
            Envelope::parse(&body)
        } else {
            Envelope::default()
        };
        Incoming {
            trace_id: text("x-trace-id").unwrap_or_else(fresh),
            request_id: text("x-request-id").unwrap_or_else(fresh),
            envelope,
            route,
            method: parts.method,
            headers: parts.headers,
            body,
            peer,
        }
    }

    fn route(&self, path: &str) -> Route {
        let rest =
            self.config.prefixes.iter().find_map(|prefix| {
                path.strip_prefix(prefix.trim_end_matches('/'))?.strip_prefix('/')
            });
        let Some(rest) = rest else { return Route::Unknown };
        let segments: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
        match segments.as_slice() {
            [server] if !server.is_empty() => Route::Call { server: (*server).to_owned() },
            [server, "dispatch"] => Route::Dispatch { server: (*server).to_owned() },
            [server, "tasks", id] => match id.parse() {
                Ok(id) => Route::Task { server: (*server).to_owned(), id },
                Err(_) => Route::Unknown,
            },
            _ => Route::Unknown,
        }
    }

    /// Authenticates the caller, then checks scope and rate limit: 401, 403, 429.
    async fn admit(&self, incoming: &Incoming, record: &mut Record) -> Result<Caller, Refusal> {
        let now = (self.clock)();
        let caller =
            auth::authenticate(&self.config.auth, &incoming.headers, &self.state, now).await?;
        let server = self.config.server(incoming.route.server());
        let method = incoming.envelope.method();
        if self.config.require_scopes && !caller.open {
            let needed = match (&incoming.route, method) {
                (Route::Task { .. }, _) => Some("mcp:read".to_owned()),
                (_, Some(method)) => Some(
                    self.config.scope_map.required_scope(server.map(|one| &one.scope_map), method),
                ),
                (_, None) => None,
            };
            if needed.is_some_and(|scope| !policy::grants(&caller.identity.scopes, &scope)) {
                return Err(Refusal::ScopeDenied);
            }
        }
        let rate_key = caller.rate_key(incoming.peer);
        record.set_caller(&caller, &rate_key.to_string());
        let limit = server.and_then(|one| one.per_minute).unwrap_or(self.config.per_minute);
        // Names that do not exist share a bucket, because a caller can invent any number.
        let handle = server.map_or("", |server| &server.handle);
        let map = server.map(|server| &server.scope_map);
        let method =
            method.map_or("unknown", |method| self.config.scope_map.rate_limit_name(map, method));
        let bucket =
            rate::Bucket { server: handle.to_owned(), method: method.to_owned(), caller: rate_key };
        self.rates.count(bucket, limit, now)?;
        Ok(caller)
    }

    /// Answers the request of an admitted caller, after the remaining checks.
    async fn answer(
        &self,
        incoming: &Incoming,
        caller: &Caller,
        record: &mut Record,
    ) -> Result<HttpReply, Refusal> {
        match (&incoming.route, &incoming.method) {
            (Route::Unknown, _) => return Err(Refusal::NoServer),
            (Route::Task { server, id }, &Method::GET) => {
                return self.task_status(server, *id, caller).await;
            }
            (_, &Method::POST) => {}
            (_, _) => return Err(Refusal::MethodNotAllowed),
        }
        self.check_body(incoming)?;
        let handle = incoming.route.server();
        self.config.security.allow_server(handle)?;
        let server = self.config.server(handle);
        let denied = server.map_or(&[][..], |server| &server.deny_tools);
        self.config.security.allow_tool(denied, &incoming.envelope)?;
        let responder =
            self.responders.get(handle).filter(|_| server.is_some()).ok_or(Refusal::NoServer)?;
        match incoming.route {
            Route::Dispatch { .. } => self.dispatch(incoming, caller, record, responder).await,
            Route::Call { .. } | Route::Task { .. } | Route::Unknown => {
                let session = session(&incoming.headers);
                let (envelope, body) = (&incoming.envelope, &incoming.body);
                self.answer_message(handle, envelope, body, caller, session, responder).await
            }
        }
    }

    fn check_body(&self, incoming: &Incoming) -> Result<(), Refusal> {
        let media = incoming.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let json = media.is_some_and(|media| {
            let start = media.trim_start().get(..16).unwrap_or_default();
            start.eq_ignore_ascii_case("application/json")
        });
        if !json {
            return Err(Refusal::MediaType);
        }
        let server = self.config.server(incoming.route.server());
        let limit = server.and_then(|server| server.max_payload_bytes);
        if incoming.body.len() > limit.unwrap_or(self.config.max_payload_bytes) {
            return Err(Refusal::PayloadTooLarge);
        }
        if incoming.envelope.is_ambiguous() {
            return Err(Refusal::InvalidPayload("Invalid payload: repeated members"));
        }
        Ok(())
    }

    /// Has a message answered, and checks the answer.
    async fn answer_message(
        &self,
        handle: &str,
        envelope: &Envelope,
        body: &Bytes,
        caller: &Caller,
        session: Option<&str>,
        responder: &Arc<dyn MessageResponder>,
    ) -> Result<HttpReply, Refusal> {
        let answered = match envelope.error_reply() {
            Some(error) => MessageReply { body: Some(error), ..MessageReply::default() },
            None => responder.respond(body.clone(), &caller.identity, session).await,
        };
        let server = self.config.server(handle);
        let mut headers = Vec::new();
        let is_initialize = envelope.method() == Some("initialize");
        if is_initialize {
            let fresh = || uuid::Uuid::new_v4().to_string();
            headers.push(("mcp-session-id", answered.session.unwrap_or_else(fresh)));
        }
        let Some(body) = answered.body else {
            return Ok(HttpReply { status: StatusCode::ACCEPTED, headers, body: Bytes::new() });
        };
        if answered.streamed {
            let stream = server.and_then(|server| server.stream).unwrap_or(self.config.stream);
            headers.extend(stream_headers(stream)?);
            return Ok(HttpReply { status: StatusCode::OK, headers, body });
        }
        let body = if is_initialize { with_platform(body) } else { body };
        let limit = server.and_then(|server| server.max_result_bytes);
        let too_large = body.len() > limit.unwrap_or(self.config.max_result_bytes);
        if too_large {
            return Err(Refusal::ResultTooLarge);
        }
        if let Some(refusal) = refusal_in(&body) {
            return Err(refusal);
        }
        headers.push(("content-type", "application/json".to_owned()));
        Ok(HttpReply { status: StatusCode::OK, headers, body })
    }
}

/// Returns the MCP session id that the client sent.
fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get("mcp-session-id").and_then(|value| value.to_str().ok())
}

fn stream_headers(stream: Stream) -> Result<[(&'static str, String); 5], Refusal> {
    if !stream.enabled {
        return Err(Refusal::StreamingDisabled);
    }
    Ok([
        ("content-type", "text/event-stream".to_owned()),
        ("cache-control", "no-cache, no-transform".to_owned()),
        ("x-accel-buffering", "no".to_owned()),
        ("x-emcp-stream-max-seconds", stream.max_seconds.to_string()),
        ("x-emcp-heartbeat-seconds", stream.heartbeat_seconds.to_string()),
    ])
}

/// Returns the refusal in an error of the toolset for which the contract has an HTTP
/// status: a result over its size limit, or a call that the site does not permit.
fn refusal_in(body: &Bytes) -> Option<Refusal> {
    // A search for text first spares most bodies the parsing.
    let needle = br#"reason":"#;
    if body.len() > 2048 || !body.windows(needle.len()).any(|window| window == needle) {
        return None;
    }
    let reply: Value = serde_json::from_slice(body).ok()?;
    let (error, result) = (&reply["error"], &reply["result"]);
    let reason =
        error["data"]["reason"].as_str().or_else(|| result["_meta"][REASON_META_KEY].as_str())?;
    match reason {
        RESULT_TOO_LARGE => Some(Refusal::ResultTooLarge),
        FORBIDDEN => {
            let text = error["message"].as_str().or_else(|| result["content"][0]["text"].as_str());
            Some(Refusal::Forbidden { detail: text.unwrap_or_default().to_owned() })
        }
        _ => None,
    }
}

/// Adds the contract's metadata to the answer to `initialize`, if it was lost on the way
/// through another server.
fn with_platform(body: Bytes) -> Bytes {
    let amended = || {
        let mut reply = Object::parse(&Json::parse(body.clone()).ok()?).ok()?;
        let mut result = Object::parse(reply.get("result")?).ok()?;
        let part = |name: &str| match result.get(name) {
            Some(json) => Object::parse(json).ok(),
            None => Some(Object::new()),
        };
        let (mut server, mut capabilities) = (part("serverInfo")?, part("capabilities")?);
        if server.get("platform").is_none() {
            server.set("platform", Json::encode(PLATFORM));
            server.set("platformVersion", Json::encode(env!("CARGO_PKG_VERSION")));
        }
        if capabilities.get("evo").is_none() {
            capabilities.set("evo", json!({"toolsetVersion": TOOLSET_VERSION}).into());
        }
        result.set("serverInfo", server.to_json());
        result.set("capabilities", capabilities.to_json());
        reply.set("result", result.to_json());
        Some(reply.to_json().as_bytes().clone())
    };
    amended().unwrap_or(body)
}

fn to_response(reply: HttpReply, trace_id: &str) -> Response<Bytes> {
    let mut response = Response::new(reply.body);
    *response.status_mut() = reply.status;
    let headers = reply.headers.into_iter().chain([("x-trace-id", trace_id.to_owned())]);
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests;
