//! The semaphore: asynchronous waiting for a permit.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::queue::{Key, Limits, Priority, Queue, Ticket, TooManyWaiting, Turn};

/// A fixed number of permits, shared fairly. Clones share the same permits.
#[derive(Clone, Debug)]
pub struct Semaphore {
    hasher: RandomState,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    queue: Queue,
    /// Notifies a waiting request when its turn has come.
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
}

/// One permit, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    key: Key,
    state: Arc<Mutex<State>>,
}

/// A waiting request, which leaves the queue when dropped.
struct WaitingRequest<'a> {
    ticket: Ticket,
    state: &'a Mutex<State>,
}

impl Semaphore {
    pub fn new(limits: Limits) -> Semaphore {
        let state = State { queue: Queue::new(limits), waiting: HashMap::new() };
        Semaphore { hasher: RandomState::new(), state: Arc::new(Mutex::new(state)) }
    }

    /// The key of a session of a caller. If a caller has several parts, pass them as a
    /// tuple: joined to one string, `a` and `bc` would be the same as `ab` and `c`.
    pub fn key(&self, caller: impl Hash, session: impl Hash) -> Key {
        Key { caller: self.hasher.hash_one(caller), session: self.hasher.hash_one(session) }
    }

    /// The number of free permits.
    pub fn free(&self) -> usize {
        self.state.lock().queue.free()
    }

    /// The number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.state.lock().queue.waiting()
    }

    /// Waits for a permit until it is this caller's turn. Fails if too many requests of this
    /// session wait already. Dropping the future leaves the queue.
    pub async fn acquire(&self, key: Key, priority: Priority) -> Result<Permit, TooManyWaiting> {
        let permit = || Permit { key, state: Arc::clone(&self.state) };
        let (ticket, turn) = {
            let mut state = self.state.lock();
            match state.queue.request(key, priority)? {
                Turn::Now => return Ok(permit()),
                Turn::Later(ticket) => {
                    let (notify, turn) = oneshot::channel();
                    state.waiting.insert(ticket, notify);
                    (ticket, turn)
                }
            }
        };
        let waiting = WaitingRequest { ticket, state: &self.state };
        // Never an error: `State::grant` notifies before it drops the sender.
        let _ = turn.await;
        std::mem::forget(waiting);
        Ok(permit())
    }
}

impl State {
    /// Notifies all requests whose turn has come.
    fn grant(&mut self) {
        while let Some(ticket) = self.queue.grant() {
            if let Some(notify) = self.waiting.remove(&ticket) {
                // If the request was dropped meanwhile, its `WaitingRequest` gives the
                // permit back.
                let _ = notify.send(());
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.queue.release(self.key);
        state.grant();
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        match state.waiting.remove(&self.ticket) {
            Some(_) => state.queue.leave(self.ticket),
            // It got its permit at the moment when it was dropped.
            None => state.queue.release(self.ticket.key),
        }
        state.grant();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn semaphore(permits: usize) -> Semaphore {
        Semaphore::new(Limits { permits, reserved: 0, waiting: 100 })
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_that_is_dropped_goes_to_the_next() {
        let semaphore = semaphore(1);
        let (ann, bob) = (semaphore.key("ann", 0), semaphore.key("bob", 0));
        let first = semaphore.acquire(ann, Priority::Normal).await.unwrap();
        let next = semaphore.acquire(bob, Priority::Normal);
        let mut next = std::pin::pin!(next);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut next).await.is_err());
        drop(first);
        next.await.unwrap();
        assert_eq!(semaphore.free(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_takes_nothing_with_them() {
        let semaphore = semaphore(1);
        let key = semaphore.key("ann", 0);
        let first = semaphore.acquire(key, Priority::Normal).await.unwrap();
        let gone =
            tokio::time::timeout(Duration::from_secs(1), semaphore.acquire(key, Priority::Normal));
        assert!(gone.await.is_err());
        // One that gets the permit, but is dropped before it can take it.
        let mut notified = Box::pin(semaphore.acquire(key, Priority::Normal));
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut notified).await.is_err());
        drop(first);
        drop(notified);
        assert_eq!(semaphore.free(), 1);
        assert!(semaphore.state.lock().waiting.is_empty());
    }

    #[test]
    fn callers_whose_names_run_together_are_two() {
        let semaphore = semaphore(1);
        let key = |subject: &str, client: &str| semaphore.key((subject, client), ());
        assert_ne!(key("ann", "corp.example@claude"), key("ann@corp.example", "claude"));
    }
}
