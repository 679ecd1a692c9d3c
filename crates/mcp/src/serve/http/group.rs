//! The requests of one POST in a session, on their way to their answers.
//!
//! Usually one; several where the revision knows batches. Each can be cancelled
//! by name. A client that goes away has not cancelled anything in these
//! revisions, so a group whose reader is gone is carried to its end.

use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::oneshot;
use tool::{Json, QuickMap, Reply, RpcError};

use super::body;
use crate::revision::code;
use crate::serve::exchange::{Exchange, Step};

/// The requests that are being answered, by id.
#[derive(Default)]
pub(super) struct InFlight(Mutex<QuickMap<Json, oneshot::Sender<()>>>);

/// The requests of one POST.
pub(super) struct Group {
    open: Vec<Member>,
    in_flight: Arc<InFlight>,
    limit: usize,
}

struct Member {
    id: Json,
    exchange: Exchange,
    cancelled: oneshot::Receiver<()>,
}

/// What happens next in a group.
pub(super) enum Turn {
    Message(Bytes),
    Answer(Json, Reply),
    /// Every request is answered or cancelled.
    End,
}

impl InFlight {
    /// Cancels a request; nothing happens when it is answered already.
    pub(super) fn cancel(&self, id: &Json) {
        self.lock().remove(id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Cancels everything, when the session ends.
    pub(super) fn cancel_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, QuickMap<Json, oneshot::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    /// An empty group, none of whose answers is larger than `limit` bytes.
    pub(super) fn new(in_flight: &Arc<InFlight>, limit: usize) -> Group {
        Group { open: Vec::with_capacity(1), in_flight: Arc::clone(in_flight), limit }
    }

    /// Takes in a request, and begins it unless one with its id is being
    /// answered: then nobody could tell the two answers apart, or cancel one.
    pub(super) fn add(&mut self, id: Json, begin: impl FnOnce() -> Exchange) -> Result<(), Reply> {
        let (cancel, cancelled) = oneshot::channel();
        match self.in_flight.lock().entry(id.clone()) {
            Entry::Vacant(entry) => drop(entry.insert(cancel)),
            Entry::Occupied(_) => {
                let message = format!(
                    "a request with the id {} is being answered; give every request its own id",
                    id.as_str()
                );
                return Err(Reply::Error(RpcError::new(code::INVALID_REQUEST, message)));
            }
        }
        self.open.push(Member { id, exchange: begin(), cancelled });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) async fn turn(&mut self) -> Turn {
        poll_fn(|task| self.poll_turn(task)).await
    }

    fn poll_turn(&mut self, task: &mut Context<'_>) -> Poll<Turn> {
        let mut at = 0;
        while at < self.open.len() {
            let member = &mut self.open[at];
            match member.exchange.poll_step(task) {
                Poll::Ready(Step::Message(message)) => {
                    return Poll::Ready(Turn::Message(message));
                }
                Poll::Ready(Step::Answer(reply)) => {
                    let member = self.open.swap_remove(at);
                    self.in_flight.lock().remove(&member.id);
                    let reply = body::bounded(reply, self.limit);
                    return Poll::Ready(Turn::Answer(member.id, reply));
                }
                // The sender is dropped to cancel.
                Poll::Pending => match Pin::new(&mut member.cancelled).poll(task) {
                    Poll::Ready(_) => drop(self.open.swap_remove(at)),
                    Poll::Pending => at += 1,
                },
            }
        }
        if self.open.is_empty() { Poll::Ready(Turn::End) } else { Poll::Pending }
    }
}

/// A group that goes on when nobody waits for it any more.
pub(super) struct Carried(Option<Group>);

impl Carried {
    pub(super) fn new(group: Group) -> Carried {
        Carried(Some(group))
    }

    pub(super) async fn turn(&mut self) -> Turn {
        match &mut self.0 {
            Some(group) => group.turn().await,
            None => Turn::End,
        }
    }

    /// The group, for somebody else to carry.
    pub(super) fn hand_over(mut self) -> Option<Group> {
        self.0.take()
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        let Some(mut group) = self.0.take().filter(|group| !group.is_empty()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move { while !matches!(group.turn().await, Turn::End) {} });
    }
}
