//! The task that reads and writes one pipe.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{AbortHandle, Abortable, BoxFuture, FutureExt, join_all};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Instant, Sleep, sleep_until};
use tool::{Failure, Json, QuickMap, Reply, RpcError};

use super::lines::{Line, Lines, id_at_the_ends};
use super::{Incoming, Peer};
use crate::message::{self, Fault, Frame, Invalid, Message, Notification, Request, Response};
use crate::revision::{code, method};

/// How many lines are taken before others get a turn: somebody who sends short
/// ones without end is not to keep everybody else waiting.
pub(crate) const AT_ONCE: usize = 256;

/// Why most conversations end.
const CLOSED: &str = "the other side closed the connection";

/// Reads and writes until the pipe ends or the peer is closed, and says why it
/// ended. All that happens on one conversation happens in this future.
pub async fn run<R, W>(peer: Peer, reader: R, mut writer: W, incoming: Arc<dyn Incoming>) -> String
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = Lines::new(reader, peer.0.limits.line);
    let mut desk = Desk {
        peer: peer.clone(),
        incoming,
        answers: FuturesUnordered::new(),
        open: QuickMap::default(),
        n_taken: 0,
    };
    let mut writing = Writing::default();
    let mut last_call: Option<Instant> = None;
    let mut alarm = Alarm::default();
    let hurries = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    let reason = loop {
        alarm.set(writing.refill(&peer));
        if last_call.is_some() && writing.is_empty() && desk.answers.is_empty() {
            break CLOSED.to_owned();
        }
        if last_call.is_none() && peer.closed().is_some() {
            break String::new();
        }
        // Writing comes first: what is ready together left together above, and
        // a reader that never stops sending cannot keep answers back.
        tokio::select! {
            biased;
            written = writer.write(&writing.buffer[writing.at..]), if !writing.is_empty() => {
                match written {
                    Ok(0) => break "the other side takes no more input".to_owned(),
                    Ok(n_written) => writing.advance(n_written, &peer),
                    Err(error) => break broken("writing", &error),
                }
                if writing.is_empty() && let Err(error) = writer.flush().await {
                    break broken("writing", &error);
                }
            }
            Some(answer) = desk.answers.next(), if !desk.answers.is_empty() => {
                desk.answer(answer);
                while let Some(Some(answer)) = desk.answers.next().now_or_never() {
                    desk.answer(answer);
                }
            }
            more = lines.fill(), if last_call.is_none() => match more {
                Ok(more) => {
                    desk.take_all(&mut lines).await;
                    if !more {
                        peer.lock().close(CLOSED);
                        last_call = Some(Instant::now() + peer.0.limits.linger);
                    }
                }
                Err(error) => break broken("reading", &error),
            },
            () = peer.0.wake.notified() => {
                // Several threads run whom a task wakes before all others that are
                // ready, so their questions would leave one by one.
                if hurries && 1 < peer.lock().pending.len() {
                    tokio::task::yield_now().await;
                }
            }
            () = alarm.rings() => peer.lock().pending.expire(Instant::now()),
            () = until(last_call), if last_call.is_some() => {
                break CLOSED.to_owned();
            }
        }
    };
    peer.lock().close(&reason);
    peer.closed().unwrap_or(reason)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn broken(doing: &str, error: &io::Error) -> String {
    // Whether reading or writing sees that the other side is gone is chance.
    if error.kind() == io::ErrorKind::BrokenPipe {
        return CLOSED.to_owned();
    }
    format!("{doing} failed: {error}")
}

/// One clock for all that the peer waits for.
#[derive(Default)]
struct Alarm {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    fn set(&mut self, at: Option<Instant>) {
        if self.at == at {
            return;
        }
        self.at = at;
        match (at, &mut self.sleep) {
            (Some(at), Some(sleep)) => sleep.as_mut().reset(at),
            (Some(at), None) => self.sleep = Some(Box::pin(sleep_until(at))),
            (None, _) => self.sleep = None,
        }
    }

    async fn rings(&mut self) {
        match &mut self.sleep {
            Some(sleep) => sleep.await,
            None => std::future::pending().await,
        }
    }
}

/// Lines on their way out.
#[derive(Default)]
struct Writing {
    buffer: Vec<u8>,
    at: usize,
}

impl Writing {
    fn is_empty(&self) -> bool {
        self.at == self.buffer.len()
    }

    /// Takes everything that waits, once the last lot is gone. Returns when to
    /// look for questions that have waited too long.
    fn refill(&mut self, peer: &Peer) -> Option<Instant> {
        if !self.is_empty() {
            return peer.lock().pending.due();
        }
        self.at = 0;
        self.buffer.clear();
        // A buffer that once held a giant is not kept for the small ones.
        if (1 << 20) < self.buffer.capacity() {
            self.buffer = Vec::new();
        }
        let mut state = peer.lock();
        std::mem::swap(&mut self.buffer, &mut state.outbox);
        state.pending.due()
    }

    fn advance(&mut self, n_written: usize, peer: &Peer) {
        self.at += n_written;
        peer.lock().written += n_written as u64;
    }
}

/// What has been asked of us and is being answered.
struct Desk {
    peer: Peer,
    incoming: Arc<dyn Incoming>,
    answers: FuturesUnordered<BoxFuture<'static, Done>>,
    open: QuickMap<Json, AbortHandle>,
    /// How many lines came so far.
    n_taken: usize,
}

/// Answers that are ready; `None` where the question was cancelled.
enum Done {
    One(Json, Option<Reply>),
    Batch(Vec<(Json, Option<Reply>)>),
}

