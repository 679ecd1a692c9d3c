//! Parses and edits JSON, TOML and YAML that people write by hand.
//!
//! [`parse`] turns a document into a [`tree`] in which every value has its position
//! in the text. [`edit`] changes one value and keeps everything else in the text
//! (comments, order, indentation, line ends) byte for byte. This crate does not read
//! files and does not know what documents mean.

pub mod tree;

pub mod json;
pub mod toml;
pub mod yaml;

pub mod edit;

use tree::{Node, Span, Value};

/// The syntax of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and trailing commas are allowed.
    Json,
    Toml,
    Yaml,
}

/// A syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// Counted from 1, like `column`.
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl ParseError {
    fn at(text: &str, offset: usize, message: String) -> ParseError {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }
}

/// Parses a document. An empty one is an empty table. A duplicate key is an error,
/// because parsers disagree about its meaning.
pub fn parse(text: &str, format: Format) -> Result<Node, ParseError> {
    let error_at = |(span, message): (Span, String)| ParseError::at(text, span.start, message);
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Ok(Node { span: text.len()..text.len(), value: Value::Table(Vec::new()) });
    }
    match format {
        Format::Json => {
            let (root, duplicates) = json::parse(text).map_err(error_at)?;
            match duplicates.into_iter().next() {
                None => Ok(root),
                Some((span, _)) => {
                    let message = format!("{} stands here twice", &text[span.clone()]);
                    Err(error_at((span, message)))
                }
            }
        }
        Format::Toml => {
            let (root, errors) = toml::parse(text);
            errors.into_iter().next().map_or(Ok(root), |error| Err(error_at(error)))
        }
        Format::Yaml => yaml::parse(text).map_err(error_at),
    }
}
