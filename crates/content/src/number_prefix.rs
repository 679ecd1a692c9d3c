//! Compares texts by the decimal number at their start, digit by digit, for SQLite.
//!
//! MySQL and PostgreSQL have exact decimal numbers. SQLite has not: it rounds `2.675`
//! to `2.67`, because of the binary form, and its integers end at 64 bits. So the
//! functions here are registered in SQLite as collations.

use std::cmp::Ordering;

use crate::query::Cast;

/// Compares the numbers at the start of two texts, each truncated or rounded as the
/// cast says. A text that does not start with a number counts as zero.
pub(crate) fn compare(cast: Cast, left: &str, right: &str) -> Ordering {
    let (left, right) =
        (NumberPrefix::new(left).scaled(cast), NumberPrefix::new(right).scaled(cast));
    match (left.negative, right.negative) {
        (false, false) => left.magnitude().cmp(&right.magnitude()),
        (true, true) => right.magnitude().cmp(&left.magnitude()),
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
    }
}

/// Whether a number can be the result of a cast.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The cast can give exactly this number.
    Exact,
    /// The number lies between two neighbouring results of the cast.
    Between {
        /// The neighbour that is nearer to zero.
        toward_zero: String,
        negative: bool,
    },
}

/// Returns whether a number can be the result of a cast. The number is written as
/// digits, with an optional minus and an optional fraction.
pub(crate) fn fit(cast: Cast, number: &str) -> Fit {
    let NumberPrefix { negative, whole, fraction } = NumberPrefix::new(number);
    let kept = fraction.len().min(scale(cast));
    if fraction[kept..].iter().all(|&digit| digit == b'0') {
        return Fit::Exact;
    }
    let (sign, digits) = (if negative { "-" } else { "" }, |bytes| String::from_utf8_lossy(bytes));
    let toward_zero = format!("{sign}{}.{}", digits(whole), digits(&fraction[..kept]));
    Fit::Between { toward_zero, negative }
}

/// The number at the start of a text: its sign and its digits.
struct NumberPrefix<'t> {
    negative: bool,
    whole: &'t [u8],
    fraction: &'t [u8],
}

/// The result of a cast as an integer, scaled by a power of ten; zero is not negative.
struct Scaled {
    negative: bool,
    /// Without zeros at the start.
    digits: Vec<u8>,
}

impl<'t> NumberPrefix<'t> {
    fn new(text: &'t str) -> NumberPrefix<'t> {
        let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']).as_bytes();
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (whole, rest) = split_digits(text);
        let fraction = match rest {
            [b'.', rest @ ..] => split_digits(rest).0,
            _ => &[],
        };
        NumberPrefix { negative, whole, fraction }
    }

    /// Truncates or rounds the number as the cast says.
    fn scaled(&self, cast: Cast) -> Scaled {
        let scale = scale(cast);
        let kept = self.fraction.len().min(scale);
        let zeros = self.whole.iter().take_while(|&&digit| digit == b'0').count();
        let mut digits = self.whole[zeros..].to_vec();
        digits.extend_from_slice(&self.fraction[..kept]);
        digits.resize(digits.len() + scale - kept, b'0');
        if cast != Cast::Integer && self.fraction.get(scale).is_some_and(|&digit| digit >= b'5') {
            increment(&mut digits);
        }
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        digits.drain(..zeros);
        Scaled { negative: self.negative && !digits.is_empty(), digits }
    }
}

impl Scaled {
    /// The absolute value as a key for comparison: more digits are larger.
    fn magnitude(&self) -> (usize, &[u8]) {
        (self.digits.len(), &self.digits)
    }
}

fn scale(cast: Cast) -> usize {
    match cast {
        Cast::Integer => 0,
        Cast::Decimal { scale } => scale.into(),
    }
}

/// Splits a text into the digits at its start and the rest.
fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// Adds one to a number of decimal digits.
fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

/// The name of the collation for a cast, in SQL.
pub(crate) fn collation_name(cast: Cast) -> String {
    match cast {
        Cast::Integer => "gatelet_integer".to_owned(),
        Cast::Decimal { scale } => format!("gatelet_decimal_{scale}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CENTS: Cast = Cast::Decimal { scale: 2 };

    #[track_caller]
    fn check(cast: Cast, left: &str, expected: Ordering, right: &str) {
        assert_eq!(compare(cast, left, right), expected, "{left} and {right}");
        assert_eq!(compare(cast, right, left), expected.reverse(), "{right} and {left}");
    }

    #[test]
    fn decimals_are_rounded_half_away_from_zero_as_they_are_written() {
        for (text, rounded) in [
            ("99.955", "99.96"),
            ("2.675", "2.68"),
            ("1.005", "1.01"),
            ("0.285", "0.29"),
            ("1.115", "1.12"),
            ("-2.675", "-2.68"),
            ("-0.004", "0"),
            ("99.995 each", "100"),
            (" \t+.5", "0.5"),
            ("1e3", "1"),
            ("1,5", "1"),
            (".", "0"),
            ("", "0"),
        ] {
            check(CENTS, text, Ordering::Equal, rounded);
        }
    }

    #[test]
    fn integers_are_cut_and_have_any_length() {
        check(Cast::Integer, "99.95", Ordering::Equal, "99");
        check(Cast::Integer, "9223372036854775809", Ordering::Greater, "9223372036854775808");
        check(Cast::Integer, "-9223372036854775809", Ordering::Less, "-9223372036854775808");
        check(Cast::Integer, "0010", Ordering::Greater, "9");
        check(Cast::Integer, "-0", Ordering::Equal, "0");
        check(Cast::Integer, "-1", Ordering::Less, "0");
    }

    #[test]
    fn a_number_that_no_cast_gives_lies_between_two_that_do() {
        assert_eq!(fit(CENTS, "99.950"), Fit::Exact);
        let between = |toward_zero: &str, negative| Fit::Between {
            toward_zero: toward_zero.to_owned(),
            negative,
        };
        assert_eq!(fit(CENTS, "99.955"), between("99.95", false));
        assert_eq!(fit(Cast::Integer, "-1.5"), between("-1.", true));
    }
}
