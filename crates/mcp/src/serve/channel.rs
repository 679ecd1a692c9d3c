//! The channel back to the client during one request: notifications, and requests to the
//! client ("questions", such as elicitation).
//!
//! It implements the [`tool::ClientHandle`] that the provider gets. It drops what the
//! client did not ask for (progress without a token, log lines below its level), and
//! refuses questions that the client cannot answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tool::{Client, ClientHandle, Failure, Json, Notification, Object, Reply};

use super::session::{MAX_QUESTIONS, Session};
use crate::level::Level;
use crate::message;
use crate::peer::{Peer, Timeouts};
use crate::revision::{meta, method};

/// How long a client, or its user, may take to answer a question.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// How many bytes of messages may wait for a client that does not read them, or whose call
/// is parked.
const WAITING_BYTES: usize = 1 << 20;

/// The channel of one request.
pub(crate) struct ClientChannel {
    route: Route,
    state: Mutex<State>,
}

/// How messages and questions reach the client.
pub(crate) enum Route {
    /// The client of a session: over its pipe or, without one, on the stream of the request.
    Session(Arc<Session>),
    /// The sender of one modern request. `can_park` tells whether its call can be parked
    /// until the client answers a question.
    Stateless { client: Arc<Client>, peer: Option<Peer>, can_park: bool },
}

/// A question to a modern client, sent as one of the `inputRequests`.
pub(crate) struct Question {
    pub(crate) key: String,
    pub(crate) method: String,
    pub(crate) params: Json,
    answer: oneshot::Sender<Reply>,
}

#[derive(Default)]
struct State {
    progress_token: Option<Json>,
    level: Option<Level>,
    messages: VecDeque<Outgoing>,
    n_bytes: usize,
    /// Whether notifications were dropped because too much waited.
    has_dropped: bool,
    questions: Vec<Question>,
    n_questions: u64,
    waker: Option<Waker>,
    /// Whether nothing can be sent to the client.
    is_muted: bool,
}

/// What a channel yields before the reply.
pub(crate) enum ChannelEvent {
    Message(Outgoing),
    /// There is a question for a modern client, which cannot be asked during a request.
    QuestionWaiting,
}

/// A serialized message to the client that precedes its reply.
#[derive(Clone, Debug)]
pub(crate) enum Outgoing {
    Question(Bytes),
    /// Progress or a log line. Old ones are dropped when too many wait.
    Notification(Bytes),
}

impl ClientChannel {
    pub(crate) fn new(
        route: Route,
        progress_token: Option<Json>,
        level: Option<Level>,
    ) -> Arc<ClientChannel> {
        let state = Mutex::new(State { progress_token, level, ..State::default() });
        Arc::new(ClientChannel { route, state })
    }

    /// Sets the progress token from the `_meta` of a request, if it has one.
    pub(crate) fn set_progress_token(&self, request_meta: Option<&Json>) {
        let progress_token =
            request_meta.and_then(|request_meta| request_meta.member(meta::PROGRESS_TOKEN));
        if progress_token.is_some() {
            self.state.lock().progress_token = progress_token;
        }
    }

    /// Sets progress token and log level from the request that resumes a parked call.
    pub(crate) fn resume(&self, progress_token: Option<Json>, level: Option<Level>) {
        let mut state = self.state.lock();
        state.progress_token = progress_token;
        state.level = level;
    }

    /// Drops all messages from now on, and refuses questions.
    pub(crate) fn mute(&self) {
        let mut state = self.state.lock();
        state.is_muted = true;
        state.messages.clear();
        state.n_bytes = 0;
    }

    /// Returns the next message for the stream of the request.
    pub(crate) fn next_message(&self) -> Option<Outgoing> {
        self.state.lock().next_message()
    }

