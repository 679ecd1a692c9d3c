//! The requests of one POST in a session, until they are answered.
//!
//! Usually one; several if the revision has batches. Each can be cancelled by id. In legacy
//! revisions a client that disconnects cancels nothing, so a batch runs to its end without
//! a reader.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
use tool::{FastMap, Json, Reply, RpcError, Sent};

use crate::message;
use crate::revision::code;
use crate::serve::channel::Outgoing;
use crate::serve::exchange::{Exchange, Step};

/// The maximum number of open requests of a caller in all of its sessions. Requests
/// continue without their connection, so connections do not bound them.
const MAX_PER_CALLER: usize = 4096;

/// The open requests of a session, by id, with the sender that cancels each.
#[derive(Default)]
pub(super) struct InFlight {
    open: Mutex<FastMap<Json, oneshot::Sender<SessionEnded>>>,
    caller_load: Arc<CallerLoad>,
}

/// The number of open requests of a caller.
#[derive(Default)]
pub(super) struct CallerLoad(AtomicUsize);

/// Sent to an open request when its session ends.
#[derive(Debug)]
struct SessionEnded;

/// How many requests of a batch are started in one poll, so that others get a turn.
const STARTED_AT_ONCE: usize = 4;

/// How many requests of a batch are being answered at a time. Answers that are made at the
/// same time are all in memory before any of them is counted.
const MAX_OPEN: usize = 16;

/// The requests of one POST.
pub(super) struct Batch {
    /// Requests that were not polled yet, in their order.
    unstarted: VecDeque<BatchMember>,
    open: Vec<BatchMember>,
    in_flight: Arc<InFlight>,
    /// How many bytes the answers have so far; `limit` is the maximum.
    n_bytes: usize,
    limit: usize,
    /// Whether the answers take all the memory that they may. Then no more requests are
    /// started.
    is_full: bool,
    /// Whether the last event was an answer.
    has_answered: bool,
}

/// One request of a batch.
struct BatchMember {
    id: Json,
    exchange: Exchange,
    cancelled: oneshot::Receiver<SessionEnded>,
}

/// What a batch yields.
pub(super) enum BatchEvent {
    Message(Outgoing),
    Answer(Json, Reply),
    /// Every request is answered or cancelled.
    End,
}

impl InFlight {
    /// Makes an empty table; `caller_load` is shared by the sessions of a caller.
    pub(super) fn new(caller_load: Arc<CallerLoad>) -> InFlight {
        InFlight { open: Mutex::default(), caller_load }
    }

    /// Cancels a request; returns whether it was open.
    pub(super) fn cancel(&self, id: &Json) -> bool {
        let was_open = self.open.lock().remove(id).is_some();
        if was_open {
            self.caller_load.0.fetch_sub(1, Ordering::Relaxed);
        }
        was_open
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.lock().is_empty()
    }

    /// Registers a request. The receiver resolves when it is cancelled.
    fn register(&self, id: &Json) -> Result<oneshot::Receiver<SessionEnded>, RpcError> {
        let (cancel, cancelled) = oneshot::channel();
        let mut open = self.open.lock();
        if MAX_PER_CALLER <= self.caller_load.0.load(Ordering::Relaxed) {
            let message = format!(
                "{MAX_PER_CALLER} requests of this caller are being answered; wait for some of them"
            );
            return Err(RpcError::new(code::SERVER, message));
        }
        match open.entry(id.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(cancel);
                self.caller_load.0.fetch_add(1, Ordering::Relaxed);
            }
            Entry::Occupied(_) => {
                let message = format!(
                    "a request with the id {} is being answered; give every request its own id",
                    id.as_str()
                );
                return Err(RpcError::new(code::INVALID_REQUEST, message));
            }
        }
        Ok(cancelled)
    }

    /// Ends all requests because the session ends; each is answered with an error.
    pub(super) fn end_all(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        self.caller_load.0.fetch_sub(open.len(), Ordering::Relaxed);
        for (_, cancel) in open {
            // Fails when the request is answered already.
            cancel.send(SessionEnded).ok();
        }
    }
}

impl Batch {
    /// Makes an empty batch, whose answers have at most `limit` bytes together.
    pub(super) fn new(in_flight: &Arc<InFlight>, limit: usize) -> Batch {
        let (unstarted, open) = (VecDeque::with_capacity(1), Vec::with_capacity(1));
        Batch {
            unstarted,
            open,
            in_flight: Arc::clone(in_flight),
            n_bytes: 0,
            limit,
            is_full: false,
            has_answered: false,
        }
    }

    /// Adds a request and starts it with `begin`. Refuses one whose id is in use: the two
    /// answers could not be told apart.
    pub(super) fn add(&mut self, id: Json, begin: impl FnOnce() -> Exchange) -> Result<(), Reply> {
        let cancelled = self.in_flight.register(&id).map_err(Reply::Error)?;
        self.unstarted.push_back(BatchMember { id, exchange: begin(), cancelled });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.unstarted.is_empty()
    }

    /// Returns the id of the first request that has no answer yet.
    pub(super) fn first_id(&self) -> Option<&Json> {
        self.open.first().or(self.unstarted.front()).map(|member| &member.id)
    }

    /// Answers the requests that were not started yet with an error, because there is no
    /// memory for their answers.
    pub(super) fn start_no_more(&mut self) {
        self.is_full = true;
    }

