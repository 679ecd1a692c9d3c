//! The channel back to the client of one request.
//!
//! A provider tells and asks through its [`tool::ClientHandle`]; this is what stands
//! behind it. What the client did not ask for (progress without a token, log
//! lines below its level) ends here, and so does a question that the client
//! cannot answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tool::{Client, ClientHandle, Failure, Json, Notification, Object, Reply};

use super::session::{QUESTIONS, Session};
use crate::level::Level;
use crate::message;
use crate::peer::{Peer, Timeouts};
use crate::revision::{meta, method};

/// How long a client, or the human behind it, may take to answer a question.
const TO_ANSWER: Duration = Duration::from_secs(600);

/// How many bytes of messages may wait for a client that does not take them, or
/// whose call is parked.
const WAITING_BYTES: usize = 1 << 20;

/// The way back of one request.
pub(crate) struct ClientChannel {
    route: Route,
    state: Mutex<State>,
}

/// Where messages and questions go.
pub(crate) enum Route {
    /// To the client of a session, over its pipe or, without one, on the
    /// stream of the request.
    Session(Arc<Session>),
    /// To the sender of one modern request.
    Alone { client: Arc<Client>, peer: Option<Peer>, parks: bool },
}

/// Something the provider wants to know from a modern client.
pub(crate) struct Question {
    pub(crate) key: String,
    pub(crate) method: String,
    pub(crate) params: Json,
    answer: oneshot::Sender<Reply>,
}

#[derive(Default)]
struct State {
    token: Option<Json>,
    level: Option<Level>,
    messages: VecDeque<Outgoing>,
    n_bytes: usize,
    /// Whether notes were dropped because too much waited.
    has_dropped: bool,
    questions: Vec<Question>,
    n_asked: u64,
    waker: Option<Waker>,
    /// Nobody reads any more, or never did.
    mute: bool,
}

/// What comes before the answer.
pub(crate) enum ChannelEvent {
    Message(Outgoing),
    /// Something is wanted of a client that cannot be asked now.
    Question,
}

/// Something that is said to the client before its answer.
#[derive(Clone, Debug)]
pub(crate) enum Outgoing {
    Question(Bytes),
    /// Progress or a log line. Many of them may come; old ones give way.
    Note(Bytes),
}

impl ClientChannel {
    pub(crate) fn new(
        route: Route,
        token: Option<Json>,
        level: Option<Level>,
    ) -> Arc<ClientChannel> {
        let state = Mutex::new(State { token, level, ..State::default() });
        Arc::new(ClientChannel { route, state })
    }

    /// Takes up the progress token of a request, if it has one, from its `_meta`.
    pub(crate) fn want_progress(&self, about: Option<&Json>) {
        let token = about.and_then(|about| about.member(meta::PROGRESS_TOKEN));
        if token.is_some() {
            self.state.lock().token = token;
        }
    }

    /// Takes up the wishes of the request that resumes a call.
    pub(crate) fn resume(&self, token: Option<Json>, level: Option<Level>) {
        let mut state = self.state.lock();
        state.token = token;
        state.level = level;
    }

    /// Nothing can be told or asked from now on.
    pub(crate) fn mute(&self) {
        let mut state = self.state.lock();
        state.mute = true;
        state.messages.clear();
        state.n_bytes = 0;
    }

    /// The next message for the stream of the request.
    pub(crate) fn next(&self) -> Option<Outgoing> {
        self.state.lock().next()
    }

    /// The next message, or that there is a question.
    pub(crate) fn poll_event(&self, task: &mut Task<'_>) -> Poll<ChannelEvent> {
        let mut state = self.state.lock();
        if let Some(message) = state.next() {
            return Poll::Ready(ChannelEvent::Message(message));
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(task.waker())) {
            state.waker = Some(task.waker().clone());
        }
        if state.questions.is_empty() { Poll::Pending } else { Poll::Ready(ChannelEvent::Question) }
    }

