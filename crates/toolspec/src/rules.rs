//! The rules of the linter: one table.
//!
//! Each rule has a code, says why it matters, and has an example that breaks
//! it and nothing else. Help, documentation and tests derive from the table.

mod errors;
mod infos;
mod warnings;

use tool::Severity;

use crate::document::{Definition, Document};
use crate::finding::Finding;
use crate::subject::Subject;

/// A document without any fault; the examples are made from it.
pub const CLEAN: &str = include_str!("rules/clean.md");

/// One rule.
pub struct Rule {
    pub code: &'static str,
    /// What it asks for, in a few words.
    pub title: &'static str,
    /// Why, and what to do.
    pub explanation: &'static str,
    /// Whether some of its findings can be repaired by the machine.
    pub fixable: bool,
    example: fn() -> Example,
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

/// Every rule, in the order it is documented.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    errors::RULES.iter().chain(warnings::RULES).chain(infos::RULES)
}

/// The rule with this code, in any case.
pub fn find(code: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.code.eq_ignore_ascii_case(code))
}

/// Found while reading; nothing is left to check.
fn by_the_parser(_: &Subject<'_>, _: &mut Vec<Finding>) {}

/// The clean document with one thing changed.
fn changed(from: &str, to: &str) -> Example {
    debug_assert!(CLEAN.contains(from), "{from}");
    Example { text: CLEAN.replacen(from, to, 1), ..Example::default() }
}

/// The clean document with a second tool, made from the first.
fn with_second(rename: &str, change: impl Fn(&str) -> String) -> Example {
    let first = &CLEAN[CLEAN.find("## Tool:").unwrap_or(0)..];
    let second = change(&first.replace("files.read_text", rename));
    Example { text: format!("{CLEAN}\n---\n\n{second}"), ..Example::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::{Comparison, lint};

    fn codes(example: &Example) -> Vec<&'static str> {
        let against = Comparison {
            previous: example.previous.as_ref(),
            live: example.live.as_deref(),
            today: Some((2026, 11)),
            ..Comparison::default()
        };
        let (_, findings) = lint(&example.text, &against);
        findings
            .iter()
            .filter(|finding| finding.severity != Severity::Info)
            .map(|finding| finding.code)
            .collect()
    }

    #[test]
    fn there_are_14_errors_18_warnings_and_3_infos() {
        let count = |severity| all().filter(|rule| rule.severity() == severity).count();
        assert_eq!(
            (count(Severity::Error), count(Severity::Warning), count(Severity::Info)),
            (14, 18, 3)
        );
    }

    #[test]
    fn the_clean_document_breaks_no_rule() {
        assert_eq!(codes(&Example { text: CLEAN.to_owned(), ..Example::default() }), [""; 0]);
    }

    #[test]
    fn every_example_breaks_exactly_its_own_rule() {
        for rule in all().filter(|rule| rule.severity() != Severity::Info) {
            let found = codes(&rule.example());
            assert!(
                !found.is_empty() && found.iter().all(|code| *code == rule.code),
                "{}: {found:?}",
                rule.code
            );
        }
    }

    #[test]
    fn every_info_shows_in_its_example() {
        for rule in all().filter(|rule| rule.severity() == Severity::Info) {
            let (_, findings) = lint(&rule.example().text, &Comparison::default());
            assert!(findings.iter().any(|finding| finding.code == rule.code), "{}", rule.code);
        }
    }

    #[test]
    fn rules_are_numbered_without_gaps_and_explained() {
        for (prefix, severity) in
            [("E", Severity::Error), ("W", Severity::Warning), ("I", Severity::Info)]
        {
            let codes: Vec<&str> =
                all().filter(|r| r.severity() == severity).map(|r| r.code).collect();
            let expected: Vec<String> =
                (1..=codes.len()).map(|number| format!("{prefix}{number:02}")).collect();
            assert_eq!(codes, expected);
        }
        assert!(all().all(|rule| 60 < rule.explanation.len()));
    }

    #[test]
    fn what_can_be_fixed_is_fixed_and_only_that_is_promised() {
        for rule in all().filter(|rule| rule.severity() != Severity::Info) {
            let example = rule.example();
            let (fixed, _) = crate::fix(&example.text);
            assert_eq!(fixed != example.text, rule.fixable, "{}\n{fixed}", rule.code);
        }
    }
}
