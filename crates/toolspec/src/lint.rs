//! Checks a document against every rule.

use crate::document::{Definition, Document};
use crate::finding::Finding;
use crate::parse::parse;
use crate::rules;

/// What a document is compared with. Nothing by default.
#[derive(Clone, Copy, Debug)]
pub struct Against<'a> {
    /// What the live server has.
    pub live: Option<&'a [Definition]>,
    /// The document's previous revision.
    pub previous: Option<&'a Document>,
    /// Year and month, to tell a stale date.
    pub today: Option<(u16, u8)>,
    /// How long a description may be, in estimated tokens.
    pub description_budget: usize,
}

impl Default for Against<'_> {
    fn default() -> Self {
        Against { live: None, previous: None, today: None, description_budget: 400 }
    }
}

/// What a rule looks at.
pub(crate) struct Subject<'a> {
    pub(crate) document: &'a Document,
    pub(crate) lines: &'a [&'a str],
    pub(crate) against: &'a Against<'a>,
    /// What is known already: the parser's findings, and those of earlier rules.
    pub(crate) so_far: &'a [Finding],
}

/// Reads and checks a document.
pub fn lint(text: &str, against: &Against<'_>) -> (Document, Vec<Finding>) {
    let (document, mut findings) = parse(text);
    let lines: Vec<&str> = text.lines().collect();
    for rule in rules::all() {
        let mut found = Vec::new();
        let subject = Subject { document: &document, lines: &lines, against, so_far: &findings };
        (rule.check)(&subject, &mut found);
        findings.extend(found);
    }
    findings.sort_by(|a, b| (a.place, a.code).cmp(&(b.place, b.code)));
    // Tools that share a heading share what is wrong below it.
    findings.dedup_by(|a, b| (a.code, a.place, &a.message) == (b.code, b.place, &b.message));
    (document, findings)
}

impl Subject<'_> {
    /// The text of a line (one-based).
    pub(crate) fn line(&self, number: usize) -> &str {
        number.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or("")
    }

    /// Whether lines are damaged, so that a machine must keep off.
    pub(crate) fn is_damaged(&self, from: usize, to: usize) -> bool {
        self.so_far
            .iter()
            .any(|finding| finding.code == "E06" && (from..to).contains(&finding.place.line))
    }
}
