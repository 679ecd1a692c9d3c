//! Masks secrets in everything that models read and logs record.
//!
//! A [`Scrubber`] masks text that has the format of a known credential, and the
//! value of every assignment whose name says that it holds one. Precision
//! matters as much as recall: a masked cursor or count breaks the next call, so
//! values that only describe a secret, are placeholders, or count tokens are
//! not masked. [`one_line_excerpt`] shortens upstream error text for display.

mod assignment;
mod configured;
mod private_key;
mod skeleton;
mod unparsed_json;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use regex::{Captures, Regex, RegexSet, bytes};
use tool::text::{cut, without_invisible};
use tool::{Failure, Json, Object, Reply, RpcError};

use configured::{ConfiguredSecrets, MIN_BYTES};

/// The text that replaces a secret.
pub const MASK: &str = "[REDACTED-SECRET]";

/// The number of characters of an upstream's error text that are shown.
const MAX_EXCERPT_CHARS: usize = 256;

/// Patterns of credentials, in addition to [private keys](private_key). No
/// pattern scans past its own match, so one pass over the text finds all of
/// them. The group named `secret` is masked, or the whole match if there is none.
const CREDENTIALS: &[&str] = &[
    r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA)[0-9A-Z]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\bgh[pousr]_[0-9A-Za-z]{36,}",
    r"\bxox[baprs]-[0-9A-Za-z-]{10,}",
    r"\bsk-ant-[0-9A-Za-z_-]{20,}",
    r"\bsk-(?:proj-)?[0-9A-Za-z_-]{20,}",
    r"\bgithub_pat_[0-9A-Za-z_]{22,}",
    r"\bxapp-\d-[0-9A-Za-z-]{10,}",
    r"\b[sr]k_live_[0-9A-Za-z]{16,}",
    r"\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}",
    r"\beyJ[0-9A-Za-z_-]{5,}\.eyJ[0-9A-Za-z_-]{5,}\.[0-9A-Za-z_-]*",
    // A password may contain `@`: it ends at the last `@` before the path.
    r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"'<>]*:(?<secret>[^\s/"'<>]+)@"#,
    r"(?i)\bbearer\s+(?<secret>[0-9A-Za-z._~+/-]{10,}=*)",
];

/// An ASCII character that is written as a JSON escape, as in `postgres:\/\/` or
/// `\u0041KIA`: such text has to be parsed before the patterns can match.
const ESCAPED: &str = r"\\(?:/|u00[2-7])";

/// Scrubs text: finds secrets and masks them. Build it once and share it.
#[derive(Debug)]
pub struct Scrubber {
    /// Prefilter: the start of a private key, then each credential pattern, then
    /// assignments, in this order.
    prefilter: RegexSet,
    /// The same prefilter for JSON text that has not been parsed.
    json_prefilter: bytes::RegexSet,
    private_keys: private_key::Finder,
    credentials: Vec<Regex>,
    /// Matches an assignment up to the start of its value.
    assignment: Regex,
    /// Values that the operator configured as secrets.
    configured: ArcSwap<Option<ConfiguredSecrets>>,
    enabled: AtomicBool,
}

/// The settings of a [`Scrubber`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// When `false`, nothing is masked.
    pub enabled: bool,
    /// Values that are masked whatever their format, such as the password that a
    /// configuration gives to an upstream, and also where they are encoded or spelt
    /// out. Values under 8 bytes are ignored.
    pub known_secrets: Vec<String>,
}

/// Whether a value with this name is so likely a secret, and so unlikely to
/// occur in other text, that it can be masked wherever it occurs.
pub fn looks_like_secret(name: &str, value: &str) -> bool {
    let is_a_word = value.chars().all(|c| c.is_ascii_lowercase()) && value.len() < 2 * MIN_BYTES;
    MIN_BYTES <= value.len()
        && !is_a_word
        && !value.contains(char::is_whitespace)
        && assignment::names_a_secret(name)
}

impl Scrubber {
    pub fn new(config: Config) -> Scrubber {
        // Without `\b`: in JSON text the escape `\n` may directly precede a credential.
        let all = CREDENTIALS.iter().map(|pattern| pattern.replace(r"\b", ""));
        let all = [private_key::BEGIN.to_owned()].into_iter().chain(all);
        let all: Vec<String> = all.chain([assignment::PATTERN.to_owned()]).collect();
        let in_json = all.iter().map(String::as_str).chain([ESCAPED]);
        let compile = |pattern: &str| Regex::new(pattern).expect("our own patterns compile");
        Scrubber {
            prefilter: RegexSet::new(&all).expect("our own patterns compile"),
            json_prefilter: bytes::RegexSet::new(in_json).expect("our own patterns compile"),
            private_keys: private_key::Finder::new(),
            credentials: CREDENTIALS.iter().map(|pattern| compile(pattern)).collect(),
            assignment: compile(assignment::HEAD),
            configured: ArcSwap::from_pointee(ConfiguredSecrets::new(config.known_secrets)),
            enabled: AtomicBool::new(config.enabled),
        }
    }

