//! Masks secrets in JSON that cannot be parsed into a tree: it has half a character
//! in a string, or too many levels.
//!
//! Its strings are found by their quotes and looked at one by one, so that
//! neither is a place for a secret to hide in, and no mask reaches from one
//! string into another.

use std::borrow::Cow;
use std::ops::Range;

/// The text with its strings masked, or `None` when none was. `mask` is given
/// the key of a member's value, and says what to put in its place.
pub(super) fn masked(
    json: &str,
    mask: &dyn Fn(Option<&str>, &str) -> Option<String>,
) -> Option<String> {
    let (mut out, mut copied) = (String::new(), 0);
    let (mut at, mut key) = (0, None);
    while let Some(inside) = next_string(json, at) {
        // Anything but a blank between a key and a string means that the
        // string is no value of that key.
        let between = json[at..inside.start - 1].trim();
        if between != ":" {
            key = None;
        }
        at = inside.end + 1;
        let text = decoded(&json[inside.clone()]);
        if json[at..].trim_start().starts_with(':') {
            key = Some(text.into_owned());
            continue;
        }
        if let Some(masked) = mask(key.as_deref(), &text) {
            out.push_str(&json[copied..inside.start]);
            out.push_str(&escaped(&masked));
            copied = inside.end;
        }
        key = None;
    }
    (copied != 0).then(|| out + &json[copied..])
}

/// Returns what is between the quotes of the first string after `from`.
fn next_string(json: &str, from: usize) -> Option<Range<usize>> {
    let start = from + json[from..].find('"')? + 1;
    let mut end = start;
    loop {
        end += json[end..].find(['"', '\\'])?;
        match json.as_bytes()[end] {
            b'"' => return Some(start..end),
            // A backslash and what it escapes, which may be longer than a byte.
            _ => end += 1 + json[end + 1..].chars().next()?.len_utf8(),
        }
    }
}

/// A string without its escapes; what is no character becomes the sign for it.
fn decoded(inside: &str) -> Cow<'_, str> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    if let Ok(text) = serde_json::from_str(&format!("\"{inside}\"")) {
        return Cow::Owned(text);
    }
    let mut units: Vec<u16> = Vec::with_capacity(inside.len());
    let mut chars = inside.chars();
    let mut pair = [0; 2];
    while let Some(c) = chars.next() {
        let meant = match c {
            '\\' => match chars.next() {
                Some('u') => {
                    let digits: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).unwrap_or(0xfffd));
                    continue;
                }
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend_from_slice(meant.encode_utf16(&mut pair));
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
