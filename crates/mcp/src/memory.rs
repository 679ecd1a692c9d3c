//! A shared limit on the memory of all long messages together.
//!
//! Each message has its own size limit, but many at once may still exceed the memory of
//! the machine. Code that reads or writes a long message reserves its length here first,
//! and is refused when the budget is used up. Short messages are not counted: their
//! number is bounded elsewhere.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// The memory that long messages may use together. Clones share one budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Shared>);

struct Shared {
    limit: usize,
    used: AtomicUsize,
    /// Called when a reservation is given back.
    freed: Option<Box<dyn Fn() + Send + Sync>>,
}

/// A reserved part of a budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: MemoryBudget,
    n_bytes: usize,
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
        MemoryBudget(Arc::new(Shared { limit, used: AtomicUsize::new(0), freed: None }))
    }

    /// Returns an unused budget with the same limit that calls `freed` whenever a
    /// reservation is given back.
    #[must_use]
    pub fn when_freed(self, freed: impl Fn() + Send + Sync + 'static) -> MemoryBudget {
        let (limit, used) = (self.0.limit, AtomicUsize::new(0));
        MemoryBudget(Arc::new(Shared { limit, used, freed: Some(Box::new(freed)) }))
    }

    /// Returns how many bytes are reserved.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Returns a reservation of 0 bytes, to [grow](Reservation::grow).
    pub(crate) fn empty_reservation(&self) -> Reservation {
        Reservation { memory: self.clone(), n_bytes: 0 }
    }

    pub(crate) fn reserve(&self, n_bytes: usize) -> Result<Reservation, OutOfMemory> {
        let mut reserved = self.empty_reservation();
        reserved.grow(n_bytes)?;
        Ok(reserved)
    }
}

impl Reservation {
    /// Grows the reservation to `n_bytes` in total; leaves it unchanged when the budget
    /// has no room for that.
    pub(crate) fn grow(&mut self, n_bytes: usize) -> Result<(), OutOfMemory> {
        let more = n_bytes.saturating_sub(self.n_bytes);
        let Shared { limit, used, .. } = &*self.memory.0;
        let fits = |used: usize| used.checked_add(more).filter(|used| used <= limit);
        match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => {
                self.n_bytes += more;
                Ok(())
            }
            Err(used) => Err(OutOfMemory { wanted: n_bytes, used, limit: *limit }),
        }
    }

    /// Shrinks the reservation to `n_bytes` in total.
    pub(crate) fn shrink(&mut self, n_bytes: usize) {
        let less = self.n_bytes.saturating_sub(n_bytes);
        self.n_bytes -= less;
        self.memory.0.used.fetch_sub(less, Ordering::Relaxed);
    }

    /// Ties the reservation to `bytes`: it is given back with their last slice.
    pub(crate) fn hold<T: AsRef<[u8]> + Send + 'static>(mut self, bytes: T) -> Bytes {
        self.shrink(bytes.as_ref().len());
        Bytes::from_owner(HeldBytes { bytes, _reserved: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let held_any = self.n_bytes != 0;
        self.shrink(0);
        if let Some(freed) = self.memory.0.freed.as_ref().filter(|_| held_any) {
            freed();
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.used.load(Ordering::Relaxed);
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_held_is_given_back_with_its_last_slice() {
        let memory = MemoryBudget::new(1000);
        let held = memory.reserve(700).unwrap().hold(vec![0; 600]);
        assert_eq!(memory.used(), 600, "what is not needed is given back at once");
        assert_eq!(
            memory.reserve(500).unwrap_err(),
            OutOfMemory { wanted: 500, used: 600, limit: 1000 }
        );
        let piece = held.slice(10..20);
        drop(held);
        assert_eq!(memory.used(), 600);
        drop(piece);
        assert_eq!(memory.used(), 0);
    }

    proptest! {
        #[test]
        fn the_bound_holds_whatever_grows_and_shrinks(
            steps in prop::collection::vec((0_usize..4, 0_usize..400), 0..60),
        ) {
            let memory = MemoryBudget::new(1000);
            let mut parts: Vec<Reservation> = (0..4).map(|_| memory.empty_reservation()).collect();
            for (at, n_bytes) in steps {
                match n_bytes.is_multiple_of(3) {
                    true => parts[at].shrink(n_bytes),
                    false => drop(parts[at].grow(n_bytes)),
                }
                let sum: usize = parts.iter().map(|part| part.n_bytes).sum();
                prop_assert_eq!(memory.used(), sum);
                prop_assert!(sum <= 1000);
            }
            drop(parts);
            prop_assert_eq!(memory.used(), 0);
        }
    }
}
