//! Stores the queue of requests for approval as one signed document.
//!
//! Somebody who can write to the state directory, but not read the key beside it,
//! cannot approve anything: a queue without a valid signature counts as empty, and
//! every call needs a new approval.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use policy::approval::approvals::QueueChange;
use policy::approval::{Queue, QueueStore, QueueUnavailable};
use ring::hmac;
use serde::{Deserialize, Serialize};
use tool::clock::Clock;

use crate::state::{self, Change, Documents, StateError};

/// How long reading and changing the queue may take, including the wait for other
/// processes.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How often a shared queue counts as changed though nobody said so: a process that
/// only runs a command does not hear of the changes of others.
const POLL: Duration = Duration::from_secs(2);

/// The first second whose number a shared queue may use: the beginning of 2026.
const FIRST_SECOND: u64 = 1_767_225_600;

/// The first bytes of the signed text; the number is the version of the format.
const DOMAIN: &[u8] = b"gatelet approvals 1\n";

/// A queue in a document.
pub struct StoredQueue {
    documents: Arc<dyn Documents>,
    name: String,
    key: hmac::Key,
    /// The clock of a queue that may be lost, by which an empty one is numbered.
    numbered_by: Option<Arc<dyn Clock>>,
}

/// The document.
#[derive(Serialize, Deserialize)]
struct SignedQueue {
    version: u32,
    /// The queue as JSON text, so that the signature covers exactly what is parsed.
    queue: String,
    signature: String,
}

impl StoredQueue {
    /// Creates the queue in the document of this name. Only gatelet processes know
    /// the key.
    pub fn new(documents: Arc<dyn Documents>, name: &str, key: &[u8]) -> StoredQueue {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        StoredQueue { documents, name: name.to_owned(), key, numbered_by: None }
    }

    /// Creates the queue in a document that several machines share and that may be
    /// lost. After that it begins with a number from the clock, so that no number is
    /// given to two requests.
    pub fn shared(
        documents: Arc<dyn Documents>,
        name: &str,
        key: &[u8],
        clock: Arc<dyn Clock>,
    ) -> StoredQueue {
        StoredQueue { numbered_by: Some(clock), ..StoredQueue::new(documents, name, key) }
    }

    fn empty(&self) -> Queue {
        let Some(clock) = &self.numbered_by else { return Queue::default() };
        Queue::after((clock.unix_millis() / 1000).saturating_sub(FIRST_SECOND))
    }

    fn parse(&self, bytes: Option<&[u8]>) -> Queue {
        let Some(bytes) = bytes else { return self.empty() };
        self.verify(bytes).unwrap_or_else(|why| {
            let name = &self.name;
            tracing::error!(
                name,
                why,
                "the requests for approval start over: nothing is agreed to"
            );
            self.empty()
        })
    }

    fn verify(&self, bytes: &[u8]) -> Result<Queue, &'static str> {
        let signed: SignedQueue =
            serde_json::from_slice(bytes).map_err(|_| "it holds something else")?;
        let signature = tool::hex::decode(&signed.signature).ok_or("its signature is none")?;
        let text = [DOMAIN, signed.queue.as_bytes()].concat();
        hmac::verify(&self.key, &text, &signature).map_err(|_| "somebody else wrote it")?;
        serde_json::from_str(&signed.queue).map_err(|_| "it holds something else")
    }

    fn sign(&self, queue: &Queue) -> Vec<u8> {
        let queue = serde_json::to_string(queue).expect("our own types always serialise");
        let text = [DOMAIN, queue.as_bytes()].concat();
        let signature = tool::hex::encode(hmac::sign(&self.key, &text).as_ref());
        let signed = SignedQueue { version: 1, queue, signature };
        serde_json::to_vec(&signed).expect("our own types always serialise")
    }
}

#[async_trait]
impl QueueStore for StoredQueue {
    async fn read(&self) -> Result<Queue, QueueUnavailable> {
        let found = self.documents.read(&self.name, TIMEOUT).await.map_err(unavailable)?;
        Ok(self.parse(found.as_ref().map(|found| found.bytes.as_ref())))
    }

    async fn change(&self, change: &mut QueueChange<'_>) -> Result<Queue, QueueUnavailable> {
        let mut after = Queue::default();
        let decide = |before: Option<&[u8]>| -> Result<Change, StateError> {
            let before = self.parse(before);
            after.clone_from(&before);
            change(&mut after);
            Ok(match after == before {
                true => Change::Keep,
                false => Change::Replace(self.sign(&after).into()),
            })
        };
        let changed = state::change(&*self.documents, &self.name, TIMEOUT, decide).await;
        changed.map_err(unavailable)?;
        Ok(after)
    }

