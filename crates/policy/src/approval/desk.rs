//! Where the queue is kept, and what those who decide can do with it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::watch;
use tool::clock::Clock;

use crate::approval::queue::{DecideError, Queue, QueuedRequest, Verdict};

/// A change of the queue, which may be asked for again.
pub type QueueChange<'a> = dyn FnMut(&mut Queue) + Send + 'a;

/// Where the queue is kept. Nothing is let through while it cannot be read.
#[async_trait]
pub trait QueueStore: Send + Sync {
    async fn read(&self) -> Result<Queue, QueueUnavailable>;

    /// Changes the queue by a pure function, which is asked again when somebody
    /// else was quicker, and gives it as it is then.
    async fn change(&self, change: &mut QueueChange<'_>) -> Result<Queue, QueueUnavailable>;

    /// Says when the queue may have changed, at least once after each change.
    fn watch(&self) -> BoxStream<'static, ()>;
}

/// The queue cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the requests for approval cannot be kept: {0}")]
pub struct QueueUnavailable(pub String);

/// Hears of requests that begin to wait.
pub trait Announce: Send + Sync {
    /// Never blocks.
    fn requested(&self, request: &QueuedRequest);
}

/// The queue with a clock: what a shell, a console and the stage itself use.
pub struct Approvals {
    store: Arc<dyn QueueStore>,
    clock: Arc<dyn Clock>,
    /// How long a request waits, and then how long an agreement is good.
    life: Duration,
    announce: Vec<Arc<dyn Announce>>,
}

/// How long a request waits for somebody where nothing else is configured.
pub const LIFE: Duration = Duration::from_secs(30 * 60);

/// Why nothing was decided.
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

    /// Tells somebody else, too, of requests that begin to wait.
    #[must_use]
    pub fn announced_to(mut self, announce: Arc<dyn Announce>) -> Approvals {
        self.announce.push(announce);
        self
    }

    /// Every request that has not expired, oldest first.
    pub async fn list(&self) -> Result<Vec<QueuedRequest>, QueueUnavailable> {
        let now = self.now();
        Ok(self.store.read().await?.alive(now).cloned().collect())
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

    /// Says when something may have changed.
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

/// A queue that lasts as long as the process.
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
