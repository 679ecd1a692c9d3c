//! What a rule is, and what its examples are made from.

use tool::Severity;

use crate::document::{Definition, Document};
use crate::finding::Finding;
use crate::subject::Subject;

/// A document without any fault; the examples are made from it.
pub const CLEAN: &str = include_str!("clean.md");

/// One rule.
pub struct Rule {
    pub code: &'static str,
    /// What it asks for, in a few words.
    pub title: &'static str,
    /// Why, and what to do.
    pub explanation: &'static str,
    /// Whether some of its findings can be repaired by the machine.
    pub fixable: bool,
    pub(super) example: fn() -> Example,
    pub(crate) check: fn(&Subject<'_>, &mut Vec<Finding>),
}

/// A document that breaks one rule, and what it has to be compared with.
#[derive(Clone, Debug, Default)]
pub struct Example {
    pub text: String,
    pub previous: Option<Document>,
    pub live: Option<Vec<Definition>>,
}

impl Rule {
    pub fn severity(&self) -> Severity {
        match self.code.as_bytes().first() {
            Some(b'E') => Severity::Error,
            Some(b'W') => Severity::Warning,
            Some(_) | None => Severity::Info,
        }
    }

    /// A document that breaks this rule and no other.
    pub fn example(&self) -> Example {
        (self.example)()
    }
}

/// Found while reading; nothing is left to check.
pub(super) fn by_the_parser(_: &Subject<'_>, _: &mut Vec<Finding>) {}

/// The clean document with one thing changed.
pub(super) fn changed(from: &str, to: &str) -> Example {
    debug_assert!(CLEAN.contains(from), "{from}");
    Example { text: CLEAN.replacen(from, to, 1), ..Example::default() }
}

/// The clean document with a second tool, made from the first.
pub(super) fn with_second(rename: &str, change: impl Fn(&str) -> String) -> Example {
    let first = &CLEAN[CLEAN.find("## Tool:").unwrap_or(0)..];
    let second = change(&first.replace("files.read_text", rename));
    Example { text: format!("{CLEAN}\n---\n\n{second}"), ..Example::default() }
}
