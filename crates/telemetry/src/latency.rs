//! A histogram of durations whose buckets grow by a fifth, so that a percentile is at
//! most a fifth too large.

use std::time::Duration;

/// The upper end of the first bucket, in microseconds.
const FIRST: f64 = 10.0;

/// Buckets per doubling.
const PER_DOUBLING: f64 = 4.0;

/// Enough buckets for a quarter of an hour; the last is for everything above.
const BUCKETS: usize = 108;

/// A distribution of durations.
#[derive(Clone, Debug)]
pub(crate) struct LatencyHistogram {
    counts: [u32; BUCKETS],
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram { counts: [0; BUCKETS] }
    }
}

impl LatencyHistogram {
    pub(crate) fn add(&mut self, took: Duration) {
        let micros = took.as_secs_f64() * 1e6;
        // From a float, `as` saturates at both ends, and NaN cannot come up.
        let bucket = ((micros / FIRST).log2() * PER_DOUBLING).ceil() as usize;
        let count = &mut self.counts[bucket.min(BUCKETS - 1)];
        *count = count.saturating_add(1);
    }

    pub(crate) fn merge(&mut self, other: &LatencyHistogram) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
    }

    /// Returns the duration that this share of the calls did not exceed; `None` without
    /// calls.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let total: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        if total == 0 {
            return None;
        }
        let wanted = ((total as f64 * share).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            wanted <= seen
        })?;
        let micros = FIRST * 2f64.powf(bucket as f64 / PER_DOUBLING);
        Some(Duration::from_secs_f64(micros / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(took: Duration) {
        let mut latency = LatencyHistogram::default();
        latency.add(took);
        let told = latency.quantile(0.5).unwrap();
        let (told, took) = (told.as_secs_f64(), took.as_secs_f64().max(1e-5));
        assert!(took <= told * 1.000_001 && told <= took * 1.2, "{took} was told as {told}");
    }

    #[test]
    fn a_percentile_is_at_most_a_fifth_too_large() {
        for micros in [0, 1, 10, 11, 99, 1_000, 12_345, 1_000_000, 61_000_000, 900_000_000] {
            check(Duration::from_micros(micros));
        }
    }

    #[test]
    fn percentiles_are_of_all_that_was_added() {
        let mut latency = LatencyHistogram::default();
        assert_eq!(latency.quantile(0.5), None);
        (0..95).for_each(|_| latency.add(Duration::from_millis(1)));
        (0..5).for_each(|_| latency.add(Duration::from_secs(1)));
        let millis = |share| latency.quantile(share).unwrap().as_secs_f64() * 1e3;
        assert!(millis(0.5) < 1.2 && millis(0.95) < 1.2 && 999.0 < millis(0.96), "{latency:?}");
    }

    #[test]
    fn what_takes_for_ever_is_counted_all_the_same() {
        let mut latency = LatencyHistogram::default();
        latency.add(Duration::MAX);
        assert!(Duration::from_secs(900) < latency.quantile(1.0).unwrap());
    }
}