    /// Replaces the settings of this scrubber with those of `other`.
    pub fn copy_settings_from(&self, other: &Scrubber) {
        self.enabled.store(other.is_enabled(), Ordering::Relaxed);
        self.configured.store(other.configured.load_full());
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Masks every secret in a text. The text is borrowed if there is none.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        if !self.is_enabled() {
            return text;
        }
        if let Some(configured) = &**self.configured.load()
            && let Some(masked) = configured.mask_in(&text, MASK)
        {
            text = Cow::Owned(masked);
        }
        // One pass over the text selects the patterns that have to run.
        for at in self.prefilter.matches(&text) {
            let found = match at.checked_sub(1).map(|at| self.credentials.get(at)) {
                None => self.private_keys.find(&text),
                Some(Some(pattern)) => find_credentials(pattern, &text),
                Some(None) => assignment::find_secrets(&self.assignment, &text),
            };
            if let Some(masked) = mask_ranges(&text, found) {
                text = Cow::Owned(masked);
            }
        }
        text
    }

    /// Masks every secret in the strings of a JSON value.
    ///
    /// A value without secrets is returned unchanged, byte for byte.
    pub fn scrub_json(&self, json: &Json) -> Json {
        self.scrubbed_json(json).unwrap_or_else(|| json.clone())
    }

    /// The value with its secrets masked, or `None` if there are none.
    fn scrubbed_json(&self, json: &Json) -> Option<Json> {
        let suspicious = self.is_enabled()
            && (self.json_prefilter.is_match(json.as_bytes())
                || (**self.configured.load())
                    .as_ref()
                    .is_some_and(|secrets| secrets.are_in(json.as_str())));
        if !suspicious {
            return None;
        }
        let Ok(mut value) = json.to_value() else { return self.scrubbed_unparsed(json) };
        self.scrub_value(&mut value).then(|| value.into())
    }

    /// Like `scrubbed_json`, for JSON text that cannot be parsed into a tree.
    fn scrubbed_unparsed(&self, json: &Json) -> Option<Json> {
        let mask = |key: Option<&str>, text: &str| {
            if key.is_some_and(|key| assignment::is_secret(key, text)) {
                return Some(MASK.to_owned());
            }
            match self.scrub(text) {
                Cow::Owned(masked) => Some(masked),
                Cow::Borrowed(_) => None,
            }
        };
        let masked = unparsed_json::mask_strings(json.as_str(), &mask)?;
        // Only the contents of strings changed, so the text is still JSON.
        Some(Json::parse(masked).unwrap_or_else(|_| Json::null()))
    }

