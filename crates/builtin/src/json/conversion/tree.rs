//! The values of a document, independent of its format.

use serde_json::Number;

/// One value of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    /// A finite number with the digits as they were written.
    Number(Number),
    /// NaN or an infinity.
    NonFinite(f64),
    /// A TOML date, time or both.
    Datetime(toml::value::Datetime),
    Text(String),
    List(Vec<Tree>),
    Table(Vec<(String, Tree)>),
}

impl Tree {
    /// Creates a number, finite or not.
    pub(crate) fn from_float(value: f64) -> Tree {
        Number::from_f64(value).map_or(Tree::NonFinite(value), Tree::Number)
    }
}
