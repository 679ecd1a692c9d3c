//! The client side of Streamable HTTP.
//!
//! Every request is its own POST, answered with JSON or with an event stream that ends in
//! the reply; other messages on that stream belong to that request. Legacy servers have a
//! session, a GET event stream for messages that belong to no request, and resumable
//! streams. Modern servers have none of that, and closing the stream cancels the request.

mod answer;
mod client;
mod delivery;
mod event_stream;
mod no_answer;
mod outbox;
mod reconnect;

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use ::http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use ::http::{HeaderMap, HeaderValue, StatusCode};
use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use reqwest::Url;
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tool::{Failure, Json, Reply, Sent};

use super::credential::{self, Credential, RepeatPolicy};
use super::error::ConnectError;
use super::headers::for_span;
use super::options::{Endpoint, Options};
use super::relay::Relay;
use super::request::{OutgoingRequest, Payload, RequestMode};
use crate::memory::MemoryBudget;
use crate::peer::RequestId;
use crate::peer::pending::PendingGuard;
use crate::revision::{Revision, header, method};
use delivery::{DELIVERY_TIMEOUT, Delivery, MAX_QUEUED};
use no_answer::NoAnswer;

pub(super) use answer::{error_body, error_failure, is_event_stream};
pub(super) use client::{
    Redirects, build_client, failure_without_response, parse_endpoint, same_origin,
};

/// How many redirects in a row are followed.
const REDIRECTS: usize = 5;

/// The pause before a request is sent again to a server that refused the connection.
const RECONNECT_PAUSE: Duration = Duration::from_millis(300);

/// A connection to one server over Streamable HTTP.
pub(super) struct Http {
    label: String,
    client: reqwest::Client,
    /// The current URL: the server may redirect within its origin.
    url: ArcSwap<Url>,
    /// The headers that the operator configured for every request.
    headers: HeaderMap,
    credential: Option<Arc<dyn Credential>>,
    /// The longest response or event, in bytes.
    limit: usize,
    memory: MemoryBudget,
    relay: Arc<Relay>,
    next_id: AtomicU64,
    session: Mutex<Session>,
    /// Held while a lost session is reopened.
    reopening: tokio::sync::Mutex<()>,
    /// How often the session was reopened.
    n_reopened: watch::Sender<u64>,
    /// The HTTP status of the last response if it held no JSON-RPC reply; otherwise 0.
    last_error_status: AtomicU16,
    outbox: mpsc::Sender<Delivery>,
    closing: CancellationToken,
    why_closed: Mutex<Option<String>>,
}

/// The session of a legacy server.
#[derive(Clone, Default)]
struct Session {
    id: Option<HeaderValue>,
    /// The server forgot the session, and it is not reopened yet.
    is_lost: bool,
    /// The negotiated legacy revision; modern requests name their own.
    revision: Option<Revision>,
    /// The params of `initialize`, for reopening.
    initialize_params: Option<Json>,
}

impl Http {
    pub(super) fn new(
        endpoint: &Endpoint,
        options: &Options,
        relay: Arc<Relay>,
    ) -> Result<Arc<Http>, ConnectError> {
        let (url, headers) = parse_endpoint(endpoint)?;
        let client = build_client(&url, endpoint, Redirects::Never)?;
        let (outbox, waiting) = mpsc::channel(MAX_QUEUED);
        let http = Arc::new(Http {
            label: options.label.clone(),
            client,
            url: ArcSwap::from_pointee(url),
            headers,
            credential: options.credential.clone(),
            limit: options.limits.line,
            memory: options.memory.clone(),
            relay,
            next_id: AtomicU64::new(1),
            session: Mutex::default(),
            reopening: tokio::sync::Mutex::new(()),
            n_reopened: watch::Sender::new(0),
            last_error_status: AtomicU16::new(0),
            outbox,
            closing: CancellationToken::new(),
            why_closed: Mutex::default(),
        });
        let shutdown = options.shutdown.clone();
        options.shutdown.spawn(Arc::clone(&http).run_outbox(waiting, shutdown));
        Ok(http)
    }

