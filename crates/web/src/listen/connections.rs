//! The table of open connections, and which one is closed first when there are too many.
//!
//! A connection with a request in flight is never closed for another. Of the idle ones,
//! those are closed first on which no request was accepted yet, then those of anonymous
//! callers, then those of callers with credentials; among equals, the one that has been
//! idle for longest.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::wait::until;

/// The open connections of a server. Clones share the table.
#[derive(Clone)]
pub(super) struct Connections(Arc<Shared>);

struct Shared {
    /// How many connections may be open.
    limit: usize,
    /// How many more may be open while others are closing.
    slack: usize,
    /// When the server started.
    since: Instant,
    table: Mutex<Table>,
    /// Notified when the last connection was closed.
    none: Notify,
}

#[derive(Default)]
struct Table {
    open: HashMap<u64, Arc<State>>,
    next: u64,
}

/// Who the client of a connection is, in the order in which connections are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallerStanding {
    /// No request was accepted yet.
    Stranger,
    /// A request without credentials was accepted.
    Anonymous,
    /// A request with valid credentials was accepted.
    Identified,
}

/// One connection, in the extensions of its requests.
#[derive(Clone)]
pub struct Connection(Arc<State>);

struct State {
    standing: AtomicU8,
    /// The number of requests in flight.
    requests: AtomicUsize,
    /// Whether there ever was a request.
    has_asked: AtomicBool,
    /// When the last request ended, in milliseconds after the server started.
    idle_since: AtomicU64,
    since: Instant,
    is_closing: AtomicBool,
    close: Notify,
}

/// A connection in the table, which is removed when this is dropped.
pub(super) struct Entry {
    connections: Connections,
    number: u64,
    pub(super) connection: Connection,
}

impl Connections {
    pub(super) fn new(limit: usize) -> Connections {
        let shared = Shared {
            limit,
            slack: (limit / 8).clamp(1, 64),
            since: Instant::now(),
            table: Mutex::default(),
            none: Notify::new(),
        };
        Connections(Arc::new(shared))
    }

    /// Adds a connection, for which an idle one may be closed; `None` when all are busy.
    pub(super) fn admit(&self) -> Option<Entry> {
        let mut table = self.0.table.lock();
        let n_open = table.open.len();
        let has_room =
            n_open < self.0.limit || (n_open < self.0.limit + self.0.slack && table.close_idle());
        if !has_room {
            return None;
        }
        let connection = Connection(Arc::new(State::new(self.0.since)));
        let number = table.next;
        table.next += 1;
        table.open.insert(number, Arc::clone(&connection.0));
        drop(table);
        Some(Entry { connections: self.clone(), number, connection })
    }

    /// Returns whether another connection has to be closed for the next one.
    pub(super) fn is_full(&self) -> bool {
        self.0.limit <= self.0.table.lock().open.len()
    }

    /// Closes at most `max` idle connections, to free their descriptors.
    pub(super) fn close_idle(&self, max: usize) {
        let table = self.0.table.lock();
        let mut n_closed = 0;
        while n_closed < max && table.close_idle() {
            n_closed += 1;
        }
    }

    /// Closes all connections, because the server ends.
    pub(super) fn close(&self) {
        for state in self.0.table.lock().open.values() {
            state.close();
        }
    }

    /// Waits until no connection is open.
    pub(super) async fn none(&self) {
        until(&self.0.none, || self.0.table.lock().open.is_empty()).await;
    }
}

impl Table {
    /// Closes the idle connection that comes first in the order above, and returns whether
    /// there was one.
    fn close_idle(&self) -> bool {
        let idle = self.open.values().filter(|state| state.is_idle() && !state.is_closing());
        let rank = |state: &&Arc<State>| {
            let standing = state.standing.load(Ordering::Relaxed);
            (standing, state.idle_since.load(Ordering::Relaxed))
        };
        let least = idle.min_by_key(rank);
        least.inspect(|state| state.close()).is_some()
    }
}

impl State {
    fn new(since: Instant) -> State {
        State {
            standing: AtomicU8::new(CallerStanding::Stranger as u8),
            requests: AtomicUsize::new(0),
            has_asked: AtomicBool::new(false),
            idle_since: AtomicU64::new(elapsed(since)),
            since,
            is_closing: AtomicBool::new(false),
            close: Notify::new(),
        }
    }

    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Acquire) == 0
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.close.notify_one();
    }
}