    fn watch(&self) -> BoxStream<'static, ()> {
        let changes = self.documents.watch(&self.name);
        if self.numbered_by.is_none() {
            return changes;
        }
        let ticks = futures::stream::unfold((), |()| async {
            tokio::time::sleep(POLL).await;
            Some(((), ()))
        });
        futures::stream::select(changes, ticks).boxed()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn unavailable(error: StateError) -> QueueUnavailable {
    QueueUnavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use policy::approval::{Approvals, Verdict, queue};
    use tool::clock::Fake;

    use super::*;
    use crate::files::{Files, Limits};
    use crate::memory::{self, Memory};

    const KEY: &[u8] = b"thirty-two bytes of secret key!!";
    const LIFE: u64 = 60_000;

    fn request(binding: &str) -> queue::NewRequest {
        let subject = queue::Subject {
            question: "may it?".to_owned(),
            ended_by_trust: true,
            caller: "ann".to_owned(),
            client: "c".to_owned(),
            upstream: "up".to_owned(),
            tool: "t".to_owned(),
            arguments: "{}".to_owned(),
            arguments_cut_from: None,
            digest: None,
        };
        let binding = binding.to_owned();
        queue::NewRequest { binding, caller_hash: "ann".to_owned(), subject }
    }

    async fn ask(store: &StoredQueue, binding: &str, now: u64) -> u64 {
        let mut number = 0;
        let mut change =
            |queue: &mut Queue| number = queue.add(request(binding), now, LIFE).unwrap();
        store.change(&mut change).await.unwrap();
        number
    }

    async fn take(store: &StoredQueue, binding: &str, now: u64) -> bool {
        let mut taken = false;
        let mut change = |queue: &mut Queue| taken = queue.use_approval(binding, now);
        store.change(&mut change).await.unwrap();
        taken
    }

    #[tokio::test]
    async fn a_request_and_its_decision_outlive_the_process_and_count_once() {
        let directory = tempfile::tempdir().unwrap();
        let clock: Arc<Fake> = Arc::default();
        let open = || {
            let files = Files::new(directory.path(), Arc::clone(&clock) as _, Limits::default());
            StoredQueue::new(Arc::new(files), "approvals.json", KEY)
        };
        let now = clock.unix_millis();
        let number = ask(&open(), "a", now).await;
        let store: Arc<dyn QueueStore> = Arc::new(open());
        let life = Duration::from_millis(LIFE);
        let approvals = Approvals::new(store, Arc::clone(&clock) as _, life);
        approvals.decide(number, Verdict::Allow, "op").await.unwrap();
        let (one, two) = (open(), open());
        let (first, second) = tokio::join!(take(&one, "a", now), take(&two, "a", now));
        assert!(first != second, "of two gates, one gets through");
        assert!(!take(&open(), "a", now).await);
    }

    #[tokio::test]
    async fn what_somebody_else_wrote_agrees_to_nothing() {
        let clock: Arc<Fake> = Arc::default();
        let now = clock.unix_millis();
        let documents = Arc::new(Memory::new(clock, memory::Limits::default()));
        let store = StoredQueue::new(Arc::clone(&documents) as _, "approvals.json", KEY);
        let forger = StoredQueue::new(Arc::clone(&documents) as _, "approvals.json", b"guess");
        let number = ask(&store, "a", now).await;
        let before = documents.read("approvals.json", TIMEOUT).await.unwrap().unwrap();
        let promoted = String::from_utf8(before.bytes.to_vec()).unwrap();
        let promoted = promoted
            .replace("waiting", "allowed\\\",\\\"by\\\":\\\"me\\\",\\\"at\\\":1,\\\"x\\\":\\\"");
        let put =
            documents.swap("approvals.json", Some(before.version), Some(promoted.into()), TIMEOUT);
        put.await.unwrap();
        assert!(!take(&store, "a", now).await);
        let mut allow = |queue: &mut Queue| {
            let _ = queue.add(request("a"), now, LIFE);
            let _ = queue.decide(number, Verdict::Allow, "me", now, LIFE);
        };
        forger.change(&mut allow).await.unwrap();
        assert!(!take(&store, "a", now).await);
    }

    #[tokio::test]
    async fn a_shared_queue_that_was_lost_gives_no_number_again() {
        let clock: Arc<Fake> = Arc::default();
        let documents = Arc::new(Memory::new(Arc::clone(&clock) as _, memory::Limits::default()));
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        let store = StoredQueue::shared(Arc::clone(&documents) as _, "approvals", KEY, shared);
        let first = ask(&store, "a", clock.unix_millis()).await;
        assert_eq!(ask(&store, "b", clock.unix_millis()).await, first + 1);
        let queue = documents.read("approvals", TIMEOUT).await.unwrap().unwrap();
        documents.swap("approvals", Some(queue.version), None, TIMEOUT).await.unwrap();
        clock.advance(Duration::from_secs(60));
        assert!(first + 1 < ask(&store, "c", clock.unix_millis()).await);
    }

    #[tokio::test]
    async fn whoever_waits_is_told_of_a_decision() {
        let clock: Arc<Fake> = Arc::default();
        let documents = Arc::new(Memory::new(Arc::clone(&clock) as _, memory::Limits::default()));
        let store = StoredQueue::new(documents, "approvals.json", KEY);
        let mut changes = store.watch();
        ask(&store, "a", clock.unix_millis()).await;
        assert_eq!(changes.next().await, Some(()));
    }
}
