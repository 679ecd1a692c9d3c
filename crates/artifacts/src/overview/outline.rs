//! Extracts the beginning of a JSON text without parsing the whole.
//!
//! A long result may have tens of megabytes, and a tree of it ten times that. One
//! pass finds where its members are, another counts the elements of an array;
//! only the values that are shown are parsed.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::shape::{MAX_PATH_BYTES, jq_step};

/// The largest number of rows that are shown.
pub(super) const MAX_ROWS: usize = 3;
/// The longest row that is shown.
pub(super) const MAX_ROW_CHARS: usize = 160;

/// The outermost level of a text.
#[derive(Debug)]
pub(super) enum Outline<'a> {
    Array(Rows<'a>),
    Object(Members<'a>),
    /// A scalar, or not JSON.
    Plain,
}

/// The first members of an object, in their order.
#[derive(Debug)]
pub(super) struct Members<'a>(Vec<(String, &'a RawValue)>);

/// The first elements of an array, and how many there are.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    first: Vec<&'a RawValue>,
    count: usize,
}

/// The most members that are looked at: a list of millions takes more memory than their
/// text.
const MAX_MEMBERS: usize = 10_000;

/// A string of more bytes than this has more than [`MAX_FACT_CHARS`] characters.
const MAX_FACT_BYTES: usize = 12 * MAX_FACT_CHARS + 2;
/// The longest text of a fact, and the longest key in bytes.
const MAX_FACT_CHARS: usize = 80;
/// A row of more bytes than this is too long, however it is laid out.
const MAX_ROW_BYTES: usize = 128 * MAX_ROW_CHARS;

