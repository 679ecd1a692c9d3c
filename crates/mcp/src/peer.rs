//! One side of a JSON-RPC conversation over a pipe.
//!
//! Both sides of the protocol may ask, so both use this: [`Peer`] asks and
//! tells, [`run`] reads and writes the pipe and hands what comes in to
//! [`Incoming`]. Messages that are ready together leave in one write, nothing
//! is spawned per message, and a question whose future is dropped is cancelled
//! at the other side. What a method means is not known here.

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
use pending::{OpenRequests, Pending, Table};

pub(crate) use inbound::LINES_PER_TURN;
pub use lines::{Line, Lines};
pub use request::{RequestId, Timeouts};
pub use run::run;

/// Buffers that are longer are given back after use.
const GIANT: usize = 1 << 20;

/// The asking and telling half. Clones are the same peer.
#[derive(Clone)]
pub struct Peer(Arc<Shared>);

/// What a conversation may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest line that is read, in bytes.
    pub line: usize,
    /// How many bytes may wait for a reader that does not read.
    pub queue: usize,
    /// How many bytes may wait when one more answer is added to them.
    pub answers: usize,
    /// How many questions of the other side may be open at once.
    pub requests: usize,
    /// How long answers may still be made and written when the other side has
    /// stopped sending.
    pub linger: Duration,
}

/// What comes in. Called in the order of arrival, from the task that reads, so
/// nothing here may block.
pub trait Incoming: Send + Sync + 'static {
    /// A question. Its future is polled along with the reading, and dropped
    /// when the other side cancels it.
    fn request(self: Arc<Self>, request: Request) -> BoxFuture<'static, Reply>;

    /// News. Cancellations of open questions are dealt with already.
    fn notification(&self, notification: Notification);

    /// A line that is no message. An error that is returned is sent back.
    fn invalid(&self, invalid: &Invalid, line: &[u8]) -> Option<RpcError>;

    /// An answer to a question that nobody asked, or waits for any more.
    fn unexpected_response(&self, response: Response);
}

struct Shared {
    state: Mutex<State>,
    /// The number of the next question.
    next: AtomicU64,
    /// Wakes the writer.
    wake: Notify,
    limits: Limits,
    /// For the long messages of the other side.
    memory: MemoryBudget,
}

