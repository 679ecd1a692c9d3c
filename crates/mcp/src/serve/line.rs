//! The way back to the client of one request.
//!
//! A provider tells and asks through its [`tool::Back`]; this is what stands
//! behind it. What the client did not ask for (progress without a token, log
//! lines below its level) ends here, and so does a question that the client
//! cannot answer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;
use tool::{Back, Client, Failure, Json, Note, Object, Reply};

use super::level::Level;
use super::session::Session;
use crate::message;
use crate::peer::{Patience, Peer};
use crate::revision::{meta, method};

/// How long a client, or the human behind it, may take to answer a question.
const TO_ANSWER: Duration = Duration::from_secs(600);

/// The way back of one request.
pub(crate) struct Line {
    client: Arc<Client>,
    way: Way,
    state: Mutex<State>,
}

/// Where messages and questions go.
pub(crate) enum Way {
    /// To the client of a session, over its pipe or, without one, on the
    /// stream of the request.
    Session { session: Arc<Session>, peer: Option<Peer> },
    /// To the sender of one modern request.
    Alone { peer: Option<Peer>, parks: bool },
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
    messages: VecDeque<Bytes>,
    questions: Vec<Question>,
    n_asked: u64,
    waker: Option<Waker>,
    /// Nobody reads any more, or never did.
    mute: bool,
}

impl Line {
    pub(crate) fn new(
        client: Arc<Client>,
        way: Way,
        token: Option<Json>,
        level: Option<Level>,
    ) -> Arc<Line> {
        let state = Mutex::new(State { token, level, ..State::default() });
        Arc::new(Line { client, way, state })
    }

    /// Takes up the wishes of the request that resumes a call.
    pub(crate) fn resume(&self, token: Option<Json>, level: Option<Level>) {
        let mut state = self.lock();
        state.token = token;
        state.level = level;
    }

    /// Nothing can be told or asked from now on.
    pub(crate) fn mute(&self) {
        let mut state = self.lock();
        state.mute = true;
        state.messages.clear();
    }

    /// The next message for the stream of the request.
    pub(crate) fn next(&self) -> Option<Bytes> {
        self.lock().messages.pop_front()
    }

    /// Is ready when there is a message or a question.
    pub(crate) fn poll_word(&self, task: &mut Task<'_>) -> Poll<()> {
        let mut state = self.lock();
        let is_there = !state.messages.is_empty() || !state.questions.is_empty();
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(task.waker())) {
            state.waker = Some(task.waker().clone());
        }
        if is_there { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The open questions as an `inputRequests` object, if there are any.
    pub(crate) fn input_requests(&self) -> Option<Json> {
        let mut state = self.lock();
        // Whoever asked may have stopped waiting.
        state.questions.retain(|question| !question.answer.is_closed());
        let mut requests = Object::new();
        for question in &state.questions {
            let mut request = Object::new();
            request.push("method", Json::of(&question.method));
            request.push("params", question.params.clone());
            requests.push(question.key.clone(), request.to_json());
        }
        (!requests.is_empty()).then(|| requests.to_json())
    }

    /// Hands the client's answers to whoever asked. Answers to nothing are
    /// ignored; questions without an answer stay open.
    pub(crate) fn answer(&self, responses: &Object) {
        let mut state = self.lock();
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
        let peer = match &self.way {
            Way::Session { peer, .. } | Way::Alone { peer, .. } => peer,
        };
        if let Some(peer) = peer {
            // A pipe that is gone takes its session with it.
            return drop(peer.notify(method, Some(params)));
        }
        let mut text = Vec::new();
        message::write_notification(&mut text, method, Some(params));
        self.push(text.into());
    }

    fn push(&self, message: Bytes) {
        let mut state = self.lock();
        if state.mute {
            return;
        }
        state.messages.push_back(message);
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
    }

    /// What of a notification the client wants to see.
    fn wanted(&self, note: Note) -> Option<Note> {
        match note.method.as_str() {
            method::PROGRESS => {
                let token = self.lock().token.clone()?;
                let mut params = note.params;
                params.set(meta::PROGRESS_TOKEN, token);
                Some(Note { params, ..note })
            }
            method::MESSAGE => {
                let level = Level::of(&note.params, "level");
                let wants = match &self.way {
                    Way::Session { session, .. } => {
                        session.level().is_none_or(|least| level.is_none_or(|at| least <= at))
                    }
                    Way::Alone { .. } => {
                        self.lock().level.is_some_and(|least| level.is_none_or(|at| least <= at))
                    }
                };
                wants.then_some(note)
            }
            // These belong to no request; a modern client listens for them.
            method::TOOLS_CHANGED
            | method::PROMPTS_CHANGED
            | method::RESOURCES_CHANGED
            | method::RESOURCES_UPDATED => matches!(self.way, Way::Session { .. }).then_some(note),
            _ => Some(note),
        }
    }

    async fn ask_session(
        &self,
        session: &Arc<Session>,
        method: &str,
        params: Json,
    ) -> Result<Reply, Failure> {
        if self.lock().mute {
            return Err(unable(method, "whose request accepts no event stream"));
        }
        let waiting = session.ask();
        let mut text = Vec::new();
        message::write_request(&mut text, &waiting.id(), method, Some(&params));
        self.push(text.into());
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
            let mut state = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Back for Line {
    fn notify(&self, note: Note) {
        if let Some(note) = self.wanted(note) {
            self.say(&note.method, &note.params.to_json());
        }
    }

    async fn request(&self, method: &str, params: Json) -> Result<Reply, Failure> {
        if method == method::PING {
            return Ok(Reply::Result(Json::empty_object()));
        }
        if let Some(missing) = missing_capability(&self.client, method, &params) {
            return Err(unable(method, &format!("which did not declare `{missing}`")));
        }
        match &self.way {
            Way::Session { peer: Some(peer), .. } => {
                let patience = Patience::of(TO_ANSWER);
                peer.request(peer.ticket(), method, Some(&params), patience).await
            }
            Way::Session { session, peer: None } => self.ask_session(session, method, params).await,
            Way::Alone { parks: true, .. } if is_input(method) => self.park(method, params).await,
            Way::Alone { .. } => Err(unable(method, "which can only be asked during a call")),
        }
    }
}

/// What a client would have to declare to be asked this, if it did not.
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
    if !client.can(needed) {
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
    Failure::Unsupported { what: format!("`{method}` by this client, {why}") }
}