impl Desk {
    /// Takes every line that has come, and lets others have their turns.
    async fn take_all<R: AsyncRead + Unpin>(&mut self, lines: &mut Lines<R>) {
        while let Some(line) = lines.take() {
            self.take(line);
            self.n_taken += 1;
            if self.n_taken.is_multiple_of(AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Whole(line) => match Frame::parse(&line) {
                Ok(Frame::One(message)) => self.message(message),
                Ok(Frame::Batch(messages)) => self.batch(messages),
                Err(invalid) => self.garbage(invalid, &line),
            },
            Line::TooLong { length, head, tail } => self.too_long(length, &head, &tail),
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Request(request) => {
                if let Some(answer) = self.begin(request) {
                    let one = answer.map(|(id, reply)| Done::One(id, reply)).boxed();
                    self.answers.push(one);
                }
            }
            Message::Notification(notification) => self.notification(notification),
            Message::Response(response) => self.settle(response),
        }
    }

    fn batch(&mut self, messages: Vec<Result<Message, Invalid>>) {
        let mut questions = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) => questions.extend(self.begin(request)),
                Ok(message) => self.message(message),
                Err(invalid) => self.garbage(invalid, b""),
            }
        }
        if !questions.is_empty() {
            self.answers.push(join_all(questions).map(Done::Batch).boxed());
        }
    }

    /// Starts to answer a question, unless it is refused at once.
    fn begin(
        &mut self,
        request: Request,
    ) -> Option<impl Future<Output = (Json, Option<Reply>)> + Send + use<>> {
        let id = request.id.clone();
        if let Some(error) = self.refuses(&id) {
            self.write(|out| message::write_response(out, id.as_str(), &Reply::Error(error)));
            return None;
        }
        let (handle, registration) = AbortHandle::new_pair();
        self.open.insert(id.clone(), handle);
        let answer = Arc::clone(&self.incoming).request(request);
        Some(Abortable::new(answer, registration).map(|reply| (id, reply.ok())))
    }

    /// Why a question is not taken. One whose id is being answered already could
    /// not be counted, told from the other or cancelled.
    fn refuses(&self, id: &Json) -> Option<RpcError> {
        if self.open.contains_key(id) {
            let message = format!(
                "a request with the id {} is being answered; give every request its own id",
                id.as_str()
            );
            return Some(RpcError::new(code::INVALID_REQUEST, message));
        }
        let crowded = self.peer.0.limits.requests <= self.open.len();
        crowded.then(|| RpcError::new(code::SERVER, "too many requests at once; wait for answers"))
    }

    fn answer(&mut self, done: Done) {
        match done {
            Done::One(id, reply) => {
                self.open.remove(&id);
                if let Some(reply) = reply {
                    self.write(|out| message::write_response(out, id.as_str(), &reply));
                }
            }
            Done::Batch(replies) => {
                for (id, _) in &replies {
                    self.open.remove(id);
                }
                let replies = replies.iter().filter_map(|(id, reply)| Some((id, reply.as_ref()?)));
                let replies: Vec<_> = replies.collect();
                if !replies.is_empty() {
                    self.write(|out| write_batch(out, &replies));
                }
            }
        }
    }

    /// Answers are written past the queue limit and past the last call. Who asks
    /// and asks and never reads is left.
    fn write(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.peer.lock();
        if self.peer.0.limits.answers < state.outbox.len() {
            let waiting = state.outbox.len();
            return state
                .close(&format!("it does not read: {waiting} bytes of answers are waiting"));
        }
        let start = state.outbox.len();
        write(&mut state.outbox);
        message::unbreak(&mut state.outbox, start);
        state.outbox.push(b'\n');
        let n_more = state.outbox.len() - start;
        state.queued += n_more as u64;
    }

    fn notification(&mut self, notification: Notification) {
        if notification.method == method::CANCELLED {
            let id = notification.params.as_ref().and_then(|params| params.member("requestId"));
            // Its place is given up when it has ended.
            if let Some(open) = id.and_then(|id| self.open.get(&id)) {
                open.abort();
                return;
            }
        }
        self.incoming.notification(notification);
    }

    fn settle(&self, response: Response) {
        let Response { id, reply } = response;
        let settled = self.peer.lock().pending.settle(id.as_str(), Ok(reply));
        if let Err(Ok(reply)) = settled {
            self.incoming.stray(Response { id, reply });
        }
    }

    fn garbage(&self, invalid: Invalid, line: &[u8]) {
        if self.fail(&invalid) {
            return;
        }
        if let Some(error) = self.incoming.garbage(&invalid, line) {
            let id = invalid.id.unwrap_or_else(Json::null);
            self.write(|out| message::write_response(out, id.as_str(), &Reply::Error(error)));
        }
    }

    /// Fails the question that a damaged answer belongs to, if there is one.
    fn fail(&self, invalid: &Invalid) -> bool {
        let (None, Some(id)) = (&invalid.method, &invalid.id) else { return false };
        let failure = Failure::Unusable { reason: invalid.reason.clone() };
        self.peer.lock().pending.settle(id.as_str(), Err(failure)).is_ok()
    }

    fn too_long(&self, length: usize, head: &Bytes, tail: &Bytes) {
        let limit = self.peer.0.limits.line;
        let asks = memchr::memmem::find(head, br#""method""#).is_some();
        let invalid = Invalid {
            fault: Fault::NoMessage,
            reason: format!("a message of {length} bytes is over the limit of {limit}"),
            id: id_at_the_ends(head, tail),
            method: asks.then(String::new),
        };
        self.garbage(invalid, head);
    }
}

fn write_batch(out: &mut Vec<u8>, replies: &[(&Json, &Reply)]) {
    out.push(b'[');
    for (at, (id, reply)) in replies.iter().enumerate() {
        if at != 0 {
            out.push(b',');
        }
        message::write_response(out, id.as_str(), reply);
    }
    out.push(b']');
}
