//! Which part of a result comes back, as a program that came with the call.
//!
//! A [`Pick`] is a jq program over the data of a result: its structured content
//! if it has one, else its text as JSON, else its text as a string. A program that
//! fails on the structured content is tried on the text beside it, which is what
//! the reader saw. It runs within the same bounds as a view. Lists of fields and counts, which models
//! write without being told, are turned into such programs.
//!
//! This module does not know where a result comes from nor what becomes of the
//! rest of it.

mod program;

use std::borrow::Cow;

use offload::Stop;
use tool::reply::ToolResult;
use tool::{Json, Reply};

use crate::reading;
use crate::shape::Shape;
use crate::view::{self, Budget, Outputs, ViewError};

/// A program over the data of a result, whose syntax is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick(String);

/// What a program took out of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picked {
    /// The outputs as JSON, one per line; a single text as it is.
    pub text: String,
    /// Where there is no output but `null` and empty lists: what the data is that
    /// the program was run over.
    pub nothing: Option<String>,
}

/// Why nothing could be picked. The result is still there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PickError {
    #[error("the result has neither data nor text to pick from")]
    NoData,
    #[error("{why}")]
    Program {
        #[source]
        why: ViewError,
        /// What the data looks like.
        shape: Box<Shape>,
    },
    #[error("what it picks has at least {at_least} characters, and {limit} may go out")]
    TooLong { at_least: usize, limit: usize },
}

impl Pick {
    /// Reads what a caller wrote: a jq program, a list of fields, or an object
    /// with `fields`, `limit` or `count`. The error says what it must be.
    pub fn read(value: &Json) -> Result<Pick, String> {
        let program = program::of(value)?;
        view::check_filter(&program).map_err(|error| error.to_string())?;
        Ok(Pick(program))
    }

    /// The jq program.
    pub fn program(&self) -> &str {
        &self.0
    }

    /// Runs the program over a result. At most `limit` characters come of it.
    ///
    /// Blocking: do not call on an async worker thread.
    pub fn run(&self, result: &Json, limit: usize, stop: &Stop) -> Result<Picked, PickError> {
        let result = Reply::Result(result.clone()).tool_result().ok_or(PickError::NoData)?;
        let first = data(&result).ok_or(PickError::NoData)?;
        let beside = result.structured.as_ref().and_then(|_| text_as_data(&result));
        match (self.run_on(&first, limit, stop), beside) {
            (Err(failed @ PickError::Program { .. }), Some(text)) => {
                self.run_on(&text, limit, stop).map_err(|_| failed)
            }
            (picked, _) => picked,
        }
    }

    fn run_on(&self, data: &str, limit: usize, stop: &Stop) -> Result<Picked, PickError> {
        let budget = Budget { chars: limit, ..Budget::default() };
        let outputs = view::jq(data.as_bytes(), "application/json", &self.0, &budget, stop);
        let shape = || Box::new(Shape::of_text(data));
        let Outputs { text, at_least, .. } =
            outputs.map_err(|why| PickError::Program { why, shape: shape() })?;
        if let Some(at_least) = at_least {
            return Err(PickError::TooLong { at_least, limit });
        }
        let is_nothing = text.lines().all(|line| matches!(line, "null" | "[]" | "{}" | "\"\""));
        let over = || format!("{}; it begins `{}`", shape().describe(), beginning(data));
        Ok(Picked { nothing: is_nothing.then(over), text: plain(text) })
    }
}

impl PickError {
    /// What the data looks like, where that helps to write another program.
    pub fn shape(&self) -> Option<&Shape> {
        match self {
            PickError::Program { shape, .. } => Some(shape),
            PickError::NoData | PickError::TooLong { .. } => None,
        }
    }
}

/// The data of a result, as JSON: what programs work on.
pub fn data(result: &ToolResult) -> Option<Cow<'_, str>> {
    match &result.structured {
        Some(structured) => Some(Cow::Borrowed(structured.as_str())),
        None => text_as_data(result).map(Cow::Owned),
    }
}

/// The text of a result as JSON: as it is, or as a string.
fn text_as_data(result: &ToolResult) -> Option<String> {
    let block = |block: &Json| {
        let own = block.member_as::<String>("text");
        own.or_else(|| block.member("resource")?.member_as("text"))
    };
    let texts: Vec<String> = result.content.iter().filter_map(block).collect();
    let is_data = |text: &String| is_json(text);
    Some(match texts.as_slice() {
        [] => return None,
        [one] => match reading::embedded(one) {
            Some(json) => json.to_owned(),
            None => Json::encode(one).to_string(),
        },
        // Servers send a list as one block for each item.
        several if several.iter().all(is_data) => format!("[{}]", several.join(",")),
        several => Json::encode(&several.join("\n")).to_string(),
    })
}

/// Whether a text is an object or an array in JSON.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// How data begins, on one short line; a string without its quotes.
fn beginning(data: &str) -> String {
    let head = &data[..data.floor_char_boundary(BEGINNING)];
    match head.strip_prefix('"') {
        Some(text) => {
            let text = if head.len() == data.len() { text.trim_end_matches('"') } else { text };
            catalog::summary::echo(&text.replace("\\n", " ").replace("\\\"", "\""))
        }
        None => catalog::summary::echo(head),
    }
}

/// How much of data is looked at to show how it begins.
const BEGINNING: usize = 400;

/// A single text as it is; everything else as JSON.
fn plain(text: String) -> String {
    match text.starts_with('"') {
        true => serde_json::from_str::<String>(&text).unwrap_or(text),
        false => text,
    }
}

#[cfg(test)]
mod tests;
