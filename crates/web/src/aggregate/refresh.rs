//! Decides when a manifest is fetched again.
//!
//! Never sooner than its `cache_ttl` says, whether looking went well or not; a
//! manifest that was never seen is looked for more and more rarely. Times are
//! seconds since 1970.

use crate::manifest::Manifest;

/// When a manifest was read, and when to read it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefreshSchedule {
    last: Option<u64>,
    ttl: Option<u64>,
    n_failures: u32,
}

/// After how many seconds a manifest that was never seen is looked for again,
/// at first and at most.
const AGAIN: u64 = 5;
const SELDOM: u64 = 300;

impl RefreshSchedule {
    /// Returns what is known of a manifest that was kept since an earlier run.
    pub fn remembered(manifest: &Manifest, fetched: u64) -> RefreshSchedule {
        RefreshSchedule { last: Some(fetched), ttl: Some(manifest.ttl()), n_failures: 0 }
    }

    /// The earliest time to look.
    pub fn due(&self) -> u64 {
        let Some(last) = self.last else { return 0 };
        let pause = match self.ttl {
            Some(ttl) => ttl,
            None => (AGAIN << self.n_failures.saturating_sub(1).min(10)).min(SELDOM),
        };
        last.saturating_add(pause)
    }

    pub fn went_well(&mut self, manifest: &Manifest, now: u64) {
        *self = RefreshSchedule::remembered(manifest, now);
    }

    pub fn failed(&mut self, now: u64) {
        self.last = Some(now);
        self.n_failures = self.n_failures.saturating_add(1);
    }
}
