//! Processes received lines, and tracks the requests of the other side until they are
//! answered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use parking_lot::MutexGuard;
use tokio::io::AsyncRead;
use tool::{Failure, FastMap, FastSet, Json, Reply, RpcError, Sent};

use super::lines::{Line, Lines, id_from_ends};
use super::{Incoming, Peer, RequestId, State};
use crate::message::{self, Fault, Frame, Invalid, Message, Notification, Request, Response};
use crate::off_thread::{LONG_MESSAGE, off_thread};
use crate::revision::{code, method};

/// How many lines are processed before the task yields, so that a peer that sends
/// without end does not starve other tasks.
pub(crate) const LINES_PER_TURN: usize = 256;

/// The received requests that are not answered yet.
pub(super) struct InboundRequests {
    peer: Peer,
    incoming: Arc<dyn Incoming>,
    pub(super) answers: FuturesUnordered<InboundRequest>,
    /// The ids of the open requests.
    open: FastSet<Json>,
    batches: FastMap<u64, Batch>,
    n_batches: u64,
    /// How many lines were processed so far.
    n_lines: usize,
}

/// The requests of one received batch, whose replies are sent together.
struct Batch {
    n_open: usize,
    /// In the order of the requests; `None` until answered, or when cancelled.
    replies: Vec<Option<(Json, Reply)>>,
    /// How many bytes the replies have so far.
    n_bytes: usize,
}

/// The batch that a request is part of, and its index there.
#[derive(Clone, Copy)]
struct BatchPosition {
    batch: u64,
    index: usize,
}

/// One open request, as the future of its outcome.
pub(super) struct InboundRequest {
    id: Json,
    position: Option<BatchPosition>,
    /// `None` once the request is cancelled.
    answer: Option<BoxFuture<'static, Reply>>,
    /// The serialization of a long reply, on a blocking thread.
    writing: Option<BoxFuture<'static, Vec<u8>>>,
    /// Wakes the task when the request is cancelled.
    waker: Option<Waker>,
}

/// Says that a request was refused; the error was sent.
struct Refused;

/// A request with its outcome.
pub(super) struct AnsweredRequest {
    id: Json,
    position: Option<BatchPosition>,
    answer: Outcome,
}

/// What is sent back for a request.
enum Outcome {
    /// Nothing: the request was cancelled.
    Cancelled,
    Reply(Reply),
    /// A long reply, serialized to the line to send.
    Line(Vec<u8>),
}

impl Future for InboundRequest {
    type Output = AnsweredRequest;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<AnsweredRequest> {
        let Poll::Ready(answer) = self.poll_answer(task) else {
            // Always polled by the same task, so the first waker stays valid.
            self.waker.get_or_insert_with(|| task.waker().clone());
            return Poll::Pending;
        };
        let id = std::mem::replace(&mut self.id, Json::null());
        Poll::Ready(AnsweredRequest { id, position: self.position, answer })
    }
}

impl InboundRequest {
    fn poll_answer(&mut self, task: &mut Task<'_>) -> Poll<Outcome> {
        let Some(answer) = &mut self.answer else { return Poll::Ready(Outcome::Cancelled) };
        if let Some(writing) = &mut self.writing {
            return writing.as_mut().poll(task).map(Outcome::Line);
        }
        let reply = ready!(answer.as_mut().poll(task));
        let n_bytes = message::payload(&reply).as_str().len();
        // Replies of a batch are sent together and share one limit.
        if n_bytes < LONG_MESSAGE || self.position.is_some() {
            return Poll::Ready(Outcome::Reply(reply));
        }
        let id = self.id.clone();
        let writing = Box::pin(off_thread(n_bytes, move || response_line(&id, &reply)));
        self.writing.insert(writing).as_mut().poll(task).map(Outcome::Line)
    }
}

