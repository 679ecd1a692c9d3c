//! Decides which requests are traced, and queues finished ones until they are exported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tool::clock::Clock;
use tool::trace::SpanContext;

use super::operation::{Operation, Session};

/// How many operations may be queued; more are dropped and counted.
pub(super) const MAX_PENDING: usize = 8_192;

/// The queue length at which operations are exported before the interval is over.
const BATCH: usize = 512;

/// Samples traces and queues finished operations. Clones share one queue.
#[derive(Clone)]
pub struct Tracer(Arc<Shared>);

struct Shared {
    /// The share of traces that are recorded when no caller has decided, from 0
    /// to 1.
    sample: f64,
    clock: Arc<dyn Clock>,
    /// Nanoseconds since 1970 when the clock was at zero.
    epoch: u64,
    pending: Mutex<PendingExports>,
    wake: Notify,
    dropped: AtomicU64,
}

/// Finished operations and sessions that are not exported yet.
#[derive(Default)]
pub(crate) struct PendingExports {
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
            pending: Mutex::default(),
            wake: Notify::new(),
            dropped: AtomicU64::new(0),
        }))
    }

    /// Returns how many spans were dropped: too many were queued, or the collector did not
    /// accept them.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Creates the context of a span below `parent`; `None` when it is not recorded. That is
    /// decided where the trace began; for a trace that begins here, by the sample rate.
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

    /// Converts a time of the clock to nanoseconds since 1970.
    pub(super) fn unix_nanos(&self, at: Duration) -> u64 {
        self.0.epoch.saturating_add(nanos(at))
    }

    pub(super) fn push(&self, operation: Operation) {
        let mut pending = self.0.pending.lock();
        if MAX_PENDING <= pending.operations.len() {
            drop(pending);
            self.drop_spans(u64::from(operation.span.is_some()));
            return;
        }
        pending.operations.push(operation);
        let is_batch = pending.operations.len() == BATCH;
        drop(pending);
        if is_batch {
            self.0.wake.notify_one();
        }
    }

    pub(super) fn push_session(&self, session: Session) {
        let mut pending = self.0.pending.lock();
        if pending.sessions.len() < MAX_PENDING {
            pending.sessions.push(session);
        }
    }

    /// Counts spans that will not be exported.
    pub(crate) fn drop_spans(&self, n_spans: u64) {
        self.0.dropped.fetch_add(n_spans, Ordering::Relaxed);
    }

    /// Takes everything that is queued.
    pub(crate) fn take(&self) -> PendingExports {
        std::mem::take(&mut *self.0.pending.lock())
    }

    /// Discards everything that is queued, for benchmarks.
    pub fn discard(&self) {
        drop(self.take());
    }

    /// Waits until a batch is queued.
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
