//! Routes the notifications and requests of a server to the client they belong to.
//!
//! Progress goes to the call whose token it carries. A request of the server (a
//! "question"), or a notification, that came on the stream of a call goes to that call's
//! client. A pipe does not tell which call is meant: there it goes to the only client that
//! is calling, and to none if there are several, because clients must not see each other's
//! messages. The rest becomes [`Event`]s, or is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;
use tool::{Event, Failure, FastMap, Json, Kind, Notification, Object, Reply, RpcError, Sent};

use super::calls::{CallInFlight, CallOwner, CallsInFlight, ClientRef, MessageTopic};
use super::options::{Attribution, Options};
use super::server_request;
use super::stale::StaleLists;
use crate::message::{self, Invalid, Message, Request, Response, excerpt};
use crate::peer::pending::OpenRequests;
use crate::peer::{Incoming, RequestId};
use crate::revision::{code, meta, method};

/// How many events are buffered for a slow reader; then it gets "all lists changed".
const EVENT_BUFFER: usize = 1024;

/// The maximum number of open questions of a server over HTTP; over a pipe the peer has
/// such a limit.
const MAX_OPEN_QUESTIONS: usize = 64;

/// The longest notification that is passed on, in bytes: many may be buffered.
const MAX_NOTIFICATION_BYTES: usize = 256 << 10;

/// After this many, invalid messages are only counted, not logged.
const MAX_LOGGED: u64 = 20;

/// How long a call may wait for its client while other calls are blocked by that.
const PAUSED_TOO_LONG: Duration = Duration::from_secs(60);

/// Routes the messages of one server.
pub(super) struct Relay {
    label: String,
    attribution: Attribution,
    /// Whether we are closing the connection ourselves.
    ending: AtomicBool,
    pub(super) calls: CallsInFlight,
    /// Answers questions outside of any call.
    fallback_client: ClientRef,
    /// In `Arc`s, because the buffer is allocated in advance.
    events: broadcast::Sender<Arc<Event>>,
    /// Why the server is gone, if it is.
    gone: Mutex<Option<String>>,
    /// The open questions over HTTP by id, to abort them.
    open_questions: Mutex<FastMap<Json, AbortHandle>>,
    pub(super) stale: StaleLists,
    /// The requests that wait for a reply of the server.
    pub(super) open_requests: Arc<dyn OpenRequests>,
    transport_kind: TransportKind,
    /// The number of invalid messages and unexpected responses.
    n_invalid: AtomicU64,
}

/// How messages of the server arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
    /// On one pipe for all calls: a message does not tell which call is meant.
    Pipe,
    /// On a separate stream for every call.
    Http,
}

impl Relay {
    pub(super) fn new(
        options: &Options,
        fallback_client: ClientRef,
        open_requests: Arc<dyn OpenRequests>,
        transport_kind: TransportKind,
    ) -> Relay {
        Relay {
            label: options.label.clone(),
            attribution: options.attribution,
            ending: AtomicBool::new(false),
            calls: CallsInFlight::default(),
            fallback_client,
            events: broadcast::Sender::new(EVENT_BUFFER),
            gone: Mutex::new(None),
            open_questions: Mutex::default(),
            stale: StaleLists::default(),
            open_requests,
            transport_kind,
            n_invalid: AtomicU64::new(0),
        }
    }

