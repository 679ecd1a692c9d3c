//! Evaluates the search index with a set of queries and their expected results.
//!
//! A set is two texts of JSON lines: documents (`id`, `server`, `name`,
//! `description`, `input_schema`, …) and queries (`qid`, `query`, `relevant`).
//! This module does not know files, the clock or printing.

mod fields;
mod measure;
mod reach;
mod report;

use std::collections::HashSet;
use std::time::Duration;

use fields::Fields;

use crate::index::{Document, Kind};

pub use measure::run;
pub use report::{Outcome, Report, mean, table};

/// A query and the documents that it should find.
#[derive(Clone, Debug)]
pub struct GoldQuery {
    pub qid: String,
    pub query: String,
    /// Ids of documents; empty for a query that nothing should match.
    pub relevant: Vec<String>,
}

/// A clock that measures durations.
pub type Stopwatch<'a> = &'a dyn Fn() -> Duration;

/// Why an evaluation set is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSet {
    #[error("{file}, line {line}: {problem}")]
    Line { file: String, line: usize, problem: String },
    #[error("{0} has no line")]
    Empty(String),
    #[error("{file}: {} of the ids stand more than once: {}", ids.len(), some(ids))]
    Twice { file: String, ids: Vec<String> },
    #[error("{file}: {} of the relevant ids are not in the corpus: {}", ids.len(), some(ids))]
    Unknown { file: String, ids: Vec<String> },
}

/// Parses `corpus.jsonl`. `file` is its name in errors.
pub fn documents(file: &str, text: &str) -> Result<Vec<Document>, InvalidSet> {
    let documents = lines(file, text, document)?;
    unique(file, documents.iter().map(|document| document.id.as_str()))?;
    Ok(documents)
}

/// Parses `queries.jsonl`. `file` is its name in errors.
pub fn queries(file: &str, text: &str) -> Result<Vec<GoldQuery>, InvalidSet> {
    let queries = lines(file, text, gold)?;
    let named = queries.iter().map(|gold| gold.qid.as_str()).filter(|qid| !qid.is_empty());
    unique(file, named)?;
    for gold in &queries {
        unique(file, gold.relevant.iter().map(String::as_str))?;
    }
    Ok(queries)
}

/// Checks that all relevant documents exist; a missing one would count as not found.
/// `file` is the name of the queries in errors.
pub fn check_relevant_ids(
    file: &str,
    documents: &[Document],
    queries: &[GoldQuery],
) -> Result<(), InvalidSet> {
    let known: HashSet<&str> = documents.iter().map(|document| document.id.as_str()).collect();
    let relevant = queries.iter().flat_map(|gold| &gold.relevant);
    let unknown = relevant.filter(|id| !known.contains(id.as_str()));
    let ids = distinct(unknown.map(String::as_str));
    if ids.is_empty() { Ok(()) } else { Err(InvalidSet::Unknown { file: file.to_owned(), ids }) }
}

fn document(fields: &Fields) -> Result<Document, String> {
    let kind = match fields.text("kind")?.as_deref() {
        Some("resource") => Kind::Resource,
        Some("prompt") => Kind::Prompt,
        Some("skill") => Kind::Skill,
        Some(_) | None => Kind::Tool,
    };
    let schema = fields.value("input_schema").or_else(|| fields.value("inputSchema"));
    Ok(Document {
        id: fields.required_text("id")?,
        kind,
        server: fields.text("server")?.unwrap_or_default(),
        server_description: fields.text("server_description")?.unwrap_or_default(),
        name: fields.required_text("name")?,
        title: fields.text("title")?,
        description: fields.text("description")?.unwrap_or_default(),
        input_schema: schema.cloned().map(Into::into),
    })
}

fn gold(fields: &Fields) -> Result<GoldQuery, String> {
    Ok(GoldQuery {
        qid: fields.text("qid")?.unwrap_or_default(),
        query: fields.required_text("query")?,
        relevant: fields.texts("relevant")?,
    })
}

