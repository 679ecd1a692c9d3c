//! The requests of the other side that are not answered yet.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use parking_lot::MutexGuard;
use tokio::io::AsyncRead;
use tool::{Failure, FastMap, FastSet, Json, Reply, RpcError, Sent};

use super::lines::{Line, Lines, id_at_the_ends};
use super::{Incoming, Peer, RequestId, State};
use crate::aside::{LONG, aside};
use crate::message::{self, Fault, Frame, Invalid, Message, Notification, Request, Response};
use crate::revision::{code, method};

/// How many lines are taken before others get a turn: somebody who sends short
/// ones without end is not to keep everybody else waiting.
pub(crate) const LINES_PER_TURN: usize = 256;

/// What has been asked of us and is being answered.
pub(super) struct InboundRequests {
    peer: Peer,
    incoming: Arc<dyn Incoming>,
    pub(super) answers: FuturesUnordered<Asked>,
    /// The ids of what is being answered.
    open: FastSet<Json>,
    batches: FastMap<u64, Batch>,
    n_batches: u64,
    /// How many lines came so far.
    n_taken: usize,
}

/// Questions that came together, whose answers leave together.
struct Batch {
    n_open: usize,
    /// In the order of the questions.
    replies: Vec<Option<(Json, Reply)>>,
    /// How many bytes of answers wait for the others.
    n_bytes: usize,
}

/// Where in which batch a question stands.
#[derive(Clone, Copy)]
struct Place {
    batch: u64,
    at: usize,
}

/// One question. Nothing is made for it but what answers it, and where it waits.
pub(super) struct Asked {
    id: Json,
    place: Option<Place>,
    /// `None` once it is cancelled.
    answer: Option<BoxFuture<'static, Reply>>,
    /// A long answer that is being written.
    writing: Option<BoxFuture<'static, Vec<u8>>>,
    /// Tells that it is.
    waker: Option<Waker>,
}

/// A question was refused, and has its answer.
struct Refused;

/// How a question ended.
pub(super) struct Answered {
    id: Json,
    place: Option<Place>,
    answer: Answer,
}

/// What goes back.
enum Answer {
    /// Nothing: the question was cancelled.
    None,
    Reply(Reply),
    /// A long one, as the line that is sent.
    Line(Vec<u8>),
}

impl Future for Asked {
    type Output = Answered;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Answered> {
        let Poll::Ready(answer) = self.poll_answer(task) else {
            // It waits in one place, so the first waker stays the right one.
            self.waker.get_or_insert_with(|| task.waker().clone());
            return Poll::Pending;
        };
        let id = std::mem::replace(&mut self.id, Json::null());
        Poll::Ready(Answered { id, place: self.place, answer })
    }
}

impl Asked {
    fn poll_answer(&mut self, task: &mut Task<'_>) -> Poll<Answer> {
        let Some(answer) = &mut self.answer else { return Poll::Ready(Answer::None) };
        if let Some(writing) = &mut self.writing {
            return writing.as_mut().poll(task).map(Answer::Line);
        }
        let reply = ready!(answer.as_mut().poll(task));
        let n_bytes = message::payload(&reply).as_str().len();
        // Those of a batch leave together, and have one bound together.
        if n_bytes < LONG || self.place.is_some() {
            return Poll::Ready(Answer::Reply(reply));
        }
        let id = self.id.clone();
        let writing = Box::pin(aside(n_bytes, move || line(&id, &reply)));
        self.writing.insert(writing).as_mut().poll(task).map(Answer::Line)
    }
}

/// A long answer as the line that is sent.
fn line(id: &Json, reply: &Reply) -> Vec<u8> {
    let room = message::payload(reply).as_str().len() + id.as_str().len() + 64;
    let mut text = String::with_capacity(room);
    message::write_response(&mut text, id.as_str(), reply);
    let mut line = text.into_bytes();
    message::unbreak(&mut line, 0);
    line.push(b'\n');
    line
}

impl InboundRequests {
    pub(super) fn new(peer: Peer, incoming: Arc<dyn Incoming>) -> InboundRequests {
        InboundRequests {
            peer,
            incoming,
            answers: FuturesUnordered::new(),
            open: FastSet::default(),
            batches: FastMap::default(),
            n_batches: 0,
            n_taken: 0,
        }
    }

