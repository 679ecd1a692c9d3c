//! Counts the members and items of a JSON text without parsing it into a tree.
//!
//! A long answer may be tens of megabytes, and a tree of it ten times that. One
//! pass over the text remembers only the largest array and a few keys.

use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// How many keys are worth naming.
const KEYS: usize = 12;
/// How deep arrays are looked for.
const DEPTH: usize = 4;

/// The largest array of a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// A jq path: `.orders`, `.` for the value itself.
    pub path: String,
    pub count: usize,
    /// The keys of the first item, when it is an object.
    pub keys: Vec<String>,
    /// The same with what is inside, one level deep: `labels[{id, name}]`.
    pub members: Vec<String>,
}

/// What one pass found.
#[derive(Debug, Default)]
pub(super) struct Structure {
    pub(super) is_array: bool,
    pub(super) keys: Vec<String>,
    pub(super) rows: Option<Rows>,
}

/// Reads the text; `None` when it is no JSON object or array.
pub(super) fn read(text: &str) -> Option<Structure> {
    let text = text.trim();
    let is_array = text.starts_with('[');
    if !is_array && !text.starts_with('{') {
        return None;
    }
    let mut rows = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    let walk = Walk { path: String::new(), depth: DEPTH, rows: &mut rows };
    let inside = walk.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    let keys = if is_array { Vec::new() } else { inside.keys };
    Some(Structure { is_array, keys, rows })
}

/// What one value consists of.
#[derive(Debug, Default)]
struct Inside {
    /// The keys of an object, or of the first item of an array.
    keys: Vec<String>,
    /// The same with what is inside of each.
    members: Vec<String>,
    is_array: bool,
}

impl Inside {
    /// A member of this kind, as it is named to a reader.
    fn named(&self, key: &str) -> String {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).take(NESTED).collect();
        let more = if NESTED < self.keys.len() { ", …" } else { "" };
        match (keys.is_empty(), self.is_array) {
            (true, false) => key.to_owned(),
            (true, true) => format!("{key}[]"),
            (false, false) => format!("{key}{{{}{more}}}", keys.join(", ")),
            (false, true) => format!("{key}[{{{}{more}}}]", keys.join(", ")),
        }
    }
}

/// How many keys inside of a member are named.
const NESTED: usize = 4;

/// Visits one value; gives its keys when it is an object.
struct Walk<'a> {
    path: String,
    depth: usize,
    rows: &'a mut Option<Rows>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Inside;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Inside, D::Error> {
        if self.depth == 0 {
            reader.deserialize_ignored_any(IgnoredAny)?;
            return Ok(Inside::default());
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Inside;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Inside, A::Error> {
        let (mut keys, mut members): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut first = true;
        while let Some(key) = map.next_key::<String>()? {
            // A number of any size is read as a map with this one key.
            if first && key == "$serde_json::private::Number" {
                map.next_value::<IgnoredAny>()?;
                return Ok(Inside::default());
            }
            first = false;
            let path = format!("{}{}", self.path, step(&key));
            let below = Walk { path, depth: self.depth - 1, rows: &mut *self.rows };
            let inside = map.next_value_seed(below)?;
            match keys.len() {
                KEYS => {
                    keys.push("…".to_owned());
                    members.push("…".to_owned());
                }
                room if room < KEYS => {
                    let key = catalog::summary::cut(&key, 40);
                    members.push(inside.named(&key));
                    keys.push(key);
                }
                _ => {}
            }
        }
        Ok(Inside { keys, members, is_array: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Inside, A::Error> {
        let mut unused = None;
        let first = Walk { path: String::new(), depth: self.depth - 1, rows: &mut unused };
        let empty = Inside { is_array: true, ..Inside::default() };
        let Some(Inside { keys, members, .. }) = items.next_element_seed(first)? else {
            return Ok(empty);
        };
        let inside = Inside { keys: keys.clone(), ..empty };
        let mut count = 1;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        if self.rows.as_ref().is_none_or(|rows| rows.count < count) {
            let path = if self.path.is_empty() { ".".to_owned() } else { self.path };
            *self.rows = Some(Rows { path, count, keys, members });
        }
        Ok(inside)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Inside, E> {
        Ok(Inside::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Inside, E> {
        Ok(Inside::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Inside, E> {
        Ok(Inside::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Inside, E> {
        Ok(Inside::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Inside, E> {
        Ok(Inside::default())
    }

    fn visit_unit<E>(self) -> Result<Inside, E> {
        Ok(Inside::default())
    }
}

/// One step of a jq path.
pub(crate) fn step(key: &str) -> String {
    let plain = catalog::name::is_legal(key) && !key.starts_with(char::is_numeric);
    if plain { format!(".{key}") } else { format!(".{key:?}") }
}
