//! Routes the notifications and requests of a server to the client they belong to.
//!
//! Progress goes to the call whose token it carries. A question, or a
//! notification that came on a call's own stream, goes to that call's client;
//! on a pipe, where nothing says which call is meant, it goes to the only
//! client that is calling, and to none when several are: what one client's call
//! makes a server say is not for the others. The rest becomes [`Event`]s, or is
//! refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;
use tool::{Event, Failure, FastMap, Json, Kind, Notification, Object, Reply, RpcError, Sent};

use super::calls::{About, CallInFlight, CallOwner, CallsInFlight, ClientRef};
use super::options::{Attribution, Options};
use super::question;
use super::stale::Stale;
use crate::message::{self, Invalid, Message, Request, Response, excerpt};
use crate::peer::pending::OpenRequests;
use crate::peer::{Incoming, RequestId};
use crate::revision::{code, meta, method};

/// How many events may wait for a slow reader before it is told to look again.
const EVENTS: usize = 1024;

/// How many questions a server may have open over HTTP; over a pipe the
/// conversation itself has such a limit.
const ASKED: usize = 64;

/// The longest notification that is passed on: many may wait for slow readers.
const NOTIFICATION: usize = 256 << 10;

/// How often a kind of invalid message is logged before it is only counted.
const LOGGED: u64 = 20;

/// How long a call may wait for its own client while others are in its way.
const HELD_TOO_LONG: Duration = Duration::from_secs(60);

pub(super) struct Relay {
    label: String,
    attribution: Attribution,
    /// We end it ourselves.
    ending: AtomicBool,
    pub(super) calls: CallsInFlight,
    /// Who is asked outside of any call.
    home: ClientRef,
    /// Behind a pointer each: the room for them is there before they come.
    events: broadcast::Sender<Arc<Event>>,
    gone: Mutex<Option<String>>,
    /// What the server asked over HTTP and waits for.
    asked: Mutex<FastMap<Json, AbortHandle>>,
    pub(super) stale: Stale,
    /// The requests whose answers are waited for.
    pub(super) open: Arc<dyn OpenRequests>,
    wire: Wire,
    /// Lines that were no messages, and answers to nothing.
    n_invalid: AtomicU64,
}

/// What a question of the server arrives on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// One for all calls: nothing says which of them is meant.
    Pipe,
    /// A stream for every call.
    Http,
}

impl Relay {
    pub(super) fn new(
        options: &Options,
        home: ClientRef,
        open: Arc<dyn OpenRequests>,
        wire: Wire,
    ) -> Relay {
        Relay {
            label: options.label.clone(),
            attribution: options.attribution,
            ending: AtomicBool::new(false),
            calls: CallsInFlight::default(),
            home,
            events: broadcast::Sender::new(EVENTS),
            gone: Mutex::new(None),
            asked: Mutex::default(),
            stale: Stale::default(),
            open,
            wire,
            n_invalid: AtomicU64::new(0),
        }
    }

