//! Renders times and numbers for people.

/// Renders how long ago `then` was, or how far ahead it is; both in milliseconds.
pub(crate) fn relative_time(now: u64, then: u64) -> String {
    let seconds = now.abs_diff(then) / 1000;
    let span = match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    };
    if then <= now { format!("{span} ago") } else { format!("in {span}") }
}

/// Renders a duration with a few significant digits.
pub(crate) fn millis(millis: f64) -> String {
    match millis {
        m if m < 10.0 => format!("{m:.1} ms"),
        m if m < 10_000.0 => format!("{m:.0} ms"),
        m => format!("{:.0} s", m / 1000.0),
    }
}

/// Renders a number with commas between thousands.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at != 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_short() {
        assert_eq!(relative_time(100_000, 95_000), "5 s ago");
        assert_eq!(relative_time(0, 30 * 60_000), "in 30 min");
        assert_eq!(millis(3.21), "3.2 ms");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(999), "999");
    }
}
