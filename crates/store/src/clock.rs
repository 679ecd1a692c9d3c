//! The machine's own clock, for whoever is given a [`Clock`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tool::clock::Clock;

/// The machine's own clock.
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
