//! Exponential backoff: how long to wait after so many failures in a row.
//!
//! A [`Backoff`] is a plain value without a clock or randomness: the caller passes
//! the random number in, so that tests can predict the pause.

use std::time::Duration;

/// The lengths of growing pauses, and how many failures were counted so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    first: Duration,
    factor: f64,
    cap: Duration,
    jitter: f64,
    failures: u32,
}

impl Backoff {
    /// Creates pauses that double from `first` up to `cap`, without jitter.
    pub const fn doubling(first: Duration, cap: Duration) -> Backoff {
        Backoff { first, factor: 2.0, cap, jitter: 0.0, failures: 0 }
    }

    /// Sets how many times longer each pause is than the one before. A factor below
    /// 1 counts as 1.
    pub const fn with_factor(self, factor: f64) -> Backoff {
        Backoff { factor: factor.max(1.0), ..self }
    }

    /// Makes a share of each pause, from 0 to 1, random, so that clients that failed
    /// together do not all come back at once.
    pub const fn with_jitter(self, share: f64) -> Backoff {
        Backoff { jitter: share.clamp(0.0, 1.0), ..self }
    }

    /// Counts one more failure and returns the whole pause after it.
    pub fn fail(&mut self) -> Duration {
        self.fail_with(1.0)
    }

    /// Counts one more failure and returns the pause after it. `chance` is a random
    /// number from 0 to 1: the share of the jitter to wait. 1 is the whole pause.
    pub fn fail_with(&mut self, chance: f64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.pause(chance)
    }

    /// Returns the pause after the failures counted so far; the first pause if
    /// there was no failure yet.
    pub fn pause(&self, chance: f64) -> Duration {
        self.pause_after(self.failures, chance)
    }

    /// Returns the pause after `failures` failures in a row.
    pub fn pause_after(&self, failures: u32, chance: f64) -> Duration {
        let steps = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.first.as_secs_f64() * self.factor.powi(steps);
        // Only below the cap, so that no pause is too long for a `Duration`.
        let whole =
            if grown < self.cap.as_secs_f64() { Duration::from_secs_f64(grown) } else { self.cap };
        whole.mul_f64(1.0 - self.jitter * (1.0 - chance.clamp(0.0, 1.0)))
    }

    /// Returns how many failures in a row were counted.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Forgets the failures after a success: the next failure is the first again.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BACKOFF: Backoff =
        Backoff::doubling(Duration::from_millis(250), Duration::from_secs(60)).with_jitter(0.5);

    #[track_caller]
    fn check(mut backoff: Backoff, expected: &[u128]) {
        let pauses: Vec<_> = expected.iter().map(|_| backoff.fail().as_millis()).collect();
        assert_eq!(pauses, expected);
    }

    #[test]
    fn pauses_double_up_to_the_cap() {
        check(BACKOFF, &[250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    }

    #[test]
    fn pauses_grow_by_any_factor_and_never_shrink() {
        check(BACKOFF.with_factor(3.0), &[250, 750, 2250]);
        check(BACKOFF.with_factor(1.0), &[250, 250, 250]);
        check(BACKOFF.with_factor(0.1), &[250, 250, 250]);
    }

    #[test]
    fn a_first_pause_over_the_cap_is_the_cap() {
        check(Backoff::doubling(Duration::from_secs(9), Duration::from_secs(2)), &[2000, 2000]);
    }

    #[test]
    fn chance_decides_over_the_jitter_only() {
        let at = |chance| BACKOFF.pause_after(2, chance).as_millis();
        assert_eq!([at(0.0), at(0.5), at(1.0)], [250, 375, 500]);
        assert_eq!([at(-7.0), at(7.0)], [250, 500]);
        let whole = BACKOFF.with_jitter(0.0).pause_after(2, 0.0);
        assert_eq!(whole, Duration::from_millis(500));
    }

    #[test]
    fn after_a_success_the_next_failure_is_the_first() {
        let mut backoff = BACKOFF;
        let first = backoff.fail();
        backoff.fail();
        assert_eq!(backoff.failures(), 2);
        backoff.reset();
        assert_eq!((backoff.failures(), backoff.fail()), (0, first));
    }

    proptest! {
        #[test]
        fn no_pause_is_over_the_cap_and_none_under_what_is_not_jitter(
            first in 0_u64..1 << 40, cap in 0_u64..1 << 40, factor in 0.0_f64..1e9,
            jitter in 0.0_f64..=1.0, failures: u32, chance in 0.0_f64..=1.0,
        ) {
            let (first, cap) = (Duration::from_millis(first), Duration::from_millis(cap));
            let backoff = Backoff::doubling(first, cap).with_factor(factor).with_jitter(jitter);
            let pause = backoff.pause_after(failures, chance);
            prop_assert!(pause <= cap);
            let least = first.min(cap).mul_f64(1.0 - jitter);
            prop_assert!(least <= pause + Duration::from_micros(1));
            prop_assert!(backoff.pause_after(failures.saturating_add(1), chance) >= pause);
        }
    }
}
