//! Parses the operators and sort directions that document and record tools share.

use serde_json::Value;

use super::coerce::shorten;
use super::{Arguments, InvalidArguments, coerce};
use crate::query::{Comparison, Direction, TextPosition};

/// Iterates over the values of a list, or of an object that is used as one.
pub(super) fn member_values(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let (items, object) = match value {
        Some(Value::Array(items)) => (Some(items.iter()), None),
        Some(Value::Object(object)) => (None, Some(object.values())),
        _ => (None, None),
    };
    items.into_iter().flatten().chain(object.into_iter().flatten())
}

/// The operator of a filter.
#[derive(Clone, Copy)]
pub(super) enum Operator {
    Compare(Comparison),
    Like(TextPosition),
    In,
    NotIn,
    Null,
    NotNull,
}

/// Returns the text of a filter's operator, trimmed.
pub(super) fn operator_text(filter: &Value) -> &str {
    filter["op"].as_str().unwrap_or_default().trim_matches(coerce::BLANKS)
}

pub(super) fn parse_operator(op: &str) -> Option<Operator> {
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

/// Parses the argument `order_dir`.
pub(super) fn order_dir(arguments: &Arguments<'_>) -> Result<Direction, InvalidArguments> {
    let Some(dir) = arguments.text("order_dir") else { return Ok(Direction::Ascending) };
    let dir = dir.trim_matches(coerce::BLANKS);
    parse_direction(dir)
        .ok_or_else(|| InvalidArguments(format!("Invalid order_dir [{}].", shorten(dir))))
}

pub(super) fn parse_direction(text: &str) -> Option<Direction> {
    match text.to_ascii_lowercase().as_str() {
        "asc" => Some(Direction::Ascending),
        "desc" => Some(Direction::Descending),
        _ => None,
    }
}

/// The longest list of values: engines limit how many one statement may bind.
pub(super) const MAX_LIST: usize = 1000;

pub(super) fn check_list_length(name: &str, n_values: usize) -> Result<(), InvalidArguments> {
    if n_values <= MAX_LIST {
        return Ok(());
    }
    Err(InvalidArguments(format!("{name} must not have more than {MAX_LIST} entries.")))
}
