//! What time it is, as a parameter.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// How long this clock has been running; never goes back.
    fn elapsed(&self) -> Duration;

    /// Milliseconds since 1970, as the machine believes.
    fn unix_millis(&self) -> u64;
}

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

/// A clock that tests move by hand.
#[derive(Debug, Default)]
pub struct Fake(Mutex<Duration>);

impl Fake {
    pub fn advance(&self, by: Duration) {
        *self.0.lock().expect("nothing panics while it holds this") += by;
    }
}

impl Clock for Fake {
    fn elapsed(&self) -> Duration {
        *self.0.lock().expect("nothing panics while it holds this")
    }

    fn unix_millis(&self) -> u64 {
        // 2026-01-01, so that records made in tests look like records.
        1_767_225_600_000 + u64::try_from(self.elapsed().as_millis()).unwrap_or(0)
    }
}
