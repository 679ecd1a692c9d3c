//! The reply of a server to one request, reduced to what the checks use.

use serde_json::Value;
use tool::{Failure, Reply};

/// One reply, as a client sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The text of all text blocks.
    pub text: String,
    /// The reply is a JSON-RPC error, or a tool result with `isError`.
    pub is_error: bool,
    /// Kinds of content other than text.
    pub other_kinds: Vec<String>,
    /// How many content blocks there were.
    pub blocks: usize,
}

impl Answer {
    /// Reduces a reply; a failure becomes an error with its message.
    pub fn from_reply(reply: Result<Reply, Failure>) -> Answer {
        match reply {
            Ok(Reply::Result(json)) => json.to_value().map_or_else(
                |error| Answer::error(&error.to_string()),
                |value| Answer::from_result(&value),
            ),
            Ok(Reply::Error(error)) => Answer::error(&error.message),
            Err(failure) => Answer::error(&failure.to_string()),
        }
    }

    fn error(text: &str) -> Answer {
        Answer { text: text.to_owned(), is_error: true, ..Answer::default() }
    }

    fn from_result(result: &Value) -> Answer {
        let content = result["content"].as_array().cloned().unwrap_or_default();
        let texts: Vec<&str> = content.iter().filter_map(|block| block["text"].as_str()).collect();
        let kind = |block: &Value| block["type"].as_str().unwrap_or("?").to_owned();
        Answer {
            text: texts.join("\n"),
            is_error: result["isError"] == true,
            other_kinds: content.iter().map(kind).filter(|kind| kind != "text").collect(),
            blocks: content.len(),
        }
    }

    pub fn chars(&self) -> usize {
        self.text.chars().count()
    }

    /// Returns the beginning of the text, as evidence for the report.
    pub fn excerpt(&self) -> String {
        let line = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let cut: String = line.chars().take(90).collect();
        if cut.len() < line.len() { format!("{cut}…") } else { cut }
    }

    /// Returns whether the text says that the response was gated.
    pub fn is_gated(&self) -> bool {
        self.text.to_ascii_lowercase().contains("gated")
    }

    /// Returns the size limit that the text suggests.
    pub fn suggested_limit(&self) -> Option<usize> {
        let at = self.text.find("sizelimit")?;
        let digits: String = self.text[at + "sizelimit".len()..]
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(|c| c.is_ascii_digit() || matches!(c, ',' | '_'))
            .filter(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    }

    /// Returns all numbers in the text, also those with thousands separators.
    pub fn numbers(&self) -> Vec<usize> {
        let mut numbers = Vec::new();
        let mut digits = String::new();
        for c in self.text.chars().chain([' ']) {
            if c.is_ascii_digit() {
                digits.push(c);
            } else if c != ',' || digits.is_empty() {
                numbers.extend(digits.parse::<usize>());
                digits.clear();
            }
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Answer {
        Answer { text: text.to_owned(), ..Answer::default() }
    }

    #[test]
    fn the_suggested_limit_is_read_in_any_spelling() {
        assert_eq!(text("Pass `sizelimit=50000` to").suggested_limit(), Some(50_000));
        assert_eq!(text("sizelimit: 1,200.").suggested_limit(), Some(1_200));
        assert_eq!(text("no limit").suggested_limit(), None);
    }

    #[test]
    fn numbers_are_found_with_their_separators() {
        assert_eq!(text("4821 orders, ~48,000 characters").numbers(), [4821, 48_000]);
    }
}
