//! Assignments whose name says that the value is a secret, and whether it is.

use std::ops::Range;

use regex::Regex;

/// `api_key = value`, `"password": "value"` and their like, as far as a quick
/// look at a whole text goes.
pub(super) const PATTERN: &str = r#"(?i)[A-Za-z0-9_.-]*(?:api[_-]?key|secret|token|password|passwd|pwd|access[_-]?key)[A-Za-z0-9_.-]*(?:\\*["'])?\s*[=:]\s*\S{6,}"#;

/// The same up to where the value begins.
pub(super) const HEAD: &str = r#"(?i)(?<key>[A-Za-z0-9_.-]*(?:api[_-]?key|secret|token|password|passwd|pwd|access[_-]?key)[A-Za-z0-9_.-]*)(?<quote>\\*["'])?\s*[=:](?<blank>\s*)"#;

/// Words after which a key holds no secret: counts, cursors, descriptions.
const HARMLESS_KEYS: &[&str] = &[
    "tokens",
    "next",
    "page",
    "continuation",
    "cursor",
    "sync",
    "pagination",
    "resume",
    "count",
    "limit",
    "max",
    "min",
    "type",
    "name",
    "field",
    "length",
    "usage",
    "budget",
    "file",
    "path",
    "url",
    "uri",
    "endpoint",
    "id",
    "expiry",
    "expires",
    "expiration",
    "policy",
    "prefix",
    "hint",
    "tokenizer",
    "manager",
    "version",
    "arn",
    "required",
    "ref",
];

/// Values that describe a secret or stand for one.
const HARMLESS_VALUES: &[&str] = &[
    "string",
    "strings",
    "number",
    "integer",
    "boolean",
    "object",
    "optional",
    "required",
    "value",
    "values",
    "secret",
    "password",
    "default",
    "example",
    "placeholder",
    "redacted",
    "hidden",
    "undefined",
    "changeme",
    "authentication",
    "authorization",
    "credentials",
    "credential",
    "bearer",
    "access",
    "refresh",
    "return",
    "returns",
    "unique",
    "identifier",
    "generated",
    "retrieve",
    "create",
    "update",
    "delete",
    "please",
    "should",
    "stored",
    "encrypted",
    "maximum",
    "minimum",
    "length",
    "invalid",
    "missing",
    "expired",
    "revoked",
    "active",
    "enabled",
    "disabled",
    "unknown",
    "nullable",
    "readonly",
    "sample",
    "testing",
    "mytoken",
    "apikey",
    "apitoken",
    "yourtoken",
    "yourkey",
    "whether",
    "specify",
    "function",
    "parameter",
    "argument",
];

/// Where the secrets of a text are: values only, so that what is around them
/// stays what it was.
///
/// Every character is looked at a bounded number of times: a value that is no
/// secret is stepped over, or is quoted and searched once more inside.
pub(super) fn secrets(head: &Regex, text: &str) -> Vec<Range<usize>> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(captures) = head.captures_at(text, from) {
        let (Some(all), Some(key)) = (captures.get(0), captures.name("key")) else { break };
        from = all.end();
        let rest = &text[from..];
        // What holds more members is no value.
        if rest.starts_with(['[', '{']) || !names_a_secret(key.as_str()) {
            continue;
        }
        let value = Value::at(rest);
        let named = captures.name("quote").is_some();
        let secret = could_be_one(key.as_str(), &rest[value.inside.clone()])
            && !(named && is_number(&rest[value.inside.clone()]));
        if secret {
            // `password = "x"` is masked with its quotes, as the vectors have
            // it. Elsewhere they stay, or JSON and attributes would break.
            let bare = !named && captures.name("blank").is_some_and(|blank| !blank.is_empty());
            let masked = if bare { value.whole } else { value.inside };
            found.push(from + masked.start..from + masked.end);
            from = found.last().map_or(from, |masked| masked.end);
        } else if value.inside == value.whole {
            from += value.whole.end;
        }
    }
    found
}

/// A number of a JSON text. Those are never masked: a mask is none.
fn is_number(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'))
}

/// A value, as far as it goes.
struct Value {
    /// With its quotes.
    whole: Range<usize>,
    /// Without.
    inside: Range<usize>,
}

