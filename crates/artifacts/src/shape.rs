//! Describes in one line what a long result consists of.

mod structure;

use tool::Json;
use tool::reply::ToolResult;

use crate::reading::{self, ResultText};
use structure::Structure;

pub use structure::Rows;
pub(crate) use structure::step;

/// A description of data that nobody has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `JSON object`, `JSON array`, `text`, `3 content blocks`.
    pub kind: String,
    /// The largest array: where it is, how many items, their keys.
    pub rows: Option<Rows>,
    /// The keys of the outermost object.
    pub keys: Vec<String>,
    pub lines: usize,
}

impl Shape {
    /// Looks at what a result mainly is: its one text, or its structured
    /// content, or its blocks.
    pub fn of_result(result: &ToolResult, read: &ResultText<'_>) -> Shape {
        let one_text = match result.content.as_slice() {
            [block] if block.member("text").is_some() => read.text.as_deref(),
            _ => None,
        };
        match (one_text, &result.structured) {
            (_, Some(structured)) if read.is_structured() => Shape::of_text(structured.as_str()),
            (Some(text), _) => Shape::of_text(reading::embedded(text).unwrap_or(text)),
            (None, Some(structured)) => Shape::of_text(structured.as_str()),
            (None, None) => {
                let (blocks, kinds) = (result.content.len(), kinds(&result.content));
                let text = |block: &Json| block.member_as::<String>("text");
                let texts = result.content.iter().filter_map(text);
                let lines = texts.map(|text| text.lines().count()).sum();
                let kind = format!("{blocks} content blocks ({kinds})");
                Shape { kind, rows: None, keys: Vec::new(), lines }
            }
        }
    }

    pub fn of_text(text: &str) -> Shape {
        let lines = text.lines().count();
        match structure::read(text) {
            Some(Structure { is_array, keys, rows }) => {
                let kind = if is_array { "JSON array" } else { "JSON object" };
                Shape { kind: kind.to_owned(), rows, keys, lines }
            }
            None => Shape { kind: "text".to_owned(), rows: None, keys: Vec::new(), lines },
        }
    }

    /// The counts in a few words: `4,821 items in .orders`, `310 lines`.
    pub fn count(&self) -> String {
        match &self.rows {
            Some(rows) if rows.path == "." => format!("{} items", thousands(rows.count)),
            Some(rows) => format!("{} items in `{}`", thousands(rows.count), rows.path),
            None if self.kind == "text" => format!("{} lines", thousands(self.lines)),
            None if !self.keys.is_empty() => format!("{} keys", self.keys.len()),
            None => self.kind.clone(),
        }
    }

    /// Returns what it is, in a sentence.
    pub fn describe(&self) -> String {
        let mut text = self.kind.clone();
        if !self.keys.is_empty() {
            text.push_str(&format!(" with keys {}", self.keys.join(", ")));
        }
        if let Some(rows) = &self.rows {
            text.push_str(&format!("; {} items at `{}`", thousands(rows.count), rows.path));
            if !rows.members.is_empty() {
                text.push_str(&format!(", each with {}", rows.members.join(", ")));
            }
        } else if 1 < self.lines {
            text.push_str(&format!(", {} lines", thousands(self.lines)));
        }
        text
    }
}

fn kinds(content: &[Json]) -> String {
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

/// A number as people read it: `48,213`.
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
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
