//! How often: fixed windows of a minute, one per server, method and caller.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::errors::Refusal;

const WINDOW: Duration = Duration::from_secs(60);

/// More windows than this are swept before another is opened.
const MAX_WINDOWS: usize = 100_000;

#[derive(Default)]
pub(super) struct Windows(Mutex<HashMap<String, Window>>);

struct Window {
    ends: Duration,
    taken: u32,
}

impl Windows {
    /// Counts one request, or says how long to wait. No limit when zero.
    pub(super) fn take(&self, bucket: String, limit: u32, now: Duration) -> Result<(), Refusal> {
        if limit == 0 {
            return Ok(());
        }
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MAX_WINDOWS {
            windows.retain(|_, window| window.ends > now);
        }
        let window = windows.entry(bucket).or_insert(Window { ends: now + WINDOW, taken: 0 });
        if window.ends <= now {
            *window = Window { ends: now + WINDOW, taken: 0 };
        }
        if window.taken >= limit {
            let left = window.ends.saturating_sub(now);
            return Err(Refusal::RateLimited { seconds: left.as_secs().max(1) });
        }
        window.taken += 1;
        Ok(())
    }
}
