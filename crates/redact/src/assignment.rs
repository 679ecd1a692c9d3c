//! Finds assignments such as `password=…` whose value is a secret.

use std::collections::HashMap;
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

/// Returns where the secrets of a text are: values only, so that what is around
/// them stays what it was.
///
/// Every character is looked at a bounded number of times: a value that is no
/// secret is stepped over, or is quoted and searched once more inside; and where
/// a quote of one kind closes is looked for once.
pub(super) fn secrets(head: &Regex, text: &str) -> Vec<Range<usize>> {
    search(head, text, &mut Quotes::default())
}

fn search(head: &Regex, text: &str, quotes: &mut Quotes) -> Vec<Range<usize>> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(captures) = head.captures_at(text, from) {
        let (Some(all), Some(key)) = (captures.get(0), captures.name("key")) else { break };
        from = all.end();
        let rest = &text[from..];
        // What holds more members is no value.
        if rest.starts_with(['[', '{']) || !names_a_secret(key.as_str()) {
            continue;
        }
        let value = Value::at(text, from, quotes);
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
    /// The value that a text has from there on; its places count from there.
    fn at(all: &str, from: usize, quotes: &mut Quotes) -> Value {
        let text = &all[from..];
        let slashes = text.bytes().take(Quotes::DEEPEST + 1).take_while(|b| *b == b'\\').count();
        let quote = text[slashes..].chars().next().filter(|c| matches!(c, '"' | '\''));
        let Some(quote) = quote.filter(|_| slashes <= Quotes::DEEPEST) else {
            let inside = 0..unquoted(text);
            return Value { whole: inside.clone(), inside };
        };
        let start = slashes + 1;
        match quotes.closing(all, from + start, quote, slashes) {
            Some(end) => {
                let end = end - from;
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

/// Where quotes close, as far as anybody asked.
#[derive(Debug, Default)]
struct Quotes {
    /// For each kind of quote where it was looked for last: from where to where,
    /// and whether it closes there.
    last: HashMap<(char, usize), (Range<usize>, bool)>,
    /// How many bytes were looked at in all.
    #[cfg(test)]
    looked_at: usize,
}

impl Quotes {
    /// JSON in JSON in JSON in JSON has so many backslashes before its quotes.
    /// Behind more of them no value is looked for: there would be as many kinds
    /// of quotes as somebody likes.
    const DEEPEST: usize = 15;

    /// Returns where the value that begins at `from` closes.
    fn closing(&mut self, text: &str, from: usize, quote: char, slashes: usize) -> Option<usize> {
        let kind = (quote, slashes);
        if let Some((seen, closes)) = self.last.get(&kind)
            && seen.contains(&from)
        {
            return closes.then_some(seen.end);
        }
        let found = closing(&text[from..], quote, slashes);
        let end = match found {
            Ok(length) | Err(length) => from + length,
        };
        #[cfg(test)]
        {
            self.looked_at += end - from;
        }
        self.last.insert(kind, (from..end, found.is_ok()));
        found.is_ok().then_some(end)
    }
}

/// Returns how far a quoted value goes whose opening quote has so many backslashes;
/// or how far was looked when it does not end.
///
/// JSON inside a JSON string has one before each quote, three inside that, and
/// so on; a quote that is part of the value has more. A closing quote of what
/// is around it ends it, too.
fn closing(text: &str, quote: char, slashes: usize) -> Result<usize, usize> {
    let mut run = 0;
    for (at, c) in text.char_indices() {
        match c {
            '\\' => run += 1,
            '\n' => return Err(at),
            c if c == quote => {
                if run < slashes || (run - slashes).is_multiple_of(2 * (slashes + 1)) {
                    return Ok(at - run.min(slashes));
                }
                run = 0;
            }
            _ => run = 0,
        }
    }
    Err(text.len())
}

/// Returns where a value without quotes ends.
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

/// Returns whether `value` under the name `key` is a secret.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that are looked at for closing quotes, per byte of text.
    fn looked_at(text: &str) -> usize {
        let mut quotes = Quotes::default();
        search(&Regex::new(HEAD).unwrap(), text, &mut quotes);
        quotes.looked_at / text.len()
    }

    #[test]
    fn every_byte_is_looked_at_a_bounded_number_of_times() {
        let kinds = 2 * (Quotes::DEEPEST + 1);
        let slashes = |n: usize| "\\".repeat(n);
        let rising =
            |top: usize| (0..top).map(|n| format!("token={}\"", slashes(n))).collect::<String>();
        for text in [
            "token=\"".repeat(20_000),
            "token='\\\"".repeat(20_000),
            "token=\"token='x".repeat(20_000),
            format!("token=\"{}", "token=\\\"x".repeat(20_000)),
            "token=\"(\\'".repeat(20_000),
            format!("{}{}", rising(400), "token=\"x(".repeat(1_000)),
            rising(16) + &"token:('x".repeat(20_000),
            (0..16).map(|n| format!("token={}'(", slashes(n))).collect::<String>()
                + &format!("{}\"", slashes(1)).repeat(20_000),
        ] {
            let times = looked_at(&text);
            assert!(times <= kinds, "{times} times: {}", &text[..40]);
        }
    }
}
