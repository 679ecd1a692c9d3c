//! An SQL statement with its bound values, in the dialect of one of three engines.

use crate::query::Operand;

/// The SQL dialect of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    MySql,
    Postgres,
}

/// The text of a statement, and the values that are bound to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) values: Vec<Operand>,
}
