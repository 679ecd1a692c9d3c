//! The words that conditions and orders are made of, whatever they are about.

use serde_json::Value;

use super::{Arguments, Invalid, coerce, shown};
use crate::query::{Comparison, Direction, Place};

/// The values of a list, or of an object that is used as one.
pub(super) fn members(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let (items, object) = match value {
        Some(Value::Array(items)) => (Some(items.iter()), None),
        Some(Value::Object(object)) => (None, Some(object.values())),
        _ => (None, None),
    };
    items.into_iter().flatten().chain(object.into_iter().flatten())
}

pub(super) fn comparison(op: &str) -> Option<Comparison> {
    Some(match op {
        "=" => Comparison::Equal,
        "!=" => Comparison::Unequal,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        _ => return None,
    })
}

/// Where the text of a `like` operator stands.
pub(super) fn place(op: &str) -> Place {
    match op {
        "like-l" => Place::AtEnd,
        "like-r" => Place::AtStart,
        _ => Place::Anywhere,
    }
}

pub(super) fn order_dir(arguments: &Arguments<'_>) -> Result<Direction, Invalid> {
    let Some(dir) = arguments.text("order_dir") else { return Ok(Direction::Up) };
    let dir = dir.trim_matches(coerce::BLANKS);
    direction(dir).ok_or_else(|| Invalid(format!("Invalid order_dir [{}].", shown(dir))))
}

pub(super) fn direction(text: &str) -> Option<Direction> {
    match text.to_ascii_lowercase().as_str() {
        "asc" => Some(Direction::Up),
        "desc" => Some(Direction::Down),
        _ => None,
    }
}

/// Engines limit how many values one statement may bind.
pub(super) const MAX_LIST: usize = 1000;

pub(super) fn too_many(name: &str, n_values: usize) -> Result<(), Invalid> {
    if n_values <= MAX_LIST {
        return Ok(());
    }
    Err(Invalid(format!("{name} must not have more than {MAX_LIST} entries.")))
}
