//! Decides when a manifest is fetched again.
//!
//! A manifest is fetched after its `cache_ttl`, also when the last attempt failed. One
//! that was never fetched is tried at growing intervals. Times are in seconds since 1970.

use crate::manifest::Manifest;

/// When a manifest was last fetched, and when to fetch it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefreshSchedule {
    /// The time of the last attempt.
    last: Option<u64>,
    ttl: Option<u64>,
    n_failures: u32,
}

/// The first and the longest pause before another attempt to fetch a manifest that was
/// never fetched, in seconds.
const FIRST_PAUSE: u64 = 5;
const MAX_PAUSE: u64 = 300;

impl RefreshSchedule {
    /// The schedule after a manifest was fetched, perhaps in an earlier run.
    pub fn after_fetch(manifest: &Manifest, fetched: u64) -> RefreshSchedule {
        RefreshSchedule { last: Some(fetched), ttl: Some(manifest.ttl()), n_failures: 0 }
    }

    /// The time of the next attempt.
    pub fn due(&self) -> u64 {
        let Some(last) = self.last else { return 0 };
        let pause = match self.ttl {
            Some(ttl) => ttl,
            None => (FIRST_PAUSE << self.n_failures.saturating_sub(1).min(10)).min(MAX_PAUSE),
        };
        last.saturating_add(pause)
    }

    /// Notes that the manifest was fetched.
    pub fn succeeded(&mut self, manifest: &Manifest, now: u64) {
        *self = RefreshSchedule::after_fetch(manifest, now);
    }

    /// Notes that an attempt failed.
    pub fn failed(&mut self, now: u64) {
        self.last = Some(now);
        self.n_failures = self.n_failures.saturating_add(1);
    }
}
