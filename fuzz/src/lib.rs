//! Whatever reads text of others, in one table.
//!
//! A target takes bytes and must neither panic, nor overflow its stack, nor take
//! long, whatever they are. Parsers, evaluators and state machines that are public
//! stand here; private ones are fuzzed by unit tests of their own crate with the
//! same [`testkit::fuzz`]. A new one is a row.

mod catalogs;
mod documents;
mod identities;
mod results;
mod scripts;
mod wire;

use testkit::fuzz::Dictionary;

/// One thing that reads text of others.
pub struct Target {
    pub name: &'static str,
    pub dictionary: &'static Dictionary,
    pub check: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[&[Target]] = &[
    wire::TARGETS,
    results::TARGETS,
    scripts::TARGETS,
    catalogs::TARGETS,
    documents::TARGETS,
    identities::TARGETS,
];

/// Gives made-up inputs to the target of this name.
///
/// # Panics
///
/// When the target fails, or there is none.
#[track_caller]
pub fn run(name: &'static str) {
    let found = TARGETS.iter().flat_map(|targets| targets.iter()).find(|one| one.name == name);
    let target = found.unwrap_or_else(|| panic!("no target `{name}`"));
    testkit::fuzz::run(target.name, target.dictionary, target.check);
}

/// The bytes as text, whatever they are.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The bytes in two parts, for targets that take two texts.
fn halves(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}

/// What JSON is made of.
const JSON: &[&str] = &[
    "{", "}", "[", "]", "\"", ":", ",", "null", "true", "1e5", "\\u0000", "{\"a\":", "[[",
    "\"a\":", "/*", "//", " ",
];
