//! The table of all lint rules.
//!
//! Each rule has a code, an explanation, and an example that breaks this rule and no
//! other. Help, documentation and tests are derived from the table.

mod errors;
mod infos;
mod rule;
mod warnings;

pub use rule::{CLEAN, Example, Rule};

/// Every rule, in the order it is documented.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    errors::RULES.iter().chain(warnings::RULES).chain(infos::RULES)
}

/// Finds a rule by its code, ignoring case.
pub fn find(code: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.code.eq_ignore_ascii_case(code))
}

#[cfg(test)]
mod tests {
    use tool::Severity;

    use super::*;
    use crate::lint::{LintContext, lint};

    fn codes(example: &Example) -> Vec<&'static str> {
        let context = LintContext {
            previous: example.previous.as_ref(),
            live: example.live.as_deref(),
            today: Some((2026, 11)),
            ..LintContext::default()
        };
        let (_, findings) = lint(&example.text, &context);
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
            let (_, findings) = lint(&rule.example().text, &LintContext::default());
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
