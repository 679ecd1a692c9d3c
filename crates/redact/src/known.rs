//! The secrets that the operator configured, in every form in which programs
//! write them: as they are, in base64 and hex, in URLs, backwards, and with
//! something between their characters.
//!
//! Other encodings, encryption and parts of a secret are not recognised.

use std::fmt::Write;

use regex::{Regex, bytes};

/// The minimum length in bytes of a value that is masked wherever it occurs.
pub(super) const MIN_BYTES: usize = 8;

/// The maximum length in bytes of a secret of which other forms are recognised.
/// A longer one is a document, such as a key file, and looked for as it is.
const MAX_BYTES_OF_FORMS: usize = 512;

/// What stands between the characters of a secret that is spelt out.
const SEPARATORS: [&str; 8] = [" ", "-", "_", ".", ",", ", ", "\n", "|"];

/// Recognises the configured secrets.
#[derive(Debug)]
pub(super) struct KnownSecrets {
    text: Regex,
    /// The same in JSON text that has not been parsed.
    in_json: bytes::Regex,
}

impl KnownSecrets {
    /// `None` when nothing is to be recognised.
    pub(super) fn new(secrets: Vec<String>) -> Option<KnownSecrets> {
        let secrets = secrets.into_iter().filter(|secret| MIN_BYTES <= secret.len());
        let mut forms: Vec<String> = secrets.flat_map(|secret| forms(&secret)).collect();
        // Longest first, because one may be the beginning of another.
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        if forms.is_empty() {
            return None;
        }
        let written = |form: &String| {
            let quoted = serde_json::Value::from(form.as_str()).to_string();
            let escaped = quoted[1..quoted.len() - 1].to_owned();
            // Some servers escape `/`, which JSON does not require.
            [escaped.replace('/', "\\/"), escaped]
        };
        let in_json: Vec<String> = forms.iter().flat_map(written).collect();
        let text = regex::RegexBuilder::new(&any_of(&forms)).size_limit(usize::MAX).build();
        let in_json = bytes::RegexBuilder::new(&any_of(&in_json)).size_limit(usize::MAX).build();
        Some(KnownSecrets {
            text: text.expect("literals compile"),
            in_json: in_json.expect("literals compile"),
        })
    }

    /// The text without the secrets, if it holds any.
    pub(super) fn masked(&self, text: &str, mask: &str) -> Option<String> {
        let found = self.text.is_match(text);
        found.then(|| self.text.replace_all(text, regex::NoExpand(mask)).into_owned())
    }

    /// Whether JSON text may hold one of the secrets.
    pub(super) fn are_in(&self, json: &[u8]) -> bool {
        self.in_json.is_match(json)
    }
}

fn any_of(literals: &[String]) -> String {
    literals.iter().map(|literal| regex::escape(literal)).collect::<Vec<_>>().join("|")
}

/// A secret in every form that is recognised.
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
    let characters: Vec<String> = secret.chars().map(String::from).collect();
    forms.extend(SEPARATORS.map(|separator| characters.join(separator)));
    forms
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_OF_URLS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The digits that depend on these bytes alone, where they stand in base64 behind
/// a number of bytes that leaves `offset` when divided by three.
fn inside_base64(bytes: &[u8], offset: usize, digits: &[u8; 64]) -> String {
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    // The first bit of ours that begins a digit.
    let first = (6 - offset * 8 % 6) % 6;
    let groups = (bytes.len() * 8 - first) / 6;
    let digit = |group: usize| {
        let value = (0..6).fold(0, |value, at| value << 1 | bit(first + group * 6 + at));
        char::from(digits[usize::from(value)])
    };
    (0..groups).map(digit).collect()
}

/// A value as it stands in a URL.
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
