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
    let keys = walk.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(Structure { is_array, keys, rows })
}

/// Visits one value; gives its keys when it is an object.
struct Walk<'a> {
    path: String,
    depth: usize,
    rows: &'a mut Option<Rows>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Vec<String>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Vec<String>, D::Error> {
        if self.depth == 0 {
            reader.deserialize_ignored_any(IgnoredAny)?;
            return Ok(Vec::new());
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut keys: Vec<String> = Vec::new();
        let mut first = true;
        while let Some(key) = map.next_key::<String>()? {
            // A number of any size is read as a map with this one key.
            if first && key == "$serde_json::private::Number" {
                map.next_value::<IgnoredAny>()?;
                return Ok(Vec::new());
            }
            first = false;
            let path = format!("{}{}", self.path, step(&key));
            map.next_value_seed(Walk { path, depth: self.depth - 1, rows: &mut *self.rows })?;
            match keys.len() {
                KEYS => keys.push("…".to_owned()),
                room if room < KEYS => keys.push(catalog::summary::cut(&key, 40)),
                _ => {}
            }
        }
        Ok(keys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<String>, A::Error> {
        let mut unused = None;
        let first = Walk { path: String::new(), depth: self.depth - 1, rows: &mut unused };
        let Some(keys) = items.next_element_seed(first)? else { return Ok(Vec::new()) };
        let mut count = 1;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        if self.rows.as_ref().is_none_or(|rows| rows.count < count) {
            let path = if self.path.is_empty() { ".".to_owned() } else { self.path };
            *self.rows = Some(Rows { path, count, keys });
        }
        Ok(Vec::new())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_str<E>(self, _: &str) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_unit<E>(self) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }
}

/// One step of a jq path.
pub(crate) fn step(key: &str) -> String {
    let plain = catalog::name::is_legal(key) && !key.starts_with(char::is_numeric);
    if plain { format!(".{key}") } else { format!(".{key:?}") }
}
