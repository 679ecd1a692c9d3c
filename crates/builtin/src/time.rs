//! The built-in tools for times and dates.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRound, Timestamp, Unit, Zoned};
use native::{ToolError, tool};
use schemars::JsonSchema;
use serde::Serialize;

/// A moment, told in one time zone.
#[derive(Debug, Serialize, JsonSchema)]
struct Moment {
    /// Date, time and offset.
    time: String,
    timezone: String,
    /// The day of the week.
    weekday: String,
    /// The day of the year.
    day_of_year: i16,
    /// The ISO week.
    week: i8,
    /// Seconds since 1970.
    unix: i64,
}

/// How far apart two moments are.
#[derive(Debug, Serialize, JsonSchema)]
struct Distance {
    /// In years, months, days, hours, minutes and seconds.
    span: String,
    total_days: f64,
    total_seconds: f64,
}

/// Tells the current date and time in a time zone.
#[tool(read_only, category = "time")]
fn now(
    /// An IANA name such as `Europe/Berlin`.
    #[default("UTC".to_owned())]
    timezone: String,
) -> Result<Moment, ToolError> {
    Ok(moment(&Timestamp::now().to_zoned(zone(&timezone)?)))
}

/// Tells what a moment is in another time zone.
#[tool(read_only, idempotent, category = "time")]
fn convert(
    /// Date and time such as `2026-03-01T09:00`, with an offset, `Z`, or seconds since 1970.
    time: String,
    /// The time zone to tell it in, an IANA name.
    to: String,
    /// The time zone that `time` is in when it has no offset.
    #[default("UTC".to_owned())]
    from: String,
) -> Result<Moment, ToolError> {
    let at = parse_time(&time, &zone(&from)?)?;
    Ok(moment(&at.with_time_zone(zone(&to)?)))
}

/// Adds a span of time to a moment, or takes it away.
#[tool(read_only, idempotent, category = "time")]
fn add(
    /// Date and time such as `2026-03-01T09:00` or `2026-03-01`.
    time: String,
    /// Such as `2 weeks`, `1 month 3 days`, `-36h`.
    span: String,
    /// The time zone of `time`, an IANA name.
    #[default("UTC".to_owned())]
    timezone: String,
) -> Result<Moment, ToolError> {
    let span: Span = span.parse().map_err(|_| {
        let message = format!("`{span}` is not a span; write it like `2 weeks` or `-1 day 6h`");
        ToolError::new("InvalidSpan", message)
    })?;
    let at = parse_time(&time, &zone(&timezone)?)?;
    let moved =
        at.checked_add(span).map_err(|error| ToolError::new("OutOfRange", error.to_string()))?;
    Ok(moment(&moved))
}

/// Tells how far apart two moments are.
#[tool(read_only, idempotent, category = "time")]
fn between(
    /// Date and time such as `2026-03-01T09:00` or `2026-03-01`.
    start: String,
    /// Date and time; before `start` gives a negative span.
    end: String,
    /// The time zone of both, an IANA name.
    #[default("UTC".to_owned())]
    timezone: String,
) -> Result<Distance, ToolError> {
    let zone = zone(&timezone)?;
    let (start, end) = (parse_time(&start, &zone)?, parse_time(&end, &zone)?);
    let fault = |error: jiff::Error| ToolError::new("OutOfRange", error.to_string());
    let round = SpanRound::new().largest(Unit::Year).smallest(Unit::Second).relative(&start);
    let span = start.until(&end).and_then(|span| span.round(round)).map_err(fault)?;
    let seconds = end.timestamp().as_duration() - start.timestamp().as_duration();
    let seconds = seconds.as_secs_f64();
    Ok(Distance {
        span: format!("{span:#}"),
        total_days: seconds / 86_400.0,
        total_seconds: seconds,
    })
}

fn zone(name: &str) -> Result<TimeZone, ToolError> {
    TimeZone::get(name).map_err(|_| {
        let message = format!("no time zone is called `{name}`; write it like `Europe/Berlin`");
        ToolError::new("UnknownTimezone", message)
    })
}

/// Parses a time with a zone or offset, seconds since 1970, or a time in `zone`.
fn parse_time(text: &str, zone: &TimeZone) -> Result<Zoned, ToolError> {
    let text = text.trim();
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Ok(zoned);
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp.to_zoned(zone.clone()));
    }
    if let Some(timestamp) = text.parse().ok().and_then(|unix| Timestamp::from_second(unix).ok()) {
        return Ok(timestamp.to_zoned(zone.clone()));
    }
    let civil = text.parse::<DateTime>().ok();
    civil.and_then(|civil| civil.to_zoned(zone.clone()).ok()).ok_or_else(|| {
        let message = format!("`{text}` is not a time; write it like `2026-03-01T09:00`");
        ToolError::new("InvalidTime", message)
    })
}

fn moment(at: &Zoned) -> Moment {
    Moment {
        time: at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        timezone: at.time_zone().iana_name().unwrap_or("UTC").to_owned(),
        weekday: at.strftime("%A").to_string(),
        day_of_year: at.day_of_year(),
        week: at.date().iso_week_date().week(),
        unix: at.timestamp().as_second(),
    }
}
