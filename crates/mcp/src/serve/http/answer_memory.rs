//! A limit on the memory of long answers that are being sent to clients.

use std::time::Duration;

use bytes::Bytes;
use tool::{Json, Reply, RpcError, Sent};

use super::fair_memory::{FairMemory, MemoryShare, NoRoom};
use crate::message;
use crate::revision::code;
use crate::serve::caller::CallerKey;

/// Answers under this many bytes are not counted: the number of requests bounds them.
const MIN_COUNTED_BYTES: usize = 64 << 10;

/// How long an answer waits for memory. The call has run, so that to refuse its answer
/// costs more than to wait.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The memory that long answers may use until they are sent, shared fairly between callers.
/// Clones share it.
#[derive(Clone, Debug, Default)]
pub struct AnswerMemory(FairMemory);

/// The memory for one answer.
pub(super) struct AnswerRoom(Option<MemoryShare>);

impl AnswerMemory {
    pub fn new(memory: FairMemory) -> AnswerMemory {
        AnswerMemory(memory)
    }

    /// Waits for the memory that the reply to a caller takes when it is sent. Returns the
    /// reply to send: an error where there is no memory in time.
    pub(super) async fn make_room(&self, caller: CallerKey, reply: Reply) -> (Reply, AnswerRoom) {
        match self.room(caller, n_bytes(&reply)).await {
            Ok(room) => (reply, room),
            Err(full) => (Reply::Error(full), AnswerRoom::uncounted()),
        }
    }

    /// Waits for the memory of the answers of a batch, like
    /// [`make_room`](AnswerMemory::make_room).
    pub(super) async fn make_room_for_all(
        &self,
        caller: CallerKey,
        mut answers: Vec<(Json, Reply)>,
    ) -> (Vec<(Json, Reply)>, AnswerRoom) {
        let n_bytes = answers.iter().map(|(_, reply)| n_bytes(reply)).sum();
        match self.room(caller, n_bytes).await {
            Ok(room) => (answers, room),
            Err(full) => {
                for (_, reply) in &mut answers {
                    *reply = Reply::Error(full.clone());
                }
                (answers, AnswerRoom::uncounted())
            }
        }
    }

    async fn room(&self, caller: CallerKey, n_bytes: usize) -> Result<AnswerRoom, RpcError> {
        if n_bytes < MIN_COUNTED_BYTES {
            return Ok(AnswerRoom::uncounted());
        }
        let mut share = self.0.empty_share(caller);
        match share.grow(n_bytes, MAX_WAIT).await {
            Ok(()) => Ok(AnswerRoom(Some(share))),
            Err(NoRoom) => Err(out_of_memory_error(n_bytes)),
        }
    }
}

impl AnswerRoom {
    /// The room for a short answer.
    pub(super) fn uncounted() -> AnswerRoom {
        AnswerRoom(None)
    }

    /// Ties the memory to the answer: it is given back when the last piece is sent.
    pub(super) fn hold(self, answer: Vec<u8>) -> Bytes {
        match self.0 {
            Some(share) => share.hold(answer.into()),
            None => answer.into(),
        }
    }
}

fn n_bytes(reply: &Reply) -> usize {
    message::payload(reply).as_str().len()
}

fn out_of_memory_error(n_bytes: usize) -> RpcError {
    let message = format!(
        "the answer has {n_bytes} bytes, and the memory for long answers is taken by others on \
         their way to clients; the call has run: read those, ask for less of its result, or later"
    );
    RpcError::unanswered(code::SERVER, message, Sent::Perhaps)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::join_all;

    use super::*;

    fn caller(name: &str) -> CallerKey {
        CallerKey::Subject(name.into())
    }

    async fn answer(memory: &AnswerMemory, name: &str, n_bytes: usize) -> Result<Bytes, RpcError> {
        let reply = Reply::text(&"x".repeat(n_bytes));
        match memory.make_room(caller(name), reply).await {
            (Reply::Result(_), room) => Ok(room.hold(vec![b'x'; n_bytes])),
            (Reply::Error(error), _) => Err(error),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn long_answers_wait_for_each_other_and_give_their_memory_back() {
        let memory = AnswerMemory::new(FairMemory::new(1 << 20));
        let first = answer(&memory, "ann", 700 << 10).await.unwrap();
        let short = answer(&memory, "bob", 1000).now_or_never().unwrap();
        assert_eq!(short.unwrap().len(), 1000, "short ones always pass");
        let refused = answer(&memory, "bob", 700 << 10).await.unwrap_err();
        assert!(refused.message.contains("the call has run"), "{}", refused.message);
        let piece = first.slice(10..20);
        drop(first);
        let rest = join_all(
            (0..8).map(|_| answer(&memory, "bob", 700 << 10).map(|answer| answer.is_ok())),
        );
        let (rest, ()) = tokio::join!(rest, async { drop(piece) });
        assert_eq!(rest, [true; 8]);
        assert_eq!(memory.0.used(), 0);
    }

    #[tokio::test]
    async fn who_reads_no_answers_leaves_room_for_others() {
        let memory = AnswerMemory::new(FairMemory::new(1 << 20));
        let mut unread = Vec::new();
        while let Some(answer) = answer(&memory, "ann", 100 << 10).now_or_never() {
            unread.push(answer.unwrap());
        }
        assert_eq!(unread.len(), 5);
        answer(&memory, "bob", 100 << 10).now_or_never().unwrap().unwrap();
    }
}
