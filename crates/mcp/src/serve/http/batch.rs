//! The requests of one POST in a session, on their way to their answers.
//!
//! Usually one; several where the revision knows batches. Each can be cancelled
//! by name. A client that goes away has not cancelled anything in these
//! revisions, so a batch whose reader is gone still runs to its end.

use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tool::{FastMap, Json, Reply, RpcError, Sent};

use crate::message;
use crate::revision::code;
use crate::serve::channel::Outgoing;
use crate::serve::exchange::{Exchange, Step};

/// How many requests of a caller are answered at once, in all of its sessions:
/// those whose clients went away go on, so connections do not bound them.
const PER_CALLER: usize = 4096;

/// The requests of a session that are being answered, by id.
#[derive(Default)]
pub(super) struct InFlight {
    open: Mutex<FastMap<Json, oneshot::Sender<SessionEnded>>>,
    of_caller: Arc<CallerLoad>,
}

/// How many requests of a caller are being answered.
#[derive(Default)]
pub(super) struct CallerLoad(AtomicUsize);

/// Tells a request that there will be nobody to take its answer.
#[derive(Debug)]
struct SessionEnded;

/// The requests of one POST.
pub(super) struct Batch {
    open: Vec<BatchMember>,
    in_flight: Arc<InFlight>,
    /// How many bytes the answers have so far, and may have together.
    n_bytes: usize,
    limit: usize,
}

struct BatchMember {
    id: Json,
    exchange: Exchange,
    cancelled: oneshot::Receiver<SessionEnded>,
}

/// What happens next in a batch.
pub(super) enum BatchEvent {
    Message(Outgoing),
    Answer(Json, Reply),
    /// Every request is answered or cancelled.
    End,
}

impl InFlight {
    /// Nothing yet, of a caller that may have more elsewhere.
    pub(super) fn new(of_caller: Arc<CallerLoad>) -> InFlight {
        InFlight { open: Mutex::default(), of_caller }
    }

    /// Cancels a request; nothing happens when it is answered already.
    pub(super) fn cancel(&self, id: &Json) {
        if self.open.lock().remove(id).is_some() {
            self.of_caller.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.lock().is_empty()
    }

    /// Notes a request, and returns what tells that it is cancelled.
    fn enter(&self, id: &Json) -> Result<oneshot::Receiver<SessionEnded>, RpcError> {
        let (cancel, cancelled) = oneshot::channel();
        let mut open = self.open.lock();
        if PER_CALLER <= self.of_caller.0.load(Ordering::Relaxed) {
            let message = format!(
                "{PER_CALLER} requests of this caller are being answered; wait for some of them"
            );
            return Err(RpcError::new(code::SERVER, message));
        }
        match open.entry(id.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(cancel);
                self.of_caller.0.fetch_add(1, Ordering::Relaxed);
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

    /// Cancels everything, when the session ends. Each request is answered with
    /// that.
    pub(super) fn end_all(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        self.of_caller.0.fetch_sub(open.len(), Ordering::Relaxed);
        for (_, cancel) in open {
            // What has its answer already needs no other.
            cancel.send(SessionEnded).ok();
        }
    }
}

impl Batch {
    /// An empty batch, whose answers have at most `limit` bytes together.
    pub(super) fn new(in_flight: &Arc<InFlight>, limit: usize) -> Batch {
        Batch { open: Vec::with_capacity(1), in_flight: Arc::clone(in_flight), n_bytes: 0, limit }
    }

    /// Takes in a request, and begins it unless one with its id is being
    /// answered: then nobody could tell the two answers apart, or cancel one.
    pub(super) fn add(&mut self, id: Json, begin: impl FnOnce() -> Exchange) -> Result<(), Reply> {
        let cancelled = self.in_flight.enter(&id).map_err(Reply::Error)?;
        self.open.push(BatchMember { id, exchange: begin(), cancelled });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The id of the first request that has no answer yet.
    pub(super) fn first(&self) -> Option<&Json> {
        self.open.first().map(|member| &member.id)
    }

    pub(super) async fn turn(&mut self) -> BatchEvent {
        poll_fn(|task| self.poll_turn(task)).await
    }

    fn poll_turn(&mut self, task: &mut Context<'_>) -> Poll<BatchEvent> {
        let mut at = 0;
        while at < self.open.len() {
            let member = &mut self.open[at];
            match member.exchange.poll_step(task) {
                Poll::Ready(Step::Message(message)) => {
                    return Poll::Ready(BatchEvent::Message(message));
                }
                Poll::Ready(Step::Answer(reply)) => {
                    let member = self.open.swap_remove(at);
                    self.in_flight.cancel(&member.id);
                    let reply = message::within(reply, &mut self.n_bytes, self.limit);
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
        if self.open.is_empty() { Poll::Ready(BatchEvent::End) } else { Poll::Pending }
    }
}

/// The answer to what was under way when its session ended.
fn session_ended() -> Reply {
    let message = "the session ended before the answer was there; the call may have run";
    Reply::Error(RpcError::unanswered(code::SERVER, message, Sent::Perhaps))
}

/// A batch that goes on when nobody waits for it any more.
pub(super) struct DetachedBatch(Option<Batch>);

impl DetachedBatch {
    pub(super) fn new(batch: Batch) -> DetachedBatch {
        DetachedBatch(Some(batch))
    }

    pub(super) async fn turn(&mut self) -> BatchEvent {
        match &mut self.0 {
            Some(batch) => batch.turn().await,
            None => BatchEvent::End,
        }
    }

    /// The batch, for somebody else to drive.
    pub(super) fn hand_over(mut self) -> Option<Batch> {
        self.0.take()
    }
}

impl Drop for DetachedBatch {
    fn drop(&mut self) {
        let Some(mut batch) = self.0.take().filter(|batch| !batch.is_empty()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move { while !matches!(batch.turn().await, BatchEvent::End) {} });
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
            (0..PER_CALLER).map(|n| in_flight.enter(&Json::encode(&n)).unwrap()).collect();
        let refused = other.enter(&Json::encode("one more")).unwrap_err();
        assert!(refused.message.contains("wait for some of them"), "{}", refused.message);
        in_flight.cancel(&Json::encode(&7));
        other.enter(&Json::encode("one more")).unwrap();
        in_flight.end_all();
        other.end_all();
        assert_eq!(in_flight.of_caller.0.load(Ordering::Relaxed), 0);
        drop(open);
    }
}
