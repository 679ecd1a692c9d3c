//! A limit on the memory of long answers that are being sent to clients.

use std::time::Duration;

use bytes::Bytes;
use tool::{Reply, RpcError, Sent};

use super::fair_memory::{FairMemory, MemoryShare, NoRoom};
use crate::message;
use crate::revision::code;
use crate::serve::caller::CallerKey;

/// Answers under this many bytes are not counted: the number of requests bounds them.
const MIN_COUNTED_BYTES: usize = 64 << 10;

/// Answers of a batch under this many bytes are never refused: an error in their place would
/// take as much.
const MIN_REFUSED_BYTES: usize = 1 << 10;

/// How long an answer waits for memory. The call has run, so that to refuse its answer
/// costs more than to wait.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The memory that long answers may use until they are sent, shared fairly between callers.
/// Clones share it.
#[derive(Clone, Debug)]
pub struct AnswerMemory {
    sending: FairMemory,
    /// The memory of answers that wait for some to be sent: they are made already.
    waiting: FairMemory,
}

/// How many times as many bytes as are being sent may wait. A caller has half of it.
const WAITING_TIMES: usize = 2;

/// The memory for one answer.
pub(super) struct AnswerRoom(Option<MemoryShare>);

/// The memory for the answers of a batch.
pub(super) struct BatchRoom {
    share: MemoryShare,
    n_bytes: usize,
    /// Whether an answer found no memory.
    is_full: bool,
}

impl AnswerMemory {
    pub fn new(memory: FairMemory) -> AnswerMemory {
        let waiting = FairMemory::new(memory.limit().saturating_mul(WAITING_TIMES));
        AnswerMemory { sending: memory, waiting }
    }

    /// Waits for the memory that the reply to a caller takes when it is sent. Returns the
    /// reply to send: an error where there is no memory in time.
    pub(super) async fn make_room(&self, caller: CallerKey, reply: Reply) -> (Reply, AnswerRoom) {
        match self.room(caller, n_bytes(&reply)).await {
            Ok(room) => (reply, room),
            Err(full) => (Reply::Error(full), AnswerRoom::uncounted()),
        }
    }

    /// Returns the memory for the answers of a batch, which grows with each of them.
    pub(super) fn batch_room(&self, caller: CallerKey) -> BatchRoom {
        BatchRoom { share: self.sending.empty_share(caller), n_bytes: 0, is_full: false }
    }

    async fn room(&self, caller: CallerKey, n_bytes: usize) -> Result<AnswerRoom, RpcError> {
        if n_bytes < MIN_COUNTED_BYTES {
            return Ok(AnswerRoom::uncounted());
        }
        let mut share = self.sending.empty_share(caller.clone());
        if share.grow_at_once(n_bytes) {
            return Ok(AnswerRoom(Some(share)));
        }
        let mut held = self.waiting.empty_share(caller);
        if !held.grow_at_once(n_bytes) {
            return Err(out_of_memory_error(n_bytes));
        }
        match share.grow(n_bytes, MAX_WAIT).await {
            Ok(()) => Ok(AnswerRoom(Some(share))),
            Err(NoRoom) => Err(out_of_memory_error(n_bytes)),
        }
    }
}

impl Default for AnswerMemory {
    fn default() -> AnswerMemory {
        AnswerMemory::new(FairMemory::default())
    }
}

impl BatchRoom {
    /// Waits for the memory of one more answer. After the first that found none, others find
    /// it at once or not at all.
    pub(super) async fn add(&mut self, reply: &Reply) -> Result<(), RpcError> {
        let n_reply = n_bytes(reply);
        let n_bytes = self.n_bytes + n_reply;
        if MIN_COUNTED_BYTES <= n_bytes && MIN_REFUSED_BYTES <= n_reply {
            let max_wait = if self.is_full { Duration::ZERO } else { MAX_WAIT };
            // Only a single answer may have more than the memory for all.
            let fits = self.n_bytes == 0 || n_bytes <= self.share.limit();
            if !fits || self.share.grow(n_bytes, max_wait).await == Err(NoRoom) {
                self.is_full = true;
                return Err(out_of_memory_error(n_reply));
            }
        }
        self.n_bytes = n_bytes;
        Ok(())
    }

    /// Takes the memory of one of the answers out of that of all.
    pub(super) fn take(&mut self, reply: &Reply) -> AnswerRoom {
        let share = self.share.split(n_bytes(reply));
        AnswerRoom(Some(share).filter(|share| share.n_bytes() != 0))
    }

    /// Returns whether an answer found no memory.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns how many bytes the answers have together.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    pub(super) fn into_room(self) -> AnswerRoom {
        AnswerRoom(Some(self.share).filter(|share| share.n_bytes() != 0))
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
    use std::task::Poll;

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
            (0..8).map(|_| answer(&memory, "bob", 120 << 10).map(|answer| answer.is_ok())),
        );
        let (rest, ()) = tokio::join!(rest, async { drop(piece) });
        assert_eq!(rest, [true; 8]);
        assert_eq!(memory.sending.used() + memory.waiting.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_wait_have_a_limit_too() {
        let memory = AnswerMemory::new(FairMemory::new(1 << 20));
        let mut answers: Vec<_> =
            (0..100).map(|_| Box::pin(answer(&memory, "ann", 100 << 10))).collect();
        let (mut sending, mut n_waiting) = (Vec::new(), 0);
        for answer in &mut answers {
            match futures::poll!(answer) {
                Poll::Ready(Ok(answer)) => sending.push(answer),
                Poll::Ready(Err(error)) => assert!(error.message.contains("the call has run")),
                Poll::Pending => n_waiting += 1,
            }
        }
        assert_eq!((sending.len(), n_waiting), (5, 10));
        answer(&memory, "bob", 100 << 10).now_or_never().unwrap().unwrap();
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
