//! Describes a stored result, in one pass over its text.
//!
//! An answer may have many megabytes. Whoever keeps it has it read on a thread of
//! its own; what is written about it later looks here, and reads nothing again.

mod outline;

use catalog::tokens;
use tool::Json;
use tool::reply::ToolResult;

use crate::reading::{self, ResultText};
use crate::shape::Shape;
use outline::{Outline, ROW, ROWS};

/// What a reader is told of an answer that is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// About how many tokens the whole has.
    pub tokens: usize,
    /// What its data looks like; `None` when it is no tool result.
    pub shape: Option<Shape>,
    /// The beginning of its text, where that only says something about its
    /// structured content.
    pub said: Option<String>,
    /// Whether it has more in it than text and data.
    pub is_mixed: bool,
    /// Whether data can be looked for in it.
    pub has_data: bool,
    /// Whether structured content stands beside a text that is shown in its
    /// stead, and is no data.
    pub is_beside: bool,
    /// What kind of data it is, how much, and how it begins.
    pub summary: String,
    /// Short facts that the summary does not show.
    pub facts: Vec<String>,
    /// How it begins: a few lines, or records with long texts cut.
    pub samples: Vec<String>,
    /// The member that has most of the data, as a jq path, with its share in
    /// percent.
    pub heaviest: Option<(String, usize)>,
}

/// How many facts are told.
const FACTS: usize = 8;

/// How much is kept of what was said beside the data, in characters.
const SAID: usize = 300;

impl Overview {
    /// Looks at a result that was read; `json` is all of it.
    pub(crate) fn of(
        json: &Json,
        result: Option<&ToolResult>,
        read: Option<&ResultText<'_>>,
        chars: usize,
    ) -> Overview {
        let main = read.and_then(ResultText::main);
        let text = main.unwrap_or_default();
        let text = reading::embedded(text).unwrap_or(text);
        let outline = Outline::read(text);
        let shape = result.zip(read).map(|(result, read)| Shape::of_result(result, read));
        let said = read.filter(|read| read.is_structured());
        let said = said.and_then(|read| read.text.as_deref());
        let is_structured = read.is_some_and(ResultText::is_structured);
        let is_data = |text: &str| text.trim_start().starts_with(['{', '[']);
        let shows_data = read.and_then(|read| read.text.as_deref()).is_some_and(is_data);
        let structured = result.and_then(|result| result.structured.as_ref());
        // What only has the text in it once more is no data to look for.
        let own_text = read.and_then(|read| read.text.as_deref()).unwrap_or_default();
        let has_structured = structured.is_some_and(|data| !reading::repeats(data, own_text));
        Overview {
            tokens: tokens::estimate(main.unwrap_or(json.as_str())),
            summary: summary(shape.as_ref(), text, &outline, chars),
            facts: facts(text, &outline),
            samples: samples(text, &outline),
            heaviest: outline.heaviest(),
            said: said.map(|text| catalog::summary::cut(text.trim(), SAID)),
            is_mixed: result.is_some_and(is_mixed),
            has_data: has_structured
                || shape.as_ref().is_none_or(|shape| shape.kind.starts_with("JSON")),
            is_beside: has_structured && !is_structured && !shows_data,
            shape,
        }
    }
}

fn is_mixed(result: &ToolResult) -> bool {
    let is_text = |block: &Json| block.member_as::<String>("type").as_deref() == Some("text");
    !result.content.iter().all(is_text)
}

/// Returns what kind of data it is, how much, and how it begins.
fn summary(shape: Option<&Shape>, text: &str, outline: &Outline<'_>, chars: usize) -> String {
    let what = shape.map_or_else(|| "result".to_owned(), Shape::describe);
    let mut summary = format!("{what}; {chars} chars, kept. ");
    match outline.first_rows() {
        Some(rows) => summary.push_str(&format!("First rows: {rows}")),
        None => {
            let lines: Vec<String> =
                text.lines().filter(|line| !line.trim().is_empty()).take(ROWS).map(short).collect();
            summary.push_str(&lines.join("\n"));
        }
    }
    summary.trim_end().to_owned()
}

/// How many records or lines are shown of an answer that is not.
const SAMPLES: usize = 2;

/// The first records, or the first lines of a text.
fn samples(text: &str, outline: &Outline<'_>) -> Vec<String> {
    match outline {
        Outline::Array(_) | Outline::Object(_) => outline.samples(SAMPLES),
        Outline::Plain => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.take(SAMPLES + 1).map(short).collect()
        }
    }
}

/// Short `key: value` lines and scalar members that the summary does not show.
fn facts(text: &str, outline: &Outline<'_>) -> Vec<String> {
    if let Some(facts) = outline.facts() {
        return facts.take(FACTS).collect();
    }
    let told = ["error", "failed", "warning", "total", "exception", "success"];
    let telling = |line: &&str| {
        let folded = line.to_lowercase();
        line.chars().count() <= ROW && told.iter().any(|word| folded.contains(word))
    };
    let mut facts: Vec<String> = Vec::new();
    for line in text.lines().skip(ROWS).map(str::trim).filter(telling) {
        if facts.len() == FACTS {
            break;
        }
        if !facts.iter().any(|fact| fact == line) {
            facts.push(line.to_owned());
        }
    }
    facts
}

fn short(line: &str) -> String {
    catalog::summary::cut(line.trim(), ROW)
}
