//! Finds the keys and the largest array of a JSON text without parsing it into a tree.
//!
//! A long result may have tens of megabytes, and a tree of it ten times that. One
//! pass over the text remembers only the largest array and a few keys.

use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The largest number of keys that are listed.
const MAX_KEYS: usize = 12;
/// How many levels of objects are searched for arrays.
const MAX_DEPTH: usize = 4;
/// A longer path is not shown: a server may send keys of any length.
pub(crate) const MAX_PATH_BYTES: usize = 200;

/// The array with the most items in a JSON value. Arrays inside of arrays are not searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargestArray {
    /// A jq path: `.orders`, `.` for the value itself.
    pub path: String,
    pub count: usize,
    /// The keys of the first item, if it is an object.
    pub keys: Vec<String>,
    /// The same keys for display, each with the keys of its value: `labels[{id, name}]`.
    pub rendered_keys: Vec<String>,
}

/// The result of one pass over a text.
#[derive(Debug, Default)]
pub(super) struct Structure {
    pub(super) is_array: bool,
    /// The keys of the object, at most [`MAX_KEYS`] and a `…` for the rest.
    pub(super) keys: Vec<String>,
    /// How many keys the object has.
    pub(super) n_keys: usize,
    pub(super) largest_array: Option<LargestArray>,
}

/// Parses the text; `None` if it is not a JSON object or array.
pub(super) fn parse(text: &str) -> Option<Structure> {
    let text = text.trim();
    let is_array = text.starts_with('[');
    if !is_array && !text.starts_with('{') {
        return None;
    }
    let mut largest = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    let walk =
        StructureVisitor { path: String::new(), levels_left: MAX_DEPTH, largest: &mut largest };
    let inside = walk.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    let (keys, n_keys) = if is_array { (Vec::new(), 0) } else { (inside.keys, inside.n_keys) };
    Some(Structure { is_array, keys, n_keys, largest_array: largest })
}

/// The keys of one value.
#[derive(Debug, Default)]
struct Members {
    /// The keys of an object, or of the first item of an array, at most [`MAX_KEYS`] and
    /// a `…` for the rest.
    keys: Vec<String>,
    /// How many keys the object has, or the first item.
    n_keys: usize,
    /// The same keys for display, each with the keys of its value.
    rendered_keys: Vec<String>,
    is_array: bool,
}

impl Members {
    /// Renders the member `key` that has this value: `labels[{id, name}]`.
    fn render(&self, key: &str) -> String {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).take(MAX_NESTED_KEYS).collect();
        let more = if MAX_NESTED_KEYS < self.keys.len() { ", …" } else { "" };
        match (keys.is_empty(), self.is_array) {
            (true, false) => key.to_owned(),
            (true, true) => format!("{key}[]"),
            (false, false) => format!("{key}{{{}{more}}}", keys.join(", ")),
            (false, true) => format!("{key}[{{{}{more}}}]", keys.join(", ")),
        }
    }
}

/// The largest number of keys that are listed below a key.
const MAX_NESTED_KEYS: usize = 4;

/// Visits one value, returns its keys and remembers the largest array in it.
struct StructureVisitor<'a> {
    /// The jq path of the value; empty for the whole.
    path: String,
    /// How many levels may still be searched, with that of the value.
    levels_left: usize,
    /// The largest array that was found so far.
    largest: &'a mut Option<LargestArray>,
}

impl<'de> DeserializeSeed<'de> for StructureVisitor<'_> {
    type Value = Members;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Members, D::Error> {
        if self.levels_left == 0 {
            reader.deserialize_ignored_any(IgnoredAny)?;
            return Ok(Members::default());
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StructureVisitor<'_> {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let (mut keys, mut rendered_keys): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut n_keys = 0;
        while let Some(key) = map.next_key::<String>()? {
            // With `arbitrary_precision`, serde_json presents a number as a map with only
            // this key.
            if n_keys == 0 && key == "$serde_json::private::Number" {
                map.next_value::<IgnoredAny>()?;
                return Ok(Members::default());
            }
            n_keys += 1;
            let path = format!("{}{}", self.path, jq_step(&key));
            let below = StructureVisitor {
                path,
                levels_left: self.levels_left - 1,
                largest: &mut *self.largest,
            };
            let inside = map.next_value_seed(below)?;
            match keys.len() {
                MAX_KEYS => {
                    keys.push("…".to_owned());
                    rendered_keys.push("…".to_owned());
                }
                room if room < MAX_KEYS => {
                    let key = catalog::summary::cut(&key, 40);
                    rendered_keys.push(inside.render(&key));
                    keys.push(key);
                }
                _ => {}
            }
        }
        Ok(Members { keys, n_keys, rendered_keys, is_array: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Members, A::Error> {
        let mut unused = None;
        let first = StructureVisitor {
            path: String::new(),
            levels_left: self.levels_left - 1,
            largest: &mut unused,
        };
        let empty = Members { is_array: true, ..Members::default() };
        let Some(Members { keys, n_keys, rendered_keys, .. }) = items.next_element_seed(first)?
        else {
            return Ok(empty);
        };
        let inside = Members { keys: keys.clone(), n_keys, ..empty };
        let mut count = 1;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        let is_shown = self.path.len() <= MAX_PATH_BYTES;
        if is_shown && self.largest.as_ref().is_none_or(|largest| largest.count < count) {
            let path = if self.path.is_empty() { ".".to_owned() } else { self.path };
            *self.largest = Some(LargestArray { path, count, keys, rendered_keys });
        }
        Ok(inside)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Members, E> {
        Ok(Members::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Members, E> {
        Ok(Members::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Members, E> {
        Ok(Members::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Members, E> {
        Ok(Members::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Members, E> {
        Ok(Members::default())
    }

    fn visit_unit<E>(self) -> Result<Members, E> {
        Ok(Members::default())
    }
}

/// Renders a key as one step of a jq path: `.orders`, or `."2024"` if it is no jq name.
pub fn jq_step(key: &str) -> String {
    if catalog::name::is_legal(key) && !key.starts_with(char::is_numeric) {
        return format!(".{key}");
    }
    // A jq string has the escapes of JSON. What cannot be seen is escaped, too, if one code
    // is enough: the jq that runs here knows no surrogate pairs.
    let mut step = ".\"".to_owned();
    for c in key.chars() {
        let is_shown = c == '\'' || c.escape_debug().count() == 1 || 0xffff < u32::from(c);
        match c {
            '"' | '\\' => step.extend(['\\', c]),
            c if is_shown => step.push(c),
            c => step.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    step.push('"');
    step
}
