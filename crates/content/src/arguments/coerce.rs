//! Converts loosely typed arguments as the contract says: integers and flags may be
//! text, `3.0` is the integer 3, `true` is 1.

use serde_json::Value;

/// Converts a value to an integer, if the contract takes it for one.
pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(true) => Some(1),
        Value::Number(number) => number.as_i64().or_else(|| integral(number.as_f64()?)),
        Value::String(text) => plain_integer(text.trim_matches(BLANKS)),
        Value::Null | Value::Bool(false) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The characters that are trimmed from both ends of a text.
pub(super) const BLANKS: [char; 6] = [' ', '\t', '\n', '\r', '\0', '\x0b'];

/// Parses decimal digits with an optional sign, without leading zeros, within 64 bits.
fn plain_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    text.parse().ok()
}

/// Converts a number without a fraction, such as `3.0`, to an integer, unless it has too
/// many digits to be printed in full.
#[expect(clippy::cast_possible_truncation, reason = "whole and below 1e15")]
fn integral(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64)
}

/// Converts a value to a flag: `true`, `false`, 0, 1, or one of these digits as text.
pub(super) fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => zero_or_one(number.as_i64()?),
        Value::String(text) => match text.as_str() {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn zero_or_one(number: i64) -> Option<bool> {
    match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Converts a scalar to the text that it is compared as; `None` for null, lists and objects.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(true) => Some("1".to_owned()),
        Value::Bool(false) => Some(String::new()),
        Value::Number(number) => {
            let whole = number.as_i64().or_else(|| integral(number.as_f64()?));
            Some(whole.map_or_else(|| number.to_string(), |whole| whole.to_string()))
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns whether a value is null or blank text.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim_matches(BLANKS).is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Returns how many members a list or an object has; `None` for scalars.
pub(super) fn count_members(value: &Value) -> Option<usize> {
    match value {
        Value::Array(items) => Some(items.len()),
        Value::Object(members) => Some(members.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The size that "must be at least" compares: the number itself, or else a length.
#[expect(clippy::cast_precision_loss, reason = "a length compared with a small bound")]
pub(super) fn size(value: &Value) -> f64 {
    match value {
        Value::Null | Value::Bool(false) => 0.0,
        Value::Bool(true) => 1.0,
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::String(text) => {
            text.trim_matches(BLANKS).parse().unwrap_or_else(|_| text.chars().count() as f64)
        }
        Value::Array(_) | Value::Object(_) => count_members(value).unwrap_or(0) as f64,
    }
}

/// Shortens a caller's text for an error message, and drops control characters.
pub(super) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
    if short.len() < text.len() && text.chars().count() > 100 {
        short.push('…');
    }
    short
}
