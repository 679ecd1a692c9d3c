//! JSON that is kept as text and parsed only where needed.
//!
//! [`Json`] is one well-formed JSON value as the bytes it arrived in: cloning
//! shares them, forwarding copies them, and only code that needs typed values
//! parses them. [`Object`] parses one level, to rename, add or remove members;
//! the member values stay untouched.

use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::scan::{self, ValueText};

/// One JSON value, as text.
///
/// Invariant: exactly one well-formed JSON value in UTF-8, without white space
/// around it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(ByteString);

/// The error for a text that is not one JSON value.
#[derive(Debug, thiserror::Error)]
#[error("not valid JSON: {0}")]
pub struct InvalidJson(#[from] serde_json::Error);

impl Json {
    /// Checks that `text` is one JSON value and takes it over, without copying.
    pub fn parse(text: impl Into<Bytes>) -> Result<Json, InvalidJson> {
        let bytes = text.into();
        let Ok(text) = ByteString::try_from(bytes.clone()) else {
            let raw: &RawValue = serde_json::from_slice(&bytes)?;
            return Ok(Json::from(raw.to_owned()));
        };
        let part = match scan::scan_value(&text) {
            Some(part) => part,
            None => serde_json::from_str::<&RawValue>(&text)?.into(),
        };
        Ok(Json::slice(&text, part))
    }

    /// Returns the value that `part` borrows from `whole`, sharing its memory.
    ///
    /// # Panics
    /// If `part` is not a slice of `whole`, which is a bug in the caller.
    pub fn slice(whole: &ByteString, part: ValueText<'_>) -> Json {
        Json(whole.slice_ref(part.as_str()))
    }

    /// Returns a part of this value, sharing its memory.
    ///
    /// # Panics
    /// If `part` is not a slice of this value, which is a bug in the caller.
    pub fn subvalue<'t>(&self, part: impl Into<ValueText<'t>>) -> Json {
        Json::slice(&self.0, part.into())
    }

    /// Serialises a value of one of this program's types.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Json {
        let text = serde_json::to_string(value).expect("our own types always serialise");
        Json(text.into())
    }

    /// Returns a copy in memory of its own, so that the message it was a slice of
    /// can be freed.
    #[must_use]
    pub fn copied_out(&self) -> Json {
        Json(self.as_str().to_owned().into())
    }

    /// Takes over text that this program put together from JSON, without parsing
    /// it again. Debug builds check the invariant.
    pub fn from_trusted(text: impl Into<Bytes>) -> Json {
        let bytes = text.into();
        debug_assert!(
            serde_json::from_slice::<&RawValue>(&bytes)
                .is_ok_and(|raw| raw.get().len() == bytes.len()),
            "not one JSON value"
        );
        Json(ByteString::try_from(bytes).expect("JSON is UTF-8"))
    }

    pub fn null() -> Json {
        Json(ByteString::from_static("null"))
    }

    pub fn empty_object() -> Json {
        Json(ByteString::from_static("{}"))
    }

    /// Creates an array; the items are copied as they are.
    pub fn array<'a>(items: impl IntoIterator<Item = &'a Json>) -> Json {
        let mut text = "[".to_owned();
        for item in items {
            if 1 < text.len() {
                text.push(',');
            }
            text.push_str(&item.0);
        }
        text.push(']');
        Json(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether `text` occurs anywhere in this value. Much cheaper than
    /// parsing, so worth a try before looking for a member that few values have.
    pub fn mentions(&self, text: &str) -> bool {
        mentions(self.0.as_bytes(), text.as_bytes())
    }

    pub fn as_bytes(&self) -> &Bytes {
        self.0.as_bytes()
    }

    /// Deserializes the value as a type.
    pub fn parse_as<'a, T: Deserialize<'a>>(&'a self) -> Result<T, InvalidJson> {
        Ok(serde_json::from_str(self.as_str())?)
    }

    /// Returns the string without its escapes; `None` for any other kind of value.
    /// Most strings have no escapes, and those need no parser.
    pub fn string_value(&self) -> Option<String> {
        let plain = ValueText::from(self).unescaped_string().map(str::to_owned);
        plain.or_else(|| self.parse_as().ok())
    }

    /// Parses the value into a tree, with numbers of any size kept exactly.
    ///
    /// Fails for text that can be forwarded but not represented: a lone surrogate
    /// in a string, or nesting deeper than 128 levels.
    pub fn to_value(&self) -> Result<serde_json::Value, InvalidJson> {
        self.parse_as()
    }

    /// Returns one member, if this is an object that has it.
    ///
    /// Of duplicate keys the last one counts, as in every common parser.
    pub fn member(&self, key: &str) -> Option<Json> {
        Object::parse(self).ok()?.get(key).cloned()
    }

    /// Deserializes one member; `None` if it is missing or of another type.
    pub fn member_as<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.member(key)?.parse_as().ok()
    }

    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Json {
        Json::encode(&value)
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Json {
        let text: Box<str> = raw.into();
        Json(text.into())
    }
}

/// Copies the value, so that the text around it can be freed.
impl From<ValueText<'_>> for Json {
    fn from(part: ValueText<'_>) -> Json {
        Json(part.as_str().into())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue =
            serde_json::from_str(self.as_str()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Json::from)
    }
}