    /// Everything from now on, up to and with [`Event::Gone`].
    pub(super) fn events(&self) -> BoxStream<'static, Event> {
        // Subscribed before looking, so that the end cannot slip between.
        let receiver = self.events.subscribe();
        if let Some(reason) = self.why_gone() {
            return stream::iter([Event::Gone { reason }]).boxed();
        }
        stream::unfold(Some(receiver), next_events).flat_map(stream::iter).boxed()
    }

    pub(super) fn tell(&self, event: Event) {
        // Nobody has to listen.
        self.events.send(Arc::new(event)).ok();
    }

    /// The end. Only the first reason counts.
    pub(super) fn gone(&self, reason: &str) {
        let mut gone = self.gone.lock();
        if gone.is_none() {
            *gone = Some(reason.to_owned());
            drop(gone);
            // Whoever opened it knows whether that is news.
            let what = if self.ending.load(Ordering::Relaxed) { "ended" } else { "it is gone" };
            tracing::debug!(target: "upstream", upstream = self.label, reason, "{what}");
            self.stale.end();
            self.tell(Event::Gone { reason: reason.to_owned() });
        }
    }

    /// We are about to end it, so that its end is no news.
    pub(super) fn expect_end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    pub(super) fn why_gone(&self) -> Option<String> {
        self.gone.lock().clone()
    }

    pub(super) fn n_invalid(&self) -> u64 {
        self.n_invalid.load(Ordering::Relaxed)
    }

    /// Takes what the server said on the stream of a call, or on none.
    /// Gives back what it asked: the answer is to be sent when it is made.
    pub(super) fn hear(
        self: &Arc<Relay>,
        message: Message,
        on: Option<RequestId>,
    ) -> Option<(Json, BoxFuture<'static, Option<Reply>>)> {
        match message {
            Message::Request(request) => {
                let id = request.id.clone();
                if ASKED <= self.asked().len() {
                    let error = RpcError::new(code::SERVER, "too many questions are open");
                    let refused = std::future::ready(Some(Reply::Error(error))).boxed();
                    return Some((id, refused));
                }
                let answer =
                    self.answer(request, on.and_then(|request_id| self.calls.get(request_id)));
                Some((id.clone(), self.withdrawable(id, answer)))
            }
            Message::Notification(notification) => {
                let call = on.and_then(|request_id| self.calls.get(request_id));
                self.take(notification, call, on);
                None
            }
            Message::Response(response) => {
                self.unexpected_response(response);
                None
            }
        }
    }

    /// The answer to a question, `None` when the server no longer wants it.
    /// On a pipe the conversation itself sees to that.
    fn withdrawable(
        self: &Arc<Relay>,
        id: Json,
        answer: BoxFuture<'static, Reply>,
    ) -> BoxFuture<'static, Option<Reply>> {
        let (handle, registration) = AbortHandle::new_pair();
        self.asked().insert(id.clone(), handle);
        let relay = Arc::clone(self);
        Abortable::new(answer, registration)
            .map(move |reply| {
                relay.asked().remove(&id);
                reply.ok()
            })
            .boxed()
    }

    /// The server takes a question back.
    fn withdraw(&self, note: &Notification) {
        let asked = note.params.get("requestId").and_then(|id| self.asked().remove(id));
        if let Some(asked) = asked {
            asked.abort();
        }
    }

    fn asked(&self) -> MutexGuard<'_, FastMap<Json, AbortHandle>> {
        self.asked.lock()
    }

    /// Sorts a notification. `call` is the call it surely belongs to.
    fn take(
        &self,
        notification: message::Notification,
        call: Option<CallInFlight>,
        on: Option<RequestId>,
    ) {
        if let Some(request_id) = on {
            self.open.touch(request_id);
        }
        let message::Notification { method, params } = notification;
        let length = params.as_ref().map_or(0, |params| params.as_str().len());
        if NOTIFICATION < length {
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
            method::RESOURCES_UPDATED => self.updated(note),
            method::ACKNOWLEDGED => self.stale.acknowledge(),
            method::CANCELLED => self.withdraw(&note),
            method::MESSAGE => match self.owner(call, About::Anything) {
                CallOwner::Call(call) => call.client_ref.client_handle.notify(note),
                CallOwner::Nobody => self.tell(Event::Notification(note)),
                CallOwner::Ambiguous => self.log(&note.params),
            },
            _ => match call {
                Some(call) => call.client_ref.client_handle.notify(note),
                None => self.tell(Event::Notification(note)),
            },
        }
    }

    /// Gives progress back under the client's own token.
    fn progress(&self, mut note: Notification) {
        let request_id = note.params.get(meta::PROGRESS_TOKEN);
        let request_id = request_id.and_then(|token| token.as_str().trim_matches('"').parse().ok());
        let Some(request_id) = request_id.map(RequestId) else { return };
        self.open.touch(request_id);
        if let Some(CallInFlight { client_ref, token: Some(token), .. }) =
            self.calls.get(request_id)
        {
            note.params.set(meta::PROGRESS_TOKEN, token);
            client_ref.client_handle.notify(note);
        }
    }

    fn updated(&self, mut note: Notification) {
        untag(&mut note.params);
        let uri = note.params.get("uri").and_then(|uri| uri.parse_as().ok());
        match uri {
            Some(uri) => self.tell(Event::Updated { uri, notification: note }),
            None => self.tell(Event::Notification(note)),
        }
    }

    /// A reply of the server, whose questions say who asks.
    pub(super) fn attributed(&self, reply: Reply) -> Reply {
        question::prepare_reply(reply, &self.label, self.attribution)
    }

    /// Carries a question of the server to the client that it is for.
    fn answer(
        self: &Arc<Relay>,
        request: Request,
        call: Option<CallInFlight>,
    ) -> BoxFuture<'static, Reply> {
        if request.method == method::PING {
            return std::future::ready(Reply::Result(Json::empty_object())).boxed();
        }
        let about = match request.method.as_str() {
            method::ROOTS_LIST => About::Roots,
            _ => About::Anything,
        };
        let (client_ref, held) = match self.owner(call, about) {
            CallOwner::Call(call) => {
                let held = PausedDeadlines::new(self, &call);
                if let [request_id] = held.request_ids[..] {
                    self.calls.note_question(request_id, &request.id);
                }
                (call.client_ref, Some(held))
            }
            CallOwner::Nobody => (self.home.clone(), None),
            CallOwner::Ambiguous => {
                if self.wire == Wire::Pipe {
                    self.calls.make_exclusive();
                }
                let message = "several clients are calling, and nothing says which one is asked";
                let error = RpcError::new(code::SERVER, message);
                return std::future::ready(Reply::Error(error)).boxed();
            }
        };
        let prepared =
            question::prepare(&request.method, request.params, &self.label, self.attribution);
        let params = match prepared {
            Ok(params) => params,
            Err(error) => return std::future::ready(Reply::Error(error)).boxed(),
        };
        async move {
            let _held = held;
            ask_client(&client_ref, &request.method, params).await
        }
        .boxed()
    }

    /// The server will not get the answer to a question: the call that it is
    /// part of waits in vain.
    pub(super) fn unanswered(&self, id: &Json, why: &Failure) {
        let Some(request_id) = self.calls.asking(id) else { return };
        let reason = format!("it asked something, and the answer did not reach it: {why}");
        self.open.fail(request_id, Failure::Lost { reason, sent: Sent::Perhaps });
    }

    /// The call that something belongs to: the one whose stream it came on, or
    /// the only one there is.
    fn owner(&self, call: Option<CallInFlight>, about: About) -> CallOwner {
        let is_open = |request_id| self.wire == Wire::Http || self.open.is_open(request_id);
        let owner = call.map_or_else(|| self.calls.only(about, is_open), CallOwner::Call);
        // A client that was asked long ago may have gone for good, and while its
        // call is open nothing can be told to or asked of anybody else.
        if let (CallOwner::Ambiguous, Wire::Pipe) = (&owner, self.wire) {
            self.open.expire_held(HELD_TOO_LONG);
        }
        owner
    }

    /// Keeps a log line that may be any of several clients' for the operator.
    fn log(&self, line: &Object) {
        let line = line.to_json();
        let text = excerpt(line.as_bytes());
        tracing::info!(target: "upstream", upstream = self.label, "a log line of one of several calls: {text}");
    }

    fn log_invalid(&self, what: &str, text: impl FnOnce() -> String) {
        let n_before = self.n_invalid.fetch_add(1, Ordering::Relaxed);
        if n_before < LOGGED {
            tracing::warn!(target: "upstream", upstream = self.label, "{what}: {}", text());
        }
    }
}

