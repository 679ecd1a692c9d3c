//! How much memory answers on their way to clients may take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tool::RpcError;

use crate::revision::code;

/// Shorter answers are not counted: the number of requests bounds them.
const COUNTED_BYTES: usize = 64 << 10;

/// The memory that long answers may take until their clients have them. Clones
/// share it.
#[derive(Clone, Debug)]
pub struct AnswerMemory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: usize,
    used: AtomicUsize,
}

/// A part of that memory, given back when dropped.
#[derive(Debug)]
struct Reserved {
    memory: Arc<Shared>,
    n_bytes: usize,
}

/// A long answer. Its memory is given back when the last piece is sent.
struct Counted {
    text: Vec<u8>,
    _reserved: Reserved,
}

impl AnswerMemory {
    pub fn new(limit: usize) -> AnswerMemory {
        AnswerMemory(Arc::new(Shared { limit, used: AtomicUsize::new(0) }))
    }

    /// Makes an answer of about `n_bytes`, if there is memory for it.
    pub(super) fn hold(
        &self,
        n_bytes: usize,
        write: impl FnOnce() -> Vec<u8>,
    ) -> Result<Bytes, RpcError> {
        if n_bytes < COUNTED_BYTES {
            return Ok(write().into());
        }
        let _reserved = self.reserve(n_bytes)?;
        Ok(Bytes::from_owner(Counted { text: write(), _reserved }))
    }

    fn reserve(&self, n_bytes: usize) -> Result<Reserved, RpcError> {
        let Shared { limit, used } = &*self.0;
        let fits = |used: usize| used.checked_add(n_bytes).filter(|used| used <= limit);
        match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(Reserved { memory: Arc::clone(&self.0), n_bytes }),
            Err(used) => {
                let message = format!(
                    "the answer has {n_bytes} bytes, and {used} of the {limit} bytes for long \
                     answers are on their way to clients; the call has run: ask for less of its \
                     result, or later"
                );
                Err(RpcError::new(code::SERVER, message))
            }
        }
    }
}

impl Default for AnswerMemory {
    fn default() -> AnswerMemory {
        AnswerMemory::new(256 << 20)
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.n_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_share_a_bound_and_give_their_memory_back() {
        let memory = AnswerMemory::new(1 << 20);
        let answer = |n_bytes: usize| memory.hold(n_bytes, || vec![b'x'; n_bytes]);
        let first = answer(700 << 10).unwrap();
        let refused = answer(700 << 10).unwrap_err();
        assert!(refused.message.contains("the call has run"), "{}", refused.message);
        assert_eq!(answer(1000).unwrap().len(), 1000, "short ones always pass");
        let piece = first.slice(10..20);
        drop(first);
        answer(700 << 10).unwrap_err();
        drop(piece);
        answer(700 << 10).unwrap();
        assert_eq!(memory.0.used.load(Ordering::Relaxed), 0);
    }
}