/// The members of one JSON object, in order, with their values untouched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object(Vec<(String, Json)>);

impl Object {
    pub fn new() -> Object {
        Object::default()
    }

    /// Parses the members of `json`, sharing its memory.
    pub fn parse(json: &Json) -> Result<Object, InvalidJson> {
        let mut members = Vec::with_capacity(4);
        let found = scan::scan_members(json.as_str(), |name, part| {
            members.push((name.to_owned(), json.subvalue(part)));
        });
        if found.is_some() {
            return Ok(Object(members));
        }
        let mut reader = serde_json::Deserializer::from_str(json.as_str());
        let object = Members(json).deserialize(&mut reader)?;
        reader.end()?;
        Ok(object)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// Returns the member called `key`; of duplicates, the last.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Adds a member at the end without looking for an earlier one.
    pub fn push(&mut self, key: impl Into<String>, value: Json) {
        self.0.push((key.into(), value));
    }

    /// Sets a member: in its place when it is there, at the end otherwise.
    pub fn set(&mut self, key: &str, value: Json) {
        match self.0.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.push(key, value),
        }
    }

    /// Removes every member called `key` and returns the last.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let last = self.0.iter().rposition(|(name, _)| name == key)?;
        let (_, value) = self.0.remove(last);
        self.0.retain(|(name, _)| name != key);
        Some(value)
    }

    /// Serialises the object; the member values are copied as they are.
    pub fn to_json(&self) -> Json {
        let mut text = String::with_capacity(self.n_bytes() + 2);
        self.write(&mut text);
        Json(text.into())
    }

    /// Appends the object to `text`.
    pub(crate) fn write(&self, text: &mut String) {
        text.push('{');
        self.write_members(text);
        text.push('}');
    }

    /// Returns about how long the text of the members is.
    pub(crate) fn n_bytes(&self) -> usize {
        self.0.iter().map(|(key, value)| key.len() + value.0.len() + 4).sum()
    }

    /// Appends `"key":value` pairs, separated by commas, without the braces.
    pub fn write_members(&self, text: &mut String) {
        for (at, (key, value)) in self.0.iter().enumerate() {
            if at != 0 {
                text.push(',');
            }
            write_string(text, key);
            text.push(':');
            text.push_str(&value.0);
        }
    }
}

impl FromIterator<(String, Json)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(members: I) -> Object {
        Object(members.into_iter().collect())
    }
}

impl IntoIterator for Object {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<(String, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// Parses the members of this object: keys unescaped, values as slices of it.
struct Members<'j>(&'j Json);

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Object;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Object, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut members = Vec::with_capacity(map.size_hint().unwrap_or(4));
        while let Some((key, raw)) = map.next_entry::<String, &'de RawValue>()? {
            members.push((key, self.0.subvalue(raw)));
        }
        Ok(Object(members))
    }
}