    /// Returns all events from now on, up to and including [`Event::Gone`].
    pub(super) fn events(&self) -> BoxStream<'static, Event> {
        // Subscribe before the check, so that the end is not missed.
        let receiver = self.events.subscribe();
        if let Some(reason) = self.why_gone() {
            return stream::iter([Event::Gone { reason }]).boxed();
        }
        stream::unfold(Some(receiver), next_events).flat_map(stream::iter).boxed()
    }

    pub(super) fn send_event(&self, event: Event) {
        // Having no receiver is not an error.
        self.events.send(Arc::new(event)).ok();
    }

    /// Marks the server as gone. Only the first reason counts.
    pub(super) fn mark_gone(&self, reason: &str) {
        let mut gone = self.gone.lock();
        if gone.is_none() {
            *gone = Some(reason.to_owned());
            drop(gone);
            let what = if self.ending.load(Ordering::Relaxed) { "ended" } else { "it is gone" };
            tracing::debug!(target: "upstream", upstream = self.label, reason, "{what}");
            self.stale.end();
            self.send_event(Event::Gone { reason: reason.to_owned() });
        }
    }

    /// Notes that we are closing the connection, so that its end is expected.
    pub(super) fn expect_end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Returns why the server is gone; `None` while it is not.
    pub(super) fn why_gone(&self) -> Option<String> {
        self.gone.lock().clone()
    }

    pub(super) fn n_invalid(&self) -> u64 {
        self.n_invalid.load(Ordering::Relaxed)
    }

    /// Processes a message that came over HTTP, on the stream of the call `stream_of` or on
    /// the general stream. For a question, returns its id and the future of the answer to
    /// send; `None` of that future means that the server cancelled it.
    pub(super) fn receive(
        self: &Arc<Relay>,
        message: Message,
        stream_of: Option<RequestId>,
    ) -> Option<(Json, BoxFuture<'static, Option<Reply>>)> {
        match message {
            Message::Request(request) => {
                let id = request.id.clone();
                if MAX_OPEN_QUESTIONS <= self.open_questions().len() {
                    let error = RpcError::new(code::SERVER, "too many questions are open");
                    let refused = std::future::ready(Some(Reply::Error(error))).boxed();
                    return Some((id, refused));
                }
                let answer = self
                    .answer(request, stream_of.and_then(|request_id| self.calls.get(request_id)));
                Some((id.clone(), self.abortable(id, answer)))
            }
            Message::Notification(notification) => {
                let call = stream_of.and_then(|request_id| self.calls.get(request_id));
                self.route_notification(notification, call, stream_of);
                None
            }
            Message::Response(response) => {
                self.unexpected_response(response);
                None
            }
        }
    }

    /// Makes the answer to a question abortable; `None` when the server cancelled it. On a
    /// pipe the peer does that.
    fn abortable(
        self: &Arc<Relay>,
        id: Json,
        answer: BoxFuture<'static, Reply>,
    ) -> BoxFuture<'static, Option<Reply>> {
        let (handle, registration) = AbortHandle::new_pair();
        self.open_questions().insert(id.clone(), handle);
        let relay = Arc::clone(self);
        Abortable::new(answer, registration)
            .map(move |reply| {
                relay.open_questions().remove(&id);
                reply.ok()
            })
            .boxed()
    }

    /// Aborts a question that the server cancelled.
    fn cancel_question(&self, note: &Notification) {
        let question = note.params.get("requestId").and_then(|id| self.open_questions().remove(id));
        if let Some(question) = question {
            question.abort();
        }
    }

    fn open_questions(&self) -> MutexGuard<'_, FastMap<Json, AbortHandle>> {
        self.open_questions.lock()
    }

    /// Routes a notification. `call` is the call that it certainly belongs to, `stream_of`
    /// the call whose stream it came on.
    fn route_notification(
        &self,
        notification: message::Notification,
        call: Option<CallInFlight>,
        stream_of: Option<RequestId>,
    ) {
        if let Some(request_id) = stream_of {
            self.open_requests.note_activity(request_id);
        }
        let message::Notification { method, params } = notification;
        let length = params.as_ref().map_or(0, |params| params.as_str().len());
        if MAX_NOTIFICATION_BYTES < length {
            self.log_invalid("a notification is too long", || format!("{length} bytes"));
            return;
        }
        let params = params.as_ref().and_then(|params| Object::parse(params).ok());
        let note = Notification { method, params: params.unwrap_or_default() };
        match note.method.as_str() {
            method::PROGRESS => self.progress(note),
            method::TOOLS_CHANGED => self.stale.mark(&[Kind::Tools]),
            method::PROMPTS_CHANGED => self.stale.mark(&[Kind::Prompts]),
            method::RESOURCES_CHANGED => self.stale.mark(&[Kind::Resources, Kind::Templates]),
            method::RESOURCES_UPDATED => self.resource_updated(note),
            method::ACKNOWLEDGED => self.stale.acknowledge(),
            method::CANCELLED => self.cancel_question(&note),
            method::MESSAGE => match self.owner(call, MessageTopic::Anything) {
                CallOwner::Call(call) => call.client_ref.client_handle.notify(note),
                CallOwner::Nobody => self.send_event(Event::Notification(note)),
                CallOwner::Ambiguous => self.log_ambiguous(&note.params),
            },
            _ => match call {
                Some(call) => call.client_ref.client_handle.notify(note),
                None => self.send_event(Event::Notification(note)),
            },
        }
    }

    /// Passes progress to its client, under the client's own token.
    fn progress(&self, mut note: Notification) {
        let request_id = note.params.get(meta::PROGRESS_TOKEN);
        let request_id = request_id.and_then(|token| token.as_str().trim_matches('"').parse().ok());
        let Some(request_id) = request_id.map(RequestId) else { return };
        self.open_requests.note_activity(request_id);
        if let Some(CallInFlight { client_ref, progress_token: Some(token), .. }) =
            self.calls.get(request_id)
        {
            note.params.set(meta::PROGRESS_TOKEN, token);
            client_ref.client_handle.notify(note);
        }
    }

    fn resource_updated(&self, mut note: Notification) {
        remove_subscription_id(&mut note.params);
        let uri = note.params.get("uri").and_then(|uri| uri.parse_as().ok());
        match uri {
            Some(uri) => self.send_event(Event::Updated { uri, notification: note }),
            None => self.send_event(Event::Notification(note)),
        }
    }

    /// Labels the questions in a reply with the server's name.
    pub(super) fn attribute_reply(&self, reply: Reply) -> Reply {
        server_request::prepare_reply(reply, &self.label, self.attribution)
    }

    /// Passes a question of the server to its client, and returns the future answer.
    fn answer(
        self: &Arc<Relay>,
        request: Request,
        call: Option<CallInFlight>,
    ) -> BoxFuture<'static, Reply> {
        if request.method == method::PING {
            return std::future::ready(Reply::Result(Json::empty_object())).boxed();
        }
        let topic = match request.method.as_str() {
            method::ROOTS_LIST => MessageTopic::Roots,
            _ => MessageTopic::Anything,
        };
        let (client_ref, paused) = match self.owner(call, topic) {
            CallOwner::Call(call) => {
                let paused = PausedDeadlines::new(self, &call);
                if let [request_id] = paused.request_ids[..] {
                    self.calls.note_question(request_id, &request.id);
                }
                (call.client_ref, Some(paused))
            }
            CallOwner::Nobody => (self.fallback_client.clone(), None),
            CallOwner::Ambiguous => {
                if self.transport_kind == TransportKind::Pipe {
                    self.calls.make_exclusive();
                }
                let message = "several clients are calling, and nothing says which one is asked";
                let error = RpcError::new(code::SERVER, message);
                return std::future::ready(Reply::Error(error)).boxed();
            }
        };
        let prepared =
            server_request::prepare(&request.method, request.params, &self.label, self.attribution);
        let params = match prepared {
            Ok(params) => params,
            Err(error) => return std::future::ready(Reply::Error(error)).boxed(),
        };
        async move {
            let _paused = paused;
            ask_client(&client_ref, &request.method, params).await
        }
        .boxed()
    }

    /// Fails the call that a question belongs to, because the answer could not be delivered
    /// to the server.
    pub(super) fn question_unanswered(&self, id: &Json, why: &Failure) {
        let Some(request_id) = self.calls.call_of_question(id) else { return };
        let reason = format!("it asked something, and the answer did not reach it: {why}");
        self.open_requests.fail(request_id, Failure::Lost { reason, sent: Sent::Perhaps });
    }

    /// Returns the call that a message belongs to: the one whose stream it came on, or the
    /// only one in flight.
    fn owner(&self, call: Option<CallInFlight>, topic: MessageTopic) -> CallOwner {
        let is_open = |request_id| {
            self.transport_kind == TransportKind::Http || self.open_requests.is_open(request_id)
        };
        let owner = call.map_or_else(|| self.calls.find_owner(topic, is_open), CallOwner::Call);
        // A client that was asked long ago may be gone, and its open call makes all
        // messages to other clients ambiguous.
        if let (CallOwner::Ambiguous, TransportKind::Pipe) = (&owner, self.transport_kind) {
            self.open_requests.expire_paused(PAUSED_TOO_LONG);
        }
        owner
    }

    /// Logs for the operator a log line that may belong to any of several clients.
    fn log_ambiguous(&self, line: &Object) {
        let line = line.to_json();
        let text = excerpt(line.as_bytes());
        tracing::info!(target: "upstream", upstream = self.label, "a log line of one of several calls: {text}");
    }

    fn log_invalid(&self, what: &str, text: impl FnOnce() -> String) {
        let n_before = self.n_invalid.fetch_add(1, Ordering::Relaxed);
        if n_before < MAX_LOGGED {
            tracing::warn!(target: "upstream", upstream = self.label, "{what}: {}", text());
        }
    }
}

