//! Makes spans, and keeps them until they are exported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tool::clock::Clock;
use tool::trace::SpanContext;

use super::operation::{Operation, Session};

/// How many operations may wait to be exported; more are dropped and counted.
pub(super) const WAITING: usize = 8_192;

/// So many are worth exporting before the interval is over.
const BATCH: usize = 512;

/// Makes spans and keeps them until they are exported. Clones are the same.
#[derive(Clone)]
pub struct Tracer(Arc<Shared>);

struct Shared {
    /// The share of traces that are recorded when no caller has decided, from 0
    /// to 1.
    sample: f64,
    clock: Arc<dyn Clock>,
    /// Nanoseconds since 1970 when the clock was at zero.
    epoch: u64,
    waiting: Mutex<Waiting>,
    wake: Notify,
    dropped: AtomicU64,
}

/// What is to be exported.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) operations: Vec<Operation>,
    pub(crate) sessions: Vec<Session>,
}

impl Tracer {
    pub fn new(sample: f64, clock: Arc<dyn Clock>) -> Tracer {
        let since = nanos(clock.elapsed());
        let epoch = clock.unix_millis().saturating_mul(1_000_000).saturating_sub(since);
        Tracer(Arc::new(Shared {
            sample,
            clock,
            epoch,
            waiting: Mutex::default(),
            wake: Notify::new(),
            dropped: AtomicU64::new(0),
        }))
    }

    /// How many spans were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// The context of a span below `parent`; `None` when it is not recorded. Who
    /// began the trace decides; for a trace that begins here the share does.
    pub(super) fn sample(&self, parent: Option<&SpanContext>) -> Option<SpanContext> {
        match parent {
            Some(parent) if !parent.is_sampled() => None,
            Some(parent) => parent.child(rand::random()),
            None if self.0.sample < 1.0 && self.0.sample <= rand::random::<f64>() => None,
            None => SpanContext::new(rand::random(), rand::random(), true),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0.clock.elapsed()
    }

    /// Nanoseconds since 1970, of a moment by the clock.
    pub(super) fn unix_nanos(&self, at: Duration) -> u64 {
        self.0.epoch.saturating_add(nanos(at))
    }

    pub(super) fn push(&self, operation: Operation) {
        let mut waiting = self.0.waiting.lock();
        if WAITING <= waiting.operations.len() {
            drop(waiting);
            self.drop_spans(u64::from(operation.span.is_some()));
            return;
        }
        waiting.operations.push(operation);
        let is_batch = waiting.operations.len() == BATCH;
        drop(waiting);
        if is_batch {
            self.0.wake.notify_one();
        }
    }

    pub(super) fn push_session(&self, session: Session) {
        let mut waiting = self.0.waiting.lock();
        if waiting.sessions.len() < WAITING {
            waiting.sessions.push(session);
        }
    }

    /// Counts spans that no collector will get.
    pub(crate) fn drop_spans(&self, n_spans: u64) {
        self.0.dropped.fetch_add(n_spans, Ordering::Relaxed);
    }

    /// Everything that waits.
    pub(crate) fn take(&self) -> Waiting {
        std::mem::take(&mut *self.0.waiting.lock())
    }

    /// Forgets everything that waits, for who measures what it costs to make it.
    pub fn discard(&self) {
        drop(self.take());
    }

    /// Waits until there is a batch.
    pub(crate) async fn batch(&self) {
        self.0.wake.notified().await;
    }

    #[cfg(test)]
    pub(crate) fn push_for_test(&self, operation: Operation) {
        self.push(operation);
    }

    pub(crate) fn now_unix_nanos(&self) -> u64 {
        self.unix_nanos(self.elapsed())
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