    pub(super) fn next_request_id(&self) -> RequestId {
        RequestId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) async fn request(
        self: &Arc<Http>,
        request: OutgoingRequest,
    ) -> Result<Reply, Failure> {
        let asked = Instant::now();
        let timeouts = request.timeouts;
        let request_id = request.request_id;
        let (waiting, mut failed) =
            PendingGuard::new(&*self.relay.open_requests, request_id, asked, timeouts);
        let mut cancel = CancelOnDrop::new(self, &request);
        let mut exchange = std::pin::pin!(self.send_with_recovery(&request));
        let mut deadline = asked + timeouts.quiet.min(timeouts.whole);
        loop {
            let answer = tokio::select! {
                biased;
                answer = timeout_at(deadline, &mut exchange) => answer,
                () = self.closing.cancelled() => Ok(Err(self.lost_failure(Sent::Perhaps))),
                Ok(failed) = &mut failed => return failed,
            };
            if let Ok(answer) = answer {
                cancel.reason = None;
                return answer;
            }
            let later = waiting.deadline().unwrap_or(deadline);
            if later <= deadline {
                cancel.reason = cancel.reason.and(Some("no answer in time"));
                return Err(Failure::Timeout { after: deadline - asked });
            }
            deadline = later;
        }
    }

    pub(super) fn notify(&self, method: &str, params: Option<&Json>) {
        self.enqueue(Delivery::notification(method, params));
    }

    /// Remembers the params of `initialize`, for reopening the session.
    pub(super) fn remember_initialize(&self, params: &Json) {
        self.session().initialize_params = Some(params.clone());
    }

    pub(super) fn set_revision(&self, revision: Revision) {
        self.session().revision = Some(revision);
    }

    pub(super) fn close(&self, reason: &str) {
        let mut why = self.why_closed.lock();
        why.get_or_insert_with(|| reason.to_owned());
        drop(why);
        self.closing.cancel();
    }

    /// Sends a request, and once more after failures that allow it.
    async fn send_with_recovery(
        self: &Arc<Http>,
        request: &OutgoingRequest,
    ) -> Result<Reply, Failure> {
        if self.closing.is_cancelled() {
            return Err(self.lost_failure(Sent::No));
        }
        if let Some(reason) = self.relay.why_gone() {
            return Err(Failure::Lost { reason, sent: Sent::No });
        }
        let mut body = String::new();
        request.write(&mut body);
        let body = Bytes::from(body);
        let session = self.open_session().await?;
        let answer = match self.send_once(request, body.clone(), &session).await {
            // Reopen the session for later requests. Repeat this one only if it is
            // idempotent: the server received it and may have run it.
            Err(NoAnswer::NoSession) => {
                let reopened = self.reopen(&session).await;
                match is_idempotent(request.method()) {
                    true => {
                        reopened?;
                        let session = self.session().clone();
                        self.send_once(request, body, &session).await
                    }
                    false => Err(NoAnswer::NoSession),
                }
            }
            // A pooled connection was closed before anything was written to it.
            Err(NoAnswer::NeverWritten(_)) => self.send_once(request, body, &session).await,
            // Nothing was sent, so it may be repeated: the server may be restarting.
            Err(NoAnswer::NoConnection(_)) => {
                sleep(RECONNECT_PAUSE).await;
                self.send_once(request, body, &session).await
            }
            // The request may have run: a pooled connection that the server closed just
            // then looks the same as one that it closed after running it.
            Err(NoAnswer::CutOff(_)) if is_idempotent(request.method()) => {
                self.send_once(request, body, &session).await
            }
            answer => answer,
        };
        if let Err(NoAnswer::NoConnection(reason) | NoAnswer::OtherRevision(reason)) = &answer {
            // The supervisor connects anew. Calls in flight have their own connections
            // and may still end well.
            self.relay.mark_gone(reason);
        }
        answer.map_err(NoAnswer::into_failure)
    }

