//! How well the index finds: gold queries in, figures out.
//!
//! A set is two texts of JSON lines: documents (`id`, `server`, `name`,
//! `description`, `input_schema`, …) and queries (`qid`, `query`, `relevant`).
//! Everything here is a function of those texts; reading files, the clock and
//! printing belong to whoever runs it.

mod measure;
mod report;

use std::time::Duration;

use serde::Deserialize;
use tool::Json;

use crate::index::{Document, Kind};

pub use measure::run;
pub use report::{Outcome, Report, mean, table};

/// A query and what it should find.
#[derive(Clone, Debug, Deserialize)]
pub struct Gold {
    #[serde(default)]
    pub qid: String,
    pub query: String,
    /// Ids of documents; empty for a query that nothing should match.
    pub relevant: Vec<String>,
}

/// A clock that only measures spans.
pub type Stopwatch<'a> = &'a dyn Fn() -> Duration;

/// Why a set cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSet {
    #[error("{file}, line {line}: not what is expected there")]
    Line {
        file: String,
        line: usize,
        #[source]
        cause: serde_json::Error,
    },
    #[error("{0} has no line")]
    Empty(String),
}

/// Reads `corpus.jsonl`. `file` is how errors name it.
pub fn documents(file: &str, text: &str) -> Result<Vec<Document>, InvalidSet> {
    let lines: Vec<Line> = lines(file, text)?;
    Ok(lines.into_iter().map(Document::from).collect())
}

/// Reads `queries.jsonl`. `file` is how errors name it.
pub fn queries(file: &str, text: &str) -> Result<Vec<Gold>, InvalidSet> {
    lines(file, text)
}

/// A document as the sets write it.
#[derive(Deserialize)]
struct Line {
    id: String,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    server_description: Option<String>,
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, alias = "inputSchema")]
    input_schema: Option<Json>,
}

impl From<Line> for Document {
    fn from(line: Line) -> Document {
        let kind = match line.kind.as_deref() {
            Some("resource") => Kind::Resource,
            Some("prompt") => Kind::Prompt,
            Some("skill") => Kind::Skill,
            Some(_) | None => Kind::Tool,
        };
        Document {
            id: line.id,
            kind,
            server: line.server.unwrap_or_default(),
            server_description: line.server_description.unwrap_or_default(),
            name: line.name,
            title: line.title,
            description: line.description.unwrap_or_default(),
            input_schema: line.input_schema,
        }
    }
}

fn lines<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> Result<Vec<T>, InvalidSet> {
    let read = |(at, line): (usize, &'a str)| {
        serde_json::from_str(line).map_err(|cause| InvalidSet::Line {
            file: file.to_owned(),
            line: at + 1,
            cause,
        })
    };
    let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let items = filled.map(read).collect::<Result<Vec<T>, InvalidSet>>()?;
    if items.is_empty() {
        return Err(InvalidSet::Empty(file.to_owned()));
    }
    Ok(items)
}
