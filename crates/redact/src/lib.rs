//! Keeping secrets from models and logs.
//!
//! A [`Scrubber`] masks what is a credential by its form, and the values of
//! assignments whose names say that they hold one. Precision matters as much
//! as recall: a masked cursor or count breaks the next call, so values that
//! only describe a secret, stand for one, or count tokens stay. [`collapse`]
//! makes upstream error text fit to be shown.

mod assignment;
mod private_key;
mod unread;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use regex::{Captures, Regex, RegexSet, bytes};
use tool::text::{cut, plain};
use tool::{Failure, Json, Object, Reply, RpcError};

/// What stands where a secret was.
pub const MASK: &str = "[REDACTED-SECRET]";

/// How much of an upstream's error text is shown.
const LONGEST: usize = 256;

/// Forms that are credentials by themselves, beside [private keys](private_key).
/// None needs to look further than it matches, so finding all of them reads the
/// text once. A group called `secret` is what
/// is masked; without one, the whole match.
const FORMS: &[&str] = &[
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
    // A password may have an `@` in it: it goes to the last before the path.
    r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"'<>]*:(?<secret>[^\s/"'<>]+)@"#,
    r"(?i)\bbearer\s+(?<secret>[0-9A-Za-z._~+/-]{10,}=*)",
];

/// A character of ASCII that is written as an escape, as in `postgres:\/\/` or
/// `\u0041KIA`: what it says is only known when it is read.
const ESCAPED: &str = r"\\(?:/|u00[2-7])";

/// Finds and masks secrets. Build it once and share it.
#[derive(Debug)]
pub struct Scrubber {
    /// Whether there may be a private key, one of the forms, an assignment, in
    /// this order.
    any: RegexSet,
    /// The same, for JSON text that is not read yet.
    in_bytes: bytes::RegexSet,
    private_keys: private_key::Finder,
    forms: Vec<Regex>,
    /// Where the value of an assignment begins.
    assignment: Regex,
    /// Texts that the operator knows to be secret.
    known: ArcSwap<Vec<Known>>,
    enabled: AtomicBool,
}

/// What to scrub.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Off leaves everything as it is.
    pub enabled: bool,
    /// Values that are secret whatever they look like, such as the password
    /// that a configuration gives to an upstream; short ones are ignored.
    pub known: Vec<String>,
}

/// A secret, and the ways in which it stands in JSON text.
#[derive(Debug)]
struct Known {
    plain: String,
    escaped: String,
    /// Some servers escape what need not be.
    slashed: String,
}

impl Known {
    fn new(plain: String) -> Known {
        let quoted = serde_json::Value::from(plain.as_str()).to_string();
        let escaped = quoted[1..quoted.len() - 1].to_owned();
        let slashed = escaped.replace('/', "\\/");
        Known { plain, escaped, slashed }
    }

    fn is_in(&self, json: &Json) -> bool {
        json.mentions(&self.escaped)
            || (self.slashed != self.escaped && json.mentions(&self.slashed))
    }
}

/// The shortest text that is masked wherever it stands.
const SHORTEST: usize = 8;

/// Whether a value that somebody gave this name is so likely a secret, and so
/// unlikely anything else, that it may be masked wherever it stands.
pub fn is_known_secret(name: &str, value: &str) -> bool {
    let is_a_word = value.chars().all(|c| c.is_ascii_lowercase()) && value.len() < 2 * SHORTEST;
    SHORTEST <= value.len()
        && !is_a_word
        && !value.contains(char::is_whitespace)
        && assignment::names_a_secret(name)
}

impl Scrubber {
    pub fn new(config: Config) -> Scrubber {
        // Looser than the forms: in JSON text a `\n` may stand right before one.
        let all = FORMS.iter().map(|form| form.replace(r"\b", ""));
        let all = [private_key::BEGIN.to_owned()].into_iter().chain(all);
        let all: Vec<String> = all.chain([assignment::PATTERN.to_owned()]).collect();
        let in_json = all.iter().map(String::as_str).chain([ESCAPED]);
        let compile = |form: &str| Regex::new(form).expect("our own patterns compile");
        Scrubber {
            any: RegexSet::new(&all).expect("our own patterns compile"),
            in_bytes: bytes::RegexSet::new(in_json).expect("our own patterns compile"),
            private_keys: private_key::Finder::new(),
            forms: FORMS.iter().map(|form| compile(form)).collect(),
            assignment: compile(assignment::HEAD),
            known: ArcSwap::from_pointee(known(config.known)),
            enabled: AtomicBool::new(config.enabled),
        }
    }

    /// Masks what the other masks, from now on.
    pub fn follow(&self, other: &Scrubber) {
        self.enabled.store(other.is_on(), Ordering::Relaxed);
        self.known.store(other.known.load_full());
    }

