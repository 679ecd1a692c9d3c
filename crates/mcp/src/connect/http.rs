//! A server reached over Streamable HTTP.
//!
//! Every question is a POST of its own, answered with JSON or with a stream of
//! events that ends in the answer; what a server says on that stream belongs to
//! that question. Older servers have a session, a GET event stream for what
//! belongs to no question, and streams that can be resumed. Modern ones have
//! none of that, and closing the stream is how a question is cancelled.

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

use super::credential::{self, Credential, Repeat};
use super::error::ConnectError;
use super::headers::for_span;
use super::options::{Endpoint, Options};
use super::relay::Relay;
use super::request::{Payload, Question, RequestMode};
use crate::memory::MemoryBudget;
use crate::peer::RequestId;
use crate::peer::pending::PendingGuard;
use crate::revision::{Revision, header, method};
use delivery::{DELIVERY_TIMEOUT, Delivery, WAITING};
use no_answer::NoAnswer;

pub(super) use answer::{is_stream, refusal, refusal_body};
pub(super) use client::{Redirects, client, parse, same_origin, unreachable};

/// How many redirects in a row are followed.
const REDIRECTS: usize = 5;

/// How long to wait before a server that is not there is looked for again.
const AGAIN: Duration = Duration::from_millis(300);

pub(super) struct Http {
    label: String,
    client: reqwest::Client,
    /// Where it is now: a server may say that it moved, within its origin.
    url: ArcSwap<Url>,
    /// What the operator wants sent with every request.
    headers: HeaderMap,
    credential: Option<Arc<dyn Credential>>,
    limit: usize,
    memory: MemoryBudget,
    relay: Arc<Relay>,
    next: AtomicU64,
    session: Mutex<Session>,
    /// Held while a lost session is opened again.
    reopening: tokio::sync::Mutex<()>,
    /// How often it was.
    n_reopened: watch::Sender<u64>,
    /// The status of the last response that was no answer; 0 after an answer.
    turned_away: AtomicU16,
    outbox: mpsc::Sender<Delivery>,
    closing: CancellationToken,
    why_closed: Mutex<Option<String>>,
}

#[derive(Clone, Default)]
struct Session {
    id: Option<HeaderValue>,
    /// The server forgot it, and it could not be opened again yet.
    is_lost: bool,
    /// The older revision that was agreed; modern questions name their own.
    revision: Option<Revision>,
    /// The params of `initialize`, for opening it again.
    opening: Option<Json>,
}

impl Http {
    pub(super) fn new(
        endpoint: &Endpoint,
        options: &Options,
        relay: Arc<Relay>,
    ) -> Result<Arc<Http>, ConnectError> {
        let (url, headers) = parse(endpoint)?;
        let client = client(&url, endpoint, Redirects::Never)?;
        let (outbox, waiting) = mpsc::channel(WAITING);
        let http = Arc::new(Http {
            label: options.label.clone(),
            client,
            url: ArcSwap::from_pointee(url),
            headers,
            credential: options.credential.clone(),
            limit: options.limits.line,
            memory: options.memory.clone(),
            relay,
            next: AtomicU64::new(1),
            session: Mutex::default(),
            reopening: tokio::sync::Mutex::new(()),
            n_reopened: watch::Sender::new(0),
            turned_away: AtomicU16::new(0),
            outbox,
            closing: CancellationToken::new(),
            why_closed: Mutex::default(),
        });
        let shutdown = options.shutdown.clone();
        options.shutdown.spawn(Arc::clone(&http).run_outbox(waiting, shutdown));
        Ok(http)
    }

