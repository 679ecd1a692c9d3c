//! Changes one value of a document and leaves every other byte as it is.
//!
//! [`set`] puts a value at the end of a way of keys, [`remove`] takes it away.
//! Each works out which pieces of the text to replace, and then reads the result
//! again: unless it says exactly what it should, the change is refused. What is
//! put in and taken out again leaves the text as it was.

mod json;
mod toml;
mod yaml;

mod layout;
mod pieces;
mod write;

use serde_json::{Map, Value as Json};

pub use pieces::find;

use crate::tree::{Node, Value};
use crate::{Damaged, Format};
use pieces::splice;

/// A document with a value put into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    pub text: String,
    /// How many tables around the value had to be made. [`remove`] takes as
    /// many away again, as far as they are empty.
    pub n_made: usize,
}

/// Why a document was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The document cannot be read; mend it first.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    #[error("`{0}` is not a table")]
    NotATable(String),
    #[error("there is no `{0}`")]
    Absent(String),
    /// It is written in a way that cannot be changed piecewise.
    #[error("`{0}` is written in a way that cannot be changed without touching the rest")]
    Unsure(String),
}

/// Puts a value at the end of the way, in place of what may be there.
pub fn set(text: &str, format: Format, keys: &[&str], value: &Json) -> Result<Set, EditError> {
    let (mark, body) = without_mark(text);
    let root = crate::read(body, format)?;
    let n_made = n_missing(&root, keys)?;
    let splices = match format {
        Format::Json => json::set(body, &root, keys, value),
        Format::Toml => toml::set(body, &root, keys, value),
        Format::Yaml => yaml::set(body, &root, keys, value),
    };
    let splices = splices.ok_or_else(|| EditError::Unsure(keys.join(".")))?;
    let changed = splice(body, splices);
    let expected = with(root.to_json(), keys, Some(value));
    check(&changed, format, keys, expected)?;
    Ok(Set { text: format!("{mark}{changed}"), n_made })
}

/// Takes the value at the end of the way out, and up to `n_made` tables around
/// it that are empty then.
pub fn remove(
    text: &str,
    format: Format,
    keys: &[&str],
    n_made: usize,
) -> Result<String, EditError> {
    let (mark, body) = without_mark(text);
    let root = crate::read(body, format)?;
    if find(&root, keys).is_none() {
        return Err(EditError::Absent(keys.join(".")));
    }
    let gone = keys.len() - n_emptied(&root, keys, n_made);
    let splices = match format {
        Format::Json => json::remove(body, &root, &keys[..gone]),
        Format::Toml => toml::remove(body, &root, &keys[..gone]),
        Format::Yaml => yaml::remove(body, &root, &keys[..gone]),
    };
    let splices = splices.ok_or_else(|| EditError::Unsure(keys.join(".")))?;
    let changed = splice(body, splices);
    let expected = with(root.to_json(), keys, None);
    check(&changed, format, keys, expected)?;
    Ok(format!("{mark}{changed}"))
}

/// The byte order mark, and what follows it.
fn without_mark(text: &str) -> (&str, &str) {
    text.split_at(text.len() - text.trim_start_matches('\u{feff}').len())
}

/// Returns how many of the tables around a value are not there yet.
fn n_missing(root: &Node, keys: &[&str]) -> Result<usize, EditError> {
    let mut node = root;
    for (depth, key) in keys.iter().enumerate() {
        match &node.value {
            Value::Table(_) => {}
            // An empty place where a table should be.
            Value::Null => return Ok(keys.len() - 1 - depth),
            Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Moment(_) => {
                let way =
                    if depth == 0 { "the document".to_owned() } else { keys[..depth].join(".") };
                return Err(EditError::NotATable(way));
            }
        }
        match node.get(key) {
            Some(below) => node = below,
            None => return Ok(keys.len() - 1 - depth),
        }
    }
    Ok(0)
}

/// Returns how many tables around a value hold nothing else, `most` at most.
fn n_emptied(root: &Node, keys: &[&str], most: usize) -> usize {
    let is_alone = |n: &usize| {
        let around = &keys[..keys.len() - n];
        find(root, around).is_some_and(|table| table.members().len() == 1)
    };
    (1..=most.min(keys.len().saturating_sub(1))).take_while(is_alone).count()
}

/// Checks whether the changed text says what it should.
fn check(changed: &str, format: Format, keys: &[&str], expected: Json) -> Result<(), EditError> {
    let unsure = || EditError::Unsure(keys.join("."));
    let found = crate::read(changed, format).map_err(|_| unsure())?;
    let says = without_empty(found.to_json(), keys);
    if says == without_empty(expected, keys) { Ok(()) } else { Err(unsure()) }
}

/// A document with another value at the end of the way, or none.
fn with(root: Json, keys: &[&str], value: Option<&Json>) -> Json {
    let Some((key, rest)) = keys.split_first() else { return value.cloned().unwrap_or(root) };
    let mut members = match root {
        Json::Object(members) => members,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            Map::new()
        }
    };
    match (value, rest.is_empty()) {
        (None, true) => drop(members.shift_remove(*key)),
        (Some(_), _) | (None, false) => {
            let below = members.get(*key).cloned().unwrap_or(Json::Null);
            members.insert((*key).to_owned(), with(below, rest, value));
        }
    }
    Json::Object(members)
}

/// Without the empty tables on the way: whether they are there says nothing.
fn without_empty(root: Json, keys: &[&str]) -> Json {
    let Json::Object(mut members) = root else {
        return if root.is_null() { Json::Object(Map::new()) } else { root };
    };
    if let Some((key, rest)) = keys.split_first()
        && let Some(below) = members.shift_remove(*key)
    {
        let below = without_empty(below, rest);
        let is_empty = below.is_null() || below.as_object().is_some_and(Map::is_empty);
        if !is_empty {
            members.insert((*key).to_owned(), below);
        }
    }
    Json::Object(members)
}

#[cfg(test)]
mod tests;
