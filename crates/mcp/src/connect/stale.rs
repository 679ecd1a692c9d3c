//! Records which lists of a server are out of date, for the task that fetches them.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use tokio::sync::Notify;
use tool::Kind;

/// The lists to fetch again, and other signals to the refresh task.
#[derive(Default)]
pub(super) struct StaleLists {
    kinds: AtomicU8,
    /// Whether the session was reopened, so that subscriptions and log level are lost.
    pub(super) is_new_session: AtomicBool,
    wake: Notify,
    ended: AtomicBool,
    n_acknowledged: AtomicU64,
    acknowledged: Notify,
}

impl StaleLists {
    pub(super) fn mark(&self, kinds: &[Kind]) {
        let bits = kinds.iter().fold(0, |bits, kind| bits | bit(*kind));
        self.kinds.fetch_or(bits, Ordering::AcqRel);
        self.wake.notify_one();
    }

    /// Notes that the session was reopened: all lists may have changed, and subscriptions
    /// and log level are lost.
    pub(super) fn note_new_session(&self) {
        self.is_new_session.store(true, Ordering::Release);
        self.mark(&Kind::ALL);
    }

    /// Notes that the connection ended.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake.notify_one();
        self.acknowledged.notify_waiters();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Notes that the server acknowledged a subscription.
    pub(super) fn acknowledge(&self) {
        self.n_acknowledged.fetch_add(1, Ordering::AcqRel);
        self.acknowledged.notify_waiters();
    }

    /// Returns how many subscriptions were acknowledged so far.
    pub(super) fn n_acknowledged(&self) -> u64 {
        self.n_acknowledged.load(Ordering::Acquire)
    }

    /// Waits until more than `before` subscriptions were acknowledged.
    pub(super) async fn acknowledged_after(&self, before: u64) {
        loop {
            let next = self.acknowledged.notified();
            if before < self.n_acknowledged() || self.has_ended() {
                return;
            }
            next.await;
        }
    }

    /// Waits until a list is stale; returns `false` when the connection ended.
    pub(super) async fn wait_for_any(&self) -> bool {
        loop {
            if self.has_ended() {
                return false;
            }
            if self.kinds.load(Ordering::Acquire) != 0 {
                return true;
            }
            self.wake.notified().await;
        }
    }

    /// Returns the stale lists and clears the marks.
    pub(super) fn take_marked(&self) -> impl Iterator<Item = Kind> + use<> {
        let bits = self.kinds.swap(0, Ordering::AcqRel);
        Kind::ALL.into_iter().filter(move |kind| bits & bit(*kind) != 0)
    }
}

fn bit(kind: Kind) -> u8 {
    match kind {
        Kind::Tools => 1,
        Kind::Resources => 2,
        Kind::Templates => 4,
        Kind::Prompts => 8,
    }
}
