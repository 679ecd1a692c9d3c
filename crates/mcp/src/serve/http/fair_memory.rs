//! A limit on the memory of all long requests or answers together, shared fairly between
//! callers.
//!
//! Each message has its own size limit, but a client that sends many and finishes none, or
//! asks for many answers and reads none, could still fill the memory. So a long message
//! takes its length here and keeps it until nothing of it is left. Whoever finds no room
//! waits for some, for a limited time.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::serve::caller::CallerKey;

/// The memory that long messages may use together. Clones share it.
#[derive(Clone)]
pub struct FairMemory(Arc<Shared>);

struct Shared {
    limit: usize,
    used: Mutex<Used>,
    /// Notified when memory was given back.
    freed: Notify,
    /// Called when a long message is gone.
    when_freed: Option<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct Used {
    total: usize,
    by_caller: HashMap<CallerKey, usize>,
}

/// The memory of one message, given back when dropped.
pub(super) struct MemoryShare {
    memory: FairMemory,
    caller: CallerKey,
    n_bytes: usize,
}

/// There was no room for a message in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

impl FairMemory {
    pub fn new(limit: usize) -> FairMemory {
        FairMemory::build(limit, None)
    }

    /// Returns an unused memory with the same limit that calls `freed` whenever a long
    /// message is gone.
    #[must_use]
    pub fn when_freed(self, freed: impl Fn() + Send + Sync + 'static) -> FairMemory {
        FairMemory::build(self.0.limit, Some(Box::new(freed)))
    }

    fn build(limit: usize, when_freed: Option<Box<dyn Fn() + Send + Sync>>) -> FairMemory {
        let (used, freed) = (Mutex::default(), Notify::new());
        FairMemory(Arc::new(Shared { limit, used, freed, when_freed }))
    }

    /// Returns how many bytes all messages may have together.
    pub(super) fn limit(&self) -> usize {
        self.0.limit
    }

    /// Returns how many bytes are taken.
    pub fn used(&self) -> usize {
        self.0.used.lock().total
    }

    /// Returns an empty share for a message of a caller, to [grow](MemoryShare::grow).
    pub(super) fn empty_share(&self, caller: CallerKey) -> MemoryShare {
        MemoryShare { memory: self.clone(), caller, n_bytes: 0 }
    }
}

impl MemoryShare {
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns how many bytes all messages may have together.
    pub(super) fn limit(&self) -> usize {
        self.memory.limit()
    }

    /// Grows the share to `n_bytes` in total, if there is room for it now.
    pub(super) fn grow_at_once(&mut self, n_bytes: usize) -> bool {
        self.try_grow(n_bytes.min(self.limit()).saturating_sub(self.n_bytes))
    }

    /// Grows the share to `n_bytes` in total. Waits while there is no room for it, but not
    /// longer than `max_wait`.
    pub(super) async fn grow(&mut self, n_bytes: usize, max_wait: Duration) -> Result<(), NoRoom> {
        // A message that is larger than everything may come when there is no other.
        let more = n_bytes.min(self.memory.0.limit).saturating_sub(self.n_bytes);
        let deadline = Instant::now() + max_wait;
        loop {
            let memory = self.memory.clone();
            let mut freed = std::pin::pin!(memory.0.freed.notified());
            // From here on nothing that is freed is missed.
            freed.as_mut().enable();
            if self.try_grow(more) {
                return Ok(());
            }
            timeout_at(deadline, freed).await.map_err(|_| NoRoom)?;
        }
    }

    /// Takes `more` bytes, if the caller may have them: all of its messages together
    /// have at most half of what others leave, so there is room for the first message of
    /// another caller. A single message may have more while there is no other.
    fn try_grow(&mut self, more: usize) -> bool {
        let mut used = self.memory.0.used.lock();
        let own = used.by_caller.get(&self.caller).copied().unwrap_or(0);
        let left_by_others = self.memory.0.limit.saturating_sub(used.total - own);
        let is_alone = used.total == self.n_bytes && more <= self.memory.0.limit - used.total;
        if left_by_others / 2 < own + more && !is_alone {
            return false;
        }
        used.total += more;
        *used.by_caller.entry(self.caller.clone()).or_default() += more;
        self.n_bytes += more;
        true
    }

    /// Takes up to `n_bytes` out of the share, for a part of the message.
    pub(super) fn split(&mut self, n_bytes: usize) -> MemoryShare {
        let n_bytes = n_bytes.min(self.n_bytes);
        self.n_bytes -= n_bytes;
        MemoryShare { memory: self.memory.clone(), caller: self.caller.clone(), n_bytes }
    }

    /// Ties the share to `bytes`: it is given back with their last slice.
    pub(super) fn hold(self, bytes: Bytes) -> Bytes {
        match self.n_bytes {
            0 => bytes,
            _ => Bytes::from_owner(HeldBytes { bytes, _share: self }),
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        if self.n_bytes == 0 {
            return;
        }
        let mut used = self.memory.0.used.lock();
        used.total -= self.n_bytes;
        if let Some(own) = used.by_caller.get_mut(&self.caller) {
            *own -= self.n_bytes;
            if *own == 0 {
                used.by_caller.remove(&self.caller);
            }
        }
        drop(used);
        self.memory.0.freed.notify_waiters();
        if let Some(freed) = &self.memory.0.when_freed {
            freed();
        }
    }
}

/// The bytes of a message together with their share.
struct HeldBytes {
    bytes: Bytes,
    _share: MemoryShare,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for FairMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, used) = (self.0.limit, self.used());
        f.debug_struct("FairMemory").field("limit", &limit).field("used", &used).finish()
    }
}

impl Default for FairMemory {
    fn default() -> FairMemory {
        FairMemory::new(256 << 20)
    }
}

#[cfg(test)]
mod tests;
