//! A statement for one of three engines.

use crate::query::Operand;

/// Which SQL is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    MySql,
    Postgres,
}

/// A query and what is bound to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) values: Vec<Operand>,
}
