//! A pick: a jq program that comes with a call and selects part of its result.
//!
//! It runs over the structured content of a result if there is some, else over its
//! text as JSON, else over its text as a string. A program that fails on the
//! structured content is tried on the text, because that is what the caller saw
//! before. It has the limits of a view. Lists of fields and counts, which models
//! write unasked, are turned into such programs.
//!
//! This module does not know where a result comes from nor what happens to the
//! rest of it.

mod program;

use std::borrow::Cow;

use offload::StopFlag;
use tool::reply::ToolResult;
use tool::{Json, Reply};

use crate::result_text;
use crate::shape::Shape;
use crate::view::{self, Budget, Outputs, ViewError};

/// A jq program that compiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick(String);

/// What a program selected from a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picked {
    /// The outputs as JSON, one per line; a single string without quotes.
    pub text: String,
    /// If all outputs are `null` or empty, a description of the data that the
    /// program ran over, so that the caller can write a better one.
    pub data_if_empty: Option<String>,
}

/// Why nothing could be picked. The result itself is not lost.
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
    /// Parses what a caller wrote: a jq program, a list of fields, or an object
    /// with `fields`, `limit` or `count`. The error says what it must be.
    pub fn parse(value: &Json) -> Result<Pick, String> {
        let program = program::parse(value)?;
        view::check_filter(&program).map_err(|error| error.to_string())?;
        Ok(Pick(program))
    }

    /// Returns the jq program.
    pub fn program(&self) -> &str {
        &self.0
    }

    /// Runs the program over a result. Fails if its outputs have more than `limit`
    /// characters. Ends early when `stop` is set.
    ///
    /// Blocking: do not call on an async worker thread.
    pub fn run(&self, result: &Json, limit: usize, stop: &StopFlag) -> Result<Picked, PickError> {
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

    fn run_on(&self, data: &str, limit: usize, stop: &StopFlag) -> Result<Picked, PickError> {
        let budget = Budget { chars: limit, ..Budget::default() };
        let outputs = view::jq(data.as_bytes(), "application/json", &self.0, &budget, stop);
        let shape = || Box::new(Shape::of_text(data));
        let Outputs { text, at_least, .. } =
            outputs.map_err(|why| PickError::Program { why, shape: shape() })?;
        if let Some(at_least) = at_least {
            return Err(PickError::TooLong { at_least, limit });
        }
        let is_empty = text.lines().all(|line| matches!(line, "null" | "[]" | "{}" | "\"\""));
        let describe = || format!("{}; it begins `{}`", shape().describe(), beginning(data));
        Ok(Picked { data_if_empty: is_empty.then(describe), text: plain(text) })
    }
}

impl PickError {
    /// Returns what the data looks like, if that helps to write another program.
    pub fn shape(&self) -> Option<&Shape> {
        match self {
            PickError::Program { shape, .. } => Some(shape),
            PickError::NoData | PickError::TooLong { .. } => None,
        }
    }
}

/// Returns the data of a result that programs run over, as JSON.
pub fn data(result: &ToolResult) -> Option<Cow<'_, str>> {
    match &result.structured {
        Some(structured) => Some(Cow::Borrowed(structured.as_str())),
        None => text_as_data(result).map(Cow::Owned),
    }
}

/// Returns the text of a result as JSON: as it is if it is JSON, or as a string.
fn text_as_data(result: &ToolResult) -> Option<String> {
    let block = |block: &Json| {
        let own = block.member_as::<String>("text");
        own.or_else(|| block.member("resource")?.member_as("text"))
    };
    let texts: Vec<String> = result.content.iter().filter_map(block).collect();
    let is_data = |text: &String| is_json(text);
    Some(match texts.as_slice() {
        [] => return None,
        [one] => match result_text::embedded_json(one) {
            Some(json) => json.to_owned(),
            None => Json::encode(one).to_string(),
        },
        // Servers send a list as one block for each item.
        several if several.iter().all(is_data) => format!("[{}]", several.join(",")),
        several => Json::encode(&several.join("\n")).to_string(),
    })
}

/// Returns whether a text is a JSON object or array.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Returns the beginning of data as one short line; of a string without quotes.
fn beginning(data: &str) -> String {
    let head = &data[..data.floor_char_boundary(BEGINNING_BYTES)];
    match head.strip_prefix('"') {
        Some(text) => {
            let text = if head.len() == data.len() { text.trim_end_matches('"') } else { text };
            catalog::summary::echo(&text.replace("\\n", " ").replace("\\\"", "\""))
        }
        None => catalog::summary::echo(head),
    }
}

/// How much of the data is used to show its beginning.
const BEGINNING_BYTES: usize = 400;

/// Removes the quotes and escapes of a single string; other outputs stay JSON.
fn plain(text: String) -> String {
    match text.starts_with('"') {
        true => serde_json::from_str::<String>(&text).unwrap_or(text),
        false => text,
    }
}

#[cfg(test)]
mod tests;