    /// Polls for the next message, or for waiting questions.
    pub(crate) fn poll_event(&self, task: &mut Task<'_>) -> Poll<ChannelEvent> {
        let mut state = self.state.lock();
        if let Some(message) = state.next_message() {
            return Poll::Ready(ChannelEvent::Message(message));
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(task.waker())) {
            state.waker = Some(task.waker().clone());
        }
        if state.questions.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(ChannelEvent::QuestionWaiting)
        }
    }

    /// Returns the open questions as an `inputRequests` object, if there are any.
    pub(crate) fn input_requests(&self) -> Option<Json> {
        let mut state = self.state.lock();
        // The provider may have stopped waiting.
        state.questions.retain(|question| !question.answer.is_closed());
        let mut requests = Object::new();
        for question in &state.questions {
            let mut request = Object::new();
            request.push("method", Json::encode(&question.method));
            request.push("params", question.params.clone());
            requests.push(question.key.clone(), request.to_json());
        }
        (!requests.is_empty()).then(|| requests.to_json())
    }

    /// Completes questions with the client's responses, by key. Unknown keys are ignored;
    /// questions without a response stay open.
    pub(crate) fn answer(&self, responses: &Object) {
        let mut state = self.state.lock();
        let questions = std::mem::take(&mut state.questions);
        for question in questions {
            match responses.get(&question.key) {
                // Fails if the provider stopped waiting.
                Some(response) => drop(question.answer.send(Reply::Result(response.clone()))),
                None => state.questions.push(question),
            }
        }
    }

    fn send_notification(&self, method: &str, params: &Json) {
        if let Some(peer) = self.route.peer() {
            // A pipe that is gone takes its session with it.
            return drop(peer.notify(method, Some(params)));
        }
        let mut text = String::new();
        message::write_notification(&mut text, method, Some(params));
        self.push(Outgoing::Notification(text.into()));
    }

    fn push(&self, message: Outgoing) {
        let mut state = self.state.lock();
        if state.is_muted {
            return;
        }
        state.n_bytes += message.text().len();
        state.messages.push_back(message);
        state.drop_oldest();
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
    }

    /// Returns the notification if the client wants it, with its own progress token.
    fn filter_notification(&self, note: Notification) -> Option<Notification> {
        match note.method.as_str() {
            method::PROGRESS => {
                let progress_token = self.state.lock().progress_token.clone()?;
                let mut params = note.params;
                params.set(meta::PROGRESS_TOKEN, progress_token);
                Some(Notification { params, ..note })
            }
            method::MESSAGE => {
                let level = Level::from_params(&note.params, "level");
                let wants = match &self.route {
                    Route::Session(session) => {
                        session.level().is_none_or(|least| level.is_none_or(|at| least <= at))
                    }
                    Route::Stateless { .. } => self
                        .state
                        .lock()
                        .level
                        .is_some_and(|least| level.is_none_or(|at| least <= at)),
                };
                wants.then_some(note)
            }
            // These belong to no request; modern clients subscribe to them.
            method::TOOLS_CHANGED
            | method::PROMPTS_CHANGED
            | method::RESOURCES_CHANGED
            | method::RESOURCES_UPDATED => matches!(self.route, Route::Session(_)).then_some(note),
            _ => Some(note),
        }
    }

    /// Sends a question on the stream of the request, and waits for the client's POST.
    async fn request_on_stream(
        &self,
        session: &Arc<Session>,
        method: &str,
        params: Json,
    ) -> Result<Reply, Failure> {
        if self.state.lock().is_muted {
            return Err(unsupported(method, "whose request accepts no event stream"));
        }
        let waiting = session.register_question()?;
        let mut text = String::new();
        message::write_request(&mut text, &waiting.id(), method, Some(&params));
        self.push(Outgoing::Question(text.into()));
        let number = waiting.number();
        waiting
            .answer(ANSWER_TIMEOUT, |reason| {
                let cancelled = serde_json::json!({"requestId": number, "reason": reason});
                self.send_notification(method::CANCELLED, &cancelled.into());
            })
            .await
    }

    /// Adds a question that makes the exchange park the call, and waits for its answer.
    async fn park_question(&self, method: &str, params: Json) -> Result<Reply, Failure> {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if MAX_QUESTIONS <= state.questions.len() {
                let reason = format!("the client has {MAX_QUESTIONS} questions to answer already");
                return Err(Failure::Unavailable { reason });
            }
            state.n_questions += 1;
            let key = format!("question-{}", state.n_questions);
            state.questions.push(Question { key, method: method.to_owned(), params, answer });
            if let Some(waker) = state.waker.take() {
                drop(state);
                waker.wake();
            }
        }
        answered.await.map_err(|_| Failure::Cancelled)
    }
}

impl Route {
    fn client(&self) -> &Client {
        match self {
            Route::Session(session) => &session.client,
            Route::Stateless { client, .. } => client,
        }
    }

    fn peer(&self) -> Option<&Peer> {
        match self {
            Route::Session(session) => session.peer.as_ref(),
            Route::Stateless { peer, .. } => peer.as_ref(),
        }
    }
}

