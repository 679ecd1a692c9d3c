//! Times as a person reads them.

/// How long ago something was, or how long until it is.
pub(crate) fn distance(now: u64, then: u64) -> String {
    let seconds = now.abs_diff(then) / 1000;
    let span = match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    };
    if then <= now { format!("{span} ago") } else { format!("in {span}") }
}

/// A duration in milliseconds with as many digits as tell something.
pub(crate) fn millis(millis: f64) -> String {
    match millis {
        m if m < 10.0 => format!("{m:.1} ms"),
        m if m < 10_000.0 => format!("{m:.0} ms"),
        m => format!("{:.0} s", m / 1000.0),
    }
}

/// A number with its thousands apart.
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
        assert_eq!(distance(100_000, 95_000), "5 s ago");
        assert_eq!(distance(0, 30 * 60_000), "in 30 min");
        assert_eq!(millis(3.21), "3.2 ms");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(999), "999");
    }
}
