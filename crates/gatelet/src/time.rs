//! The wall clock, as seconds, milliseconds or text.

use std::time::Duration;

use jiff::Timestamp;

/// The time since 1970.
pub(crate) fn since_epoch() -> Duration {
    let now = Timestamp::now().as_millisecond();
    Duration::from_millis(u64::try_from(now).unwrap_or(0))
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    since_epoch().as_secs()
}

/// Milliseconds since 1970.
pub(crate) fn unix_millis() -> u64 {
    u64::try_from(since_epoch().as_millis()).unwrap_or(u64::MAX)
}

/// Formats milliseconds since 1970 as RFC 3339.
pub(crate) fn rfc3339(unix_millis: u64) -> String {
    let millis = i64::try_from(unix_millis).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX).to_string()
}