    /// Posts a request in a session and reads its reply; follows redirects if allowed.
    async fn send_once(
        self: &Arc<Http>,
        request: &OutgoingRequest,
        body: Bytes,
        session: &Session,
    ) -> Result<Reply, NoAnswer> {
        let mut headers = self.headers_of(session);
        if let RequestMode::Stateless(own) = &request.mode {
            headers.extend(own.iter().cloned());
            let revision = HeaderValue::from_static(Revision::LATEST.as_str());
            headers.insert(header::PROTOCOL_VERSION, revision);
        }
        if let Some(span) = request.trace.as_ref().and_then(|trace| trace.span.as_ref()) {
            headers.extend(for_span(span));
        }
        let is_opening = request.method() == method::INITIALIZE;
        let may_repeat = is_opening || is_idempotent(request.method());
        let repeat = match may_repeat {
            true => RepeatPolicy::Always,
            false => {
                // Lets the pool notice connections that the server has closed, so that
                // the call is not written to one.
                tokio::task::yield_now().await;
                RepeatPolicy::IfNotRun
            }
        };
        let mut response = self.post(headers.clone(), body.clone(), repeat).await?;
        for _ in 0..REDIRECTS {
            // The next request uses the new URL; this one may have run.
            if !self.note_redirect(&response) || !may_repeat {
                break;
            }
            response = self.post(headers.clone(), body.clone(), repeat).await?;
        }
        let opened = response.headers().get(header::SESSION_ID).cloned();
        let reply = self.read_answer(request, response, session.id.is_some()).await?;
        // Only a result opens a session. After an error the lost one is still to be
        // reopened by the next request.
        if is_opening && matches!(reply, Reply::Result(_)) {
            let mut session = self.session();
            (session.id, session.is_lost) = (opened, false);
        }
        Ok(reply)
    }

    async fn post(
        &self,
        headers: HeaderMap,
        body: Bytes,
        repeat: RepeatPolicy,
    ) -> Result<reqwest::Response, NoAnswer> {
        let post = |authorization: Option<&HeaderValue>| {
            let headers = credential::with_authorization(&headers, authorization);
            self.client.post(self.address()).headers(headers).body(body.clone())
        };
        let credential = self.credential.as_deref();
        credential::send_with_credential(credential, repeat, post, NoAnswer::from).await
    }

    /// Returns the HTTP status of the last response if it held no JSON-RPC reply.
    pub(super) fn last_error_status(&self) -> Option<u16> {
        Some(self.last_error_status.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }

    /// Adds the current `Authorization`; `None` when no request should be sent.
    pub(super) async fn with_credential(&self, headers: HeaderMap) -> Option<HeaderMap> {
        let Some(credential) = &self.credential else { return Some(headers) };
        let authorization = credential.present().await.ok()?;
        Some(credential::with_authorization(&headers, authorization.as_ref()))
    }

    pub(super) fn address(&self) -> Url {
        Url::clone(&self.url.load())
    }

    /// Stores the new URL if the response redirects within the origin, and returns whether
    /// it did. Only 307 and 308 count, which keep the method.
    pub(super) fn note_redirect(&self, response: &reqwest::Response) -> bool {
        if !matches!(response.status().as_u16(), 307 | 308) {
            return false;
        }
        let here = self.address();
        let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        let to = to.and_then(|to| here.join(to).ok());
        let Some(to) = to.filter(|to| same_origin(&here, to) && *to != here) else { return false };
        self.url.store(Arc::new(to));
        true
    }

    /// Returns the session for a request, after reopening a lost one.
    async fn open_session(self: &Arc<Http>) -> Result<Session, Failure> {
        let session = self.session().clone();
        if !session.is_lost {
            return Ok(session);
        }
        // The failure is about the opening; the request itself was not sent.
        self.reopen(&session).await.map_err(|failure| match failure {
            Failure::Lost { .. } | Failure::Timeout { .. } | Failure::Unusable { .. } => {
                Failure::Unavailable { reason: failure.to_string() }
            }
            Failure::RateLimited { retry_after, .. } => {
                Failure::RateLimited { retry_after, sent: Sent::No }
            }
            Failure::Unavailable { .. }
            | Failure::Unauthorized { .. }
            | Failure::Forbidden { .. }
            | Failure::Cancelled
            | Failure::Unsupported { .. } => failure,
        })?;
        Ok(self.session().clone())
    }

    /// Reopens the session `lost` that the server forgot, unless another task did already.
    async fn reopen(self: &Arc<Http>, lost: &Session) -> Result<(), Failure> {
        let _one_at_a_time = self.reopening.lock().await;
        let now = self.session().clone();
        if now.id != lost.id {
            return Ok(());
        }
        self.session().is_lost = true;
        let Some(params) = now.initialize_params.clone() else {
            let reason = "the server forgot the session".to_owned();
            return Err(Failure::Lost { reason, sent: Sent::No });
        };
        tracing::info!(target: "upstream", upstream = self.label, "the server forgot the session; opening another");
        let (request, body) = self.initialize_request(params);
        let fresh = Session::default();
        let answer = timeout(DELIVERY_TIMEOUT, self.send_once(&request, body, &fresh)).await;
        let answer = answer.map_err(|_| Failure::Timeout { after: DELIVERY_TIMEOUT })?;
        match answer.map_err(NoAnswer::into_failure)? {
            Reply::Result(_) => {
                self.send_initialized().await;
                self.relay.stale.note_new_session();
                self.n_reopened.send_modify(|n| *n += 1);
                Ok(())
            }
            Reply::Error(error) => {
                let reason = format!("the session cannot be opened again: {}", error.message);
                self.relay.mark_gone(&reason);
                Err(Failure::Lost { reason, sent: Sent::No })
            }
        }
    }

    /// Sends `initialize` on a separate session that is ended at once, to learn what the
    /// server says about itself now.
    pub(super) async fn initialize_on_new_session(self: &Arc<Http>) -> Result<Reply, Failure> {
        let initialize_params = self.session().initialize_params.clone();
        let (request, body) =
            self.initialize_request(initialize_params.unwrap_or_else(Json::empty_object));
        let fresh = Session::default();
        let asked = async {
            let response = self.post(self.headers_of(&fresh), body, RepeatPolicy::Always).await?;
            let id = response.headers().get(header::SESSION_ID).cloned();
            let reply = self.read_answer(&request, response, false).await;
            let session = Session { id, ..self.session().clone() };
            self.end_session(&session).await;
            reply
        };
        let reply = timeout(DELIVERY_TIMEOUT, asked).await;
        let reply = reply.map_err(|_| Failure::Timeout { after: DELIVERY_TIMEOUT })?;
        reply.map_err(NoAnswer::into_failure)
    }

    /// Makes the `initialize` request, with its body.
    fn initialize_request(&self, params: Json) -> (OutgoingRequest, Bytes) {
        let request = OutgoingRequest {
            request_id: self.next_request_id(),
            payload: Payload::Internal { method: method::INITIALIZE, params: Some(params) },
            timeouts: crate::peer::Timeouts::same(DELIVERY_TIMEOUT),
            mode: RequestMode::InSession,
            trace: None,
        };
        let mut body = String::new();
        request.write(&mut body);
        (request, body.into())
    }

    fn headers_of(&self, session: &Session) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accept);
        if let Some(id) = &session.id {
            headers.insert(header::SESSION_ID, id.clone());
        }
        // Servers of revisions before 2025-06-18 may refuse this header.
        if let Some(revision) = session.revision.filter(|r| Revision::V2025_06_18 <= *r) {
            let revision = HeaderValue::from_static(revision.as_str());
            headers.insert(header::PROTOCOL_VERSION, revision);
        }
        headers
    }

    fn lost_failure(&self, sent: Sent) -> Failure {
        let why = self.why_closed.lock().clone();
        Failure::Lost { reason: why.unwrap_or_default(), sent }
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock()
    }
}

