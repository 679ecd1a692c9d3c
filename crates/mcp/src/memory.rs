//! A shared limit on the memory of all long messages together.
//!
//! Each message has its own size limit, but many at once may still exceed the memory of
//! the machine. Code that reads a long message reserves its memory here, step by step
//! and before it reads on; where there is no room it waits, and stops reading meanwhile.
//!
//! Two messages that each have half of the memory and wait for the rest would wait for
//! each other. So memory is granted only as long as every message that is being read can
//! still come to its end, one after the other (the banker's algorithm). Messages that
//! were begun go on before new ones, and new ones begin in the order in which they came.
//! A message that takes long while others wait is given up, and so is a wait.
//!
//! Short messages are not counted: their number is bounded elsewhere.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// How long a message waits for memory.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// How long reading a message may take while others wait for memory. Shorter than
/// [`MAX_WAIT`]: a server that stops in the middle of a message fails its own answer and
/// nobody else's.
const MAX_READ: Duration = Duration::from_secs(15);

/// The memory that long messages may use together. Clones share one budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Shared>);

struct Shared {
    limit: usize,
    state: Mutex<State>,
    /// Notified when memory was given back, a message was read or somebody waits.
    changed: Notify,
    /// Called when a reservation is given back.
    freed: Option<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct State {
    used: usize,
    next_id: u64,
    /// The messages that are being read, by the id of their reservation.
    reading: BTreeMap<u64, Reading>,
    /// The reservations that wait, in the order in which they began to.
    waiting: VecDeque<u64>,
}

/// What a message that is being read has, and the most that it may still come to.
#[derive(Clone, Copy)]
struct Reading {
    n_bytes: usize,
    at_most: usize,
}

/// A reserved part of a budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: MemoryBudget,
    id: u64,
    n_bytes: usize,
    /// The most bytes that the message may come to.
    at_most: usize,
    /// When the message got its first memory.
    begun: Option<Instant>,
    /// Until when it waits for more, if it does.
    waits_until: Option<Instant>,
}

/// The budget has no room for a message. All numbers are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has {wanted} bytes or more, and {used} of the {limit} bytes for long messages are in use"
)]
pub struct OutOfMemory {
    pub wanted: usize,
    pub used: usize,
    pub limit: usize,
}

/// Bytes together with the reservation for them.
struct HeldBytes<T> {
    bytes: T,
    _reserved: Reservation,
}

impl MemoryBudget {
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget::build(limit, None)
    }

    /// Returns an unused budget with the same limit that calls `freed` whenever a
    /// reservation is given back.
    #[must_use]
    pub fn when_freed(self, freed: impl Fn() + Send + Sync + 'static) -> MemoryBudget {
        MemoryBudget::build(self.0.limit, Some(Box::new(freed)))
    }

    fn build(limit: usize, freed: Option<Box<dyn Fn() + Send + Sync>>) -> MemoryBudget {
        let (state, changed) = (Mutex::default(), Notify::new());
        MemoryBudget(Arc::new(Shared { limit, state, changed, freed }))
    }

    /// Returns how many bytes are reserved.
    pub fn used(&self) -> usize {
        self.0.state.lock().used
    }

    /// Returns a reservation of 0 bytes for a message of `at_most` so many bytes, to
    /// [grow](Reservation::grow) while it is read.
    pub(crate) fn reserve_for(&self, at_most: usize) -> Reservation {
        let mut state = self.0.state.lock();
        state.next_id += 1;
        let (memory, id) = (self.clone(), state.next_id);
        Reservation { memory, id, n_bytes: 0, at_most, begun: None, waits_until: None }
    }
}

impl State {
    /// Returns whether every message that is being read can come to its end, one after the
    /// other, with what the ones before it give back. Messages that were read will give
    /// theirs back whatever happens here.
    fn can_finish(&self, limit: usize) -> bool {
        let mut reading: Vec<Reading> = self.reading.values().copied().collect();
        let missing = |message: &Reading| message.at_most.saturating_sub(message.n_bytes);
        reading.sort_unstable_by_key(missing);
        let in_use: usize = reading.iter().map(|message| message.n_bytes).sum();
        let mut free = limit.saturating_sub(in_use);
        reading.iter().all(|message| {
            let fits = missing(message) <= free;
            free += message.n_bytes;
            fits
        })
    }
}

