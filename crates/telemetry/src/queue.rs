//! A bounded queue between calls and the thread that computes statistics.
//!
//! A call only pushes: it never waits, and wakes the thread once per batch. Items that
//! do not fit are dropped and counted.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// An item with a known size.
pub(crate) trait HasSize {
    /// Returns how much memory the item keeps alive.
    fn n_bytes(&self) -> usize;
}

/// How much may be queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) items: usize,
    pub(crate) bytes: usize,
}

/// The number of items at which the thread is woken before its pause is over.
const BATCH: usize = 64;

/// How long the thread lets a batch grow.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    wake: Condvar,
    limits: Limits,
}

/// The queued items.
struct Waiting<T> {
    items: Vec<T>,
    bytes: usize,
    /// How many items were dropped.
    lost: u64,
    is_closed: bool,
}

impl<T: HasSize> Queue<T> {
    pub(crate) fn new(limits: Limits) -> Queue<T> {
        let waiting = Waiting { items: Vec::new(), bytes: 0, lost: 0, is_closed: false };
        Queue { waiting: Mutex::new(waiting), wake: Condvar::new(), limits }
    }

    /// Adds an item, or drops and counts it when the queue is full.
    pub(crate) fn push(&self, item: T) {
        let bytes = item.n_bytes();
        let mut waiting = self.waiting.lock();
        // A single item may be larger than the limit.
        let fits = waiting.items.is_empty() || waiting.bytes + bytes <= self.limits.bytes;
        if waiting.is_closed || self.limits.items <= waiting.items.len() || !fits {
            waiting.lost += 1;
            return;
        }
        waiting.items.push(item);
        waiting.bytes += bytes;
        let (n_items, is_heavy) = (waiting.items.len(), self.limits.bytes / 2 < waiting.bytes);
        drop(waiting);
        if n_items == 1 || n_items == BATCH || is_heavy {
            self.wake.notify_one();
        }
    }

    /// Takes all queued items.
    pub(crate) fn take(&self) -> Vec<T> {
        let mut waiting = self.waiting.lock();
        waiting.bytes = 0;
        std::mem::take(&mut waiting.items)
    }

    /// Waits for an item, and a moment longer for more; returns `false` once the queue is
    /// closed and empty. It takes no items, so that the caller can take them under its own
    /// lock.
    pub(crate) fn wait(&self) -> bool {
        let mut waiting = self.waiting.lock();
        while waiting.items.is_empty() && !waiting.is_closed {
            self.wake.wait(&mut waiting);
        }
        if waiting.items.len() < BATCH && !waiting.is_closed {
            self.wake.wait_for(&mut waiting, PAUSE);
        }
        !waiting.is_closed || !waiting.items.is_empty()
    }

    /// Refuses further items, and ends the thread.
    pub(crate) fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.wake.notify_all();
    }

    /// Returns how many items were dropped.
    pub(crate) fn lost(&self) -> u64 {
        self.waiting.lock().lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl HasSize for usize {
        fn n_bytes(&self) -> usize {
            *self
        }
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let queue = Queue::new(Limits { items: 2, bytes: 100 });
        [1, 1, 1].into_iter().for_each(|item| queue.push(item));
        assert_eq!((queue.take(), queue.lost()), (vec![1, 1], 1));
        // Too large for the rest of the room, or for all of it.
        [60, 60].into_iter().for_each(|item| queue.push(item));
        assert_eq!((queue.take(), queue.lost()), (vec![60], 2));
        queue.push(1000);
        assert_eq!((queue.take(), queue.lost()), (vec![1000], 2));
    }

    #[test]
    fn a_closed_queue_gives_what_is_left_and_then_ends() {
        let queue = Queue::new(Limits { items: 2, bytes: 100 });
        queue.push(1);
        queue.close();
        queue.push(2);
        assert!(queue.wait());
        assert_eq!((queue.take(), queue.lost()), (vec![1], 1));
        assert!(!queue.wait());
    }

    #[test]
    fn a_thread_that_waits_is_woken() {
        let queue = std::sync::Arc::new(Queue::new(Limits { items: 9, bytes: 100 }));
        let other = std::sync::Arc::clone(&queue);
        let waiting = std::thread::spawn(move || other.wait());
        queue.push(7);
        assert!(waiting.join().unwrap());
        assert_eq!(queue.take(), [7]);
    }
}