    /// Takes every line that has come, and lets others have their turns.
    pub(super) async fn take_all<R: AsyncRead + Unpin>(&mut self, lines: &mut Lines<R>) {
        while let Some(line) = lines.take() {
            self.take(line).await;
            self.n_taken += 1;
            if self.n_taken.is_multiple_of(LINES_PER_TURN) {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn take(&mut self, line: Line) {
        match line {
            Line::Whole(line) if line.len() < LONG => self.frame(Frame::parse(&line), &line),
            Line::Whole(line) => {
                let whole = line.clone();
                let parsed = Box::pin(aside(line.len(), move || Frame::parse(&whole))).await;
                self.frame(parsed, &line);
            }
            Line::TooLong { length, head, tail, out_of_memory } => {
                let limit = self.peer.0.limits.line;
                let reason = match out_of_memory {
                    Some(full) => format!(
                        "the message is too long for now: {full}; ask for less of it, or later"
                    ),
                    None => format!("a message of {length} bytes is over the limit of {limit}"),
                };
                self.too_long(reason, &head, &tail);
            }
        }
    }

    fn frame(&mut self, parsed: Result<Frame, Invalid>, line: &Bytes) {
        match parsed {
            Ok(Frame::One(message)) => self.message(message),
            Ok(Frame::Batch(messages)) => self.batch(messages),
            Err(invalid) => self.invalid(invalid, line),
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Request(request) => drop(self.begin(request, None)),
            Message::Notification(notification) => self.notification(notification),
            Message::Response(response) => self.complete(response),
        }
    }

    fn batch(&mut self, messages: Vec<Result<Message, Invalid>>) {
        self.n_batches += 1;
        let (batch, mut n_open) = (self.n_batches, 0);
        for message in messages {
            match message {
                Ok(Message::Request(request)) => {
                    let place = Place { batch, at: n_open };
                    n_open += usize::from(self.begin(request, Some(place)).is_ok());
                }
                Ok(message) => self.message(message),
                Err(invalid) => self.invalid(invalid, b""),
            }
        }
        if n_open != 0 {
            let replies = (0..n_open).map(|_| None).collect();
            self.batches.insert(batch, Batch { n_open, replies, n_bytes: 0 });
        }
    }

    /// Starts to answer a question, unless it is refused at once.
    fn begin(&mut self, request: Request, place: Option<Place>) -> Result<(), Refused> {
        if let Some(error) = self.refuses(&request.id) {
            let id = request.id.as_str();
            self.write(|out| message::write_response(out, id, &Reply::Error(error)));
            return Err(Refused);
        }
        let id = request.id.clone();
        self.open.insert(id.clone());
        let answer = Some(Arc::clone(&self.incoming).request(request));
        self.answers.push(Asked { id, place, answer, writing: None, waker: None });
        Ok(())
    }

    /// Returns why a question is not taken. One whose id is being answered already
    /// could not be counted, told from the other or cancelled.
    fn refuses(&self, id: &Json) -> Option<RpcError> {
        if self.open.contains(id) {
            let message = format!(
                "a request with the id {} is being answered; give every request its own id",
                id.as_str()
            );
            return Some(RpcError::new(code::INVALID_REQUEST, message));
        }
        let crowded = self.peer.0.limits.requests <= self.open.len();
        crowded.then(|| RpcError::new(code::SERVER, "too many requests at once; wait for answers"))
    }

    pub(super) fn answer(&mut self, answered: Answered) {
        let Answered { id, place, answer } = answered;
        self.open.remove(&id);
        match (place, answer) {
            (Some(place), Answer::Reply(reply)) => self.gather(place, id, Some(reply)),
            (Some(place), Answer::None | Answer::Line(_)) => self.gather(place, id, None),
            (None, Answer::Reply(reply)) => {
                self.write(|out| message::write_response(out, id.as_str(), &reply));
            }
            (None, Answer::Line(line)) => self.write_line(line),
            (None, Answer::None) => {}
        }
    }

    /// Keeps an answer until the others of its batch are there.
    fn gather(&mut self, place: Place, id: Json, reply: Option<Reply>) {
        let Some(batch) = self.batches.get_mut(&place.batch) else { return };
        batch.n_open -= 1;
        let limit = self.peer.0.limits.line;
        let reply = reply.map(|reply| message::within(reply, &mut batch.n_bytes, limit));
        batch.replies[place.at] = reply.map(|reply| (id, reply));
        if batch.n_open != 0 {
            return;
        }
        let replies = self.batches.remove(&place.batch).map(|batch| batch.replies);
        let replies: Vec<_> = replies.into_iter().flatten().flatten().collect();
        if !replies.is_empty() {
            self.write(|out| message::write_responses(out, &replies));
        }
    }

    /// Answers what is still open with an error, and drops it: time is over.
    pub(super) fn give_up(&mut self) {
        let message = "the connection is closing, and this took too long; it may have run";
        let error = RpcError::unanswered(code::SERVER, message, Sent::Perhaps);
        let open = std::mem::take(&mut self.answers);
        for asked in open {
            let answer = match asked.answer {
                Some(_) => Answer::Reply(Reply::Error(error.clone())),
                None => Answer::None,
            };
            self.answer(Answered { id: asked.id, place: asked.place, answer });
        }
    }

    /// Answers are written past the queue limit and past the last call. Who asks
    /// and asks and never reads is left.
    fn write(&self, write: impl FnOnce(&mut String)) {
        if let Some(mut state) = self.room() {
            state.put(write);
        }
    }

    /// Writes a line that is complete already.
    fn write_line(&self, line: Vec<u8>) {
        if let Some(mut state) = self.room() {
            state.put_line(line);
        }
    }

    fn room(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.peer.lock();
        let waiting = state.outbox.len();
        if waiting <= self.peer.0.limits.answers {
            return Some(state);
        }
        state.close(&format!("it does not read: {waiting} bytes of answers are waiting"));
        None
    }

    fn notification(&mut self, notification: Notification) {
        if notification.method == method::CANCELLED {
            let id = notification.params.as_ref().and_then(|params| params.member("requestId"));
            if id.is_some_and(|id| self.cancel(&id)) {
                return;
            }
        }
        self.incoming.notification(notification);
    }

    /// Ends a question, if it is open. Its place is given up when that is seen.
    fn cancel(&mut self, id: &Json) -> bool {
        if !self.open.contains(id) {
            return false;
        }
        let asked = self.answers.iter_mut().find(|asked| asked.id == *id);
        if let Some(asked) = asked {
            asked.answer = None;
            if let Some(waker) = asked.waker.take() {
                waker.wake();
            }
        }
        true
    }

    fn complete(&self, response: Response) {
        let Response { id, reply } = response;
        let unsettled = match RequestId::parse(&id) {
            Some(request_id) => self.peer.lock().pending.complete(request_id, Ok(reply)).err(),
            None => Some(Ok(reply)),
        };
        if let Some(Ok(reply)) = unsettled {
            self.incoming.unexpected_response(Response { id, reply });
        }
    }

    fn invalid(&self, invalid: Invalid, line: &[u8]) {
        if self.fail(&invalid) {
            return;
        }
        if let Some(error) = self.incoming.invalid(&invalid, line) {
            let id = invalid.id.unwrap_or_else(Json::null);
            self.write(|out| message::write_response(out, id.as_str(), &Reply::Error(error)));
        }
    }

    /// Fails the question that a damaged answer belongs to, if there is one. An
    /// array that is refused may hold the answers to all of them.
    fn fail(&self, invalid: &Invalid) -> bool {
        if invalid.is_batch {
            let failure = Failure::Unusable { reason: invalid.reason.clone() };
            self.peer.lock().pending.complete_all(&failure);
            return false;
        }
        let (None, Some(id)) = (&invalid.method, &invalid.id) else { return false };
        let Some(request_id) = RequestId::parse(id) else { return false };
        let failure = Failure::Unusable { reason: invalid.reason.clone() };
        self.peer.lock().pending.complete(request_id, Err(failure)).is_ok()
    }

    fn too_long(&self, reason: String, head: &Bytes, tail: &Bytes) {
        let asks = memchr::memmem::find(head, br#""method""#).is_some();
        let id = id_at_the_ends(head, tail);
        let mut state = self.peer.lock();
        if id.is_none() && !asks && state.pending.len() == 1 {
            // Only one question is open, so this is its answer.
            state.pending.complete_all(&Failure::Unusable { reason: reason.clone() });
        }
        drop(state);
        let invalid = Invalid {
            fault: Fault::NoMessage,
            reason,
            id,
            method: asks.then(String::new),
            is_batch: false,
        };
        self.invalid(invalid, head);
    }
}
