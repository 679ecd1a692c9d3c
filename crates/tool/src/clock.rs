//! The clock as a parameter, so that tests can set the time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A source of the time.
pub trait Clock: Send + Sync {
    /// Returns the time since this clock was started; it never goes back.
    fn elapsed(&self) -> Duration;

    /// Returns the wall clock of the machine in milliseconds since 1970.
    fn unix_millis(&self) -> u64;
}

/// A clock that tests move by hand.
#[derive(Debug, Default)]
pub struct Fake {
    nanos: AtomicU64,
}

impl Fake {
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).expect("tests wait less than five centuries");
        self.nanos.fetch_add(nanos, Ordering::SeqCst);
    }
}

impl Clock for Fake {
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::SeqCst))
    }

    fn unix_millis(&self) -> u64 {
        // 2026-01-01, so that records made in tests look like records.
        1_767_225_600_000 + u64::try_from(self.elapsed().as_millis()).unwrap_or(0)
    }
}