/// Appends `text` as a JSON string. Most texts have nothing to escape.
pub fn write_string(out: &mut String, text: &str) {
    let plain = |byte: u8| 0x20 <= byte && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(Json::encode(text).as_str());
    }
}

/// Searches for a byte of `text` that is rare in JSON. In a message of the usual
/// size, preparing a substring search would cost more than the search.
fn mentions(haystack: &[u8], text: &[u8]) -> bool {
    const USUAL: usize = 4 << 10;
    if USUAL < haystack.len() {
        return memchr::memmem::find(haystack, text).is_some();
    }
    // Most of the bytes in JSON are lower-case letters and quotes.
    let rare = text.iter().position(|byte| !byte.is_ascii_lowercase() && *byte != b'"');
    let at = rare.unwrap_or(text.len() / 2);
    let Some(&byte) = text.get(at) else { return true };
    memchr::memchr_iter(byte, haystack)
        .any(|found| found.checked_sub(at).is_some_and(|start| haystack[start..].starts_with(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_with_and_without_escapes() {
        for (json, expected) in [
            (r#""""#, Some("")),
            (r#""plain""#, Some("plain")),
            (r#""tab\t\u00e9 \"""#, Some("tab\té \"")),
            (r#""lone \ud800""#, None),
            ("12", None),
            ("null", None),
        ] {
            assert_eq!(Json::parse(json).unwrap().string_value().as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn a_word_is_found_wherever_it_stands() {
        let far = "x".repeat(5000);
        for (text, word, expected) in [
            (r#"{"_meta":{"progressToken":1}}"#, "progressToken", true),
            (r#"{"progressTok":"Token"}"#, "progressToken", false),
            ("Token", "progressToken", false),
            ("\"abc\"", "abc", true),
            ("\"abc\"", "c\"", true),
            ("\"abc\"", "", true),
            (&format!("{far}isError"), "isError", true),
            (&format!("{far}isErro"), "isError", false),
        ] {
            assert_eq!(mentions(text.as_bytes(), word.as_bytes()), expected, "{text}: {word}");
        }
    }

    #[test]
    fn numbers_of_any_size_and_odd_spacing_inside_survive() {
        let text = r#"{"a": 1e400, "b":18446744073709551617 ,"c":{ "x" :1 }}"#;
        let json = Json::parse(text).unwrap();
        assert_eq!(json.as_str(), text);
        assert_eq!(Json::parse(text).unwrap().member("c").unwrap().as_str(), r#"{ "x" :1 }"#);
        assert_eq!(json.to_value().unwrap()["b"].to_string(), "18446744073709551617");
    }

    #[test]
    fn duplicate_keys_are_kept_and_the_last_one_counts() {
        let json = Json::parse(r#"{"a":1,"a":2}"#).unwrap();
        let object = Object::parse(&json).unwrap();
        assert_eq!(object.to_json().as_str(), r#"{"a":1,"a":2}"#);
        assert_eq!(object.get("a").unwrap().as_str(), "2");
    }

    #[test]
    fn setting_a_member_leaves_the_others_byte_for_byte() {
        let json = Json::parse(r#"{"a":[1, 2],"b":"x","c":1.0}"#).unwrap();
        let mut object = Object::parse(&json).unwrap();
        object.set("b", Json::encode("y"));
        object.remove("zzz");
        assert_eq!(object.to_json().as_str(), r#"{"a":[1, 2],"b":"y","c":1.0}"#);
    }

    #[test]
    fn an_array_holds_its_items_byte_for_byte() {
        let items = [Json::parse("1e400").unwrap(), Json::parse("[ ]").unwrap()];
        assert_eq!(Json::array(&items).as_str(), "[1e400,[ ]]");
        assert_eq!(Json::array([]).as_str(), "[]");
    }

    #[test]
    fn what_is_not_one_json_value_is_refused() {
        for text in ["", "{", "1 2", "{\"a\":}", "nul"] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
    }
}
