//! A limit on the memory of all long requests together, shared fairly between callers.
//!
//! Each body has its own size limit, but a client that sends many and finishes none could
//! still fill the memory. So a long body takes its length here before it is read, and
//! keeps it until nothing of the request is left. What its values take when they are
//! parsed is taken, too. Whoever finds no room waits a moment and is told to come again.
//! Short bodies are not counted: the number of requests bounds them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::serve::caller::CallerKey;

/// Bodies of up to this many bytes are not counted.
pub(super) const SHORT_BODY: usize = 64 << 10;

/// How long a request waits for memory.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// About how many bytes a parsed value takes, beside its text.
const BYTES_PER_VALUE: usize = 64;

/// The memory that long requests may use together. Clones share it.
#[derive(Clone)]
pub struct RequestMemory(Arc<Shared>);

struct Shared {
    limit: usize,
    used: Mutex<Used>,
    /// Notified when memory was given back.
    freed: Notify,
    /// Called when a long request is gone.
    when_freed: Option<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct Used {
    total: usize,
    by_caller: HashMap<CallerKey, usize>,
}

/// The memory of one request, given back when dropped.
pub(super) struct RequestShare {
    memory: RequestMemory,
    caller: CallerKey,
    n_bytes: usize,
}

/// There was no room for a request in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many long requests are under way; try again in a moment, or send less at a time")]
pub(super) struct NoRoom;

impl RequestMemory {
    pub fn new(limit: usize) -> RequestMemory {
        RequestMemory::build(limit, None)
    }

    /// Returns an unused memory with the same limit that calls `freed` whenever a long
    /// request is gone.
    #[must_use]
    pub fn when_freed(self, freed: impl Fn() + Send + Sync + 'static) -> RequestMemory {
        RequestMemory::build(self.0.limit, Some(Box::new(freed)))
    }

    fn build(limit: usize, when_freed: Option<Box<dyn Fn() + Send + Sync>>) -> RequestMemory {
        let (used, freed) = (Mutex::default(), Notify::new());
        RequestMemory(Arc::new(Shared { limit, used, freed, when_freed }))
    }

    /// Returns how many bytes are taken.
    pub fn used(&self) -> usize {
        self.0.used.lock().total
    }

    /// Returns an empty share for a request of a caller, to [grow](RequestShare::grow).
    pub(super) fn empty_share(&self, caller: CallerKey) -> RequestShare {
        RequestShare { memory: self.clone(), caller, n_bytes: 0 }
    }
}

impl RequestShare {
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Grows the share to `n_bytes` in total. Waits while there is no room for it.
    pub(super) async fn grow(&mut self, n_bytes: usize) -> Result<(), NoRoom> {
        // A request that is larger than everything may come when there is no other.
        let more = n_bytes.min(self.memory.0.limit).saturating_sub(self.n_bytes);
        let deadline = Instant::now() + MAX_WAIT;
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

    /// Takes `more` bytes, if the caller may have them: all of its requests together have
    /// at most half of what others leave, so there is room for the first request of
    /// another caller. A single request may have more while there is no other.
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

    /// Ties the share to `bytes`: it is given back with their last slice.
    pub(super) fn hold(self, bytes: Bytes) -> Bytes {
        match self.n_bytes {
            0 => bytes,
            _ => Bytes::from_owner(HeldBytes { bytes, _share: self }),
        }
    }
}

impl Drop for RequestShare {
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

/// The bytes of a request together with their share.
struct HeldBytes {
    bytes: Bytes,
    _share: RequestShare,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns how many bytes a message with so many values takes, parsed and unparsed.
pub(super) fn parsed_bytes(n_bytes: usize, n_values: usize) -> usize {
    n_bytes + n_values.saturating_mul(BYTES_PER_VALUE)
}

/// Returns about how many values a JSON text has, never too few: whatever stands after a
/// comma, a colon or a bracket may be one. Text that is not JSON gets some number.
pub(super) fn count_values(text: &[u8]) -> usize {
    let mut n_values = 1;
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b',' | b':' | b'[' | b'{' => n_values += 1,
            b'"' => rest = after_string(after),
            _ => {}
        }
    }
    n_values
}

/// Returns what follows the string that `text` is inside of.
fn after_string(mut text: &[u8]) -> &[u8] {
    loop {
        match memchr::memchr2(b'"', b'\\', text) {
            None => return &[],
            Some(at) if text[at] == b'"' => return &text[at + 1..],
            Some(at) => text = text.get(at + 2..).unwrap_or_default(),
        }
    }
}

impl fmt::Debug for RequestMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, used) = (self.0.limit, self.used());
        f.debug_struct("RequestMemory").field("limit", &limit).field("used", &used).finish()
    }
}

impl Default for RequestMemory {
    fn default() -> RequestMemory {
        RequestMemory::new(256 << 20)
    }
}

#[cfg(test)]
mod tests;
