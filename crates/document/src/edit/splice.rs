//! Replaces ranges of a text, and finds values by their keys, for the editors of all
//! formats.

use std::ops::Range;

use serde_json::{Map, Value as Json};

use crate::tree::{Member, Node};

/// Returns the value at the path `keys`.
pub fn find<'n>(root: &'n Node, keys: &[&str]) -> Option<&'n Node> {
    keys.iter().try_fold(root, |node, key| node.get(key))
}

/// Where a new member of a table goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'n> {
    Before(&'n Member),
    Behind(&'n Member),
}

/// A range of the text, and its replacement.
pub(super) type Splice = (Range<usize>, String);

/// Applies all replacements to a text.
pub(super) fn splice(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut changed, mut at) = (String::with_capacity(text.len() + 256), 0);
    for (range, new) in splices {
        changed.push_str(&text[at..range.start.max(at)]);
        changed.push_str(&new);
        at = range.end.max(at);
    }
    changed.push_str(&text[at..]);
    changed
}

/// Wraps a value in one table per key.
pub(super) fn nested(keys: &[&str], value: &Json) -> Json {
    keys.iter().rev().fold(value.clone(), |value, key| {
        Json::Object(Map::from_iter([((*key).to_owned(), value)]))
    })
}
