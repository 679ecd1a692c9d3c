//! The two parts in which tools differ: the parser of the arguments, and the result shape.

use serde_json::Value;

use crate::arguments::InvalidArguments;
use crate::config::Limits;
use crate::query::{DocumentQuery, RecordQuery};

/// The shape of a tool's result: a list or one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultShape {
    Items,
    Item,
}

/// The function that parses the arguments of a tool into a query.
pub(crate) enum QueryParser {
    Documents(fn(&Value, &Limits) -> Result<DocumentQuery, InvalidArguments>),
    Records(fn(&Value, &Limits) -> Result<RecordQuery, InvalidArguments>),
}