impl State {
    fn next_message(&mut self) -> Option<Outgoing> {
        let message = self.messages.pop_front()?;
        self.n_bytes -= message.text().len();
        Some(message)
    }

    /// Drops the oldest notifications while too many bytes wait; never the newest message.
    fn drop_oldest(&mut self) {
        while WAITING_BYTES < self.n_bytes {
            let n_old = self.messages.len() - 1;
            let mut old = self.messages.iter().take(n_old);
            let Some(at) = old.position(|message| matches!(message, Outgoing::Notification(_)))
            else {
                return;
            };
            let dropped = self.messages.remove(at);
            self.n_bytes -= dropped.map_or(0, |message| message.text().len());
            if !std::mem::replace(&mut self.has_dropped, true) {
                tracing::warn!("a client does not take what its call tells; the oldest is dropped");
            }
        }
    }
}

impl Outgoing {
    pub(crate) fn text(&self) -> &Bytes {
        let (Outgoing::Question(text) | Outgoing::Notification(text)) = self;
        text
    }
}

#[async_trait]
impl ClientHandle for ClientChannel {
    fn notify(&self, note: Notification) {
        if let Some(note) = self.filter_notification(note) {
            self.send_notification(&note.method, &note.params.to_json());
        }
    }

    async fn request(&self, method: &str, params: Json) -> Result<Reply, Failure> {
        if method == method::PING {
            return Ok(Reply::Result(Json::empty_object()));
        }
        if method::is_notification(method) {
            return Err(unsupported(method, "which is a notification and not a question"));
        }
        if let Some(missing) = missing_capability(self.route.client(), method, &params) {
            return Err(unsupported(method, &format!("which did not declare `{missing}`")));
        }
        match &self.route {
            Route::Session(session) => match &session.peer {
                Some(peer) => {
                    let timeouts = Timeouts::same(ANSWER_TIMEOUT);
                    peer.request(peer.next_request_id(), method, Some(&params), timeouts).await
                }
                None => self.request_on_stream(session, method, params).await,
            },
            Route::Stateless { can_park: true, .. } if is_input_request(method) => {
                self.park_question(method, params).await
            }
            Route::Stateless { .. } => {
                Err(unsupported(method, "which can only be asked during a call"))
            }
        }
    }
}

/// Returns the capability that a client lacks for this question, if any.
pub(crate) fn missing_capability(
    client: &Client,
    method: &str,
    params: &Json,
) -> Option<&'static str> {
    let needed = match method {
        method::SAMPLING => "sampling",
        method::ELICITATION => "elicitation",
        method::ROOTS_LIST => "roots",
        _ => return None,
    };
    if !client.has_capability(needed) {
        return Some(needed);
    }
    let by_url = || params.member_as::<String>("mode").as_deref() == Some("url");
    let can_url = || {
        let elicitation = client.capabilities.member(needed);
        elicitation.is_some_and(|elicitation| elicitation.member("url").is_some())
    };
    (method == method::ELICITATION && by_url() && !can_url()).then_some("elicitation.url")
}

fn is_input_request(method: &str) -> bool {
    matches!(method, method::SAMPLING | method::ELICITATION | method::ROOTS_LIST)
}

fn unsupported(method: &str, why: &str) -> Failure {
    Failure::Unsupported { feature: format!("`{method}` by this client, {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(channel: &ClientChannel) -> Vec<String> {
        let texts = std::iter::from_fn(|| channel.next_message());
        texts.map(|text| String::from_utf8(text.text().to_vec()).unwrap()).collect()
    }

    #[test]
    fn what_a_client_does_not_take_is_bounded_and_its_questions_are_kept() {
        let client = Arc::new(Client::named("slow", "2026-07-28"));
        let route = Route::Stateless { client, peer: None, can_park: false };
        let channel = ClientChannel::new(route, None, None);
        channel.push(Outgoing::Question("a question".into()));
        for number in 0..100 {
            channel.push(Outgoing::Notification(
                format!("{number} {}", "x".repeat(WAITING_BYTES / 10)).into(),
            ));
        }
        let told = text(&channel);
        assert!(told.len() <= 10, "{} messages", told.len());
        assert_eq!(told[0], "a question");
        assert!(told.last().unwrap().starts_with("99 "));
        assert_eq!(channel.state.lock().n_bytes, 0);
        channel.push(Outgoing::Notification("y".repeat(2 * WAITING_BYTES).into()));
        assert_eq!(text(&channel).len(), 1, "the last word is never dropped");
    }
}
