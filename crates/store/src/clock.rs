//! The [`Clock`] of the machine, for production; tests use a fake one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tool::clock::Clock;

/// The clock of the machine.
#[derive(Clone, Copy, Debug)]
pub struct System(tokio::time::Instant);

impl System {
    pub fn start() -> System {
        System(tokio::time::Instant::now())
    }
}

impl Clock for System {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock that others are given")]
    fn unix_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
