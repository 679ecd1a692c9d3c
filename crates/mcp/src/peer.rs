//! One end of a JSON-RPC connection over a pipe.
//!
//! Clients and servers both send requests, so both use this: [`Peer`] sends requests and
//! notifications, [`run`] reads and writes the pipe and hands received messages to an
//! [`Incoming`]. Messages that are ready together leave in one write, no task is spawned
//! per message, and a request whose future is dropped is cancelled at the other side.
//! This module does not know what methods mean.

mod inbound;
mod lines;
pub(crate) mod pending;
mod request;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;
use tool::{Failure, Json, Reply, RpcError, Sent};

use crate::memory::MemoryBudget;
use crate::message::{self, Invalid, Notification, Params, Request, Response};
use crate::revision::method;
use pending::{OpenRequests, PendingRequest, RequestTable};

pub(crate) use inbound::LINES_PER_TURN;
pub use lines::{Line, Lines};
pub use request::{RequestId, Timeouts};
pub use run::run;

/// Buffers over this many bytes are freed after use.
const LARGE_BUFFER: usize = 1 << 20;

/// The sending half of a connection. Clones share the connection.
#[derive(Clone)]
pub struct Peer(Arc<Shared>);

/// The limits of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest line that is accepted, in bytes.
    pub line: usize,
    /// Requests and notifications are refused while more than this many bytes wait to be
    /// written.
    pub queue: usize,
    /// The connection is closed when an answer is due while more than this many bytes wait
    /// to be written.
    pub answers: usize,
    /// The maximum number of open requests of the other side.
    pub requests: usize,
    /// How long open requests may still be answered after the other side closed its end.
    pub linger: Duration,
}

/// Receives the messages of the other side. Called in order of arrival by the reading
/// task, so no method may block.
pub trait Incoming: Send + Sync + 'static {
    /// Answers a request. The reading task polls the future, and drops it when the other
    /// side cancels the request.
    fn request(self: Arc<Self>, request: Request) -> BoxFuture<'static, Reply>;

    /// Receives a notification, except cancellations of open requests.
    fn notification(&self, notification: Notification);

    /// Receives a line that is not a message. A returned error is sent back.
    fn invalid(&self, invalid: &Invalid, line: &[u8]) -> Option<RpcError>;

    /// Receives a response that matches no open request.
    fn unexpected_response(&self, response: Response);
}

struct Shared {
    state: Mutex<State>,
    /// The id of the next request.
    next_id: AtomicU64,
    /// Wakes the writer.
    wake: Notify,
    limits: Limits,
    /// Bounds the memory of long messages that are received.
    memory: MemoryBudget,
}

struct State {
    /// Whole lines that wait to be written.
    outbox: Vec<u8>,
    /// Scratch buffer for the message that is being written.
    line: String,
    /// How many bytes were ever put into the outbox, and how many of them were written to
    /// the pipe.
    queued: u64,
    written: u64,
    pending: RequestTable,
    /// Why the connection is closed, if it is.
    closed: Option<String>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            line: 64 << 20,
            queue: 256 << 20,
            answers: 1 << 30,
            requests: 4096,
            linger: Duration::from_secs(10),
        }
    }
}

impl Peer {
    pub fn new(limits: Limits) -> Peer {
        Peer::with_memory(limits, MemoryBudget::default())
    }

    /// Makes a peer whose long messages count against a shared budget.
    pub fn with_memory(limits: Limits, memory: MemoryBudget) -> Peer {
        let state = State {
            outbox: Vec::new(),
            line: String::new(),
            queued: 0,
            written: 0,
            pending: RequestTable::default(),
            closed: None,
        };
        let (next_id, wake) = (AtomicU64::new(1), Notify::new());
        Peer(Arc::new(Shared { state: Mutex::new(state), next_id, wake, limits, memory }))
    }

