//! An overview of a stored result: its size, its shape, a summary and samples.
//!
//! A result may have many megabytes, so the overview is computed once, on a thread
//! of its own, and everything that is shown about the result comes from it.

mod outline;

use catalog::tokens;
use tool::Json;
use tool::reply::ToolResult;

use crate::result_text::{self, ResultText};
use crate::shape::Shape;
use outline::{MAX_ROW_CHARS, MAX_ROWS, Outline};

/// What a reader learns of a result that is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// About how many tokens the whole result has.
    pub tokens: usize,
    /// What its data looks like; `None` if it is not a tool result.
    pub shape: Option<Shape>,
    /// The beginning of its text, if the main thing is its structured content.
    pub text_excerpt: Option<String>,
    /// Whether it has blocks that are not text.
    pub is_mixed: bool,
    /// Whether it has JSON data to search.
    pub has_data: bool,
    /// Whether it has structured content, but a text that is not JSON is shown in
    /// its place.
    pub hides_structured: bool,
    /// The kind of data, its size, and its first rows or lines.
    pub summary: String,
    /// Short facts that the summary does not show.
    pub facts: Vec<String>,
    /// The first lines, or the first records with long texts cut.
    pub samples: Vec<String>,
    /// The member that has most of the data: its jq path, and its share in percent.
    pub heaviest: Option<(String, usize)>,
}

/// The largest number of facts.
const MAX_FACTS: usize = 8;

/// The length of [`Overview::text_excerpt`].
const MAX_EXCERPT_CHARS: usize = 300;

impl Overview {
    /// Computes the overview of a result of `chars` characters. `json` is the whole,
    /// `result` and `parsed` are the same if it is a tool result.
    pub(crate) fn new(
        json: &Json,
        result: Option<&ToolResult>,
        parsed: Option<&ResultText<'_>>,
        chars: usize,
    ) -> Overview {
        let main = parsed.and_then(ResultText::main);
        let text = main.unwrap_or_default();
        let text = result_text::embedded_json(text).unwrap_or(text);
        let outline = Outline::parse(text);
        let shape = result.zip(parsed).map(|(result, text)| Shape::of_result(result, text));
        let side_text = parsed.filter(|parsed| parsed.is_structured());
        let side_text = side_text.and_then(|parsed| parsed.text.as_deref());
        let is_structured = parsed.is_some_and(ResultText::is_structured);
        let is_data = |text: &str| text.trim_start().starts_with(['{', '[']);
        let shows_data = parsed.and_then(|parsed| parsed.text.as_deref()).is_some_and(is_data);
        let structured = result.and_then(|result| result.structured.as_ref());
        // Structured content that only repeats the text is not worth searching.
        let own_text = parsed.and_then(|parsed| parsed.text.as_deref()).unwrap_or_default();
        let has_structured = structured.is_some_and(|data| !result_text::repeats(data, own_text));
        Overview {
            tokens: tokens::estimate(main.unwrap_or(json.as_str())),
            summary: summary(shape.as_ref(), text, &outline, chars),
            facts: facts(text, &outline),
            samples: samples(text, &outline),
            heaviest: outline.heaviest(),
            text_excerpt: side_text
                .map(|text| catalog::summary::cut(text.trim(), MAX_EXCERPT_CHARS)),
            is_mixed: result.is_some_and(is_mixed),
            has_data: has_structured
                || shape.as_ref().is_none_or(|shape| shape.kind.starts_with("JSON")),
            hides_structured: has_structured && !is_structured && !shows_data,
            shape,
        }
    }
}

fn is_mixed(result: &ToolResult) -> bool {
    let is_text = |block: &Json| block.member_as::<String>("type").as_deref() == Some("text");
    !result.content.iter().all(is_text)
}

/// Renders the kind of data, its size, and its first rows or lines.
fn summary(shape: Option<&Shape>, text: &str, outline: &Outline<'_>, chars: usize) -> String {
    let what = shape.map_or_else(|| "result".to_owned(), Shape::describe);
    let mut summary = format!("{what}; {chars} chars, kept. ");
    match outline.first_rows() {
        Some(rows) => summary.push_str(&format!("First rows: {rows}")),
        None => {
            let lines: Vec<String> = text
                .lines()
                .filter(|line| !line.trim().is_empty())
                .take(MAX_ROWS)
                .map(short)
                .collect();
            summary.push_str(&lines.join("\n"));
        }
    }
    summary.trim_end().to_owned()
}

/// The number of samples.
const MAX_SAMPLES: usize = 2;

/// Returns the first records, or the first lines of a text.
fn samples(text: &str, outline: &Outline<'_>) -> Vec<String> {
    match outline {
        Outline::Array(_) | Outline::Object(_) => outline.samples(MAX_SAMPLES),
        Outline::Plain => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.take(MAX_SAMPLES + 1).map(short).collect()
        }
    }
}

/// Returns short scalar members as `key: value`, or telling lines of a text, that
/// the summary does not show.
fn facts(text: &str, outline: &Outline<'_>) -> Vec<String> {
    if let Some(facts) = outline.facts() {
        return facts.take(MAX_FACTS).collect();
    }
    let telling_words = ["error", "failed", "warning", "total", "exception", "success"];
    let is_telling = |line: &&str| {
        let folded = line.to_lowercase();
        line.chars().count() <= MAX_ROW_CHARS
            && telling_words.iter().any(|word| folded.contains(word))
    };
    let mut facts: Vec<String> = Vec::new();
    for line in text.lines().skip(MAX_ROWS).map(str::trim).filter(is_telling) {
        if facts.len() == MAX_FACTS {
            break;
        }
        if !facts.iter().any(|fact| fact == line) {
            facts.push(line.to_owned());
        }
    }
    facts
}

fn short(line: &str) -> String {
    catalog::summary::cut(line.trim(), MAX_ROW_CHARS)
}
