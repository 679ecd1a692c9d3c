//! Counters in sliding windows.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::state::{Claim, Spending};

/// The spent amounts of all counters, by key.
#[derive(Default)]
pub(super) struct Windows {
    windows: HashMap<String, Window>,
    /// Keys by when they were used, oldest first; a key may occur several times.
    used: VecDeque<(String, Duration)>,
}

/// The spent amounts of one counter.
#[derive(Default)]
struct Window {
    /// The times and amounts, oldest first.
    spent: VecDeque<(Duration, u32)>,
    /// When the counter was last used.
    last: Duration,
}

impl Window {
    /// Returns the sum of the amounts that still count.
    fn total(&self, window: Option<Duration>, now: Duration) -> u64 {
        let counts = |when: Duration| window.is_none_or(|window| now < when + window);
        let spent = self.spent.iter().filter(|(when, _)| counts(*when));
        spent.map(|(_, amount)| u64::from(*amount)).sum()
    }

    /// Returns how long it takes until `needed` of the amount does not count any more.
    fn time_until_free(&self, window: Duration, needed: u64, now: Duration) -> Option<Duration> {
        let mut freed = 0;
        for (when, amount) in self.spent.iter().filter(|(when, _)| now < *when + window) {
            freed += u64::from(*amount);
            if needed <= freed {
                return Some((*when + window).saturating_sub(now));
            }
        }
        None
    }
}

impl Windows {
    pub(super) fn check(&self, claims: &[Claim<'_>], now: Duration) -> Spending {
        for (claim_index, claim) in claims.iter().enumerate() {
            let window = self.windows.get(claim.key);
            let spent = window.map_or(0, |window| window.total(claim.window, now));
            let (wanted, limit) = (spent + u64::from(claim.amount), u64::from(claim.limit));
            if limit < wanted {
                let wait =
                    |length| window.and_then(|w| w.time_until_free(length, wanted - limit, now));
                return Spending::Refused { claim_index, retry_after: claim.window.and_then(wait) };
            }
        }
        Spending::Granted
    }

    pub(super) fn spend(&mut self, claims: &[Claim<'_>], now: Duration, max_counters: usize) {
        for claim in claims {
            let window = self.windows.entry(claim.key.to_owned()).or_default();
            match (claim.window, window.spent.back_mut()) {
                // Without a window only the sum matters.
                (None, Some((_, amount))) => *amount = amount.saturating_add(claim.amount),
                (None | Some(_), _) => window.spent.push_back((now, claim.amount)),
            }
            if let Some(length) = claim.window {
                let is_over = |(when, _): &(Duration, u32)| *when + length <= now;
                while window.spent.front().is_some_and(is_over) {
                    window.spent.pop_front();
                }
            }
            window.last = now;
            self.used.push_back((claim.key.to_owned(), now));
        }
        self.evict(max_counters);
    }

    pub(super) fn give_back(&mut self, claims: &[Claim<'_>]) {
        for claim in claims {
            let Some(window) = self.windows.get_mut(claim.key) else { continue };
            let mut left = claim.amount;
            while let Some((_, amount)) = window.spent.back_mut() {
                let given = left.min(*amount);
                *amount -= given;
                left -= given;
                if *amount != 0 {
                    break;
                }
                window.spent.pop_back();
            }
        }
    }

    /// Removes the least recently used counters.
    fn evict(&mut self, max_counters: usize) {
        let windows = &mut self.windows;
        let is_last = |windows: &HashMap<String, Window>, key: &str, when: Duration| {
            windows.get(key).is_some_and(|window| window.last == when)
        };
        while max_counters < windows.len() {
            let Some((key, when)) = self.used.pop_front() else { return };
            if is_last(windows, &key, when) {
                windows.remove(&key);
            }
        }
        if max_counters.saturating_mul(4) < self.used.len() {
            self.used.retain(|(key, when)| is_last(windows, key, *when));
        }
    }
}
