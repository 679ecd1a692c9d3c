//! Finds assignments such as `password=…` whose value is a secret.

use std::collections::HashMap;
use std::ops::Range;

use regex::Regex;

/// Prefilter for `api_key = value`, `"password": "value"` and similar assignments.
pub(super) const PATTERN: &str = r#"(?i)[A-Za-z0-9_.-]*(?:api[_-]?key|secret|token|password|passwd|pwd|access[_-]?key)[A-Za-z0-9_.-]*(?:\\*["'])?\s*[=:]\s*\S{6,}"#;

/// An assignment up to the start of its value.
pub(super) const HEAD: &str = r#"(?i)(?<key>[A-Za-z0-9_.-]*(?:api[_-]?key|secret|token|password|passwd|pwd|access[_-]?key)[A-Za-z0-9_.-]*)(?<quote>\\*["'])?\s*[=:](?<blank>\s*)"#;

/// Words in a key that show that its value is not a secret: counts, cursors, descriptions.
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

/// Values that describe a secret or are placeholders for one.
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

/// The ranges of the secrets in a text: values only, without the text around them.
///
/// Every character is read a bounded number of times: a value that is not a secret is
/// skipped, or, if it is quoted, searched once more inside; and the closing quote of each
/// kind is searched once.
pub(super) fn find_secrets(head: &Regex, text: &str) -> Vec<Range<usize>> {
    search(head, text, &mut Quotes::default())
}

fn search(head: &Regex, text: &str, quotes: &mut Quotes) -> Vec<Range<usize>> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(captures) = head.captures_at(text, from) {
        let (Some(all), Some(key)) = (captures.get(0), captures.name("key")) else { break };
        from = all.end();
        let rest = &text[from..];
        // An array or object is not a secret itself.
        if rest.starts_with(['[', '{']) || !names_a_secret(key.as_str()) {
            continue;
        }
        let value = ValueRange::at(text, from, quotes);
        let has_quoted_key = captures.name("quote").is_some();
        let secret = could_be_secret(key.as_str(), &rest[value.inside.clone()])
            && !(has_quoted_key && is_number(&rest[value.inside.clone()]));
        if secret {
            // `password = "x"` is masked with its quotes, as the test vectors demand.
            // Elsewhere quotes stay, or JSON and attributes would break.
            let bare =
                !has_quoted_key && captures.name("blank").is_some_and(|blank| !blank.is_empty());
            let masked = if bare { value.whole } else { value.inside };
            found.push(from + masked.start..from + masked.end);
            from = found.last().map_or(from, |masked| masked.end);
        } else if value.inside == value.whole {
            from += value.whole.end;
        }
    }
    found
}

/// Whether a value is a JSON number. It is never masked, because the mask is not a number.
fn is_number(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'))
}

/// The range of a value in the text from its start on.
struct ValueRange {
    /// With its quotes.
    whole: Range<usize>,
    /// Without its quotes.
    inside: Range<usize>,
}

impl ValueRange {
    /// The value that starts at `from`; its ranges are relative to `from`.
    fn at(all: &str, from: usize, quotes: &mut Quotes) -> ValueRange {
        let text = &all[from..];
        let slashes = text.bytes().take(Quotes::DEEPEST + 1).take_while(|b| *b == b'\\').count();
        let quote = text[slashes..].chars().next().filter(|c| matches!(c, '"' | '\''));
        let Some(quote) = quote.filter(|_| slashes <= Quotes::DEEPEST) else {
            let inside = 0..unquoted(text);
            return ValueRange { whole: inside.clone(), inside };
        };
        let start = slashes + 1;
        match quotes.closing(all, from + start, quote, slashes) {
            Some(end) => {
                let end = end - from;
                ValueRange { whole: 0..end + slashes + 1, inside: start..end }
            }
            // The last value of a truncated text has no closing quote.
            None => {
                let end = start + unquoted(&text[start..]);
                ValueRange { whole: 0..end, inside: start..end }
            }
        }
    }
}

/// Caches where quotes close.
#[derive(Debug, Default)]
struct Quotes {
    /// For each kind of quote (character and backslashes): the range of the last search, and
    /// whether a closing quote is at its end.
    last: HashMap<(char, usize), (Range<usize>, bool)>,
    /// How many bytes were searched in all.
    #[cfg(test)]
    looked_at: usize,
}

impl Quotes {
    /// The most backslashes before a quote: JSON in JSON in JSON in JSON has this many. The
    /// bound keeps the number of kinds of quotes small.
    const DEEPEST: usize = 15;

    /// The position of the closing quote of the value that begins at `from`.
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

/// The length of a quoted value whose opening quote has `slashes` backslashes before it. The
/// error is the length that was searched when it does not end.
///
/// JSON inside a JSON string has one backslash before each quote, three inside that, and so
/// on; a quote that is part of the value has more. A closing quote of the text around it
/// ends the value, too.
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

/// The length of a value without quotes.
fn unquoted(text: &str) -> usize {
    let ends = |(at, c): (usize, char)| match c {
        '&' | ',' | '}' | ']' | ';' | '"' | '\'' | '`' | '<' | '>' => true,
        // An escape in the text of a JSON string.
        '\\' => text[at + 1..].starts_with(['n', 'r', 't', '"', '\'', '\\']),
        c => c.is_whitespace(),
    };
    let end = text.char_indices().find(|found| ends(*found)).map_or(text.len(), |(at, _)| at);
    text[..end].trim_end_matches(['.', ')', '\\']).len()
}

/// Whether `value` under the name `key` is a secret.
pub(super) fn is_secret(key: &str, value: &str) -> bool {
    names_a_secret(key) && could_be_secret(key, value)
}

/// Whether a key says that its value is a secret.
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

/// Whether a value may be a secret, not a placeholder or a description.
fn could_be_secret(key: &str, value: &str) -> bool {
    // Closing punctuation is not part of the value.
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

/// Whether a value counts up or repeats one character: `123456`, `aaaaaa`.
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
