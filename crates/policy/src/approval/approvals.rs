//! The store of the approval queue, and the operations of those who decide:
//! [`Approvals`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::watch;
use tool::clock::Clock;

use crate::approval::queue::{DecideError, Queue, QueuedRequest, Verdict};

/// A change of the queue. It may be applied more than once.
pub type QueueChange<'a> = dyn FnMut(&mut Queue) + Send + 'a;

/// The store of the queue. While it cannot be read, no call is approved.
#[async_trait]
pub trait QueueStore: Send + Sync {
    async fn read(&self) -> Result<Queue, QueueUnavailable>;

    /// Changes the queue by a pure function, which is applied again when another process
    /// was quicker. Returns the changed queue.
    async fn change(&self, change: &mut QueueChange<'_>) -> Result<Queue, QueueUnavailable>;

    /// A stream with at least one item after each change of the queue.
    fn watch(&self) -> BoxStream<'static, ()>;
}

/// The queue cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the requests for approval cannot be kept: {0}")]
pub struct QueueUnavailable(pub String);

/// Receives an announcement of every new request.
pub trait Announce: Send + Sync {
    /// Announces a request. Must not block.
    fn requested(&self, request: &QueuedRequest);
}

/// The approval queue with its store and clock, for commands, the console and the
/// approval stage.
pub struct Approvals {
    store: Arc<dyn QueueStore>,
    clock: Arc<dyn Clock>,
    /// How long a request waits, and how long a decision is good after that.
    life: Duration,
    announce: Vec<Arc<dyn Announce>>,
}

/// How long a request waits by default.
pub const LIFE: Duration = Duration::from_secs(30 * 60);

/// Why a request was not decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDecided {
    #[error(transparent)]
    Refused(#[from] DecideError),
    #[error(transparent)]
    Unavailable(#[from] QueueUnavailable),
}

impl Approvals {
    pub fn new(store: Arc<dyn QueueStore>, clock: Arc<dyn Clock>, life: Duration) -> Approvals {
        Approvals { store, clock, life, announce: Vec::new() }
    }

    /// Adds a receiver for announcements of new requests.
    #[must_use]
    pub fn announced_to(mut self, announce: Arc<dyn Announce>) -> Approvals {
        self.announce.push(announce);
        self
    }

    /// Every request that has not expired, oldest first.
    pub async fn list(&self) -> Result<Vec<QueuedRequest>, QueueUnavailable> {
        let now = self.now();
        Ok(self.store.read().await?.unexpired(now).cloned().collect())
    }

    /// Allows or denies a request; `by` says who decides.
    pub async fn decide(
        &self,
        number: u64,
        verdict: Verdict,
        by: &str,
    ) -> Result<QueuedRequest, NotDecided> {
        let (now, life) = (self.now(), self.life_millis());
        let mut outcome = Err(DecideError::Unknown(number));
        let mut change = |queue: &mut Queue| {
            outcome = queue.decide(number, verdict, by, now, life);
        };
        self.store.change(&mut change).await?;
        let decided = outcome?;
        let subject = &decided.subject;
        tracing::info!(
            number,
            verdict = verdict.as_str(),
            by,
            tool = %format!("{}/{}", subject.upstream, subject.tool),
            caller = subject.caller,
            "a request for approval was decided"
        );
        Ok(decided)
    }

    /// A stream with at least one item after each change of the queue.
    pub fn watch(&self) -> BoxStream<'static, ()> {
        self.store.watch()
    }

    pub(crate) fn store(&self) -> &dyn QueueStore {
        &*self.store
    }

    pub(crate) fn announce(&self, request: &QueuedRequest) {
        for announce in &self.announce {
            announce.requested(request);
        }
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> u64 {
        self.clock.unix_millis()
    }

    pub(crate) fn life_millis(&self) -> u64 {
        u64::try_from(self.life.as_millis()).unwrap_or(u64::MAX)
    }

    pub fn life(&self) -> Duration {
        self.life
    }
}

/// A queue in memory, which is lost when the process ends.
#[derive(Debug)]
pub struct InMemoryQueue {
    queue: Mutex<Queue>,
    changed: watch::Sender<()>,
}

impl Default for InMemoryQueue {
    fn default() -> InMemoryQueue {
        InMemoryQueue { queue: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

#[async_trait]
impl QueueStore for InMemoryQueue {
    async fn read(&self) -> Result<Queue, QueueUnavailable> {
        Ok(self.queue.lock().clone())
    }

    async fn change(&self, change: &mut QueueChange<'_>) -> Result<Queue, QueueUnavailable> {
        let after = {
            let mut queue = self.queue.lock();
            change(&mut queue);
            queue.clone()
        };
        self.changed.send_replace(());
        Ok(after)
    }

    fn watch(&self) -> BoxStream<'static, ()> {
        let changed = self.changed.subscribe();
        let next = |mut changed: watch::Receiver<()>| async move {
            changed.changed().await.ok().map(|()| ((), changed))
        };
        futures::stream::unfold(changed, next).boxed()
    }
}
