//! The text of a tool result.

use std::borrow::Cow;

use serde_json::Value;
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

    /// The line at which each text of a result begins where they stand one after
    /// another, and the resource that it is of, if it is of one.
    pub fn starts(result: &ToolResult) -> Vec<(usize, Option<String>)> {
        let mut line = 0;
        let mut starts = Vec::new();
        for block in &result.content {
            let resource = block.member("resource");
            let own = block.member_as::<String>("text");
            let text = own.or_else(|| resource.as_ref()?.member_as("text"));
            let Some(text) = text else { continue };
            starts.push((line, resource.and_then(|resource| resource.member_as("uri"))));
            // The next text begins on a line of its own.
            line += text.matches('\n').count() + 1;
        }
        starts
    }

    /// Whether the structured content of a result is what it consists of, and
    /// its text says only a little about it.
    pub fn is_structured(&self) -> bool {
        let text = self.text.as_ref().map_or(0, |text| text.len());
        self.structured.is_some_and(|structured| text < structured.len() / 2)
    }

    /// What a result mainly is: its text, or its structured content where that
    /// is much longer.
    pub fn main(&self) -> Option<&str> {
        let structured = self.structured.filter(|_| self.is_structured());
        structured.or(self.text.as_deref())
    }
}

/// How many bytes of words may stand before JSON that is the rest of a text.
const HEADING: usize = 120;

/// The JSON object or array that a text is, or that it is after a few words that
/// announce it: `Monitors: [{…}]`, or words on lines of their own.
pub(crate) fn embedded(text: &str) -> Option<&str> {
    let text = text.trim();
    let heading = &text[..text.floor_char_boundary(HEADING)];
    let announces = |at: &usize| at == &0 || heading[..*at].trim_end().ends_with(':');
    let first = heading.find(['{', '[']).filter(announces);
    let own_line = ["\n{", "\n["].iter().filter_map(|mark| heading.find(mark)).min();
    let starts = first.into_iter().chain(own_line.map(|at| at + 1));
    let is_json = |json: &&str| serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok();
    starts.map(|at| &text[at..]).find(is_json)
}

/// Whether structured content only holds the text of a result once more:
/// `{"content": "the text"}`.
pub(crate) fn repeats(structured: &Json, text: &str) -> bool {
    let Ok(Value::Object(members)) = structured.to_value() else { return false };
    let mut values = members.into_values();
    matches!((values.next(), values.next()), (Some(Value::String(only)), None) if only == text)
}

#[cfg(test)]
mod tests {
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
            assert_eq!(embedded(text), expected, "{text}");
        }
        let repeated = |json: Value, text| repeats(&json.into(), text);
        assert!(repeated(serde_json::json!({"content": "x"}), "x"));
        assert!(!repeated(serde_json::json!({"content": "x", "n": 1}), "x"));
        assert!(!repeated(serde_json::json!({"content": "x"}), "y"));
        let far = format!("{}[1]", "é".repeat(HEADING));
        assert_eq!(embedded(&far), None);
    }
}