struct State {
    /// Whole lines that wait to be written.
    outbox: Vec<u8>,
    /// The line that is being put together.
    line: String,
    /// How many bytes ever went into the outbox, and out of it to the pipe.
    queued: u64,
    written: u64,
    pending: Table,
    /// Why nothing can be said any more.
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
        Peer::within(limits, MemoryBudget::default())
    }

    /// One that shares memory for long messages with others.
    pub fn within(limits: Limits, memory: MemoryBudget) -> Peer {
        let state = State {
            outbox: Vec::new(),
            line: String::new(),
            queued: 0,
            written: 0,
            pending: Table::default(),
            closed: None,
        };
        let (next, wake) = (AtomicU64::new(1), Notify::new());
        Peer(Arc::new(Shared { state: Mutex::new(state), next, wake, limits, memory }))
    }

    /// Takes the number for a question that is about to be asked.
    pub fn next_request_id(&self) -> RequestId {
        RequestId(self.0.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Asks, and waits for the answer.
    ///
    /// Dropping the future, or a timeout, tells the other side
    /// that the answer is no longer wanted.
    pub async fn request(
        &self,
        request_id: RequestId,
        method: &str,
        params: impl Into<Params<'_>>,
        timeouts: Timeouts,
    ) -> Result<Reply, Failure> {
        let (pending, answer) = Pending::new(Instant::now(), timeouts);
        let mut waiting = self.ask(request_id, method, params.into(), pending)?;
        let answer = answer.await.unwrap_or_else(|_| Err(self.lost()));
        waiting.ended(&answer);
        answer
    }

    /// Tells something.
    pub fn notify(&self, method: &str, params: Option<&Json>) -> Result<(), Failure> {
        self.send(|out| message::write_notification(out, method, params))
    }

    /// Ends the conversation: open questions fail, the pipe is closed.
    pub fn close(&self, reason: &str) {
        self.lock().close(reason);
        self.0.wake.notify_one();
    }

    /// Returns why the conversation is over, if it is.
    pub fn closed(&self) -> Option<String> {
        self.lock().closed.clone()
    }

    fn ask(
        &self,
        request_id: RequestId,
        method: &str,
        params: Params<'_>,
        pending: Pending,
    ) -> Result<Waiting<'_>, Failure> {
        let id = request_id.0.to_string();
        let mut state = self.lock();
        let at = state.queued;
        let writer = state.enqueue(self.0.limits.queue, |out| {
            message::write_request(out, &id, method, params);
        })?;
        state.pending.insert(request_id, pending.queued_at(at));
        drop(state);
        self.wake(writer);
        // What opens a session cannot be cancelled.
        let opens = matches!(method, method::INITIALIZE | method::DISCOVER);
        let reason = (!opens).then_some("no longer wanted");
        Ok(Waiting { peer: self, request_id, reason, is_open: true })
    }

    fn send(&self, write: impl FnOnce(&mut String)) -> Result<(), Failure> {
        let writer = self.lock().enqueue(self.0.limits.queue, write)?;
        self.wake(writer);
        Ok(())
    }

    fn wake(&self, writer: Writer) {
        match writer {
            Writer::Asleep => self.0.wake.notify_one(),
            Writer::Awake => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    fn lost(&self) -> Failure {
        let reason = self.closed().unwrap_or_else(|| "the connection is gone".to_owned());
        Failure::Lost { reason, sent: Sent::Perhaps }
    }
}

impl OpenRequests for Peer {
    fn with_table(&self, act: &mut dyn FnMut(&mut Table)) {
        act(&mut self.lock().pending);
    }
}

/// Whether the writer has to be woken for what was put into the outbox: not if
/// something was waiting there already, for which it was.
#[derive(Clone, Copy)]
enum Writer {
    Asleep,
    Awake,
}

impl State {
    fn enqueue(
        &mut self,
        limit: usize,
        write: impl FnOnce(&mut String),
    ) -> Result<Writer, Failure> {
        if let Some(reason) = &self.closed {
            return Err(Failure::Lost { reason: reason.clone(), sent: Sent::No });
        }
        if limit < self.outbox.len() {
            let reason = format!("it does not read: {} bytes are waiting", self.outbox.len());
            return Err(Failure::Unavailable { reason });
        }
        let writer = if self.outbox.is_empty() { Writer::Asleep } else { Writer::Awake };
        self.put(write);
        Ok(writer)
    }

    /// Puts a line into the outbox.
    fn put(&mut self, write: impl FnOnce(&mut String)) {
        let start = self.outbox.len();
        self.line.clear();
        write(&mut self.line);
        self.outbox.extend_from_slice(self.line.as_bytes());
        // Room for a giant is not kept for the small ones.
        self.line.shrink_to(GIANT);
        message::unbreak(&mut self.outbox, start);
        self.outbox.push(b'\n');
        self.queued += (self.outbox.len() - start) as u64;
    }

    /// Puts a long line into the outbox, without copying it where nothing else waits.
    fn put_line(&mut self, line: Vec<u8>) {
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

/// A question that is being waited for. Dropped early, it cancels.
struct Waiting<'a> {
    peer: &'a Peer,
    request_id: RequestId,
    /// What to tell the other side, if anything.
    reason: Option<&'static str>,
    /// Whether it has not ended.
    is_open: bool,
}

impl Waiting<'_> {
    /// There is an answer, or [`run`] has seen that it took too long.
    fn ended(&mut self, answer: &Result<Reply, Failure>) {
        self.is_open = false;
        if let (Some(_), Err(Failure::Timeout { .. })) = (self.reason, answer) {
            self.cancel("no answer in time");
        }
    }

    fn cancel(&self, reason: &str) {
        let params = serde_json::json!({"requestId": self.request_id.0, "reason": reason});
        // A peer that is gone or does not read cannot be told.
        self.peer.notify(method::CANCELLED, Some(&params.into())).ok();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // What has ended is among the open ones no longer.
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
