//! Checks a document against every rule.

use crate::document::Document;
use crate::finding::Finding;
use crate::parse::parse;
use crate::rules;
use crate::subject::Subject;

pub use crate::subject::Comparison;

/// Reads and checks a document.
pub fn lint(text: &str, against: &Comparison<'_>) -> (Document, Vec<Finding>) {
    let (document, mut findings) = parse(text);
    let lines: Vec<&str> = text.lines().collect();
    for rule in rules::all() {
        let mut found = Vec::new();
        let subject =
            Subject { document: &document, lines: &lines, against, earlier_findings: &findings };
        (rule.check)(&subject, &mut found);
        findings.extend(found);
    }
    findings.sort_by(|a, b| (a.place, a.code).cmp(&(b.place, b.code)));
    // Tools that share a heading share what is wrong below it.
    findings.dedup_by(|a, b| (a.code, a.place, &a.message) == (b.code, b.place, &b.message));
    (document, findings)
}