impl<'a> Outline<'a> {
    pub(super) fn parse(text: &'a str) -> Outline<'a> {
        match text.trim_start().chars().next() {
            Some('[') => serde_json::from_str(text).map_or(Outline::Plain, Outline::Array),
            Some('{') => serde_json::from_str(text).map_or(Outline::Plain, Outline::Object),
            _ => Outline::Plain,
        }
    }

    /// Renders the first elements of the array, or of the object's largest array.
    pub(super) fn first_rows(&self) -> Option<String> {
        match self {
            Outline::Array(rows) => Some(rows.render()),
            Outline::Object(Members(members)) => {
                let rows = members.iter().filter_map(|(_, value)| {
                    let value = value.get();
                    value.starts_with('[').then(|| serde_json::from_str::<Rows<'_>>(value).ok())?
                });
                Some(rows.max_by_key(|rows| rows.count)?.render())
            }
            Outline::Plain => None,
        }
    }

    /// Renders the short scalar members of an object as `key: value`.
    pub(super) fn facts(&self) -> Option<impl Iterator<Item = String>> {
        let Outline::Object(Members(members)) = self else { return None };
        Some(members.iter().filter_map(|(key, value)| {
            let value = value.get();
            // A server may send keys of any length.
            if MAX_FACT_CHARS < key.len() {
                return None;
            }
            match value.as_bytes().first()? {
                b'{' | b'[' | b'n' => None,
                b'"' if MAX_FACT_BYTES < value.len() => None,
                b'"' => {
                    let text: String = serde_json::from_str(value).ok()?;
                    (text.chars().count() <= MAX_FACT_CHARS).then(|| format!("{key}: {text}"))
                }
                _ => Some(format!("{key}: {value}")),
            }
        }))
    }
}

/// The longest text in a sample.
const MAX_SAMPLE_CHARS: usize = 40;
/// The largest number of members of an object that a sample shows.
const MAX_SAMPLE_MEMBERS: usize = 12;
/// A member is called heavy when it has more than this share of the data, in
/// percent.
const HEAVY_PERCENT: usize = 40;

impl<'a> Outline<'a> {
    /// Renders at most `limit` records with long texts cut, as examples for somebody
    /// who writes a filter or a pattern.
    pub(super) fn samples(&self, limit: usize) -> Vec<String> {
        let rows = match self {
            Outline::Array(rows) => Some(rows.first.clone()),
            Outline::Object(members) => members.largest_array().map(|(_, rows)| rows.first),
            Outline::Plain => return Vec::new(),
        };
        let Some(rows) = rows else { return Vec::new() };
        let sample = |row: &&RawValue| {
            let row = Some(row.get()).filter(|row| row.len() <= MAX_ROW_BYTES)?;
            let value: Value = serde_json::from_str(row).ok()?;
            Some(catalog::summary::cut(&abridge(value, 2).to_string(), MAX_ROW_CHARS))
        };
        rows.iter().take(limit).filter_map(sample).collect()
    }

    /// Returns the member that has most of the data: its jq path, such as
    /// `.content` or `.items[].body`, and its share in percent.
    pub(super) fn heaviest(&self) -> Option<(String, usize)> {
        let heaviest = match self {
            Outline::Array(rows) => rows.heaviest("."),
            Outline::Object(members) => {
                let (key, share) = heavy(members.sizes())?;
                let path = jq_step(&key);
                let inside = members.largest_array().filter(|(name, _)| *name == key);
                inside.and_then(|(_, rows)| rows.heaviest(&path)).or(Some((path, share)))
            }
            Outline::Plain => None,
        };
        heaviest.filter(|(path, _)| path.len() <= MAX_PATH_BYTES)
    }
}

impl<'a> Members<'a> {
    /// Returns the member that is an array with the most elements.
    fn largest_array(&self) -> Option<(&str, Rows<'a>)> {
        let rows = self.0.iter().filter_map(|(key, value)| {
            let value: &'a str = value.get();
            let rows = value.starts_with('[').then(|| serde_json::from_str(value).ok())??;
            Some((key.as_str(), rows))
        });
        rows.max_by_key(|(_, rows): &(&str, Rows<'a>)| rows.count)
    }

    /// Returns the size of each member in bytes.
    fn sizes(&self) -> Vec<(String, usize)> {
        self.0.iter().map(|(key, value)| (key.clone(), value.get().len())).collect()
    }
}

/// Returns the member with more than [`HEAVY_PERCENT`] of the bytes, and its share.
fn heavy(sizes: Vec<(String, usize)>) -> Option<(String, usize)> {
    let all: usize = sizes.iter().map(|(_, size)| size).sum();
    let (key, size) = sizes.into_iter().max_by_key(|(_, size)| *size)?;
    let share = 100 * size / all.max(1);
    (HEAVY_PERCENT < share).then_some((key, share))
}

/// Cuts the long texts and the lists of a value.
fn abridge(value: Value, depth: usize) -> Value {
    match value {
        Value::String(text) => Value::String(catalog::summary::cut(&text, MAX_SAMPLE_CHARS)),
        Value::Array(_) | Value::Object(_) if depth == 0 => Value::String("…".to_owned()),
        Value::Array(items) => {
            items.into_iter().take(2).map(|item| abridge(item, depth - 1)).collect()
        }
        Value::Object(members) => members
            .into_iter()
            .take(MAX_SAMPLE_MEMBERS)
            .map(|(key, value)| (key, abridge(value, depth - 1)))
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

impl Rows<'_> {
    /// Returns the heavy member of the first records. `path` is that of their array.
    fn heaviest(&self, path: &str) -> Option<(String, usize)> {
        let mut sizes: Vec<(String, usize)> = Vec::new();
        for row in &self.first {
            let Ok(members) = serde_json::from_str::<Members<'_>>(row.get()) else { continue };
            for (key, size) in members.sizes() {
                match sizes.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, sum)) => *sum += size,
                    None => sizes.push((key, size)),
                }
            }
        }
        let several = 1 < sizes.len();
        let (key, share) = heavy(sizes).filter(|_| several)?;
        let path = if path == "." { "." } else { path };
        Some((format!("{path}[]{}", jq_step(&key)), share))
    }

    fn render(&self) -> String {
        let compact = |row: &&RawValue| {
            let row = Some(row.get()).filter(|row| row.len() <= MAX_ROW_BYTES)?;
            let value: Value = serde_json::from_str(row).ok()?;
            Some(value.to_string()).filter(|row| row.chars().count() <= 2 * MAX_ROW_CHARS)
        };
        let shown: Vec<String> = self.first.iter().map_while(compact).collect();
        format!("[{}]", shown.join(","))
    }
}

impl<'de> Deserialize<'de> for Rows<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Rows<'de>, D::Error> {
        struct Counting;

        impl<'de> Visitor<'de> for Counting {
            type Value = Rows<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Rows<'de>, A::Error> {
                let mut first = Vec::new();
                while first.len() < MAX_ROWS {
                    let Some(row) = items.next_element()? else { break };
                    first.push(row);
                }
                let mut count = first.len();
                while items.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Rows { first, count })
            }
        }

        reader.deserialize_seq(Counting)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Members<'de>, D::Error> {
        struct Listing;

        impl<'de> Visitor<'de> for Listing {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while members.len() < MAX_MEMBERS {
                    let Some(member) = map.next_entry()? else { break };
                    members.push(member);
                }
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Members(members))
            }
        }

        reader.deserialize_map(Listing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, rows: Option<&str>, facts: Option<&[&str]>) {
        let outline = Outline::parse(text);
        assert_eq!(outline.first_rows().as_deref(), rows);
        let found: Option<Vec<String>> = outline.facts().map(Iterator::collect);
        let facts = facts.map(|facts| facts.iter().map(|&fact| fact.to_owned()).collect());
        assert_eq!(found, facts);
    }

    #[test]
    fn the_first_rows_are_whole_and_those_of_the_largest_array() {
        check("[1, {\"a\": [2]}, 3, 4]", Some("[1,{\"a\":[2]},3]"), None);
        check("[]", Some("[]"), None);
        check(r#"{"a": [1], "b": [1, 2], "c": {"d": [1, 2, 3]}}"#, Some("[1,2]"), Some(&[]));
        let long = "x".repeat(2 * MAX_ROW_CHARS);
        check(&format!("[1, \"{long}\", 2]"), Some("[1]"), None);
        check(&format!("[\"{}\"]", "x".repeat(MAX_ROW_BYTES)), Some("[]"), None);
    }

    #[test]
    fn facts_are_the_short_scalars_as_they_were_written() {
        let text = r#"{"n": 12345678901234567890, "t": "a\u0062", "b": true, "z": null, "o": {}}"#;
        check(text, None, Some(&["n: 12345678901234567890", "t: ab", "b: true"]));
        let (fits, long) = ("\\u00e9".repeat(MAX_FACT_CHARS), "x".repeat(MAX_FACT_CHARS + 1));
        let expected = format!("a: {}", "é".repeat(MAX_FACT_CHARS));
        check(&format!(r#"{{"a": "{fits}", "b": "{long}"}}"#), None, Some(&[&expected]));
        check(&format!(r#"{{"a": 1, "{long}": 1}}"#), None, Some(&["a: 1"]));
    }

    #[test]
    fn a_sample_shows_records_with_long_texts_cut() {
        let body = "x".repeat(300);
        let text = format!(r#"{{"items": [{{"n": 1, "body": "{body}"}}, {{"n": 2}}]}}"#);
        let outline = Outline::parse(&text);
        let cut = "x".repeat(MAX_SAMPLE_CHARS - 1);
        assert_eq!(outline.samples(1), [format!(r#"{{"n":1,"body":"{cut}…"}}"#)]);
        assert_eq!(outline.samples(9).len(), 2);
        assert_eq!(outline.heaviest(), Some((".items[].body".to_owned(), 99)));
        let outline = Outline::parse(r#"{"content": "a long text", "n": 1}"#);
        assert_eq!(outline.heaviest(), Some((".content".to_owned(), 92)));
        assert!(Outline::parse("[1, 2]").heaviest().is_none());
        assert!(Outline::parse(r#"[{"a": 1, "b": 2, "c": 3}]"#).heaviest().is_none());
    }

    #[test]
    fn what_is_no_json_has_no_outline() {
        for text in ["", "words", "7", "\"[1]\"", "[1, 2", "{\"a\": 1} more", "{\"a\": [1,]}"] {
            check(text, None, None);
        }
    }
}
