//! How a tool is asked, and how it answers.

use serde_json::Value;

use crate::arguments::Invalid;
use crate::config::Limits;
use crate::query::{Documents, Records};

/// Whether a tool answers with a list or with one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Items,
    Item,
}

/// How a tool's arguments become a question.
pub(crate) enum Read {
    Documents(fn(&Value, &Limits) -> Result<Documents, Invalid>),
    Records(fn(&Value, &Limits) -> Result<Records, Invalid>),
}