impl Value {
    /// The value that a text begins with.
    fn at(text: &str) -> Value {
        let slashes = text.len() - text.trim_start_matches('\\').len();
        let quote = text[slashes..].chars().next().filter(|c| matches!(c, '"' | '\''));
        let Some(quote) = quote else {
            let inside = 0..unquoted(text);
            return Value { whole: inside.clone(), inside };
        };
        let start = slashes + 1;
        match closing(&text[start..], quote, slashes) {
            Some(length) => {
                let end = start + length;
                Value { whole: 0..end + slashes + 1, inside: start..end }
            }
            // A text that was cut has no end of its last value.
            None => {
                let end = start + unquoted(&text[start..]);
                Value { whole: 0..end, inside: start..end }
            }
        }
    }
}

/// Where a quoted value ends whose opening quote has so many backslashes.
///
/// JSON inside a JSON string has one before each quote, three inside that, and
/// so on; a quote that is part of the value has more. A closing quote of what
/// is around it ends it, too.
fn closing(text: &str, quote: char, slashes: usize) -> Option<usize> {
    let mut run = 0;
    for (at, c) in text.char_indices() {
        match c {
            '\\' => run += 1,
            '\n' => return None,
            c if c == quote => {
                if run < slashes || (run - slashes).is_multiple_of(2 * (slashes + 1)) {
                    return Some(at - run.min(slashes));
                }
                run = 0;
            }
            _ => run = 0,
        }
    }
    None
}

/// Where a value without quotes ends.
fn unquoted(text: &str) -> usize {
    let ends = |(at, c): (usize, char)| match c {
        '&' | ',' | '}' | ']' | ';' | '"' | '\'' | '`' | '<' | '>' => true,
        // As it stands in the text of a JSON string.
        '\\' => text[at + 1..].starts_with(['n', 'r', 't', '"', '\'', '\\']),
        c => c.is_whitespace(),
    };
    let end = text.char_indices().find(|found| ends(*found)).map_or(text.len(), |(at, _)| at);
    text[..end].trim_end_matches(['.', ')', '\\']).len()
}

/// Whether `value` under the name `key` is a secret.
pub(super) fn judge(key: &str, value: &str) -> bool {
    names_a_secret(key) && could_be_one(key, value)
}

pub(super) fn names_a_secret(key: &str) -> bool {
    let folded = key.to_ascii_lowercase().replace('-', "_");
    let tells = [
        "api_key",
        "apikey",
        "secret",
        "token",
        "password",
        "passwd",
        "pwd",
        "access_key",
        "accesskey",
    ];
    tells.iter().any(|tell| folded.contains(tell))
        && !words(key).iter().any(|word| HARMLESS_KEYS.contains(&word.as_str()))
}

fn could_be_one(key: &str, value: &str) -> bool {
    // What closes the value is no part of it.
    let value = value.trim_matches(|c: char| {
        matches!(c, '"' | '\'' | '`' | '\\' | ',' | ';' | '.' | ')' | '}' | ']')
    });
    let length = value.chars().count();
    let expression =
        value.contains(['<', '>', '{', '[', '(', '$', '*', '|', '…']) || value.contains("...");
    let blank = value.contains(char::is_whitespace);
    if length < 6 || expression || blank {
        return false;
    }
    let folded = value.to_ascii_lowercase();
    let names_itself =
        folded.replace(['_', '-'], "") == key.to_ascii_lowercase().replace(['_', '-'], "");
    // `GITHUB_TOKEN=TOKEN_GLOBAL` says where a secret goes, not what it is.
    let names_another =
        value.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            && ["TOKEN", "KEY", "SECRET", "PASS"].iter().any(|word| value.contains(word));
    let stands_in =
        ["your", "xxx", "example", "placeholder", "dummy"].iter().any(|word| folded.contains(word));
    let capitalised = value.chars().next().is_some_and(char::is_uppercase)
        && value.chars().skip(1).all(char::is_lowercase);
    !(names_itself
        || names_another
        || stands_in
        || capitalised
        || HARMLESS_VALUES.contains(&folded.as_str())
        || monotone(value))
}

/// `123456`, `aaaaaa`: digits in a row or one character repeated.
fn monotone(value: &str) -> bool {
    let bytes = value.as_bytes();
    let same = bytes.windows(2).all(|pair| pair[0] == pair[1]);
    let counting = bytes.iter().all(u8::is_ascii_digit)
        && bytes
            .windows(2)
            .all(|pair| pair[1] == pair[0] + 1 || (pair[0] == b'9' && pair[1] == b'0'));
    same || counting
}

/// The words of a key, at underscores, dashes, dots and capitals.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower_before = false;
    for c in key.chars() {
        let boundary = !c.is_alphanumeric() || (c.is_uppercase() && lower_before);
        if boundary {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        lower_before = c.is_lowercase() || c.is_ascii_digit();
    }
    words
}