/// Pauses the deadlines of calls while their client is asked, until dropped.
struct PausedDeadlines {
    relay: Arc<Relay>,
    request_ids: Vec<RequestId>,
}

impl PausedDeadlines {
    fn new(relay: &Arc<Relay>, call: &CallInFlight) -> PausedDeadlines {
        let request_ids = relay.calls.calls_waiting_with(call);
        for request_id in &request_ids {
            relay.open_requests.pause(*request_id);
        }
        PausedDeadlines { relay: Arc::clone(relay), request_ids }
    }
}

impl Drop for PausedDeadlines {
    fn drop(&mut self) {
        for request_id in &self.request_ids {
            self.relay.open_requests.resume(*request_id);
        }
    }
}

impl Incoming for Relay {
    fn request(self: Arc<Self>, request: Request) -> BoxFuture<'static, Reply> {
        self.answer(request, None)
    }

    fn notification(&self, notification: message::Notification) {
        self.route_notification(notification, None, None);
    }

    fn invalid(&self, invalid: &Invalid, line: &[u8]) -> Option<RpcError> {
        self.log_invalid("not a message", || format!("{invalid}: {}", excerpt(line)));
        // Only for a request does the sender wait for an answer.
        invalid.method.as_ref().and(invalid.id.as_ref()).map(|_| invalid.to_error())
    }

    fn unexpected_response(&self, response: Response) {
        self.log_invalid("an answer to nothing", || response.id.to_string());
    }
}

