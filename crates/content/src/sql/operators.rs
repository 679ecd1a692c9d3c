//! Renders comparisons, for documents and for records.

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

/// The same escape character on every engine. By default two of them take the
/// backslash, one of these refuses a pattern that ends in it, and the third
/// has none.
pub(super) const ESCAPE: &str = " escape '|'";

/// `%` and `_` in the text stay wildcards, as the contract says.
pub(super) fn pattern(place: TextPosition, text: &str) -> String {
    let text = text.replace('|', "||");
    match place {
        TextPosition::Anywhere => format!("%{text}%"),
        TextPosition::AtEnd => format!("%{text}"),
        TextPosition::AtStart => format!("{text}%"),
    }
}
