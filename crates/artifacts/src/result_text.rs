//! The text of a tool result, and the JSON in it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use tool::Json;
use tool::reply::ToolResult;

/// The text and the structured content of a result, extracted once.
pub struct ResultText<'a> {
    /// The text of the result, or its structured content when it has no text.
    pub text: Option<Cow<'a, str>>,
    structured: Option<&'a str>,
}

impl<'a> ResultText<'a> {
    pub fn new(result: &'a ToolResult) -> ResultText<'a> {
        let block = |block: &Json| {
            let own = block.member_as::<String>("text");
            own.or_else(|| block.member("resource")?.member_as("text"))
        };
        let mut texts = result.content.iter().filter_map(block);
        let structured = result.structured.as_ref().map(Json::as_str);
        // Most have one text, which need not be copied.
        let text = match texts.next() {
            Some(mut first) => {
                for next in texts {
                    first.push('\n');
                    first.push_str(&next);
                }
                Some(Cow::Owned(first))
            }
            None => structured.map(Cow::Borrowed),
        };
        ResultText { text, structured }
    }

    /// Returns for each text block the line at which it begins in the joined text,
    /// and the URI of the resource that it belongs to, if any.
    pub fn starts(result: &ToolResult) -> Vec<(usize, Option<String>)> {
        let mut line = 0;
        let mut starts = Vec::new();
        for block in &result.content {
            let resource = block.member("resource");
            let own = block.member_as::<String>("text");
            let text = own.or_else(|| resource.as_ref()?.member_as("text"));
            let Some(text) = text else { continue };
            starts.push((line, resource.and_then(|resource| resource.member_as("uri"))));
            // The joined text has a line end between two blocks.
            line += text.matches('\n').count() + 1;
        }
        starts
    }

    /// Returns whether the structured content is the main thing: more than twice as
    /// long as the text.
    pub fn is_structured(&self) -> bool {
        let text = self.text.as_ref().map_or(0, |text| text.len());
        self.structured.is_some_and(|structured| text < structured.len() / 2)
    }

    /// Returns the text, or the structured content if that is the main thing.
    pub fn main(&self) -> Option<&str> {
        let structured = self.structured.filter(|_| self.is_structured());
        structured.or(self.text.as_deref())
    }
}

/// How many bytes of text may stand before embedded JSON.
const HEADING: usize = 120;

/// Returns the JSON object or array that a text consists of, without the few words
/// or lines that may announce it: `Monitors: [{…}]`.
pub(crate) fn embedded_json(text: &str) -> Option<&str> {
    let text = text.trim();
    let heading = &text[..text.floor_char_boundary(HEADING)];
    let announces = |at: &usize| at == &0 || heading[..*at].trim_end().ends_with(':');
    let first = heading.find(['{', '[']).filter(announces);
    let own_line = ["\n{", "\n["].iter().filter_map(|mark| heading.find(mark)).min();
    let starts = first.into_iter().chain(own_line.map(|at| at + 1));
    let is_json = |json: &&str| serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok();
    starts.map(|at| &text[at..]).find(is_json)
}

/// Returns whether structured content is nothing but the text once more:
/// `{"content": "the text"}`.
pub(crate) fn repeats(structured: &Json, text: &str) -> bool {
    let only = serde_json::from_str::<OnlyMember<'_>>(structured.as_str());
    let only = only.map(|OnlyMember(value)| value.get()).unwrap_or_default();
    only.starts_with('"') && serde_json::from_str::<String>(only).is_ok_and(|only| only == text)
}

/// The value of an object's only member. A long result is not parsed into a tree for it.
struct OnlyMember<'a>(&'a RawValue);

impl<'de: 'a, 'a> Deserialize<'de> for OnlyMember<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OnlyMember<'a>, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = &'de RawValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one member")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<&'de RawValue, A::Error> {
                let first = map.next_entry::<IgnoredAny, &RawValue>()?;
                let (_, value) = first.ok_or_else(|| Error::invalid_length(0, &self))?;
                match map.next_key::<IgnoredAny>()? {
                    None => Ok(value),
                    Some(_) => Err(Error::invalid_length(2, &self)),
                }
            }
        }
        deserializer.deserialize_map(Members).map(OnlyMember)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn json_is_found_behind_a_few_words() {
        for (text, expected) in [
            (" [1, 2] ", Some("[1, 2]")),
            ("Monitors: [{\"a\": 1}]", Some("[{\"a\": 1}]")),
            ("Found [2] of {x}:\n{\"a\": [1]}\n", Some("{\"a\": [1]}")),
            ("[1, 2] and more", None),
            ("[1, 2] and [3]", None),
            ("see {x}", None),
            ("Deleted {\"id\": 7}", None),
            ("7", None),
            ("", None),
        ] {
            assert_eq!(embedded_json(text), expected, "{text}");
        }
        let repeated = |json: Value, text| repeats(&json.into(), text);
        assert!(repeated(serde_json::json!({"content": "x"}), "x"));
        assert!(!repeated(serde_json::json!({"content": "x", "n": 1}), "x"));
        assert!(!repeated(serde_json::json!({"content": "x"}), "y"));
        assert!(!repeated(serde_json::json!({"content": ["x"]}), "x"));
        assert!(!repeated(serde_json::json!({}), ""));
        assert!(!repeated(serde_json::json!(["x"]), "x"));
        assert!(repeated(serde_json::json!({"content": "a\n\u{e9}"}), "a\n\u{e9}"));
        let far = format!("{}[1]", "é".repeat(HEADING));
        assert_eq!(embedded_json(&far), None);
    }
}
