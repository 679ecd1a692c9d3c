//! Rate limits: fixed windows of a minute, one per server, method and caller.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::auth::RateKey;
use super::errors::Refusal;

const WINDOW: Duration = Duration::from_secs(60);

/// How many windows may be open at once.
const MAX_WINDOWS: usize = 100_000;

/// How often ended windows are removed from a full table, which visits every window.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The key of a window: requests with the same one are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bucket {
    pub(super) server: String,
    pub(super) method: String,
    pub(super) caller: RateKey,
}

/// The open windows of all callers.
#[derive(Default)]
pub(super) struct RateWindows(Mutex<Table>);

#[derive(Default)]
struct Table {
    windows: HashMap<Bucket, Window>,
    next_sweep: Duration,
}

struct Window {
    ends: Duration,
    n_requests: u32,
}

impl RateWindows {
    /// Counts one request, or refuses it if its window has reached the limit. A limit of
    /// zero means no limit.
    pub(super) fn count(&self, bucket: Bucket, limit: u32, now: Duration) -> Result<(), Refusal> {
        if limit == 0 {
            return Ok(());
        }
        let mut table = self.0.lock();
        if !table.windows.contains_key(&bucket) && !table.has_room(now) {
            return Err(Refusal::RateLimited { seconds: WINDOW.as_secs() });
        }
        let fresh = || Window { ends: now + WINDOW, n_requests: 0 };
        let window = table.windows.entry(bucket).or_insert_with(fresh);
        if window.ends <= now {
            *window = fresh();
        }
        if window.n_requests >= limit {
            let left = window.ends.saturating_sub(now);
            return Err(Refusal::RateLimited { seconds: left.as_secs().max(1) });
        }
        window.n_requests += 1;
        Ok(())
    }
}

impl Table {
    /// Returns whether another window may be opened; removes ended ones from a full table.
    fn has_room(&mut self, now: Duration) -> bool {
        if self.windows.len() >= MAX_WINDOWS && self.next_sweep <= now {
            self.windows.retain(|_, window| window.ends > now);
            self.next_sweep = now + SWEEP_INTERVAL;
        }
        self.windows.len() < MAX_WINDOWS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(caller: &str) -> Bucket {
        let caller = RateKey::Subject(caller.to_owned());
        Bucket { server: "content".to_owned(), method: "tools/call".to_owned(), caller }
    }

    #[test]
    fn a_user_and_a_subject_of_the_same_number_are_counted_apart() {
        let (windows, start) = (RateWindows::default(), Duration::from_secs(1_800_000_000));
        let user = Bucket { caller: RateKey::User(7), ..bucket("") };
        assert!(windows.count(bucket("7"), 1, start).is_ok());
        assert!(windows.count(user, 1, start).is_ok());
        assert!(windows.count(bucket("7"), 1, start).is_err());
    }

    #[test]
    fn a_full_table_refuses_newcomers_until_windows_end() {
        let windows = RateWindows::default();
        let start = Duration::from_secs(1_800_000_000);
        for caller in 0..MAX_WINDOWS {
            windows.count(bucket(&format!("caller {caller}")), 9, start).unwrap();
        }
        assert!(windows.count(bucket("newcomer"), 9, start).is_err());
        assert!(windows.count(bucket("caller 7"), 9, start).is_ok());
        assert_eq!(windows.0.lock().windows.len(), MAX_WINDOWS);
        assert!(windows.count(bucket("newcomer"), 9, start + WINDOW).is_ok());
        assert_eq!(windows.0.lock().windows.len(), 1);
    }
}
