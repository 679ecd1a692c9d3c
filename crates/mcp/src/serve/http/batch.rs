//! The requests of one POST in a session, on their way to their answers.
//!
//! Usually one; several where the revision knows batches. Each can be cancelled
//! by name. A client that goes away has not cancelled anything in these
//! revisions, so a batch whose reader is gone still runs to its end.

use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tool::{Json, QuickMap, Reply, RpcError};

use super::body;
use crate::revision::code;
use crate::serve::exchange::{Exchange, Step};

/// How many requests of a session are answered at once: those whose clients
/// went away go on, so connections do not bound them.
const AT_ONCE: usize = 4096;

/// The requests that are being answered, by id.
#[derive(Default)]
pub(super) struct InFlight(Mutex<QuickMap<Json, oneshot::Sender<()>>>);

/// The requests of one POST.
pub(super) struct Batch {
    open: Vec<BatchMember>,
    in_flight: Arc<InFlight>,
    limit: usize,
}

struct BatchMember {
    id: Json,
    exchange: Exchange,
    cancelled: oneshot::Receiver<()>,
}

/// What happens next in a batch.
pub(super) enum BatchEvent {
    Message(Bytes),
    Answer(Json, Reply),
    /// Every request is answered or cancelled.
    End,
}

impl InFlight {
    /// Cancels a request; nothing happens when it is answered already.
    pub(super) fn cancel(&self, id: &Json) {
        self.0.lock().remove(id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Notes a request, and returns what tells that it is cancelled.
    fn enter(&self, id: &Json) -> Result<oneshot::Receiver<()>, RpcError> {
        let (cancel, cancelled) = oneshot::channel();
        let mut open = self.0.lock();
        if AT_ONCE <= open.len() {
            let message = format!(
                "{AT_ONCE} requests of this session are being answered; wait for some of them"
            );
            return Err(RpcError::new(code::SERVER, message));
        }
        match open.entry(id.clone()) {
            Entry::Vacant(entry) => drop(entry.insert(cancel)),
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

    /// Cancels everything, when the session ends.
    pub(super) fn cancel_all(&self) {
        self.0.lock().clear();
    }
}

impl Batch {
    /// An empty batch, none of whose answers is larger than `limit` bytes.
    pub(super) fn new(in_flight: &Arc<InFlight>, limit: usize) -> Batch {
        Batch { open: Vec::with_capacity(1), in_flight: Arc::clone(in_flight), limit }
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
                    self.in_flight.0.lock().remove(&member.id);
                    let reply = body::bounded(reply, self.limit);
                    return Poll::Ready(BatchEvent::Answer(member.id, reply));
                }
                // The sender is dropped to cancel.
                Poll::Pending => match Pin::new(&mut member.cancelled).poll(task) {
                    Poll::Ready(_) => drop(self.open.swap_remove(at)),
                    Poll::Pending => at += 1,
                },
            }
        }
        if self.open.is_empty() { Poll::Ready(BatchEvent::End) } else { Poll::Pending }
    }
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
    fn a_session_has_so_many_requests_at_once_and_no_more() {
        let in_flight = InFlight::default();
        let open: Vec<_> =
            (0..AT_ONCE).map(|n| in_flight.enter(&Json::encode(&n)).unwrap()).collect();
        let refused = in_flight.enter(&Json::encode("one more")).unwrap_err();
        assert!(refused.message.contains("wait for some of them"), "{}", refused.message);
        in_flight.cancel(&Json::encode(&7));
        in_flight.enter(&Json::encode("one more")).unwrap();
        drop(open);
    }
}
