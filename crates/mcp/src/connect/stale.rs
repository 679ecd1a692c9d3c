//! Marks which lists of a server are out of date.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use tokio::sync::Notify;
use tool::Kind;

/// Which lists are no longer what the server has, and whether it still knows
/// what is watched.
#[derive(Default)]
pub(super) struct Stale {
    kinds: AtomicU8,
    pub(super) is_new: AtomicBool,
    wake: Notify,
    ended: AtomicBool,
    n_acknowledged: AtomicU64,
    acknowledged: Notify,
}

impl Stale {
    pub(super) fn mark(&self, kinds: &[Kind]) {
        let bits = kinds.iter().fold(0, |bits, kind| bits | bit(*kind));
        self.kinds.fetch_or(bits, Ordering::AcqRel);
        self.wake.notify_one();
    }

    /// The session is a new one: anything may have changed, nobody watches
    /// anything, and nobody said how much to log.
    pub(super) fn renew(&self) {
        self.is_new.store(true, Ordering::Release);
        self.mark(&Kind::ALL);
    }

    /// There is nothing to keep fresh any more.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake.notify_one();
        self.acknowledged.notify_waiters();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// A subscription was acknowledged.
    pub(super) fn acknowledge(&self) {
        self.n_acknowledged.fetch_add(1, Ordering::AcqRel);
        self.acknowledged.notify_waiters();
    }

    /// Returns how many subscriptions were acknowledged so far.
    pub(super) fn n_acknowledged(&self) -> u64 {
        self.n_acknowledged.load(Ordering::Acquire)
    }

    /// Waits until more than `before` were.
    pub(super) async fn acknowledged_after(&self, before: u64) {
        loop {
            let next = self.acknowledged.notified();
            if before < self.n_acknowledged() || self.has_ended() {
                return;
            }
            next.await;
        }
    }

    pub(super) async fn any(&self) -> bool {
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

    pub(super) fn take(&self) -> impl Iterator<Item = Kind> + use<> {
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
