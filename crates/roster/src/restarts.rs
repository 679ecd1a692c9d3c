//! The backoff before a session that ended, or could not be opened, is opened again.
//!
//! The same rule holds for sessions that all callers share and for those of
//! single callers: growing pauses, until a session has lived for a while.

use std::time::Duration;

use tool::Backoff;

/// How long a session has to live to count as stable. One that dies sooner is
/// restarted with growing pauses, like one that does not start.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// The pauses between starts that fail. Half of each is random, so that
/// upstreams that died together do not restart together.
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(250), Duration::from_secs(60)).with_jitter(0.5);

/// How soon after a failure a call may start an upstream again. A program that crashes
/// at once must not be started for every call.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// Returns the part of a pause that a call cannot cut short: longer after an attempt that
/// `took` long to fail.
pub(crate) fn min_pause(pause: Duration, took: Duration) -> Duration {
    MIN_PAUSE.max(took * 2).min(pause)
}

/// Counts the failures since a session was last stable.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    failures: u32,
}

impl Restarts {
    /// Notes that the session could not be opened.
    pub(crate) fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Notes that the session died after it `lived` this long.
    pub(crate) fn died(&mut self, lived: Duration) {
        match STABLE_AFTER <= lived {
            true => self.failures = 0,
            false => self.failed(),
        }
    }

    /// Notes that the session was closed because nobody used it.
    pub(crate) fn closed(&mut self) {
        self.failures = 0;
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// How long to wait before the next start; `jitter` is from 0 to 1.
    pub(crate) fn pause(&self, jitter: f64) -> Duration {
        BACKOFF.pause_after(self.failures, jitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses = [0, 1, 2, 3, 9, 1000].map(|n| BACKOFF.pause_after(n, 1.0).as_millis());
        assert_eq!(pauses, [250, 250, 500, 1000, 60_000, 60_000]);
    }

    #[test]
    fn jitter_spreads_them_over_the_upper_half() {
        assert_eq!(BACKOFF.pause_after(2, 0.0), Duration::from_millis(250));
        assert_eq!(BACKOFF.pause_after(2, 0.5), Duration::from_millis(375));
    }

    #[test]
    fn a_session_that_lived_for_a_while_starts_the_count_again() {
        let mut restarts = Restarts::default();
        restarts.failed();
        restarts.died(Duration::from_secs(9));
        assert_eq!((restarts.failures(), restarts.pause(1.0).as_millis()), (2, 500));
        restarts.died(Duration::from_secs(10));
        assert_eq!((restarts.failures(), restarts.pause(1.0).as_millis()), (0, 250));
    }
}
