//! How long something lives, whatever happens to the machine's clock.
//!
//! A file says when it was made by the machine's clock, which may be set at any
//! time. So that clock is asked only once for each thing, when a process first
//! sees it; from then on its life runs out by a clock that never jumps. A thing
//! that seems to come from the future is taken to be new.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tool::clock::Clock;

/// How often what is over is looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// When things end.
pub struct Lifetimes {
    clock: Arc<dyn Clock>,
    ends: Mutex<HashMap<String, End>>,
    /// When what is over was last looked for.
    swept: Mutex<Duration>,
}

#[derive(Clone, Copy)]
struct End {
    /// When it was made, by the machine's clock.
    made: u64,
    /// When it ends, on the clock that never jumps.
    at: Duration,
}

impl Lifetimes {
    pub fn new(clock: Arc<dyn Clock>) -> Lifetimes {
        Lifetimes { clock, ends: Mutex::default(), swept: Mutex::default() }
    }

    /// The machine's time now, in milliseconds since 1970.
    pub fn unix_millis(&self) -> u64 {
        self.clock.unix_millis()
    }

    /// Whether it is some time since this was last so.
    pub(super) fn is_time_to_sweep(&self) -> bool {
        let now = self.clock.elapsed();
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = SWEEP <= now.saturating_sub(*swept);
        if is_time {
            *swept = now;
        }
        is_time
    }

    /// Something begins a life now, which is `made` by the machine's clock.
    pub fn begin(&self, name: &str, made: u64, life: Duration) {
        let at = self.clock.elapsed().saturating_add(life);
        self.ends().insert(name.to_owned(), End { made, at });
    }

    /// Whether something that was made at that time by the machine's clock is
    /// too old.
    pub fn is_over(&self, name: &str, made: u64, life: Duration) -> bool {
        let now = self.clock.elapsed();
        let mut ends = self.ends();
        match ends.get(name) {
            Some(end) if end.made == made => end.at <= now,
            // Another process made it, or an earlier one.
            Some(_) | None => {
                let age = Duration::from_millis(self.clock.unix_millis().saturating_sub(made));
                let at = now.saturating_add(life.saturating_sub(age));
                ends.insert(name.to_owned(), End { made, at });
                at <= now
            }
        }
    }

    /// Something is not there any more.
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
        assert!(!lifetimes.is_over("old", made, LIFE));
        assert!(lifetimes.is_over("older", made - 10_000, LIFE));
        assert!(!lifetimes.is_over("from the future", made + 90_000, LIFE));
        clock.advance(Duration::from_secs(10));
        assert!(lifetimes.is_over("old", made, LIFE));
        assert!(!lifetimes.is_over("from the future", made + 90_000, LIFE));
        clock.advance(Duration::from_secs(50));
        assert!(lifetimes.is_over("from the future", made + 90_000, LIFE));
    }
}
