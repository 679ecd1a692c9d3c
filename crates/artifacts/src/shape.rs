//! Describes in one line what a long result consists of.

mod structure;

use tool::Json;
use tool::reply::ToolResult;

use crate::result_text::{self, ResultText};
use structure::Structure;

pub(crate) use structure::MAX_PATH_BYTES;
pub use structure::{LargestArray, jq_step};

/// A short description of data that is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `JSON object`, `JSON array`, `text`, `3 content blocks`.
    pub kind: String,
    /// The largest array: where it is, how many items, their keys.
    pub largest_array: Option<LargestArray>,
    /// The first keys of the outermost object, with a `…` at the end if there are more.
    pub keys: Vec<String>,
    /// How many keys the outermost object has.
    pub n_keys: usize,
    /// The number of lines of the text.
    pub lines: usize,
    /// The path of a text that is the only member of the outermost object, as servers wrap
    /// what is text: `.content`.
    pub wrapped_text: Option<String>,
}

impl Shape {
    /// Describes a result: its one text, or its structured content, or its blocks.
    /// `extracted` is the text of the same result.
    pub fn of_result(result: &ToolResult, extracted: &ResultText<'_>) -> Shape {
        let one_text = match result.content.as_slice() {
            [block] if block.member("text").is_some() => extracted.text.as_deref(),
            _ => None,
        };
        match (one_text, &result.structured) {
            (_, Some(structured)) if extracted.is_structured() => {
                Shape::of_text(structured.as_str())
            }
            (Some(text), _) => Shape::of_text(result_text::embedded_json(text).unwrap_or(text)),
            (None, Some(structured)) => Shape::of_text(structured.as_str()),
            (None, None) => {
                let (blocks, kinds) = (result.content.len(), kind_counts(&result.content));
                let text = |block: &Json| block.member_as::<String>("text");
                let texts = result.content.iter().filter_map(text);
                let lines = texts.map(|text| text.lines().count()).sum();
                let kind = format!("{blocks} content blocks ({kinds})");
                Shape {
                    kind,
                    largest_array: None,
                    keys: Vec::new(),
                    n_keys: 0,
                    lines,
                    wrapped_text: None,
                }
            }
        }
    }

    /// Describes a text: JSON by its keys and its largest array, any other by its lines.
    pub fn of_text(text: &str) -> Shape {
        let lines = text.lines().count();
        match structure::parse(text) {
            Some(Structure { is_array, keys, n_keys, largest_array }) => {
                let kind = if is_array { "JSON array" } else { "JSON object" };
                let wrapped = if is_array { None } else { wrapped_text(text, &keys) };
                let (wrapped_text, lines) = match wrapped {
                    Some((path, lines)) => (Some(path), lines),
                    None => (None, lines),
                };
                Shape { kind: kind.to_owned(), largest_array, keys, n_keys, lines, wrapped_text }
            }
            None => Shape {
                kind: "text".to_owned(),
                largest_array: None,
                keys: Vec::new(),
                n_keys: 0,
                lines,
                wrapped_text: None,
            },
        }
    }

    /// Renders how much there is: `4,821 items in .orders`, `310 lines`.
    pub fn count(&self) -> String {
        match &self.largest_array {
            Some(array) if array.path == "." => format!("{} items", thousands(array.count)),
            Some(array) => format!("{} items in `{}`", thousands(array.count), array.path),
            None if self.kind == "text" => format!("{} lines", thousands(self.lines)),
            None if self.n_keys != 0 => format!("{} keys", thousands(self.n_keys)),
            None => self.kind.clone(),
        }
    }

    /// Renders the whole description as a sentence.
    pub fn describe(&self) -> String {
        if let Some(path) = &self.wrapped_text {
            let lines = thousands(self.lines);
            return format!(
                "{} whose only member is a text of {lines} lines at `{path}`: begin with `{path} | `",
                self.kind
            );
        }
        let mut text = self.kind.clone();
        if !self.keys.is_empty() {
            text.push_str(&format!(" with keys {}", self.keys.join(", ")));
        }
        if let Some(array) = &self.largest_array {
            text.push_str(&format!("; {} items at `{}`", thousands(array.count), array.path));
            if !array.rendered_keys.is_empty() {
                text.push_str(&format!(", each with {}", array.rendered_keys.join(", ")));
            }
        } else if 1 < self.lines {
            text.push_str(&format!(", {} lines", thousands(self.lines)));
        }
        text
    }
}

/// Returns the path and the number of lines of the text that is an object's only member.
fn wrapped_text(json: &str, keys: &[String]) -> Option<(String, usize)> {
    let [key] = keys else { return None };
    let text = Json::parse(json.to_owned()).ok()?.member(key)?.string_value()?;
    Some((jq_step(key), text.lines().count()))
}

/// Renders how many blocks of each type there are: `2 text, 1 image`.
fn kind_counts(content: &[Json]) -> String {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for block in content {
        let kind: String = block.member_as("type").unwrap_or_default();
        match kinds.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let parts: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    parts.join(", ")
}

/// Formats a number with separators: `48,213`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at != 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use offload::StopFlag;
    use tool::Reply;

    use super::*;
    use crate::pick::Pick;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn all_keys_are_counted_although_only_some_are_listed() {
        let members: Vec<String> = (0..50).map(|n| format!("\"key{n}\": {n}")).collect();
        let shape = Shape::of_text(&format!("{{{}}}", members.join(", ")));
        assert_eq!(shape.count(), "50 keys");
        assert!(shape.describe().ends_with("key11, …"), "{}", shape.describe());
        assert_eq!(Shape::of_text("{\"a\": 1, \"b\": 2}").count(), "2 keys");
    }

    /// The path must lead to the array in a jq program, whatever the key contains.
    #[test]
    fn the_path_of_an_array_is_a_jq_program() {
        let keys = [
            "orders",
            "2024",
            "_",
            "and",
            "if",
            "__loc__",
            "",
            " ",
            "a b",
            "a-b",
            "é",
            "\u{1b}[2J",
            "\u{7f}",
            "\u{200b}",
            "\u{1f600}",
            "\u{e0041}",
            "\u{202e}",
            "it's",
            "tab\t",
            "line\n",
            "quote\"",
            "back\\slash",
            "\\(1)",
            "$x",
            "\0",
        ];
        for key in keys {
            let text = serde_json::json!({key: {key: [1, 2, 3]}}).to_string();
            let path = Shape::of_text(&text).largest_array.unwrap().path;
            let picked = Pick::parse(&Json::encode(&format!("{path} | length"))).and_then(|pick| {
                let result = Reply::text(&text);
                let Reply::Result(result) = result else { unreachable!() };
                pick.run(&result, 100, &StopFlag::default()).map_err(|error| error.to_string())
            });
            assert_eq!(picked.map(|picked| picked.text), Ok("3".to_owned()), "{key:?}: {path}");
        }
    }

    #[test]
    fn a_path_that_is_too_long_to_show_is_left_out() {
        let key = "k".repeat(100_000);
        let text = serde_json::json!({"a": [1, 2], &key: [1, 2, 3]}).to_string();
        assert_eq!(Shape::of_text(&text).count(), "2 items in `.a`");
        let text = serde_json::json!({&key: {&key: [1]}}).to_string();
        assert_eq!(Shape::of_text(&text).count(), "1 keys");
    }
}
