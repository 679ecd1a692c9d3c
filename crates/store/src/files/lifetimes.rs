//! Tracks when values and leases expire, even if the wall clock is set.
//!
//! A file says when it was written by the wall clock, which may be set at any time.
//! So the wall clock is used only once for each file, when a process first sees it;
//! from then on a monotonic clock measures. A file from the future counts as new.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tool::clock::Clock;

/// The time between two sweeps of expired files.
const SWEEP: Duration = Duration::from_secs(60);

/// The times at which values and leases expire, by name.
pub struct Lifetimes {
    clock: Arc<dyn Clock>,
    ends: Mutex<HashMap<String, End>>,
    /// When expired files were last swept.
    swept: Mutex<Duration>,
}

#[derive(Clone, Copy)]
struct End {
    /// When it was written, by the wall clock in milliseconds since 1970.
    made: u64,
    /// When it expires, by the monotonic clock.
    at: Duration,
}

impl Lifetimes {
    pub fn new(clock: Arc<dyn Clock>) -> Lifetimes {
        Lifetimes { clock, ends: Mutex::default(), swept: Mutex::default() }
    }

    /// Returns the wall clock in milliseconds since 1970.
    pub fn unix_millis(&self) -> u64 {
        self.clock.unix_millis()
    }

    /// Returns whether it is time to sweep again, once per interval.
    pub(super) fn is_sweep_due(&self) -> bool {
        let now = self.clock.elapsed();
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = SWEEP <= now.saturating_sub(*swept);
        if is_time {
            *swept = now;
        }
        is_time
    }

    /// Starts the TTL of `name` now. `made` is the same moment by the wall clock.
    pub fn start(&self, name: &str, made: u64, ttl: Duration) {
        let at = self.clock.elapsed().saturating_add(ttl);
        self.ends().insert(name.to_owned(), End { made, at });
    }

    /// Returns whether `name`, which was written at `made` by the wall clock, has
    /// expired.
    pub fn is_expired(&self, name: &str, made: u64, ttl: Duration) -> bool {
        let now = self.clock.elapsed();
        let mut ends = self.ends();
        match ends.get(name) {
            Some(end) if end.made == made => end.at <= now,
            // Another process wrote it, or an earlier one.
            Some(_) | None => {
                let age = Duration::from_millis(self.clock.unix_millis().saturating_sub(made));
                let at = now.saturating_add(ttl.saturating_sub(age));
                ends.insert(name.to_owned(), End { made, at });
                at <= now
            }
        }
    }

    /// Forgets `name` after its file was removed.
    pub fn forget(&self, name: &str) {
        self.ends().remove(name);
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<String, End>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tool::clock::Fake;

    use super::*;

    const LIFE: Duration = Duration::from_secs(60);

    #[test]
    fn the_machines_clock_is_asked_once_for_what_an_earlier_process_made() {
        let clock = Arc::new(Fake::default());
        let lifetimes = Lifetimes::new(Arc::clone(&clock) as _);
        let made = clock.unix_millis() - 50_000;
        assert!(!lifetimes.is_expired("old", made, LIFE));
        assert!(lifetimes.is_expired("older", made - 10_000, LIFE));
        assert!(!lifetimes.is_expired("from the future", made + 90_000, LIFE));
        clock.advance(Duration::from_secs(10));
        assert!(lifetimes.is_expired("old", made, LIFE));
        assert!(!lifetimes.is_expired("from the future", made + 90_000, LIFE));
        clock.advance(Duration::from_secs(50));
        assert!(lifetimes.is_expired("from the future", made + 90_000, LIFE));
    }
}
