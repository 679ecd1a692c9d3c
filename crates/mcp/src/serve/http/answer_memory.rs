//! A limit on the memory of long answers that are being sent to clients.

use bytes::Bytes;
use tool::{RpcError, Sent};

use crate::memory::{MemoryBudget, OutOfMemory};
use crate::revision::code;

/// Answers under this many bytes are not counted: the number of requests bounds them.
const MIN_COUNTED_BYTES: usize = 64 << 10;

/// The memory that long answers may use until they are sent. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct AnswerMemory(MemoryBudget);

impl AnswerMemory {
    pub fn new(limit: usize) -> AnswerMemory {
        AnswerMemory(MemoryBudget::new(limit))
    }

    /// Calls `write` to make an answer of about `n_bytes`, if there is memory for it. The
    /// memory is given back when the last piece is sent.
    pub(super) fn hold(
        &self,
        n_bytes: usize,
        write: impl FnOnce() -> Vec<u8>,
    ) -> Result<Bytes, RpcError> {
        if n_bytes < MIN_COUNTED_BYTES {
            return Ok(write().into());
        }
        Ok(self.0.reserve(n_bytes).map_err(out_of_memory_error)?.hold(write()))
    }
}

fn out_of_memory_error(OutOfMemory { wanted, used, limit }: OutOfMemory) -> RpcError {
    let message = format!(
        "the answer has {wanted} bytes, and {used} of the {limit} bytes for long answers are on \
         their way to clients; the call has run: ask for less of its result, or later"
    );
    RpcError::unanswered(code::SERVER, message, Sent::Perhaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_share_a_bound_and_give_their_memory_back() {
        let memory = AnswerMemory::new(1 << 20);
        let answer = |n_bytes: usize| memory.hold(n_bytes, || vec![b'x'; n_bytes]);
        let first = answer(700 << 10).unwrap();
        let out_of_memory_error = answer(700 << 10).unwrap_err();
        assert!(
            out_of_memory_error.message.contains("the call has run"),
            "{}",
            out_of_memory_error.message
        );
        assert_eq!(answer(1000).unwrap().len(), 1000, "short ones always pass");
        let piece = first.slice(10..20);
        drop(first);
        answer(700 << 10).unwrap_err();
        drop(piece);
        answer(700 << 10).unwrap();
        assert_eq!(memory.0.used(), 0);
    }
}
