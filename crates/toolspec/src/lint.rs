//! Parses a document and checks it against every lint rule.

use crate::document::Document;
use crate::finding::Finding;
use crate::parse::parse;
use crate::rule_input::RuleInput;
use crate::rules;

pub use crate::rule_input::LintContext;

/// Parses and checks a document.
pub fn lint(text: &str, context: &LintContext<'_>) -> (Document, Vec<Finding>) {
    let (document, mut findings) = parse(text);
    let lines: Vec<&str> = text.lines().collect();
    for rule in rules::all() {
        let mut found = Vec::new();
        let subject =
            RuleInput { document: &document, lines: &lines, context, earlier_findings: &findings };
        (rule.check)(&subject, &mut found);
        findings.extend(found);
    }
    findings.sort_by(|a, b| (a.place, a.code).cmp(&(b.place, b.code)));
    // Tools that share a heading have the same findings below it.
    findings.dedup_by(|a, b| (a.code, a.place, &a.message) == (b.code, b.place, &b.message));
    (document, findings)
}