/// Sends a question to the client, if it has the capability for it.
async fn ask_client(client_ref: &ClientRef, method: &str, params: Json) -> Reply {
    let needed = match method {
        method::SAMPLING => Some("sampling"),
        method::ELICITATION => Some("elicitation"),
        method::ROOTS_LIST => Some("roots"),
        _ => None,
    };
    if let Some(needed) = needed.filter(|needed| !client_ref.client.has_capability(needed)) {
        let message = format!("the client does not support {needed}");
        return Reply::Error(RpcError::new(code::METHOD_NOT_FOUND, message));
    }
    client_ref.client_handle.request(method, params).await.unwrap_or_else(|failure| {
        let code = message::failure_code(&failure, code::SERVER);
        Reply::Error(RpcError::new(code, failure.to_string()))
    })
}

/// Removes the id of our own subscription from the params of a notification.
fn remove_subscription_id(params: &mut Object) {
    let Some(tags) = params.get("_meta").and_then(|tags| Object::parse(tags).ok()) else { return };
    let mut rest = tags;
    if rest.remove(meta::SUBSCRIPTION_ID).is_none() {
        return;
    }
    if rest.is_empty() {
        params.remove("_meta");
    } else {
        params.set("_meta", rest.to_json());
    }
}

type EventReceiver = broadcast::Receiver<Arc<Event>>;

/// Returns the next events, and the receiver unless the last event was the end.
async fn next_events(
    receiver: Option<EventReceiver>,
) -> Option<(Vec<Event>, Option<EventReceiver>)> {
    let mut receiver = receiver?;
    match receiver.recv().await.map(Arc::unwrap_or_clone) {
        Ok(event @ Event::Gone { .. }) => Some((vec![event], None)),
        Ok(event) => Some((vec![event], Some(receiver))),
        // Some events were dropped: a reader that fetches every list again misses
        // nothing.
        Err(broadcast::error::RecvError::Lagged(_)) => {
            Some((Kind::ALL.map(Event::Changed).to_vec(), Some(receiver)))
        }
        Err(broadcast::error::RecvError::Closed) => None,
    }
}