/// Sends a cancellation when a request in a session is dropped before its reply.
struct CancelOnDrop<'a> {
    http: &'a Http,
    request_id: RequestId,
    reason: Option<&'static str>,
}

impl<'a> CancelOnDrop<'a> {
    fn new(http: &'a Http, request: &OutgoingRequest) -> CancelOnDrop<'a> {
        let on_session = matches!(request.mode, RequestMode::InSession);
        let opens = request.method() == method::INITIALIZE;
        let reason = (on_session && !opens).then_some("no longer wanted");
        CancelOnDrop { http, request_id: request.request_id, reason }
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(reason) = self.reason {
            let params = serde_json::json!({"requestId": self.request_id.0, "reason": reason});
            self.http.notify(method::CANCELLED, Some(&params.into()));
        }
    }
}

/// Returns whether a method may be sent twice. Tool calls are not included: whether a tool
/// may run twice is decided by policy, outside of this crate.
pub(super) fn is_idempotent(method: &str) -> bool {
    matches!(
        method,
        method::DISCOVER
            | method::PING
            | method::TOOLS_LIST
            | method::RESOURCES_LIST
            | method::TEMPLATES_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_READ
            | method::PROMPTS_GET
            | method::COMPLETE
            | method::SUBSCRIBE
            | method::UNSUBSCRIBE
            | method::SET_LEVEL
    )
}

/// Returns whether a response means that the server forgot our session: 404 by the
/// protocol, 400 that mentions the session by some servers in practice.
fn forgot_session(status: StatusCode, body: &[u8]) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        StatusCode::BAD_REQUEST => {
            let text = String::from_utf8_lossy(body).to_ascii_lowercase();
            text.contains("session")
        }
        _ => false,
    }
}
