//! Waiting for a permit.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::queue::{Full, Key, Limits, Queue, Ticket, Turn, Urgency};

/// Permits for a number of things at once. Clones share them.
#[derive(Clone, Debug)]
pub struct Semaphore {
    hasher: RandomState,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    queue: Queue,
    /// Told when their turn has come.
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
}

/// The right to do one thing, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    key: Key,
    state: Arc<Mutex<State>>,
}

/// A place in the queue, given up when dropped.
struct Place<'a> {
    ticket: Ticket,
    state: &'a Mutex<State>,
}

impl Semaphore {
    pub fn new(limits: Limits) -> Semaphore {
        let state = State { queue: Queue::new(limits), waiting: HashMap::new() };
        Semaphore { hasher: RandomState::new(), state: Arc::new(Mutex::new(state)) }
    }

    /// The key of a session of a caller. Callers are told apart by what
    /// identifies them as a value: never join its parts to one text.
    pub fn key(&self, caller: impl Hash, session: impl Hash) -> Key {
        Key { caller: self.hasher.hash_one(caller), session: self.hasher.hash_one(session) }
    }

    /// Returns how many permits are free.
    pub fn free(&self) -> usize {
        self.state.lock().queue.free()
    }

    /// How many wait for one.
    pub fn waiting(&self) -> usize {
        self.state.lock().queue.waiting()
    }

    /// A permit, as soon as it is this caller's turn. Dropping the future gives
    /// the place in the queue up.
    pub async fn acquire(&self, key: Key, urgency: Urgency) -> Result<Permit, Full> {
        let permit = || Permit { key, state: Arc::clone(&self.state) };
        let (ticket, turn) = {
            let mut state = self.state.lock();
            match state.queue.ask(key, urgency)? {
                Turn::Now => return Ok(permit()),
                Turn::Later(ticket) => {
                    let (tell, turn) = oneshot::channel();
                    state.waiting.insert(ticket, tell);
                    (ticket, turn)
                }
            }
        };
        let place = Place { ticket, state: &self.state };
        // The sender goes away only when it has told.
        let _ = turn.await;
        std::mem::forget(place);
        Ok(permit())
    }
}

impl State {
    /// Tells everybody whose turn has come.
    fn grant(&mut self) {
        while let Some(ticket) = self.queue.grant() {
            if let Some(tell) = self.waiting.remove(&ticket) {
                // Who is gone gives the permit back: see `Place`.
                let _ = tell.send(());
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.queue.give_back(self.key);
        state.grant();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        match state.waiting.remove(&self.ticket) {
            Some(_) => state.queue.leave(self.ticket),
            // Its turn had come, and nobody was there any more.
            None => state.queue.give_back(self.ticket.key),
        }
        state.grant();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn semaphore(permits: usize) -> Semaphore {
        Semaphore::new(Limits { permits, reserve: 0, waiting: 100 })
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_that_is_dropped_goes_to_the_next() {
        let semaphore = semaphore(1);
        let (ann, bob) = (semaphore.key("ann", 0), semaphore.key("bob", 0));
        let first = semaphore.acquire(ann, Urgency::Ordinary).await.unwrap();
        let next = semaphore.acquire(bob, Urgency::Ordinary);
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
        let first = semaphore.acquire(key, Urgency::Ordinary).await.unwrap();
        let gone =
            tokio::time::timeout(Duration::from_secs(1), semaphore.acquire(key, Urgency::Ordinary));
        assert!(gone.await.is_err());
        // One that is told and never looks again.
        let mut told = Box::pin(semaphore.acquire(key, Urgency::Ordinary));
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut told).await.is_err());
        drop(first);
        drop(told);
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