fn lines<T>(
    file: &str,
    text: &str,
    parse: impl Fn(&Fields) -> Result<T, String>,
) -> Result<Vec<T>, InvalidSet> {
    let parse_line = |(at, line): (usize, &str)| {
        let item = Fields::parse(line).and_then(|fields| parse(&fields));
        item.map_err(|problem| InvalidSet::Line { file: file.to_owned(), line: at + 1, problem })
    };
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let items = filled.map(parse_line).collect::<Result<Vec<T>, InvalidSet>>()?;
    if items.is_empty() {
        return Err(InvalidSet::Empty(file.to_owned()));
    }
    Ok(items)
}

fn unique<'a>(file: &str, ids: impl Iterator<Item = &'a str>) -> Result<(), InvalidSet> {
    let mut seen = HashSet::new();
    let ids = distinct(ids.filter(|id| !seen.insert(*id)));
    if ids.is_empty() { Ok(()) } else { Err(InvalidSet::Twice { file: file.to_owned(), ids }) }
}

/// The distinct ids, in order.
fn distinct<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    ids.filter(|id| seen.insert(*id)).map(str::to_owned).collect()
}

/// The first few of many.
fn some(ids: &[String]) -> String {
    let named: Vec<String> = ids.iter().take(5).map(|id| format!("`{id}`")).collect();
    let more = if named.len() < ids.len() { ", …" } else { "" };
    named.join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORPUS: &str = "{\"id\": \"a\", \"name\": \"x\"}\n\n{\"id\": \"b\", \"name\": \"y\"}";

    #[track_caller]
    fn check(corpus: &str, queries_text: &str, expected: &str) {
        let read = || {
            let documents = documents("c", corpus)?;
            check_relevant_ids("q", &documents, &queries("q", queries_text)?)
        };
        let said = read().err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said, expected);
    }

    #[test]
    fn a_set_may_begin_with_a_mark() {
        let marked = |text: &str| format!("\u{feff}{text}");
        check(&marked(CORPUS), &marked(r#"{"query": "x", "relevant": ["a"]}"#), "");
    }

    #[test]
    fn a_wrong_line_is_told_with_its_field() {
        let queries = r#"{"query": "x", "relevant": ["a"]}"#;
        check("{\"id\": \"a\"}", queries, "c, line 1: `name` is missing");
        let number = "\n{\"id\": 5, \"name\": \"x\"}";
        check(number, queries, "c, line 2: `id` must be text, not a number");
        check("[]", queries, "c, line 1: must be an object, not a list");
        check("{nonsense", queries, "c, line 1: not JSON: key must be a string at column 2");
        check(CORPUS, r#"{"query": "x"}"#, "q, line 1: `relevant` is missing");
        let text = r#"{"query": "x", "relevant": "a"}"#;
        check(CORPUS, text, "q, line 1: `relevant` must be a list of texts, not text");
        let mixed = r#"{"query": "x", "relevant": ["a", 1]}"#;
        check(CORPUS, mixed, "q, line 1: `relevant[1]` must be text, not a number");
    }

    #[test]
    fn ids_that_would_skew_the_figures_are_counted() {
        let queries = r#"{"query": "x", "relevant": ["a"]}"#;
        let twice = format!("{CORPUS}\n{CORPUS}\n{CORPUS}");
        check(&twice, queries, "c: 2 of the ids stand more than once: `a`, `b`");
        let unknown = r#"{"query": "x", "relevant": ["no", "a", "never"]}"#;
        check(CORPUS, unknown, "q: 2 of the relevant ids are not in the corpus: `no`, `never`");
        let again = r#"{"query": "x", "relevant": ["a", "a"]}"#;
        check(CORPUS, again, "q: 1 of the ids stand more than once: `a`");
        let same = "{\"qid\": \"1\", \"query\": \"x\", \"relevant\": []}\n";
        check(CORPUS, &same.repeat(2), "q: 1 of the ids stand more than once: `1`");
    }
}