    pub fn is_on(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// The text with every secret masked; the same text when it has none.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        if !self.is_on() {
            return text;
        }
        for Known { plain, .. } in self.known.load().iter() {
            if text.contains(plain.as_str()) {
                text = Cow::Owned(text.replace(plain.as_str(), MASK));
            }
        }
        // One pass over the text says which forms are worth looking for.
        for at in self.any.matches(&text) {
            let found = match at.checked_sub(1).map(|at| self.forms.get(at)) {
                None => self.private_keys.find(&text),
                Some(Some(form)) => credentials(form, &text),
                Some(None) => assignment::secrets(&self.assignment, &text),
            };
            if let Some(cleaned) = masked(&text, found) {
                text = Cow::Owned(cleaned);
            }
        }
        text
    }

    /// A JSON value with every secret in its strings masked.
    ///
    /// Most values have none: those come back as they are, byte for byte.
    pub fn scrub_json(&self, json: &Json) -> Json {
        self.cleaned(json).unwrap_or_else(|| json.clone())
    }

    /// The same, if there is anything to mask.
    fn cleaned(&self, json: &Json) -> Option<Json> {
        let suspicious = self.is_on()
            && (self.in_bytes.is_match(json.as_bytes())
                || self.known.load().iter().any(|secret| secret.is_in(json)));
        if !suspicious {
            return None;
        }
        let Ok(mut value) = json.value() else { return self.cleaned_unread(json) };
        self.scrub_value(&mut value).then(|| value.into())
    }

    /// The same for text that cannot be read as a tree.
    fn cleaned_unread(&self, json: &Json) -> Option<Json> {
        let mask = |key: Option<&str>, text: &str| {
            if key.is_some_and(|key| assignment::judge(key, text)) {
                return Some(MASK.to_owned());
            }
            match self.scrub(text) {
                Cow::Owned(masked) => Some(masked),
                Cow::Borrowed(_) => None,
            }
        };
        let masked = unread::masked(json.as_str(), &mask)?;
        // Only what is inside of strings has changed, so it is JSON still.
        Some(Json::parse(masked).unwrap_or_else(|_| Json::null()))
    }

    /// An answer with every secret in it masked; the same answer when it has
    /// none.
    pub fn clean(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Result(json) => Reply::Result(self.cleaned(&json).unwrap_or(json)),
            Reply::Error(error) => {
                let cleaned = self.cleaned(&error.raw).map(RpcError::read);
                Reply::Error(readable(cleaned.unwrap_or(error)))
            }
        }
    }

    /// A failure whose reason may be shown, logged and recorded.
    pub fn clean_failure(&self, failure: Failure) -> Failure {
        let shown = |reason: String| self.collapse(&reason);
        match failure {
            Failure::Unavailable { reason } => Failure::Unavailable { reason: shown(reason) },
            Failure::Lost { reason, sent } => Failure::Lost { reason: shown(reason), sent },
            Failure::Unauthorized { reason, sent } => {
                Failure::Unauthorized { reason: shown(reason), sent }
            }
            Failure::Forbidden { reason, sent } => {
                Failure::Forbidden { reason: shown(reason), sent }
            }
            Failure::Unusable { reason } => Failure::Unusable { reason: shown(reason) },
            Failure::Unsupported { what } => Failure::Unsupported { what: shown(what) },
            Failure::Timeout { .. } | Failure::RateLimited { .. } | Failure::Cancelled => failure,
        }
    }

    /// Masks secrets in every string of `value`; whether there was one.
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
            // Not `any`: every part has to be scrubbed.
            Value::Array(array) => {
                array.iter_mut().fold(false, |found, part| self.scrub_value(part) | found)
            }
            Value::Object(object) => object
                .iter_mut()
                .fold(false, |found, (key, part)| self.scrub_member(key, part) | found),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// A member whose key says that its value is secret, or any other.
    fn scrub_member(&self, key: &str, part: &mut serde_json::Value) -> bool {
        if let serde_json::Value::String(text) = part
            && self.is_on()
            && assignment::judge(key, text)
        {
            MASK.clone_into(text);
            return true;
        }
        self.scrub_value(part)
    }

    /// Upstream text as it may be shown: one line, short, without secrets.
    pub fn collapse(&self, text: &str) -> String {
        // Scrubbed before it is cut, or half a secret would slip through.
        collapse(&self.scrub(text))
    }

    /// Upstream text as the reason in a sentence of ours, without secrets.
    pub fn reason(&self, text: &str) -> String {
        cut(plain(&self.scrub(text)).trim_end_matches('.'), 300)
    }
}

impl Default for Scrubber {
    fn default() -> Scrubber {
        Scrubber::new(Config { enabled: true, known: Vec::new() })
    }
}

/// The longest first, or the beginning of one would be masked as another.
fn known(mut secrets: Vec<String>) -> Vec<Known> {
    secrets.retain(|secret| SHORTEST <= secret.len());
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.into_iter().map(Known::new).collect()
}

/// Text without control characters, on one line, at most 256 characters.
pub fn collapse(text: &str) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let line = text.split(blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let line = plain(&line).into_owned();
    if line.chars().count() <= LONGEST {
        return line;
    }
    let head: String = line.chars().take(LONGEST - 1).collect();
    format!("{}…", head.trim_end())
}

/// An error whose message has no characters that move, hide or colour text: it
/// is read by models, people and on terminals.
fn readable(error: RpcError) -> RpcError {
    let Cow::Owned(message) = plain(&error.message) else { return error };
    let Ok(mut raw) = Object::parse(&error.raw) else { return error };
    raw.set("message", Json::encode(&message));
    RpcError::read(raw.to_json())
}

/// What a form of credential matches in a text.
fn credentials(form: &Regex, text: &str) -> Vec<Range<usize>> {
    let secret = |found: Captures<'_>| Some(found.name("secret").or(found.get(0))?.range());
    form.captures_iter(text).filter_map(secret).collect()
}

/// The text with these parts masked, if there are any that are not.
fn masked(text: &str, parts: Vec<Range<usize>>) -> Option<String> {
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
