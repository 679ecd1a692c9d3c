//! What stands in a document, in words of no format.

use serde_json::Number;

/// One value of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    /// With the digits that were written.
    Number(Number),
    /// Not a number, or infinite.
    Endless(f64),
    /// A date, a time or both, as TOML has them.
    Moment(toml::value::Datetime),
    Text(String),
    List(Vec<Tree>),
    Table(Vec<(String, Tree)>),
}

impl Tree {
    /// A floating-point number.
    pub(crate) fn of_real(value: f64) -> Tree {
        Number::from_f64(value).map_or(Tree::Endless(value), Tree::Number)
    }
}
