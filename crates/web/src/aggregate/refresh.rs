//! Decides when a manifest is fetched again.
//!
//! A manifest is fetched after its `cache_ttl`, also when the last attempt failed. One
//! that was never fetched is tried at growing intervals. Times are in seconds since 1970.

use std::time::Duration;

use tool::backoff::Backoff;

use crate::manifest::Manifest;

/// When a manifest was last fetched, and when to fetch it again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RefreshSchedule {
    /// The time of the last attempt.
    last: Option<u64>,
    ttl: Option<u64>,
    /// Before another attempt to fetch a manifest that was never fetched.
    backoff: Backoff,
}

const NEVER_FETCHED: RefreshSchedule = RefreshSchedule {
    last: None,
    ttl: None,
    backoff: Backoff::doubling(Duration::from_secs(5), Duration::from_secs(300)),
};

impl Default for RefreshSchedule {
    fn default() -> RefreshSchedule {
        NEVER_FETCHED
    }
}

impl RefreshSchedule {
    /// The schedule after a manifest was fetched, perhaps in an earlier run.
    pub fn after_fetch(manifest: &Manifest, fetched: u64) -> RefreshSchedule {
        RefreshSchedule { last: Some(fetched), ttl: Some(manifest.ttl()), ..NEVER_FETCHED }
    }

    /// The time of the next attempt.
    pub fn due(&self) -> u64 {
        let Some(last) = self.last else { return 0 };
        last.saturating_add(self.ttl.unwrap_or_else(|| self.backoff.pause(1.0).as_secs()))
    }

    /// Notes that the manifest was fetched.
    pub fn succeeded(&mut self, manifest: &Manifest, now: u64) {
        *self = RefreshSchedule::after_fetch(manifest, now);
    }

    /// Notes that an attempt failed.
    pub fn failed(&mut self, now: u64) {
        self.last = Some(now);
        self.backoff.fail();
    }
}
