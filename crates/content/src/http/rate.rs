//! How often: fixed windows of a minute, one per server, method and caller.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::errors::Refusal;

const WINDOW: Duration = Duration::from_secs(60);

/// No more windows than this are open at once.
const MAX_WINDOWS: usize = 100_000;

/// How often a full table is swept: a sweep looks at all of it.
const SWEEP: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Windows(Mutex<Table>);

#[derive(Default)]
struct Table {
    windows: HashMap<String, Window>,
    next_sweep: Duration,
}

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
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.windows.contains_key(&bucket) && !table.has_room(now) {
            return Err(Refusal::RateLimited { seconds: WINDOW.as_secs() });
        }
        let fresh = || Window { ends: now + WINDOW, taken: 0 };
        let window = table.windows.entry(bucket).or_insert_with(fresh);
        if window.ends <= now {
            *window = fresh();
        }
        if window.taken >= limit {
            let left = window.ends.saturating_sub(now);
            return Err(Refusal::RateLimited { seconds: left.as_secs().max(1) });
        }
        window.taken += 1;
        Ok(())
    }
}

impl Table {
    fn has_room(&mut self, now: Duration) -> bool {
        if self.windows.len() >= MAX_WINDOWS && self.next_sweep <= now {
            self.windows.retain(|_, window| window.ends > now);
            self.next_sweep = now + SWEEP;
        }
        self.windows.len() < MAX_WINDOWS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_refuses_newcomers_until_windows_end() {
        let windows = Windows::default();
        let start = Duration::from_secs(1_800_000_000);
        for caller in 0..MAX_WINDOWS {
            windows.take(format!("caller {caller}"), 9, start).unwrap();
        }
        assert!(windows.take("newcomer".to_owned(), 9, start).is_err());
        assert!(windows.take("caller 7".to_owned(), 9, start).is_ok());
        assert_eq!(windows.0.lock().unwrap().windows.len(), MAX_WINDOWS);
        assert!(windows.take("newcomer".to_owned(), 9, start + WINDOW).is_ok());
        assert_eq!(windows.0.lock().unwrap().windows.len(), 1);
    }
}
