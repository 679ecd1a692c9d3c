//! JSON, TOML and YAML as people write them.
//!
//! A document is read into a [`tree`] that remembers where everything stands
//! ([`read`]), and [`edit`] changes one value of it by its place: whatever else
//! is in the text, comments, order, indentation and line ends, stays byte for
//! byte. This crate knows no files, and nothing of what documents say.

pub mod tree;

pub mod json;
pub mod toml;
pub mod yaml;

pub mod edit;

use tree::{Node, Span, Value};

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and trailing commas are read, too.
    Json,
    Toml,
    Yaml,
}

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Damaged {
    /// Counted from 1, as editors do.
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl Damaged {
    fn at(text: &str, at: usize, message: String) -> Damaged {
        let before = &text[..text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Damaged {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }
}

/// Reads a document. One that is empty is an empty table; one in which a key
/// stands twice is refused, because readers disagree about what it says.
pub fn read(text: &str, format: Format) -> Result<Node, Damaged> {
    let damaged = |(span, message): (Span, String)| Damaged::at(text, span.start, message);
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Ok(Node { span: text.len()..text.len(), value: Value::Table(Vec::new()) });
    }
    match format {
        Format::Json => {
            let (root, twice) = json::read(text).map_err(damaged)?;
            match twice.into_iter().next() {
                None => Ok(root),
                Some((span, _)) => {
                    let message = format!("{} stands here twice", &text[span.clone()]);
                    Err(damaged((span, message)))
                }
            }
        }
        Format::Toml => {
            let (root, errors) = toml::read(text);
            errors.into_iter().next().map_or(Ok(root), |error| Err(damaged(error)))
        }
        Format::Yaml => yaml::read(text).map_err(damaged),
    }
}