    /// The open questions as an `inputRequests` object, if there are any.
    pub(crate) fn input_requests(&self) -> Option<Json> {
        let mut state = self.state.lock();
        // Whoever asked may have stopped waiting.
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

    /// Hands the client's answers to whoever asked. Answers to nothing are
    /// ignored; questions without an answer stay open.
    pub(crate) fn answer(&self, responses: &Object) {
        let mut state = self.state.lock();
        let questions = std::mem::take(&mut state.questions);
        for question in questions {
            match responses.get(&question.key) {
                // Whoever stopped waiting needs no answer.
                Some(response) => drop(question.answer.send(Reply::Result(response.clone()))),
                None => state.questions.push(question),
            }
        }
    }

    fn say(&self, method: &str, params: &Json) {
        if let Some(peer) = self.route.peer() {
            // A pipe that is gone takes its session with it.
            return drop(peer.notify(method, Some(params)));
        }
        let mut text = String::new();
        message::write_notification(&mut text, method, Some(params));
        self.push(Outgoing::Note(text.into()));
    }

    fn push(&self, message: Outgoing) {
        let mut state = self.state.lock();
        if state.mute {
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

    /// Returns what of a notification the client wants to see.
    fn wanted(&self, note: Notification) -> Option<Notification> {
        match note.method.as_str() {
            method::PROGRESS => {
                let token = self.state.lock().token.clone()?;
                let mut params = note.params;
                params.set(meta::PROGRESS_TOKEN, token);
                Some(Notification { params, ..note })
            }
            method::MESSAGE => {
                let level = Level::read(&note.params, "level");
                let wants = match &self.route {
                    Route::Session(session) => {
                        session.level().is_none_or(|least| level.is_none_or(|at| least <= at))
                    }
                    Route::Alone { .. } => self
                        .state
                        .lock()
                        .level
                        .is_some_and(|least| level.is_none_or(|at| least <= at)),
                };
                wants.then_some(note)
            }
            // These belong to no request; a modern client listens for them.
            method::TOOLS_CHANGED
            | method::PROMPTS_CHANGED
            | method::RESOURCES_CHANGED
            | method::RESOURCES_UPDATED => matches!(self.route, Route::Session(_)).then_some(note),
            _ => Some(note),
        }
    }

    async fn ask_session(
        &self,
        session: &Arc<Session>,
        method: &str,
        params: Json,
    ) -> Result<Reply, Failure> {
        if self.state.lock().mute {
            return Err(unable(method, "whose request accepts no event stream"));
        }
        let waiting = session.ask()?;
        let mut text = String::new();
        message::write_request(&mut text, &waiting.id(), method, Some(&params));
        self.push(Outgoing::Question(text.into()));
        let number = waiting.number();
        waiting
            .answer(TO_ANSWER, |reason| {
                let cancelled = serde_json::json!({"requestId": number, "reason": reason});
                self.say(method::CANCELLED, &cancelled.into());
            })
            .await
    }

    async fn park(&self, method: &str, params: Json) -> Result<Reply, Failure> {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if QUESTIONS <= state.questions.len() {
                let reason = format!("the client has {QUESTIONS} questions to answer already");
                return Err(Failure::Unavailable { reason });
            }
            state.n_asked += 1;
            let key = format!("question-{}", state.n_asked);
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
            Route::Alone { client, .. } => client,
        }
    }

    fn peer(&self) -> Option<&Peer> {
        match self {
            Route::Session(session) => session.peer.as_ref(),
            Route::Alone { peer, .. } => peer.as_ref(),
        }
    }
}

impl State {
    fn next(&mut self) -> Option<Outgoing> {
        let message = self.messages.pop_front()?;
        self.n_bytes -= message.text().len();
        Some(message)
    }

    /// Drops the oldest notes when more waits than may; never the last word.
    fn drop_oldest(&mut self) {
        while WAITING_BYTES < self.n_bytes {
            let n_old = self.messages.len() - 1;
            let mut old = self.messages.iter().take(n_old);
            let Some(at) = old.position(|word| matches!(word, Outgoing::Note(_))) else { return };
            let dropped = self.messages.remove(at);
            self.n_bytes -= dropped.map_or(0, |word| word.text().len());
            if !std::mem::replace(&mut self.has_dropped, true) {
                tracing::warn!("a client does not take what its call tells; the oldest is dropped");
            }
        }
    }
}

impl Outgoing {
    pub(crate) fn text(&self) -> &Bytes {
        let (Outgoing::Question(text) | Outgoing::Note(text)) = self;
        text
    }
}

#[async_trait]
impl ClientHandle for ClientChannel {
    fn notify(&self, note: Notification) {
        if let Some(note) = self.wanted(note) {
            self.say(&note.method, &note.params.to_json());
        }
    }

    async fn request(&self, method: &str, params: Json) -> Result<Reply, Failure> {
        if method == method::PING {
            return Ok(Reply::Result(Json::empty_object()));
        }
        if method::is_notification(method) {
            return Err(unable(method, "which is a notification and not a question"));
        }
        if let Some(missing) = missing_capability(self.route.client(), method, &params) {
            return Err(unable(method, &format!("which did not declare `{missing}`")));
        }
        match &self.route {
            Route::Session(session) => match &session.peer {
                Some(peer) => {
                    let timeouts = Timeouts::same(TO_ANSWER);
                    peer.request(peer.next_request_id(), method, Some(&params), timeouts).await
                }
                None => self.ask_session(session, method, params).await,
            },
            Route::Alone { parks: true, .. } if is_input(method) => self.park(method, params).await,
            Route::Alone { .. } => Err(unable(method, "which can only be asked during a call")),
        }
    }
}

/// Returns what a client would have to declare to be asked this, if it did not.
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

fn is_input(method: &str) -> bool {
    matches!(method, method::SAMPLING | method::ELICITATION | method::ROOTS_LIST)
}

fn unable(method: &str, why: &str) -> Failure {
    Failure::Unsupported { feature: format!("`{method}` by this client, {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(channel: &ClientChannel) -> Vec<String> {
        let texts = std::iter::from_fn(|| channel.next());
        texts.map(|text| String::from_utf8(text.text().to_vec()).unwrap()).collect()
    }

    #[test]
    fn what_a_client_does_not_take_is_bounded_and_its_questions_are_kept() {
        let client = Arc::new(Client::named("slow", "2026-07-28"));
        let route = Route::Alone { client, peer: None, parks: false };
        let channel = ClientChannel::new(route, None, None);
        channel.push(Outgoing::Question("a question".into()));
        for number in 0..100 {
            channel.push(Outgoing::Note(
                format!("{number} {}", "x".repeat(WAITING_BYTES / 10)).into(),
            ));
        }
        let told = text(&channel);
        assert!(told.len() <= 10, "{} messages", told.len());
        assert_eq!(told[0], "a question");
        assert!(told.last().unwrap().starts_with("99 "));
        assert_eq!(channel.state.lock().n_bytes, 0);
        channel.push(Outgoing::Note("y".repeat(2 * WAITING_BYTES).into()));
        assert_eq!(text(&channel).len(), 1, "the last word is never dropped");
    }
}