impl Connection {
    /// Raises the standing of the client; it is never lowered.
    pub fn learn(&self, standing: CallerStanding) {
        self.0.standing.fetch_max(standing as u8, Ordering::Relaxed);
    }

    /// Notes that a request begins.
    pub(super) fn begin(&self) {
        self.0.has_asked.store(true, Ordering::Relaxed);
        self.0.requests.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that a request was answered.
    pub(super) fn end(&self) {
        self.0.idle_since.store(elapsed(self.0.since), Ordering::Relaxed);
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }

    /// Waits until the connection is told to close.
    pub(super) async fn closing(&self) {
        while !self.0.is_closing() {
            self.0.close.notified().await;
        }
    }

    /// Returns whether a request is in flight.
    pub(super) fn is_busy(&self) -> bool {
        !self.0.is_idle()
    }

    /// Returns whether there ever was a request; its answer may not be sent completely yet.
    pub(super) fn has_asked(&self) -> bool {
        self.0.has_asked.load(Ordering::Relaxed)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.connections.0.table.lock();
        table.open.remove(&self.number);
        if table.open.is_empty() {
            self.connections.0.none.notify_waiters();
        }
    }
}

fn elapsed(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn is_closing(entry: &Entry) -> bool {
        entry.connection.0.is_closing()
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_go_first_then_whoever_is_idle_for_longest_and_never_who_is_busy() {
        let connections = Connections::new(4);
        let named = connections.admit().unwrap();
        named.connection.learn(CallerStanding::Identified);
        named.connection.learn(CallerStanding::Anonymous);
        let anonymous = connections.admit().unwrap();
        anonymous.connection.learn(CallerStanding::Anonymous);
        tokio::time::advance(Duration::from_secs(1)).await;
        let (busy, stranger) = (connections.admit().unwrap(), connections.admit().unwrap());
        busy.connection.begin();
        let mut rest = Vec::new();
        for gone in [stranger, anonymous, named] {
            assert!(!is_closing(&gone));
            let fresh = connections.admit().unwrap();
            fresh.connection.begin();
            rest.push(fresh);
            assert!(is_closing(&gone));
        }
        assert!(connections.admit().is_none(), "everybody is busy");
        busy.connection.end();
        assert!(connections.admit().is_some());
        assert!(is_closing(&busy));
    }

    proptest! {
        /// Whatever comes and goes: never more than the limit, and a newcomer
        /// is turned away only when everybody is busy.
        #[test]
        fn there_is_room_unless_everybody_is_busy(
            limit in 1..6usize, steps in prop::collection::vec((0..4u8, any::<usize>()), 0..100),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let _inside = runtime.as_ref().unwrap().enter();
            let connections = Connections::new(limit);
            let mut entries: Vec<(Entry, usize)> = Vec::new();
            for (step, at) in steps {
                let at = if entries.is_empty() { 0 } else { at % entries.len() };
                match step {
                    0 => {
                        let busy = |(_, requests): &&(Entry, usize)| *requests > 0;
                        let n_busy = entries.iter().filter(busy).count();
                        let admitted = connections.admit();
                        prop_assert_eq!(admitted.is_none(), n_busy >= limit);
                        entries.extend(admitted.map(|entry| (entry, 0)));
                    }
                    1 if !entries.is_empty() && !is_closing(&entries[at].0) => {
                        entries[at].0.connection.begin();
                        entries[at].1 += 1;
                    }
                    2 if !entries.is_empty() && entries[at].1 > 0 => {
                        entries[at].0.connection.end();
                        entries[at].1 -= 1;
                    }
                    3 if !entries.is_empty() => drop(entries.swap_remove(at)),
                    _ => {}
                }
                let busy = entries.iter().filter(|(_, requests)| *requests > 0);
                prop_assert!(busy.clone().all(|(entry, _)| !is_closing(entry)));
                // What is to close, closes.
                entries.retain(|(entry, _)| !is_closing(entry));
                prop_assert!(connections.0.table.lock().open.len() <= limit);
            }
        }
    }
}
