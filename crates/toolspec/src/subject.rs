//! What a rule looks at: a document, and what it is compared with.

use crate::document::{Definition, Document};
use crate::finding::Finding;

/// What a document is compared with. Nothing by default.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// What the live server has.
    pub live: Option<&'a [Definition]>,
    /// The document's previous revision.
    pub previous: Option<&'a Document>,
    /// Year and month, to tell a stale date.
    pub today: Option<(u16, u8)>,
    /// How long a description may be, in estimated tokens.
    pub description_budget: usize,
}

impl Default for Comparison<'_> {
    fn default() -> Self {
        Comparison { live: None, previous: None, today: None, description_budget: 400 }
    }
}

/// What a rule looks at.
pub(crate) struct Subject<'a> {
    pub(crate) document: &'a Document,
    pub(crate) lines: &'a [&'a str],
    pub(crate) against: &'a Comparison<'a>,
    /// What is known already: the parser's findings, and those of earlier rules.
    pub(crate) earlier_findings: &'a [Finding],
}

impl Subject<'_> {
    /// The text of a line (one-based).
    pub(crate) fn line(&self, number: usize) -> &str {
        number.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or("")
    }

    /// Returns whether lines are damaged, so that a machine must keep off.
    pub(crate) fn is_damaged(&self, from: usize, to: usize) -> bool {
        self.earlier_findings
            .iter()
            .any(|finding| finding.code == "E06" && (from..to).contains(&finding.place.line))
    }
}