impl Reservation {
    /// Grows the reservation to `n_bytes` in total. Waits while the budget has no room for
    /// that, but not for ever; then the reservation is unchanged. Cancel safe: who asks
    /// again keeps the place in the queue.
    pub(crate) async fn grow(&mut self, n_bytes: usize) -> Result<(), OutOfMemory> {
        loop {
            let memory = self.memory.clone();
            let mut changed = std::pin::pin!(memory.0.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            let Err(full) = self.try_grow(n_bytes) else { return Ok(()) };
            if full.limit < n_bytes || timeout_at(self.wait_in_queue(), changed).await.is_err() {
                self.leave_queue();
                return Err(full);
            }
        }
    }

    /// Grows the reservation to `n_bytes` in total, if the budget has room for that now.
    pub(crate) fn try_grow(&mut self, n_bytes: usize) -> Result<(), OutOfMemory> {
        let more = n_bytes.saturating_sub(self.n_bytes);
        let limit = self.memory.0.limit;
        let mut state = self.memory.0.state.lock();
        let full = OutOfMemory { wanted: n_bytes, used: state.used, limit };
        let is_new = self.n_bytes == 0;
        let is_next = state.waiting.front().is_none_or(|first| *first == self.id);
        if (is_new && !is_next) || limit.saturating_sub(state.used) < more {
            return Err(full);
        }
        let (before, n_bytes) = (self.n_bytes, self.n_bytes + more);
        let at_most = self.at_most.clamp(n_bytes, limit.max(n_bytes));
        state.reading.insert(self.id, Reading { n_bytes, at_most });
        if !state.can_finish(limit) {
            match is_new {
                true => state.reading.remove(&self.id),
                false => state.reading.insert(self.id, Reading { n_bytes: before, at_most }),
            };
            return Err(full);
        }
        state.used += more;
        drop(state);
        self.n_bytes = n_bytes;
        self.begun.get_or_insert_with(Instant::now);
        self.leave_queue();
        Ok(())
    }

    /// Waits until the message has been read for too long while others wait for memory;
    /// returns the error to give it up with.
    pub(crate) async fn overdue(&self) -> OutOfMemory {
        let deadline = self.begun.unwrap_or_else(Instant::now) + MAX_READ;
        loop {
            let mut changed = std::pin::pin!(self.memory.0.changed.notified());
            changed.as_mut().enable();
            if self.memory.0.state.lock().waiting.is_empty() {
                changed.await;
            } else if deadline <= Instant::now() {
                let (used, limit) = (self.memory.used(), self.memory.0.limit);
                return OutOfMemory { wanted: self.n_bytes, used, limit };
            } else {
                // Whatever comes first: then it is looked at again.
                let _ = timeout_at(deadline, changed).await;
            }
        }
    }

    /// Takes a place in the queue, unless it has one, and returns how long to wait there.
    fn wait_in_queue(&mut self) -> Instant {
        *self.waits_until.get_or_insert_with(|| {
            self.memory.0.state.lock().waiting.push_back(self.id);
            self.memory.0.changed.notify_waiters();
            Instant::now() + MAX_WAIT
        })
    }

    fn leave_queue(&mut self) {
        if self.waits_until.take().is_some() {
            self.memory.0.state.lock().waiting.retain(|id| *id != self.id);
            self.memory.0.changed.notify_waiters();
        }
    }

    /// Notes that the message was read, and came to `n_bytes`.
    fn finish_reading(&mut self, n_bytes: usize) {
        let less = self.n_bytes.saturating_sub(n_bytes);
        self.n_bytes -= less;
        let mut state = self.memory.0.state.lock();
        state.reading.remove(&self.id);
        state.used -= less;
        drop(state);
        self.memory.0.changed.notify_waiters();
    }

    /// Ties the reservation to `bytes`: it is given back with their last slice.
    pub(crate) fn hold<T: AsRef<[u8]> + Send + 'static>(mut self, bytes: T) -> Bytes {
        self.finish_reading(bytes.as_ref().len());
        Bytes::from_owner(HeldBytes { bytes, _reserved: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.leave_queue();
        let held_any = self.n_bytes != 0;
        self.finish_reading(0);
        if let Some(freed) = self.memory.0.freed.as_ref().filter(|_| held_any) {
            freed();
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.state.lock().used;
        f.debug_struct("Shared").field("limit", &self.limit).field("used", &used).finish()
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for HeldBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget::new(256 << 20)
    }
}

#[cfg(test)]
mod tests;
