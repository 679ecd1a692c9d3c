//! The input of a lint rule: a document, its lines, and what else the rules know.

use crate::document::{Definition, Document};
use crate::finding::Finding;

/// What the rules know besides the document: what to compare it with, the date, and a
/// limit. By default there is nothing to compare with, and no date.
#[derive(Clone, Copy, Debug)]
pub struct LintContext<'a> {
    /// The tools of the live server.
    pub live: Option<&'a [Definition]>,
    /// The previous revision of the document.
    pub previous: Option<&'a Document>,
    /// The current year and month, to recognise a stale date.
    pub today: Option<(u16, u8)>,
    /// How long a description may be, in estimated tokens.
    pub description_budget: usize,
}

impl Default for LintContext<'_> {
    fn default() -> Self {
        LintContext { live: None, previous: None, today: None, description_budget: 400 }
    }
}

/// The input of a rule.
pub(crate) struct RuleInput<'a> {
    pub(crate) document: &'a Document,
    /// The lines of the text.
    pub(crate) lines: &'a [&'a str],
    pub(crate) context: &'a LintContext<'a>,
    /// The findings of the parser and of earlier rules.
    pub(crate) earlier_findings: &'a [Finding],
}

impl RuleInput<'_> {
    /// Returns the text of a line (one-based).
    pub(crate) fn line(&self, number: usize) -> &str {
        number.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or("")
    }

    /// Returns whether a table in the lines from `from` until before `end` (one-based) is
    /// damaged, so that it must not be rewritten.
    pub(crate) fn is_damaged(&self, from: usize, end: usize) -> bool {
        self.earlier_findings
            .iter()
            .any(|finding| finding.code == "E06" && (from..end).contains(&finding.place.line))
    }
}
