//! Assignments whose name says that the value is a secret, and whether it is.

use regex::Captures;

/// `api_key = value`, `"password": "value"` and their like.
pub(super) const PATTERN: &str = r#"(?i)(?<key>[A-Za-z0-9_.-]*(?:api[_-]?key|secret|token|password|passwd|pwd|access[_-]?key)[A-Za-z0-9_.-]*)(?:\\?["'])?\s*[=:]\s*(?<secret>\S{6,})"#;

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

/// Whether the value of a match is one to mask.
pub(super) fn is_secret(found: &Captures<'_>) -> bool {
    judge(&found["key"], &found["secret"])
}

/// Whether `value` under the name `key` is a secret.
pub(super) fn judge(key: &str, value: &str) -> bool {
    names_a_secret(key) && could_be_one(key, value)
}

fn names_a_secret(key: &str) -> bool {
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
