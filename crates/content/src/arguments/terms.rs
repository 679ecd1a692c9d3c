//! Parses operators and sort directions, for documents and for records.

use serde_json::Value;

use super::coerce::shown;
use super::{Arguments, InvalidArguments, coerce};
use crate::query::{Comparison, Direction, TextPosition};

/// The values of a list, or of an object that is used as one.
pub(super) fn members(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let (items, object) = match value {
        Some(Value::Array(items)) => (Some(items.iter()), None),
        Some(Value::Object(object)) => (None, Some(object.values())),
        _ => (None, None),
    };
    items.into_iter().flatten().chain(object.into_iter().flatten())
}

/// What a condition asks of a value.
#[derive(Clone, Copy)]
pub(super) enum Operator {
    Compare(Comparison),
    Like(TextPosition),
    In,
    NotIn,
    Null,
    NotNull,
}

/// The operator of a condition as it is written, without space around it.
pub(super) fn written_operator(term: &Value) -> &str {
    term["op"].as_str().unwrap_or_default().trim_matches(coerce::BLANKS)
}

pub(super) fn operator(op: &str) -> Option<Operator> {
    Some(match op {
        "=" => Operator::Compare(Comparison::Equal),
        "!=" => Operator::Compare(Comparison::Unequal),
        ">" => Operator::Compare(Comparison::Greater),
        ">=" => Operator::Compare(Comparison::GreaterOrEqual),
        "<" => Operator::Compare(Comparison::Less),
        "<=" => Operator::Compare(Comparison::LessOrEqual),
        "like" => Operator::Like(TextPosition::Anywhere),
        "like-l" => Operator::Like(TextPosition::AtEnd),
        "like-r" => Operator::Like(TextPosition::AtStart),
        "in" => Operator::In,
        "not_in" => Operator::NotIn,
        "null" => Operator::Null,
        "!null" => Operator::NotNull,
        _ => return None,
    })
}

pub(super) fn order_dir(arguments: &Arguments<'_>) -> Result<Direction, InvalidArguments> {
    let Some(dir) = arguments.text("order_dir") else { return Ok(Direction::Ascending) };
    let dir = dir.trim_matches(coerce::BLANKS);
    direction(dir).ok_or_else(|| InvalidArguments(format!("Invalid order_dir [{}].", shown(dir))))
}

pub(super) fn direction(text: &str) -> Option<Direction> {
    match text.to_ascii_lowercase().as_str() {
        "asc" => Some(Direction::Ascending),
        "desc" => Some(Direction::Descending),
        _ => None,
    }
}

/// Engines limit how many values one statement may bind.
pub(super) const MAX_LIST: usize = 1000;

pub(super) fn too_many(name: &str, n_values: usize) -> Result<(), InvalidArguments> {
    if n_values <= MAX_LIST {
        return Ok(());
    }
    Err(InvalidArguments(format!("{name} must not have more than {MAX_LIST} entries.")))
}