    /// Waits for the next event. Between the answers of several requests others get a
    /// turn, however fast the answers are there.
    pub(super) async fn next_event(&mut self) -> BatchEvent {
        if std::mem::take(&mut self.has_answered) && !self.is_empty() {
            tokio::task::yield_now().await;
        }
        poll_fn(|task| self.poll_event(task)).await
    }

    fn poll_event(&mut self, task: &mut Context<'_>) -> Poll<BatchEvent> {
        if let Some(unrun) = self.start_some() {
            return Poll::Ready(unrun);
        }
        let mut at = 0;
        while at < self.open.len() {
            let member = &mut self.open[at];
            match member.exchange.poll_step(task) {
                Poll::Ready(Step::Message(message)) => {
                    return Poll::Ready(BatchEvent::Message(message));
                }
                Poll::Ready(Step::Answer(reply)) => {
                    let member = self.open.swap_remove(at);
                    self.has_answered = true;
                    self.in_flight.cancel(&member.id);
                    let n_bytes = self.n_bytes + message::payload(&reply).as_str().len();
                    // One that is too long by itself leaves room for others.
                    self.is_full |= self.limit < n_bytes && self.n_bytes != 0;
                    let reply = message::limit_reply(reply, &mut self.n_bytes, self.limit);
                    return Poll::Ready(BatchEvent::Answer(member.id, reply));
                }
                Poll::Pending => match Pin::new(&mut member.cancelled).poll(task) {
                    Poll::Ready(Ok(SessionEnded)) => {
                        let member = self.open.swap_remove(at);
                        return Poll::Ready(BatchEvent::Answer(member.id, session_ended()));
                    }
                    // The client cancelled it, and expects no answer.
                    Poll::Ready(Err(_)) => drop(self.open.swap_remove(at)),
                    Poll::Pending => at += 1,
                },
            }
        }
        if !self.unstarted.is_empty() && self.open.len() < MAX_OPEN {
            task.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.open.is_empty() { Poll::Ready(BatchEvent::End) } else { Poll::Pending }
    }

    /// Starts the next requests, as many as may be open. Returns the answer to one that is not
    /// run.
    fn start_some(&mut self) -> Option<BatchEvent> {
        let n_most = MAX_OPEN.min(self.open.len() + STARTED_AT_ONCE);
        while self.is_full || self.open.len() < n_most {
            let mut member = self.unstarted.pop_front()?;
            let reply = match member.cancelled.try_recv() {
                Err(TryRecvError::Empty) if self.is_full => {
                    self.in_flight.cancel(&member.id);
                    batch_is_full()
                }
                Err(TryRecvError::Empty) => {
                    self.open.push(member);
                    continue;
                }
                // The client cancelled it, and expects no answer.
                Err(TryRecvError::Closed) => continue,
                Ok(SessionEnded) => session_ended(),
            };
            self.has_answered = true;
            return Some(BatchEvent::Answer(member.id, reply));
        }
        None
    }
}

/// Returns the answer to a request that is not run because of the answers before it.
fn batch_is_full() -> Reply {
    let message = "this request was not run: the answers of its batch take all the memory that \
                   they may together; ask one at a time";
    Reply::Error(RpcError::new(code::SERVER, message))
}

/// Returns the answer to a request whose session ended.
fn session_ended() -> Reply {
    let message = "the session ended before the answer was there; the call may have run";
    Reply::Error(RpcError::unanswered(code::SERVER, message, Sent::Perhaps))
}

/// A batch that continues in a task when this is dropped, because the client disconnected.
pub(super) struct DetachedBatch(Option<Batch>);

impl DetachedBatch {
    pub(super) fn new(batch: Batch) -> DetachedBatch {
        DetachedBatch(Some(batch))
    }

    pub(super) async fn next_event(&mut self) -> BatchEvent {
        match &mut self.0 {
            Some(batch) => batch.next_event().await,
            None => BatchEvent::End,
        }
    }

    /// Returns the id of the first request that has no answer yet.
    pub(super) fn first_id(&self) -> Option<&Json> {
        self.0.as_ref().and_then(Batch::first_id)
    }

    pub(super) fn start_no_more(&mut self) {
        if let Some(batch) = &mut self.0 {
            batch.start_no_more();
        }
    }

    /// Returns the batch, for other code to poll.
    pub(super) fn into_batch(mut self) -> Option<Batch> {
        self.0.take()
    }
}

impl Drop for DetachedBatch {
    fn drop(&mut self) {
        let Some(mut batch) = self.0.take().filter(|batch| !batch.is_empty()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move { while !matches!(batch.next_event().await, BatchEvent::End) {} });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_so_many_requests_at_once_and_no_more() {
        let load = Arc::<CallerLoad>::default();
        let (in_flight, other) = (InFlight::new(Arc::clone(&load)), InFlight::new(load));
        let open: Vec<_> =
            (0..MAX_PER_CALLER).map(|n| in_flight.register(&Json::encode(&n)).unwrap()).collect();
        let refused = other.register(&Json::encode("one more")).unwrap_err();
        assert!(refused.message.contains("wait for some of them"), "{}", refused.message);
        in_flight.cancel(&Json::encode(&7));
        other.register(&Json::encode("one more")).unwrap();
        in_flight.end_all();
        other.end_all();
        assert_eq!(in_flight.caller_load.0.load(Ordering::Relaxed), 0);
        drop(open);
    }
}