/// Serializes a reply to the line to send.
fn response_line(id: &Json, reply: &Reply) -> Vec<u8> {
    let room = message::payload(reply).as_str().len() + id.as_str().len() + 64;
    let mut text = String::with_capacity(room);
    message::write_response(&mut text, id.as_str(), reply);
    let mut line = text.into_bytes();
    message::replace_line_breaks(&mut line, 0);
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
            n_lines: 0,
        }
    }

    /// Processes every line that was read, and yields now and then.
    pub(super) async fn process_lines<R: AsyncRead + Unpin>(&mut self, lines: &mut Lines<R>) {
        while let Some(line) = lines.next_line() {
            self.process_line(line).await;
            self.n_lines += 1;
            if self.n_lines.is_multiple_of(LINES_PER_TURN) {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn process_line(&mut self, line: Line) {
        match line {
            Line::Whole(line) if line.len() < LONG_MESSAGE => {
                self.process_frame(Frame::parse(&line), &line)
            }
            Line::Whole(line) => {
                let whole = line.clone();
                let parsed = Box::pin(off_thread(line.len(), move || Frame::parse(&whole))).await;
                self.process_frame(parsed, &line);
            }
            Line::TooLong { length, head, tail, out_of_memory } => {
                let limit = self.peer.0.limits.line;
                let reason = match out_of_memory {
                    Some(full) => format!(
                        "the message is too long for now: {full}; ask for less of it, or later"
                    ),
                    None => format!("a message of {length} bytes is over the limit of {limit}"),
                };
                self.process_too_long(reason, &head, &tail);
            }
        }
    }

    fn process_frame(&mut self, parsed: Result<Frame, Invalid>, line: &Bytes) {
        match parsed {
            Ok(Frame::One(message)) => self.process_message(message),
            Ok(Frame::Batch(messages)) => self.process_batch(messages),
            Err(invalid) => self.process_invalid(invalid, line),
        }
    }

    fn process_message(&mut self, message: Message) {
        match message {
            Message::Request(request) => drop(self.begin(request, None)),
            Message::Notification(notification) => self.process_notification(notification),
            Message::Response(response) => self.complete_request(response),
        }
    }

    fn process_batch(&mut self, messages: Vec<Result<Message, Invalid>>) {
        self.n_batches += 1;
        let (batch, mut n_open) = (self.n_batches, 0);
        for message in messages {
            match message {
                Ok(Message::Request(request)) => {
                    let position = BatchPosition { batch, index: n_open };
                    n_open += usize::from(self.begin(request, Some(position)).is_ok());
                }
                Ok(message) => self.process_message(message),
                Err(invalid) => self.process_invalid(invalid, b""),
            }
        }
        if n_open != 0 {
            let replies = (0..n_open).map(|_| None).collect();
            self.batches.insert(batch, Batch { n_open, replies, n_bytes: 0 });
        }
    }

    /// Starts to answer a request, unless it is refused at once.
    fn begin(&mut self, request: Request, position: Option<BatchPosition>) -> Result<(), Refused> {
        if let Some(error) = self.why_refused(&request.id) {
            let id = request.id.as_str();
            self.write(|out| message::write_response(out, id, &Reply::Error(error)));
            return Err(Refused);
        }
        let id = request.id.clone();
        self.open.insert(id.clone());
        let answer = Some(Arc::clone(&self.incoming).request(request));
        self.answers.push(InboundRequest { id, position, answer, writing: None, waker: None });
        Ok(())
    }

    /// Returns the error for a request that is refused: its id is in use, so that the two
    /// could not be told apart, or too many requests are open.
    fn why_refused(&self, id: &Json) -> Option<RpcError> {
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

    /// Sends the outcome of a request, or collects it for its batch.
    pub(super) fn answer(&mut self, answered: AnsweredRequest) {
        let AnsweredRequest { id, position, answer } = answered;
        self.open.remove(&id);
        match (position, answer) {
            (Some(position), Outcome::Reply(reply)) => self.add_to_batch(position, id, Some(reply)),
            (Some(position), Outcome::Cancelled | Outcome::Line(_)) => {
                self.add_to_batch(position, id, None)
            }
            (None, Outcome::Reply(reply)) => {
                self.write(|out| message::write_response(out, id.as_str(), &reply));
            }
            (None, Outcome::Line(line)) => self.write_line(line),
            (None, Outcome::Cancelled) => {}
        }
    }

    /// Stores a reply in its batch, and sends the batch when it is complete.
    fn add_to_batch(&mut self, position: BatchPosition, id: Json, reply: Option<Reply>) {
        let Some(batch) = self.batches.get_mut(&position.batch) else { return };
        batch.n_open -= 1;
        let limit = self.peer.0.limits.line;
        let reply = reply.map(|reply| message::limit_reply(reply, &mut batch.n_bytes, limit));
        batch.replies[position.index] = reply.map(|reply| (id, reply));
        if batch.n_open != 0 {
            return;
        }
        let replies = self.batches.remove(&position.batch).map(|batch| batch.replies);
        let replies: Vec<_> = replies.into_iter().flatten().flatten().collect();
        if !replies.is_empty() {
            self.write(|out| message::write_responses(out, replies));
        }
    }

    /// Drops all open requests and answers each with an error, because the connection
    /// closes.
    pub(super) fn give_up(&mut self) {
        let message = "the connection is closing, and this took too long; it may have run";
        let error = RpcError::unanswered(code::SERVER, message, Sent::Perhaps);
        let open = std::mem::take(&mut self.answers);
        for inbound in open {
            let answer = match inbound.answer {
                Some(_) => Outcome::Reply(Reply::Error(error.clone())),
                None => Outcome::Cancelled,
            };
            self.answer(AnsweredRequest { id: inbound.id, position: inbound.position, answer });
        }
    }

    /// Writes an answer, also over the queue limit and when the connection is closing. A
    /// peer that sends requests but does not read is disconnected.
    fn write(&self, write: impl FnOnce(&mut String)) {
        if let Some(mut state) = self.outbox_with_room() {
            state.push_message(write);
        }
    }

    /// Writes an answer that is serialized already.
    fn write_line(&self, line: Vec<u8>) {
        if let Some(mut state) = self.outbox_with_room() {
            state.push_line(line);
        }
    }

    /// Returns the state with its outbox; closes the connection if too much waits there.
    fn outbox_with_room(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.peer.lock();
        let waiting = state.outbox.len();
        if waiting <= self.peer.0.limits.answers {
            return Some(state);
        }
        state.close(&format!("it does not read: {waiting} bytes of answers are waiting"));
        None
    }

    fn process_notification(&mut self, notification: Notification) {
        if notification.method == method::CANCELLED {
            let id = notification.params.as_ref().and_then(|params| params.member("requestId"));
            if id.is_some_and(|id| self.cancel(&id)) {
                return;
            }
        }
        self.incoming.notification(notification);
    }

    /// Cancels a request and returns whether it was open. It is removed when its future is
    /// polled next.
    fn cancel(&mut self, id: &Json) -> bool {
        if !self.open.contains(id) {
            return false;
        }
        let inbound = self.answers.iter_mut().find(|inbound| inbound.id == *id);
        if let Some(inbound) = inbound {
            inbound.answer = None;
            if let Some(waker) = inbound.waker.take() {
                waker.wake();
            }
        }
        true
    }

    /// Completes our own request that a response belongs to.
    fn complete_request(&self, response: Response) {
        let Response { id, reply } = response;
        let unmatched = match RequestId::parse(&id) {
            Some(request_id) => self.peer.lock().pending.complete(request_id, Ok(reply)).err(),
            None => Some(Ok(reply)),
        };
        if let Some(Ok(reply)) = unmatched {
            self.incoming.unexpected_response(Response { id, reply });
        }
    }

    fn process_invalid(&self, invalid: Invalid, line: &[u8]) {
        if self.fail_request_of(&invalid) {
            return;
        }
        if let Some(error) = self.incoming.invalid(&invalid, line) {
            let id = invalid.id.unwrap_or_else(Json::null);
            self.write(|out| message::write_response(out, id.as_str(), &Reply::Error(error)));
        }
    }

    /// Fails our own request that an invalid response belongs to, and returns whether there
    /// was one. An oversized batch may hold the responses to all of them.
    fn fail_request_of(&self, invalid: &Invalid) -> bool {
        if invalid.is_oversized_batch {
            let failure = Failure::Unusable { reason: invalid.reason.clone() };
            self.peer.lock().pending.fail_all_with(&failure);
            return false;
        }
        let (None, Some(id)) = (&invalid.method, &invalid.id) else { return false };
        let Some(request_id) = RequestId::parse(id) else { return false };
        let failure = Failure::Unusable { reason: invalid.reason.clone() };
        self.peer.lock().pending.complete(request_id, Err(failure)).is_ok()
    }

    fn process_too_long(&self, reason: String, head: &Bytes, tail: &Bytes) {
        let asks = memchr::memmem::find(head, br#""method""#).is_some();
        let id = id_from_ends(head, tail);
        let mut state = self.peer.lock();
        if id.is_none() && !asks && state.pending.len() == 1 {
            // Only one request is open, so this must be its response.
            state.pending.fail_all_with(&Failure::Unusable { reason: reason.clone() });
        }
        drop(state);
        let invalid = Invalid {
            fault: Fault::NotMessage,
            reason,
            id,
            method: asks.then(String::new),
            is_oversized_batch: false,
        };
        self.process_invalid(invalid, head);
    }
}
