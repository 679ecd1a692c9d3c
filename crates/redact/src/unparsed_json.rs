//! Masks secrets in JSON that cannot be parsed into a tree, because a string has half a
//! surrogate pair or there are too many levels.
//!
//! Its strings are found by their quotes and checked one by one, so that secrets cannot
//! hide in such JSON, and no mask reaches from one string into another.

use std::borrow::Cow;
use std::ops::Range;

/// Replaces strings of the JSON text; `None` if there was nothing to replace. `mask` gets
/// the key of a member (if any) and its string, and returns the replacement.
pub(super) fn mask_strings(
    json: &str,
    mask: &dyn Fn(Option<&str>, &str) -> Option<String>,
) -> Option<String> {
    let (mut out, mut copied) = (String::new(), 0);
    let (mut at, mut key) = (0, None);
    while let Some(inside) = next_string(json, at) {
        // The string is the key's value only if nothing but `:` is between them.
        let between = json[at..inside.start - 1].trim();
        if between != ":" {
            key = None;
        }
        at = inside.end + 1;
        let text = decoded(&json[inside.clone()]);
        let is_key = json[at..].trim_start().starts_with(':');
        if let Some(masked) = mask(key.as_deref().filter(|_| !is_key), &text) {
            out.push_str(&json[copied..inside.start]);
            out.push_str(&escaped(&masked));
            copied = inside.end;
        }
        key = is_key.then(|| text.into_owned());
    }
    (copied != 0).then(|| out + &json[copied..])
}

/// The range between the quotes of the first string after `from`.
fn next_string(json: &str, from: usize) -> Option<Range<usize>> {
    let start = from + json[from..].find('"')? + 1;
    let mut end = start;
    loop {
        end += json[end..].find(['"', '\\'])?;
        match json.as_bytes()[end] {
            b'"' => return Some(start..end),
            // A backslash and the character that it escapes, which may be several bytes.
            _ => end += 1 + json[end + 1..].chars().next()?.len_utf8(),
        }
    }
}

/// Decodes the escapes of a string; invalid ones become the replacement character.
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
        let decoded = match c {
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
        units.extend_from_slice(decoded.encode_utf16(&mut pair));
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
