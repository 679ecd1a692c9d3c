//! Recognises the secrets that the operator configured, in the forms in which programs
//! write them: as they are, in base64 and hex, in URLs, backwards; and each of these also
//! with anything between its characters that is no letter and no digit.
//!
//! Other encodings, encryption, other letters between the characters, a change of case, and
//! parts of a secret are not recognised.

use std::fmt::Write;
use std::ops::Range;

use regex::{Regex, bytes};

use super::skeleton::{self, Decoding};

/// The minimum length in bytes of a value that is masked wherever it occurs.
pub(super) const MIN_BYTES: usize = 8;

/// The maximum length in bytes of a secret of which other forms are recognised.
/// A longer one is a document, such as a key file, and is only recognised as it is.
const MAX_BYTES_OF_FORMS: usize = 512;

/// The minimum length of a [skeleton](skeleton) that is recognised. Digits alone have to be
/// more, because tables are full of them.
const MIN_SKELETON: usize = 8;
const MIN_DIGITS: usize = 16;

/// The separators between the characters of a secret that is spelt out and has no skeleton
/// of that length.
const SEPARATORS: [&str; 8] = [" ", "-", "_", ".", ",", ", ", "\n", "|"];

/// Recognises the configured secrets.
#[derive(Debug)]
pub(super) struct ConfiguredSecrets {
    text: Regex,
    /// For JSON text that has not been parsed.
    in_json: bytes::Regex,
    spelt_out: Option<Skeletons>,
}

/// Recognises the skeletons of the secrets.
#[derive(Debug)]
struct Skeletons {
    pattern: Regex,
    /// The length of the longest one.
    max_len: usize,
}

impl ConfiguredSecrets {
    /// `None` when there is no secret that is long enough.
    pub(super) fn new(secrets: Vec<String>) -> Option<ConfiguredSecrets> {
        let secrets: Vec<String> =
            secrets.into_iter().filter(|secret| MIN_BYTES <= secret.len()).collect();
        let mut forms: Vec<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
        // Longest first, because one may be the beginning of another.
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        if forms.is_empty() {
            return None;
        }
        let as_json = |form: &String| {
            let quoted = serde_json::Value::from(form.as_str()).to_string();
            let escaped = quoted[1..quoted.len() - 1].to_owned();
            // Some servers escape `/`, which JSON does not require.
            [escaped.replace('/', "\\/"), escaped]
        };
        let in_json: Vec<String> = forms.iter().flat_map(as_json).collect();
        let text = regex::RegexBuilder::new(&any_of(&forms)).size_limit(usize::MAX).build();
        let in_json = bytes::RegexBuilder::new(&any_of(&in_json)).size_limit(usize::MAX).build();
        Some(ConfiguredSecrets {
            text: text.expect("literals compile"),
            in_json: in_json.expect("literals compile"),
            spelt_out: Skeletons::new(&secrets),
        })
    }

    /// The text with the secrets masked, if it holds any.
    pub(super) fn mask_in(&self, text: &str, mask: &str) -> Option<String> {
        let found = self.text.is_match(text);
        let masked = found.then(|| self.text.replace_all(text, regex::NoExpand(mask)).into_owned());
        let spelt_out = self.spelt_out.as_ref();
        let again = spelt_out.and_then(|it| it.mask_in(masked.as_deref().unwrap_or(text), mask));
        again.or(masked)
    }

    /// Which of these texts hold a secret together, as in a list of its characters.
    pub(super) fn find_across(&self, texts: &[&str]) -> Vec<Range<usize>> {
        let Some(spelt_out) = &self.spelt_out else { return Vec::new() };
        let joined = texts.join("\n");
        let ranges = skeleton::find(&joined, PLAIN, &spelt_out.pattern);
        let (mut at, mut start) = (0, 0);
        let mut text_of = |place: usize| {
            while at < texts.len() && start + texts[at].len() < place {
                start += texts[at].len() + 1;
                at += 1;
            }
            at
        };
        // A range begins with a character and ends behind one.
        ranges.iter().map(|range| text_of(range.start + 1)..text_of(range.end) + 1).collect()
    }

    /// Whether JSON text may hold one of the secrets.
    pub(super) fn are_in(&self, json: &str) -> bool {
        self.in_json.is_match(json.as_bytes())
            || self.spelt_out.as_ref().is_some_and(|spelt_out| {
                spelt_out.are_in(json, Decoding { escapes: true, percent: false })
                    || json.contains('%')
                        && spelt_out.are_in(json, Decoding { escapes: true, percent: true })
            })
    }
}