    pub(super) fn next_request_id(&self) -> RequestId {
        RequestId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) async fn request(self: &Arc<Http>, question: Question) -> Result<Reply, Failure> {
        let asked = Instant::now();
        let timeouts = question.timeouts;
        let request_id = question.request_id;
        let (waiting, mut failed) =
            PendingGuard::new(&*self.relay.open, request_id, asked, timeouts);
        let mut cancel = Cancel::new(self, &question);
        let mut exchange = std::pin::pin!(self.exchange(&question));
        let mut deadline = asked + timeouts.quiet.min(timeouts.whole);
        loop {
            let answer = tokio::select! {
                biased;
                answer = timeout_at(deadline, &mut exchange) => answer,
                () = self.closing.cancelled() => Ok(Err(self.lost(Sent::Perhaps))),
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
        self.send(Delivery::news(method, params));
    }

    /// Remembers how the session is opened, in case it must be again.
    pub(super) fn remember_opening(&self, params: &Json) {
        self.session().opening = Some(params.clone());
    }

    pub(super) fn agreed(&self, revision: Revision) {
        self.session().revision = Some(revision);
    }

    pub(super) fn close(&self, reason: &str) {
        let mut why = self.why_closed.lock();
        why.get_or_insert_with(|| reason.to_owned());
        drop(why);
        self.closing.cancel();
    }

    async fn exchange(self: &Arc<Http>, question: &Question) -> Result<Reply, Failure> {
        if self.closing.is_cancelled() {
            return Err(self.lost(Sent::No));
        }
        if let Some(reason) = self.relay.why_gone() {
            return Err(Failure::Lost { reason, sent: Sent::No });
        }
        let mut body = String::new();
        question.write(&mut body);
        let body = Bytes::from(body);
        let session = self.open_session().await?;
        let answer = match self.ask(question, body.clone(), &session).await {
            // It is opened again for whoever comes next. This question goes again
            // only where that does no harm: the server had it, and who answers
            // may have run it, whatever the status says.
            Err(NoAnswer::NoSession) => {
                let reopened = self.reopen(&session).await;
                match is_harmless(question.method()) {
                    true => {
                        reopened?;
                        let session = self.session().clone();
                        self.ask(question, body, &session).await
                    }
                    false => Err(NoAnswer::NoSession),
                }
            }
            // A kept connection was closed before anything was written to it.
            Err(NoAnswer::NeverWritten(_)) => self.ask(question, body, &session).await,
            // It never left, so it may go again: a server that is being
            // restarted is not there for a moment.
            Err(NoAnswer::NobodyThere(_)) => {
                sleep(AGAIN).await;
                self.ask(question, body, &session).await
            }
            // What was never sent goes again by itself. This may have been:
            // a kept connection that the server closed just then looks the same
            // from here as one that it closed after it did something.
            Err(NoAnswer::CutOff(_)) if is_harmless(question.method()) => {
                self.ask(question, body, &session).await
            }
            answer => answer,
        };
        if let Err(NoAnswer::NobodyThere(reason) | NoAnswer::Another(reason)) = &answer {
            // Whoever keeps us opens another. Calls under way have connections
            // of their own, and end as they end.
            self.relay.gone(reason);
        }
        answer.map_err(NoAnswer::into_failure)
    }

    async fn ask(
        self: &Arc<Http>,
        question: &Question,
        body: Bytes,
        session: &Session,
    ) -> Result<Reply, NoAnswer> {
        let mut headers = self.headers_of(session);
        if let RequestMode::Stateless(own) = &question.mode {
            headers.extend(own.iter().cloned());
            let revision = HeaderValue::from_static(Revision::LATEST.as_str());
            headers.insert(header::PROTOCOL_VERSION, revision);
        }
        if let Some(span) = question.trace.as_ref().and_then(|trace| trace.span.as_ref()) {
            headers.extend(for_span(span));
        }
        let is_opening = question.method() == method::INITIALIZE;
        let may_repeat = is_opening || is_harmless(question.method());
        let repeat = match may_repeat {
            true => Repeat::Always,
            false => {
                // So that a kept connection which the server has closed already
                // is known to be, and the call is not written into it.
                tokio::task::yield_now().await;
                Repeat::IfUnrun
            }
        };
        let mut response = self.post(headers.clone(), body.clone(), repeat).await?;
        for _ in 0..REDIRECTS {
            // The next question goes to the new address; this one may have run.
            if !self.note_move(&response) || !may_repeat {
                break;
            }
            response = self.post(headers.clone(), body.clone(), repeat).await?;
        }
        let opened = response.headers().get(header::SESSION_ID).cloned();
        let reply = self.answer(question, response, session.id.is_some()).await?;
        // Only a result opens a session. What refuses to open one says nothing
        // of the last, which is to be opened again by the next who asks.
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
        repeat: Repeat,
    ) -> Result<reqwest::Response, NoAnswer> {
        let post = |shown: Option<&HeaderValue>| {
            let headers = credential::signed(&headers, shown);
            self.client.post(self.address()).headers(headers).body(body.clone())
        };
        let credential = self.credential.as_deref();
        credential::send_with_credential(credential, repeat, post, NoAnswer::from).await
    }

    /// Returns how it answered the last question, where that was no answer.
    pub(super) fn turned_away(&self) -> Option<u16> {
        Some(self.turned_away.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }

    /// Headers with what is shown now; `None` when nothing should be sent.
    pub(super) async fn signed(&self, headers: HeaderMap) -> Option<HeaderMap> {
        let Some(credential) = &self.credential else { return Some(headers) };
        let shown = credential.present().await.ok()?;
        Some(credential::signed(&headers, shown.as_ref()))
    }

    pub(super) fn address(&self) -> Url {
        Url::clone(&self.url.load())
    }

    /// Remembers where the server says that it is now, within its origin, and
    /// says whether it did. Only redirects count that leave a POST a POST.
    pub(super) fn note_move(&self, response: &reqwest::Response) -> bool {
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

    /// The session to ask on. One that is known to be lost is opened first.
    async fn open_session(self: &Arc<Http>) -> Result<Session, Failure> {
        let session = self.session().clone();
        if !session.is_lost {
            return Ok(session);
        }
        // What is wrong with the opening is not about the question, which did
        // not leave.
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

    /// Opens the session again after the server forgot it. Whoever comes
    /// second finds it open.
    async fn reopen(self: &Arc<Http>, lost: &Session) -> Result<(), Failure> {
        let _one_at_a_time = self.reopening.lock().await;
        let now = self.session().clone();
        if now.id != lost.id {
            return Ok(());
        }
        self.session().is_lost = true;
        let Some(params) = now.opening.clone() else {
            let reason = "the server forgot the session".to_owned();
            return Err(Failure::Lost { reason, sent: Sent::No });
        };
        tracing::info!(target: "upstream", upstream = self.label, "the server forgot the session; opening another");
        let (question, body) = self.opening(params);
        let fresh = Session::default();
        let answer = timeout(DELIVERY_TIMEOUT, self.ask(&question, body, &fresh)).await;
        let answer = answer.map_err(|_| Failure::Timeout { after: DELIVERY_TIMEOUT })?;
        match answer.map_err(NoAnswer::into_failure)? {
            Reply::Result(_) => {
                self.opened().await;
                self.relay.stale.renew();
                self.n_reopened.send_modify(|n| *n += 1);
                Ok(())
            }
            Reply::Error(error) => {
                let reason = format!("the session cannot be opened again: {}", error.message);
                self.relay.gone(&reason);
                Err(Failure::Lost { reason, sent: Sent::No })
            }
        }
    }

    /// Returns what the server says of itself to who comes now: on a session of its
    /// own, which ends at once.
    pub(super) async fn greet_on_new_session(self: &Arc<Http>) -> Result<Reply, Failure> {
        let opening = self.session().opening.clone();
        let (question, body) = self.opening(opening.unwrap_or_else(Json::empty_object));
        let fresh = Session::default();
        let asked = async {
            let response = self.post(self.headers_of(&fresh), body, Repeat::Always).await?;
            let id = response.headers().get(header::SESSION_ID).cloned();
            let reply = self.answer(&question, response, false).await;
            let session = Session { id, ..self.session().clone() };
            self.leave(&session).await;
            reply
        };
        let reply = timeout(DELIVERY_TIMEOUT, asked).await;
        let reply = reply.map_err(|_| Failure::Timeout { after: DELIVERY_TIMEOUT })?;
        reply.map_err(NoAnswer::into_failure)
    }

    /// The question that opens a session.
    fn opening(&self, params: Json) -> (Question, Bytes) {
        let question = Question {
            request_id: self.next_request_id(),
            payload: Payload::Internal { method: method::INITIALIZE, params: Some(params) },
            timeouts: crate::peer::Timeouts::same(DELIVERY_TIMEOUT),
            mode: RequestMode::InSession,
            trace: None,
        };
        let mut body = String::new();
        question.write(&mut body);
        (question, body.into())
    }

    fn headers_of(&self, session: &Session) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accept);
        if let Some(id) = &session.id {
            headers.insert(header::SESSION_ID, id.clone());
        }
        // The header came with 2025-06-18; a server of an older revision may
        // refuse what it does not know.
        if let Some(revision) = session.revision.filter(|r| Revision::V2025_06_18 <= *r) {
            let revision = HeaderValue::from_static(revision.as_str());
            headers.insert(header::PROTOCOL_VERSION, revision);
        }
        headers
    }

    fn lost(&self, sent: Sent) -> Failure {
        let why = self.why_closed.lock().clone();
        Failure::Lost { reason: why.unwrap_or_default(), sent }
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock()
    }
}

/// Cancels a question that is dropped early, where closing its stream does not.
struct Cancel<'a> {
    http: &'a Http,
    request_id: RequestId,
    reason: Option<&'static str>,
}

impl<'a> Cancel<'a> {
    fn new(http: &'a Http, question: &Question) -> Cancel<'a> {
        let on_session = matches!(question.mode, RequestMode::InSession);
        let opens = question.method() == method::INITIALIZE;
        let reason = (on_session && !opens).then_some("no longer wanted");
        Cancel { http, request_id: question.request_id, reason }
    }
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if let Some(reason) = self.reason {
            let params = serde_json::json!({"requestId": self.request_id.0, "reason": reason});
            self.http.notify(method::CANCELLED, Some(&params.into()));
        }
    }
}

/// Returns whether asking twice changes nothing. Calls are not among them: whether
/// a tool may run twice is for others to say, who know whom the operator believes.
pub(super) fn is_harmless(method: &str) -> bool {
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

/// Returns whether a refusal means that the server no longer knows our session: 404
/// by the protocol, 400 with a word about it by servers in the wild.
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
