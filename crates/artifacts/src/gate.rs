//! Decides whether a result is short enough to go out at once.
//!
//! The gate measures an answer in characters as a reader would count them and
//! decides whether it may pass. Nothing reaches a client from a call except as
//! a [`Gated`], and only [`decide`] makes one. What is too long is kept whole
//! by the caller of this module; the gate never cuts.

use serde_json::Value;
use tool::reply::ToolResult;
use tool::{Json, Object, Reply};

use crate::artifact::Artifact;

pub use crate::shape::{Shape, thousands};

/// How strict the gate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Characters that pass without being asked for.
    pub limit: usize,
    /// Characters that no caller may exceed, whatever they ask for.
    pub ceiling: Option<usize>,
    /// Whether an answer that was kept is marked as an error.
    pub gated_is_error: bool,
    /// What goes out of an answer whose text and structured content are the same.
    pub same_data: SameData,
}

/// What goes out of an answer whose text is the JSON of its structured content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameData {
    /// The text, which every host shows its model.
    #[default]
    Text,
    Structured,
    Both,
}

/// Structured content over this many bytes is not compared exactly.
const LARGE: usize = 1 << 20;

/// What is no answer yet, and what stands beside one, may have so many
/// characters: clients read it, and models do not.
const BESIDE: usize = 1 << 20;

/// The limit that holds unless somebody says otherwise.
pub const LIMIT: usize = 10_000;

impl Config {
    /// The limit of a call that asks for `wanted` characters.
    pub fn limit(&self, wanted: Option<usize>) -> usize {
        let limit = wanted.unwrap_or(self.limit);
        self.ceiling.map_or(limit, |ceiling| limit.min(ceiling))
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limit: LIMIT,
            ceiling: None,
            gated_is_error: false,
            same_data: SameData::default(),
        }
    }
}

/// An answer that has been measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Gated {
    reply: Reply,
    over: Option<Over>,
}

/// An answer that is longer than its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    pub chars: usize,
    pub limit: usize,
    /// Whether the tool reported an error.
    pub is_error: bool,
}

impl Gated {
    /// The answer, when it may go out.
    pub fn whole(&self) -> Option<&Reply> {
        self.over.is_none().then_some(&self.reply)
    }

    /// By how much it is too long, when it may not.
    pub fn over(&self) -> Option<&Over> {
        self.over.as_ref()
    }

    /// The answer, to be kept or looked at on this side of the gate.
    pub fn raw(&self) -> &Reply {
        &self.reply
    }

    /// Both: the answer, and by how much it is too long to go out.
    pub fn apart(self) -> (Reply, Option<Over>) {
        (self.reply, self.over)
    }
}

/// Measures a reply against a limit in characters.
pub fn decide(reply: Reply, limit: usize) -> Gated {
    let over = match &reply {
        // No answer has more characters than bytes: most never need reading.
        Reply::Result(json) if limit < json.as_bytes().len() => over(&reply, json, limit),
        Reply::Result(_) | Reply::Error(_) => None,
    };
    Gated { reply, over }
}

fn over(reply: &Reply, json: &Json, limit: usize) -> Option<Over> {
    let Some(result) = reply.tool_result() else {
        let chars = count(json.as_str());
        return (limit < chars).then_some(Over { chars, limit, is_error: false });
    };
    let (members, meta) = beside(json);
    let (chars, bound) = match is_bare(&result) {
        // A question back to the client or a task is no answer yet.
        true if is_unfinished(&result, json) => (members, limit.max(BESIDE)),
        true => (members, limit),
        false => (measure(&result), limit),
    };
    let is_error = result.is_error;
    if BESIDE < members + meta {
        return Some(Over { chars: chars.max(members + meta), limit, is_error });
    }
    (bound < chars).then_some(Over { chars, limit, is_error })
}

fn is_bare(result: &ToolResult) -> bool {
    result.content.is_empty() && result.structured.is_none()
}

fn is_unfinished(result: &ToolResult, json: &Json) -> bool {
    let kind = result.result_type.as_deref();
    matches!(kind, Some("input_required" | "task")) || json.member("taskId").is_some()
}

/// The characters of what is neither content nor about the result: in its own
/// members, and in `_meta`.
fn beside(json: &Json) -> (usize, usize) {
    let (mut members, mut meta) = (0, 0);
    for (key, value) in Object::parse(json).unwrap_or_default() {
        match key.as_str() {
            "content" | "structuredContent" | "isError" | "resultType" => {}
            "_meta" => meta += count(value.as_str()),
            _ => members += count(value.as_str()),
        }
    }
    (members, meta)
}

/// The characters of a result: all text, embedded text resources, binary
/// content as it travels, and structured content unless it only repeats the
/// text.
pub fn measure(result: &ToolResult) -> usize {
    let content: usize = result.content.iter().map(block).sum();
    let structured = match &result.structured {
        Some(structured) if !mirrors(structured, result) => count(structured.as_str()),
        Some(_) | None => 0,
    };
    content + structured
}

fn block(block: &Json) -> usize {
    let text = |json: &Json, key: &str| json.member_as::<String>(key).map(|text| count(&text));
    let resource = || {
        let resource = block.member("resource")?;
        text(&resource, "text").or_else(|| text(&resource, "blob"))
    };
    let kind: String = block.member_as("type").unwrap_or_default();
    let known = match kind.as_str() {
        "text" => text(block, "text"),
        "image" | "audio" => text(block, "data"),
        "resource" => resource(),
        _ => None,
    };
    known.unwrap_or_else(|| count(block.as_str()))
}

fn mirrors(structured: &Json, result: &ToolResult) -> bool {
    let text = result.text();
    if LARGE < structured.as_bytes().len() {
        // Two trees of that size are not worth an exact count: a text of about
        // the same length and kind is taken for the same.
        let (one, other) = (text.len(), structured.as_bytes().len());
        let first = |text: &str| text.trim_start().chars().next();
        return one.abs_diff(other) < other / 2 && first(&text) == first(structured.as_str());
    }
    let Ok(value) = structured.to_value() else { return false };
    let repeated = |value: &Value| serde_json::from_str::<Value>(&text).is_ok_and(|t| t == *value);
    // Servers wrap a plain result into an object with one member.
    let wrapped = value.as_object().filter(|o| o.len() == 1).and_then(|o| o.values().next());
    repeated(&value)
        || wrapped.is_some_and(|inner| inner.as_str() == Some(&text) || repeated(inner))
}

fn count(text: &str) -> usize {
    text.chars().count()
}

/// As much of the beginning of an answer as its limit allows.
pub fn beginning(artifact: &Artifact, over: &Over) -> String {
    let text = artifact.text();
    match text.char_indices().nth(over.limit) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The `sizelimit` that lets `chars` characters through with some to spare.
pub fn suggestion(chars: usize) -> usize {
    let roomy = chars + chars / 25 + 50;
    roomy.div_ceil(100) * 100
}

#[cfg(test)]
mod tests;