const PLAIN: Decoding = Decoding { escapes: false, percent: false };

impl Skeletons {
    fn new(secrets: &[String]) -> Option<Skeletons> {
        let mut all: Vec<String> = secrets.iter().flat_map(|secret| skeletons(secret)).collect();
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        let max_len = all.first()?.len();
        let pattern = regex::RegexBuilder::new(&any_of(&all)).size_limit(usize::MAX).build();
        Some(Skeletons { pattern: pattern.expect("literals compile"), max_len })
    }

    fn are_in(&self, text: &str, decoding: Decoding) -> bool {
        skeleton::is_match(text, decoding, &self.pattern, self.max_len)
    }

    fn mask_in(&self, text: &str, mask: &str) -> Option<String> {
        let plain = self.mask_decoded(text, PLAIN, mask);
        let decoding = Decoding { escapes: text.contains('\\'), percent: text.contains('%') };
        if decoding == PLAIN {
            return plain;
        }
        self.mask_decoded(plain.as_deref().unwrap_or(text), decoding, mask).or(plain)
    }

    fn mask_decoded(&self, text: &str, decoding: Decoding, mask: &str) -> Option<String> {
        let found = || skeleton::find(text, decoding, &self.pattern);
        self.are_in(text, decoding).then(|| replaced(text, &found(), mask))
    }
}

fn replaced(text: &str, ranges: &[Range<usize>], mask: &str) -> String {
    let (mut out, mut last) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        out.push_str(&text[last..range.start]);
        out.push_str(mask);
        last = range.end;
    }
    out + &text[last..]
}

/// The skeletons of every form of a secret: those of hex are also those of escapes, as in
/// `%73`, and with a prefix for each byte, as in `0x73` and `\x73`.
fn skeletons(secret: &str) -> Vec<String> {
    if MAX_BYTES_OF_FORMS < secret.len() {
        return Vec::new();
    }
    let bytes = secret.as_bytes();
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut forms: Vec<String> =
        (0..3).map(|offset| inside_base64(bytes, offset, BASE64)).collect();
    for between in ["", "0x", "x"] {
        let hex = digits.join(between);
        let upper = digits.iter().map(|byte| byte.to_uppercase()).collect::<Vec<_>>();
        forms.extend([hex, upper.join(between)]);
    }
    forms.extend([secret.to_owned(), secret.chars().rev().collect()]);
    let all = forms.iter().map(|form| skeleton::of(form));
    all.filter(|skeleton| is_distinctive(skeleton)).collect()
}

fn is_distinctive(skeleton: &str) -> bool {
    let is_number = skeleton.bytes().all(|byte| byte.is_ascii_digit());
    (if is_number { MIN_DIGITS } else { MIN_SKELETON }) <= skeleton.len()
}

fn any_of(literals: &[String]) -> String {
    literals.iter().map(|literal| regex::escape(literal)).collect::<Vec<_>>().join("|")
}

/// Every form of a secret that is recognised.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    if MAX_BYTES_OF_FORMS < secret.len() {
        return forms;
    }
    let bytes = secret.as_bytes();
    for digits in [BASE64, BASE64_OF_URLS] {
        forms.extend((0..3).map(|offset| inside_base64(bytes, offset, digits)));
    }
    let hex: String = bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    forms.extend([hex.to_uppercase(), hex, in_url(secret), secret.chars().rev().collect()]);
    if !is_distinctive(&skeleton::of(secret)) {
        let characters: Vec<String> = secret.chars().map(String::from).collect();
        forms.extend(SEPARATORS.map(|separator| characters.join(separator)));
    }
    forms
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_OF_URLS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The base64 digits that depend on these bytes alone, where the number of bytes before
/// them modulo three is `offset`.
fn inside_base64(bytes: &[u8], offset: usize, digits: &[u8; 64]) -> String {
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    // The first bit of these bytes that begins a digit.
    let first = (6 - offset * 8 % 6) % 6;
    let groups = (bytes.len() * 8 - first) / 6;
    let digit = |group: usize| {
        let value = (0..6).fold(0, |value, at| value << 1 | bit(first + group * 6 + at));
        char::from(digits[usize::from(value)])
    };
    (0..groups).map(digit).collect()
}

/// Percent-encodes a value.
fn in_url(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().fold(String::new(), |mut url, byte| {
        match is_plain(byte) {
            true => url.push(byte.into()),
            false => {
                let _ = write!(url, "%{byte:02X}");
            }
        }
        url
    })
}
