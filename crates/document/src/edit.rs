//! Changes one value of a document and leaves every other byte as it is.
//!
//! [`set`] adds or replaces the value at a path of keys, [`insert`] puts it between its
//! siblings, and [`remove`] removes it. Each
//! computes which parts of the text to replace and parses the result again; unless
//! that means exactly what it should, the change is refused. Adding a value and
//! removing it again restores the text.

mod json;
mod toml;
mod yaml;

mod layout;
mod splice;
mod write;

use serde_json::{Map, Value as Json};

pub use splice::find;

use crate::tree::{Member, Node, Value};
use crate::{Format, ParseError};
use splice::{Place, splice};

/// The result of [`set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub text: String,
    /// How many tables around the value were created. [`remove`] removes as many again,
    /// if they are empty.
    pub n_created: usize,
}

/// Why a document was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The document has a syntax error; fix it first.
    #[error(transparent)]
    Syntax(#[from] ParseError),
    #[error("`{0}` is not a table")]
    NotATable(String),
    #[error("there is no `{0}`")]
    Absent(String),
    /// The value is written in a way that cannot be changed without touching the rest.
    #[error("`{0}` is written in a way that cannot be changed without touching the rest")]
    NotSafe(String),
}

/// Adds the value at the path `keys`, or replaces the one that is there.
pub fn set(text: &str, format: Format, keys: &[&str], value: &Json) -> Result<Edited, EditError> {
    let (mark, body) = split_mark(text)?;
    let root = crate::parse(body, format)?;
    let n_created = n_missing(&root, keys)?;
    let splices = match format {
        Format::Json => json::set(body, &root, keys, value),
        Format::Toml => toml::set(body, &root, keys, value),
        Format::Yaml => yaml::set(body, &root, keys, value),
    };
    let splices = splices.ok_or_else(|| EditError::NotSafe(keys.join(".")))?;
    let changed = splice(body, splices);
    let expected = with(root.to_json(), keys, Some(value));
    check(&changed, format, keys, expected)?;
    Ok(Edited { text: format!("{mark}{changed}"), n_created })
}

/// Adds the value at the path `keys` behind the last of the siblings `preceding` that exists,
/// or before all others if none does. Where the text has no room there, it goes to the end;
/// a value that exists is replaced where it is.
pub fn insert(
    text: &str,
    format: Format,
    keys: &[&str],
    value: &Json,
    preceding: &[&str],
) -> Result<Edited, EditError> {
    let between = insert_between(text, format, keys, value, preceding);
    between.map_or_else(|| set(text, format, keys, value), Ok)
}

fn insert_between(
    text: &str,
    format: Format,
    keys: &[&str],
    value: &Json,
    preceding: &[&str],
) -> Option<Edited> {
    let (mark, body) = split_mark(text).ok()?;
    let root = crate::parse(body, format).ok()?;
    let (key, parents) = keys.split_last()?;
    let table = find(&root, parents).filter(|table| table.get(key).is_none())?;
    let precedes = |member: &Member| preceding.contains(&member.key.as_str());
    let place = match table.members().iter().rfind(|member| precedes(member)) {
        Some(before) => Place::Behind(before),
        None => Place::Before(table.members().first()?),
    };
    let splices = match format {
        Format::Json => json::insert(body, &root, table, key, value, place),
        Format::Toml => toml::insert(body, &root, keys, value, place)?,
        Format::Yaml => yaml::insert(body, table, key, value, place)?,
    };
    let changed = splice(body, splices);
    check(&changed, format, keys, with(root.to_json(), keys, Some(value))).ok()?;
    Some(Edited { text: format!("{mark}{changed}"), n_created: 0 })
}

/// Removes the value at the path `keys`, and up to `n_created` tables around it that are
/// empty then.
pub fn remove(
    text: &str,
    format: Format,
    keys: &[&str],
    n_created: usize,
) -> Result<String, EditError> {
    let (mark, body) = split_mark(text)?;
    let root = crate::parse(body, format)?;
    if find(&root, keys).is_none() {
        return Err(EditError::Absent(keys.join(".")));
    }
    let gone = keys.len() - n_emptied(&root, keys, n_created);
    let splices = match format {
        Format::Json => json::remove(body, &root, &keys[..gone]),
        Format::Toml => toml::remove(body, &root, &keys[..gone]),
        Format::Yaml => yaml::remove(body, &root, &keys[..gone]),
    };
    let splices = splices.ok_or_else(|| EditError::NotSafe(keys.join(".")))?;
    let changed = splice(body, splices);
    let expected = with(root.to_json(), keys, None);
    check(&changed, format, keys, expected)?;
    Ok(format!("{mark}{changed}"))
}

/// Splits a text into its byte order mark and the rest. Only the first one is a mark; a text
/// with another is none that hosts could read.
fn split_mark(text: &str) -> Result<(&str, &str), EditError> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    match body.starts_with('\u{feff}') {
        true => Err(EditError::NotSafe("the document".to_owned())),
        false => Ok(text.split_at(text.len() - body.len())),
    }
}

/// Returns how many of the tables around a value do not exist yet.
fn n_missing(root: &Node, keys: &[&str]) -> Result<usize, EditError> {
    let mut node = root;
    for (depth, key) in keys.iter().enumerate() {
        match &node.value {
            Value::Table(_) => {}
            // A key without a value, where a table is expected.
            Value::Null => return Ok(keys.len() - 1 - depth),
            Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::DateTime(_) => {
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

/// Returns how many tables around a value hold nothing else, at most `most`.
fn n_emptied(root: &Node, keys: &[&str], most: usize) -> usize {
    let is_alone = |n: &usize| {
        let parents = &keys[..keys.len() - n];
        find(root, parents).is_some_and(|table| table.members().len() == 1)
    };
    (1..=most.min(keys.len().saturating_sub(1))).take_while(is_alone).count()
}

/// Checks that the changed text means `expected`.
fn check(changed: &str, format: Format, keys: &[&str], expected: Json) -> Result<(), EditError> {
    let unsure = || EditError::NotSafe(keys.join("."));
    let found = crate::parse(changed, format).map_err(|_| unsure())?;
    let found = without_empty(found.to_json(), keys);
    if found == without_empty(expected, keys) { Ok(()) } else { Err(unsure()) }
}

/// Returns the document with the value at `keys` replaced, or removed when it is `None`.
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

/// Returns the document without empty tables along `keys`, which mean nothing.
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
