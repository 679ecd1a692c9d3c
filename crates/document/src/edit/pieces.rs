//! Pieces of a text, and the way to a value: what the editors of all formats share.

use std::ops::Range;

use serde_json::{Map, Value as Json};

use crate::tree::Node;

/// The value at the end of the way.
pub fn find<'n>(root: &'n Node, keys: &[&str]) -> Option<&'n Node> {
    keys.iter().try_fold(root, |node, key| node.get(key))
}

/// A piece of the text, and what stands there instead.
pub(super) type Splice = (Range<usize>, String);

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

/// A value under the keys that lead to it.
pub(super) fn nested(keys: &[&str], value: &Json) -> Json {
    keys.iter().rev().fold(value.clone(), |value, key| {
        Json::Object(Map::from_iter([((*key).to_owned(), value)]))
    })
}