    /// Takes the id for a new request.
    pub fn next_request_id(&self) -> RequestId {
        RequestId(self.0.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a request and waits for the reply.
    ///
    /// Dropping the future, or a timeout, cancels the request at the other side.
    pub async fn request(
        &self,
        request_id: RequestId,
        method: &str,
        params: impl Into<Params<'_>>,
        timeouts: Timeouts,
    ) -> Result<Reply, Failure> {
        let (pending, answer) = PendingRequest::new(Instant::now(), timeouts);
        let mut awaited = self.send_request(request_id, method, params.into(), pending)?;
        let answer = answer.await.unwrap_or_else(|_| Err(self.lost_failure()));
        awaited.ended(&answer);
        answer
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Option<&Json>) -> Result<(), Failure> {
        self.send(|out| message::write_notification(out, method, params))
    }

    /// Closes the connection: open requests fail, the pipe is closed.
    pub fn close(&self, reason: &str) {
        self.lock().close(reason);
        self.0.wake.notify_one();
    }

    /// Returns why the connection is closed, if it is.
    pub fn closed(&self) -> Option<String> {
        self.lock().closed.clone()
    }

    fn send_request(
        &self,
        request_id: RequestId,
        method: &str,
        params: Params<'_>,
        pending: PendingRequest,
    ) -> Result<AwaitedRequest<'_>, Failure> {
        let id = request_id.0.to_string();
        let mut state = self.lock();
        let at = state.queued;
        let writer = state.enqueue(self.0.limits.queue, |out| {
            message::write_request(out, &id, method, params);
        })?;
        state.pending.insert(request_id, pending.queued_at(at));
        drop(state);
        self.wake(writer);
        // The protocol forbids to cancel the request that opens a session.
        let opens = matches!(method, method::INITIALIZE | method::DISCOVER);
        let reason = (!opens).then_some("no longer wanted");
        Ok(AwaitedRequest { peer: self, request_id, reason, is_open: true })
    }

    fn send(&self, write: impl FnOnce(&mut String)) -> Result<(), Failure> {
        let writer = self.lock().enqueue(self.0.limits.queue, write)?;
        self.wake(writer);
        Ok(())
    }

    fn wake(&self, writer: WriterState) {
        match writer {
            WriterState::Asleep => self.0.wake.notify_one(),
            WriterState::Awake => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    fn lost_failure(&self) -> Failure {
        let reason = self.closed().unwrap_or_else(|| "the connection is gone".to_owned());
        Failure::Lost { reason, sent: Sent::Perhaps }
    }
}

impl OpenRequests for Peer {
    fn with_table(&self, act: &mut dyn FnMut(&mut RequestTable)) {
        act(&mut self.lock().pending);
    }
}

/// Whether the writing task has to be woken after a push to the outbox. It is awake when
/// the outbox was not empty.
#[derive(Clone, Copy)]
enum WriterState {
    Asleep,
    Awake,
}

impl State {
    fn enqueue(
        &mut self,
        limit: usize,
        write: impl FnOnce(&mut String),
    ) -> Result<WriterState, Failure> {
        if let Some(reason) = &self.closed {
            return Err(Failure::Lost { reason: reason.clone(), sent: Sent::No });
        }
        if limit < self.outbox.len() {
            let reason = format!("it does not read: {} bytes are waiting", self.outbox.len());
            return Err(Failure::Unavailable { reason });
        }
        let writer = if self.outbox.is_empty() { WriterState::Asleep } else { WriterState::Awake };
        self.push_message(write);
        Ok(writer)
    }

    /// Appends a message to the outbox; `write` writes it.
    fn push_message(&mut self, write: impl FnOnce(&mut String)) {
        let start = self.outbox.len();
        self.line.clear();
        write(&mut self.line);
        self.outbox.extend_from_slice(self.line.as_bytes());
        // Do not keep the memory of a large message.
        self.line.shrink_to(LARGE_BUFFER);
        message::replace_line_breaks(&mut self.outbox, start);
        self.outbox.push(b'\n');
        self.queued += (self.outbox.len() - start) as u64;
    }

    /// Appends a complete line to the outbox, without a copy when the outbox is empty.
    fn push_line(&mut self, line: Vec<u8>) {
        self.queued += line.len() as u64;
        match self.outbox.is_empty() {
            true => self.outbox = line,
            false => self.outbox.extend_from_slice(&line),
        }
    }

    fn close(&mut self, reason: &str) {
        if self.closed.is_none() {
            self.closed = Some(reason.to_owned());
        }
        self.pending.fail_all(reason, self.written);
    }
}

/// A sent request whose reply is awaited. Cancels the request when dropped before that.
struct AwaitedRequest<'a> {
    peer: &'a Peer,
    request_id: RequestId,
    /// The reason to send with a cancellation; `None` if it must not be cancelled.
    reason: Option<&'static str>,
    /// False once the reply or a failure is there.
    is_open: bool,
}

impl AwaitedRequest<'_> {
    /// Notes that the request ended; cancels it if it timed out.
    fn ended(&mut self, answer: &Result<Reply, Failure>) {
        self.is_open = false;
        if let (Some(_), Err(Failure::Timeout { .. })) = (self.reason, answer) {
            self.cancel("no answer in time");
        }
    }

    fn cancel(&self, reason: &str) {
        let params = serde_json::json!({"requestId": self.request_id.0, "reason": reason});
        // A peer that is gone or does not read cannot be notified.
        self.peer.notify(method::CANCELLED, Some(&params.into())).ok();
    }
}

impl Drop for AwaitedRequest<'_> {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let was_open = self.peer.lock().pending.remove(self.request_id);
        if let Some(reason) = self.reason.filter(|_| was_open) {
            self.cancel(reason);
        }
    }
}

#[cfg(test)]
mod tests;