/// The clocks of the calls that wait for their client stand still.
struct PausedDeadlines {
    relay: Arc<Relay>,
    request_ids: Vec<RequestId>,
}

impl PausedDeadlines {
    fn new(relay: &Arc<Relay>, call: &CallInFlight) -> PausedDeadlines {
        let request_ids = relay.calls.with(call);
        for request_id in &request_ids {
            relay.open.hold(*request_id);
        }
        PausedDeadlines { relay: Arc::clone(relay), request_ids }
    }
}

impl Drop for PausedDeadlines {
    fn drop(&mut self) {
        for request_id in &self.request_ids {
            self.relay.open.release(*request_id);
        }
    }
}

impl Incoming for Relay {
    fn request(self: Arc<Self>, request: Request) -> BoxFuture<'static, Reply> {
        self.answer(request, None)
    }

    fn notification(&self, notification: message::Notification) {
        self.take(notification, None, None);
    }

    fn invalid(&self, invalid: &Invalid, line: &[u8]) -> Option<RpcError> {
        self.log_invalid("not a message", || format!("{invalid}: {}", excerpt(line)));
        // A request that cannot be read has somebody waiting; noise has not.
        invalid.method.as_ref().and(invalid.id.as_ref()).map(|_| invalid.to_error())
    }

    fn unexpected_response(&self, response: Response) {
        self.log_invalid("an answer to nothing", || response.id.to_string());
    }
}

/// Asks the client, if it can do what is asked.
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

/// Takes our own subscription's number out of a notification.
fn untag(params: &mut Object) {
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

type Receiver = broadcast::Receiver<Arc<Event>>;

async fn next_events(receiver: Option<Receiver>) -> Option<(Vec<Event>, Option<Receiver>)> {
    let mut receiver = receiver?;
    match receiver.recv().await.map(Arc::unwrap_or_clone) {
        Ok(event @ Event::Gone { .. }) => Some((vec![event], None)),
        Ok(event) => Some((vec![event], Some(receiver))),
        // Some were missed: whoever looks at every list again misses nothing
        // that matters.
        Err(broadcast::error::RecvError::Lagged(_)) => {
            Some((Kind::ALL.map(Event::Changed).to_vec(), Some(receiver)))
        }
        Err(broadcast::error::RecvError::Closed) => None,
    }
}
