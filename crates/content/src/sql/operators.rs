//! Renders comparisons, lists of values and `like` patterns.

use super::writer::Writer;
use crate::query::{Comparison, Operand, TextPosition};

impl Writer<'_> {
    pub(super) fn comparison(&mut self, op: Comparison) -> &mut Self {
        self.push(match op {
            Comparison::Equal => " = ",
            Comparison::Unequal => " <> ",
            Comparison::Greater => " > ",
            Comparison::GreaterOrEqual => " >= ",
            Comparison::Less => " < ",
            Comparison::LessOrEqual => " <= ",
        })
    }

    pub(super) fn list(&mut self, values: &[Operand]) -> &mut Self {
        self.push("(");
        for (at, value) in values.iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" }).bind(value.clone());
        }
        self.push(")")
    }
}

/// Sets the same escape character for `like` on every engine. The default is the
/// backslash on two of them, one of which refuses a pattern that ends with it; the third
/// has no default.
pub(super) const ESCAPE: &str = " escape '|'";

/// Returns the `like` pattern. `%` and `_` in the text stay wildcards, as the contract says.
pub(super) fn like_pattern(position: TextPosition, text: &str) -> String {
    let text = text.replace('|', "||");
    match position {
        TextPosition::Anywhere => format!("%{text}%"),
        TextPosition::AtEnd => format!("%{text}"),
        TextPosition::AtStart => format!("{text}%"),
    }
}