    /// Masks every secret in a reply. A result without secrets is returned
    /// unchanged.
    pub fn scrub_reply(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Result(json) => Reply::Result(self.scrubbed_json(&json).unwrap_or(json)),
            Reply::Error(error) => {
                let scrubbed = self.scrubbed_json(&error.raw).map(RpcError::parse);
                Reply::Error(without_invisible_message(scrubbed.unwrap_or(error)))
            }
        }
    }

    /// Masks and shortens the reason of a failure, so that it can be shown, logged
    /// and recorded.
    pub fn scrub_failure(&self, failure: Failure) -> Failure {
        let scrubbed = |reason: String| self.scrub_to_line(&reason);
        match failure {
            Failure::Unavailable { reason } => Failure::Unavailable { reason: scrubbed(reason) },
            Failure::Lost { reason, sent } => Failure::Lost { reason: scrubbed(reason), sent },
            Failure::Unauthorized { reason, sent } => {
                Failure::Unauthorized { reason: scrubbed(reason), sent }
            }
            Failure::Forbidden { reason, sent } => {
                Failure::Forbidden { reason: scrubbed(reason), sent }
            }
            Failure::Unusable { reason } => Failure::Unusable { reason: scrubbed(reason) },
            Failure::Unsupported { feature } => Failure::Unsupported { feature: scrubbed(feature) },
            Failure::Timeout { .. } | Failure::RateLimited { .. } | Failure::Cancelled => failure,
        }
    }

    /// Masks secrets in every string of `value`. Returns whether there was one.
    pub fn scrub_value(&self, value: &mut serde_json::Value) -> bool {
        use serde_json::Value;
        match value {
            Value::String(text) => match self.scrub(text) {
                Cow::Owned(masked) => {
                    *text = masked;
                    true
                }
                Cow::Borrowed(_) => false,
            },
            // `any` would stop at the first secret; every element has to be scrubbed.
            Value::Array(array) => {
                let found =
                    array.iter_mut().fold(false, |found, part| self.scrub_value(part) | found);
                self.scrub_list(array) | found
            }
            Value::Object(object) => {
                let found = object
                    .iter_mut()
                    .fold(false, |found, (key, part)| self.scrub_member(key, part) | found);
                self.scrub_keys(object) | found
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Masks a configured secret that is spread over the strings of a list. Returns
    /// whether there was one.
    fn scrub_list(&self, list: &mut [serde_json::Value]) -> bool {
        let configured = self.configured.load();
        let Some(configured) = configured.as_ref().as_ref().filter(|_| self.is_enabled()) else {
            return false;
        };
        let texts: Option<Vec<&str>> = list.iter().map(serde_json::Value::as_str).collect();
        let found = configured.find_across(&texts.unwrap_or_default());
        for place in found.iter().cloned().flatten() {
            list[place] = MASK.into();
        }
        !found.is_empty()
    }

    /// Masks secrets in the keys of an object. Returns whether there was one.
    fn scrub_keys(&self, object: &mut serde_json::Map<String, serde_json::Value>) -> bool {
        if !object.keys().any(|key| matches!(self.scrub(key), Cow::Owned(_))) {
            return false;
        }
        // The last number that was tried for each key: there may be many of one.
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (key, part) in std::mem::take(object) {
            let masked = self.scrub(&key).into_owned();
            let number = numbers.entry(masked.clone()).or_insert(1);
            let mut free = masked.clone();
            while object.contains_key(&free) {
                *number += 1;
                free = format!("{masked} {number}");
            }
            object.insert(free, part);
        }
        true
    }

    /// Masks a member whose key says that its value is a secret, and scrubs any
    /// other. Returns whether there was a secret.
    fn scrub_member(&self, key: &str, part: &mut serde_json::Value) -> bool {
        if let serde_json::Value::String(text) = part
            && self.is_enabled()
            && assignment::is_secret(key, text)
        {
            MASK.clone_into(text);
            return true;
        }
        self.scrub_value(part)
    }

    /// Masks secrets in upstream text and shortens it to one line for display.
    pub fn scrub_to_line(&self, text: &str) -> String {
        // Scrub before cutting: the first half of a secret would not be recognized.
        one_line_excerpt(&self.scrub(text))
    }

    /// Masks secrets in upstream text that gatelet quotes as a reason.
    pub fn scrub_reason(&self, text: &str) -> String {
        cut(without_invisible(&self.scrub(text)).trim_end_matches('.'), 300)
    }
}

impl Default for Scrubber {
    fn default() -> Scrubber {
        Scrubber::new(Config { enabled: true, known_secrets: Vec::new() })
    }
}

/// Removes control characters and line breaks, and cuts the text to 256 characters.
pub fn one_line_excerpt(text: &str) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let line = text.split(blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let line = without_invisible(&line).into_owned();
    if line.chars().count() <= MAX_EXCERPT_CHARS {
        return line;
    }
    let head: String = line.chars().take(MAX_EXCERPT_CHARS - 1).collect();
    format!("{}…", head.trim_end())
}

/// Removes control and formatting characters from the message of an error,
/// because models, people and terminals read it.
fn without_invisible_message(error: RpcError) -> RpcError {
    let Cow::Owned(message) = without_invisible(&error.message) else { return error };
    let Ok(mut raw) = Object::parse(&error.raw) else { return error };
    raw.set("message", Json::encode(&message));
    RpcError::parse(raw.to_json())
}

/// Finds the ranges that a credential pattern matches.
fn find_credentials(pattern: &Regex, text: &str) -> Vec<Range<usize>> {
    let secret = |found: Captures<'_>| Some(found.name("secret").or(found.get(0))?.range());
    pattern.captures_iter(text).filter_map(secret).collect()
}

/// Masks the given ranges. Returns `None` if none is left to mask.
fn mask_ranges(text: &str, parts: Vec<Range<usize>>) -> Option<String> {
    let (mut out, mut last) = (String::new(), 0);
    for part in parts.into_iter().filter(|part| &text[part.clone()] != MASK) {
        out.push_str(&text[last..part.start]);
        out.push_str(MASK);
        last = part.end;
    }
    (last != 0).then(|| out + &text[last..])
}

#[cfg(test)]
mod tests;
