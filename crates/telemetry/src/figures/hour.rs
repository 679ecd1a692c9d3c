//! Statistics of the last hour by minute, in a fixed amount of memory.

use std::time::Duration;

use super::overview::{Minute, Total, UpstreamFigures};
use crate::latency::LatencyHistogram;

/// How many minutes are stored.
pub(super) const MINUTES: u64 = 60;

/// Milliseconds per minute.
const MILLIS: u64 = 60_000;

/// What is counted of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// When it ended, in milliseconds since 1970.
    pub(super) at: u64,
    pub(super) took: Duration,
    pub(super) is_error: bool,
    pub(super) tokens_raw: u64,
    pub(super) tokens_sent: u64,
}

/// A ring buffer of minutes.
#[derive(Debug)]
pub(super) struct Hour {
    minutes: Box<[MinuteSlot]>,
}

/// The statistics of one minute.
#[derive(Clone, Debug, Default)]
struct MinuteSlot {
    /// The number of the minute since 1970.
    minute: u64,
    calls: u64,
    errors: u64,
    searches: u64,
    sessions: u64,
    tokens_raw: u64,
    tokens_sent: u64,
    latency: LatencyHistogram,
}

impl Default for Hour {
    fn default() -> Hour {
        Hour { minutes: (0..MINUTES).map(|_| MinuteSlot::default()).collect() }
    }
}

impl Hour {
    pub(super) fn add(&mut self, sample: &Sample) {
        let Some(slot) = self.slot(sample.at) else { return };
        slot.calls += 1;
        slot.errors += u64::from(sample.is_error);
        slot.tokens_raw += sample.tokens_raw;
        slot.tokens_sent += sample.tokens_sent;
        slot.latency.add(sample.took);
    }

    pub(super) fn add_search(&mut self, at: u64) {
        if let Some(slot) = self.slot(at) {
            slot.searches += 1;
        }
    }

    /// Counts a session that was not heard of in the hour before.
    pub(super) fn add_session(&mut self, at: u64) {
        if let Some(slot) = self.slot(at) {
            slot.sessions += 1;
        }
    }

    /// Returns the slot of a time; `None` when a later minute has replaced it.
    fn slot(&mut self, at: u64) -> Option<&mut MinuteSlot> {
        let minute = at / MILLIS;
        let slot = &mut self.minutes[(minute % MINUTES) as usize];
        if slot.minute < minute {
            *slot = MinuteSlot { minute, ..MinuteSlot::default() };
        }
        (slot.minute == minute).then_some(slot)
    }

    /// Returns the minutes up to `now`, the oldest first.
    pub(super) fn minutes(&self, now: u64) -> Vec<Minute> {
        self.slots(now)
            .map(|(minute, slot)| Minute {
                at: minute * MILLIS,
                total: slot.map(|slot| total([slot].into_iter())).unwrap_or_default(),
            })
            .collect()
    }

    pub(super) fn total(&self, now: u64) -> Total {
        total(self.slots(now).filter_map(|(_, slot)| slot))
    }

    pub(super) fn upstream_figures(&self, label: &str, now: u64) -> UpstreamFigures {
        let Total { calls, errors, p50_ms, p95_ms, tokens_raw, tokens_sent, .. } = self.total(now);
        let calls_by_minute = self.slots(now).map(|(_, slot)| slot.map_or(0, |slot| slot.calls));
        UpstreamFigures {
            label: label.to_owned(),
            calls,
            errors,
            p50_ms,
            p95_ms,
            tokens_raw,
            tokens_sent,
            calls_by_minute: calls_by_minute.collect(),
        }
    }

    /// Returns the number of every minute of the hour before `now`, and its slot if there
    /// were calls in it.
    fn slots(&self, now: u64) -> impl Iterator<Item = (u64, Option<&MinuteSlot>)> {
        let last = now / MILLIS;
        (last.saturating_sub(MINUTES - 1)..=last).map(|minute| {
            let slot = &self.minutes[(minute % MINUTES) as usize];
            (minute, (slot.minute == minute).then_some(slot))
        })
    }
}

fn total<'a>(slots: impl Iterator<Item = &'a MinuteSlot>) -> Total {
    let mut total = Total::default();
    let mut latency = LatencyHistogram::default();
    for slot in slots {
        total.calls += slot.calls;
        total.errors += slot.errors;
        total.searches += slot.searches;
        total.sessions += slot.sessions;
        total.tokens_raw += slot.tokens_raw;
        total.tokens_sent += slot.tokens_sent;
        latency.merge(&slot.latency);
    }
    let millis = |share| latency.quantile(share).map(|took| took.as_secs_f64() * 1e3);
    Total { p50_ms: millis(0.5), p95_ms: millis(0.95), ..total }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(minute: u64) -> Sample {
        let took = Duration::from_millis(2);
        Sample { at: minute * MILLIS + 1, took, is_error: false, tokens_raw: 10, tokens_sent: 4 }
    }

    #[test]
    fn an_hour_later_a_call_is_no_longer_counted() {
        let mut hour = Hour::default();
        hour.add(&call(1000));
        hour.add(&Sample { is_error: true, ..call(1001) });
        let calls = |hour: &Hour, minute: u64| hour.total(minute * MILLIS).calls;
        assert_eq!([1001, 1059, 1060, 1061].map(|minute| calls(&hour, minute)), [2, 2, 1, 0]);
        // Its place is taken by the minute sixty later, and nothing old comes back.
        hour.add(&call(1060));
        hour.add(&call(1000));
        assert_eq!(calls(&hour, 1060), 2);
    }

    #[test]
    fn there_is_an_entry_for_every_minute_and_quiet_ones_are_zero() {
        let mut hour = Hour::default();
        hour.add(&call(1000));
        hour.add(&call(1002));
        hour.add_search(1002 * MILLIS);
        let minutes = hour.minutes(1003 * MILLIS + 59_999);
        assert_eq!(minutes.len(), 60);
        let calls: Vec<u64> = minutes.iter().rev().take(5).map(|one| one.total.calls).collect();
        assert_eq!(calls, [0, 1, 0, 1, 0]);
        assert_eq!((minutes[58].total.searches, minutes[58].at), (1, 1002 * MILLIS));
        assert_eq!(minutes[59].total.p50_ms, None);
        let own = hour.upstream_figures("files", 1003 * MILLIS);
        assert_eq!((own.calls, own.tokens_raw, own.calls_by_minute[56]), (2, 20, 1));
    }

    #[test]
    fn the_first_minutes_after_1970_are_no_trouble() {
        let mut hour = Hour::default();
        hour.add(&call(0));
        assert_eq!((hour.minutes(0).len(), hour.total(0).calls), (1, 1));
    }
}
