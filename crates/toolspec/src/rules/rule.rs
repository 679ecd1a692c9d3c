//! The type of a lint rule, and functions that build the examples of rules.

use tool::Severity;

use crate::document::{Definition, Document};
use crate::finding::Finding;
use crate::rule_input::RuleInput;

/// A document that breaks no rule; the examples are made from it.
pub const CLEAN: &str = include_str!("clean.md");

/// One lint rule.
pub struct Rule {
    pub code: &'static str,
    /// The requirement, in a few words.
    pub title: &'static str,
    /// Why the rule exists, and what to do about a violation.
    pub explanation: &'static str,
    /// Whether `fix` can repair some of its findings.
    pub fixable: bool,
    pub(super) example: fn() -> Example,
    pub(crate) check: fn(&RuleInput<'_>, &mut Vec<Finding>),
}

/// A document that breaks one rule, and what it has to be compared with to show that.
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

/// The check of a rule whose violations the parser reports: it does nothing.
pub(super) fn reported_by_parser(_: &RuleInput<'_>, _: &mut Vec<Finding>) {}

/// The clean document with one text replaced.
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
