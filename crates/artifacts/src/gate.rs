//! Decides whether a result is short enough to go out at once.
//!
//! The gate measures a result in characters, without the JSON around them, and
//! compares that with a limit. The result of a call reaches a client only as a
//! [`Gated`], and only [`decide`] creates one. The gate never cuts: the caller of
//! this module stores a result that is too long.

use serde_json::Value;
use tool::reply::ToolResult;
use tool::{Json, Object, Reply};

use crate::artifact::Artifact;

pub use crate::shape::{Shape, thousands};

/// The size limits of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many characters pass unless the call asks for another limit.
    pub limit: usize,
    /// The highest limit that a call may ask for.
    pub ceiling: Option<usize>,
    /// Whether the reply for a result that was too long is marked as an error.
    pub gated_is_error: bool,
    /// What goes out of a result whose text and structured content are the same.
    pub same_data: SameData,
}

/// What goes out of a result whose text is the JSON of its structured content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameData {
    /// The text, which every host shows its model.
    #[default]
    Text,
    Structured,
    Both,
}

/// Structured content over this many bytes is not compared exactly with the text.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// How many characters a result may have outside of its content, and how long a
/// question back to the client or a task may be: clients read them, and models do
/// not.
const MAX_OTHER_CHARS: usize = 1 << 20;

/// How many characters the blocks of a result may have beside their text or data, all
/// together, before these are counted: types, annotations, the JSON around them.
const FREE_BLOCK_CHARS: usize = 4_096;

/// The default limit in characters.
pub const LIMIT: usize = 10_000;

impl Config {
    /// Returns the limit of a call that asks for `wanted` characters.
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

/// A reply that has been measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Gated {
    reply: Reply,
    excess: Option<Excess>,
}

/// The length of a result that is over its limit, and that limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Excess {
    pub chars: usize,
    pub limit: usize,
    /// Whether the tool reported an error.
    pub is_error: bool,
}

impl Gated {
    /// Returns the reply if it may go out.
    pub fn whole(&self) -> Option<&Reply> {
        self.excess.is_none().then_some(&self.reply)
    }

    /// Returns by how much the reply is too long; `None` if it may go out.
    pub fn excess(&self) -> Option<&Excess> {
        self.excess.as_ref()
    }

    /// Returns the reply even if it is too long: to store it or to inspect it, not
    /// to send it.
    pub fn raw(&self) -> &Reply {
        &self.reply
    }

    /// Returns the reply, and by how much it is too long to go out.
    pub fn into_parts(self) -> (Reply, Option<Excess>) {
        (self.reply, self.excess)
    }
}

/// Measures a reply against a limit in characters.
pub fn decide(reply: Reply, limit: usize) -> Gated {
    let excess = match &reply {
        // No text has more characters than bytes, so most results need no parsing.
        Reply::Result(json) if limit < json.as_bytes().len() => excess(&reply, json, limit),
        Reply::Result(_) | Reply::Error(_) => None,
    };
    Gated { reply, excess }
}

fn excess(reply: &Reply, json: &Json, limit: usize) -> Option<Excess> {
    let Some(result) = reply.tool_result() else {
        let chars = n_chars(json.as_str());
        return (limit < chars).then_some(Excess { chars, limit, is_error: false });
    };
    let (members, meta) = other_chars(json);
    let (chars, bound) = match is_bare(&result) {
        // A question back to the client or a task is not a result yet.
        true if is_unfinished(&result, json) => (members, limit.max(MAX_OTHER_CHARS)),
        true => (members, limit),
        false => (measure(&result), limit),
    };
    let is_error = result.is_error;
    if MAX_OTHER_CHARS < members + meta {
        return Some(Excess { chars: chars.max(members + meta), limit, is_error });
    }
    (bound < chars).then_some(Excess { chars, limit, is_error })
}

/// Returns whether a result has neither content nor structured content.
fn is_bare(result: &ToolResult) -> bool {
    result.content.is_empty() && result.structured.is_none()
}

fn is_unfinished(result: &ToolResult, json: &Json) -> bool {
    let kind = result.result_type.as_deref();
    matches!(kind, Some("input_required" | "task")) || json.member("taskId").is_some()
}

/// Counts the characters outside of the content: those of unknown members, and
/// those of `_meta`.
fn other_chars(json: &Json) -> (usize, usize) {
    let (mut members, mut meta) = (0, 0);
    for (key, value) in Object::parse(json).unwrap_or_default() {
        match key.as_str() {
            "content" | "structuredContent" | "isError" | "resultType" => {}
            "_meta" => meta += n_chars(value.as_str()),
            _ => members += n_chars(value.as_str()),
        }
    }
    (members, meta)
}

/// Counts the characters of a result: all text, embedded text resources, binary
/// content in base64, what blocks have beside these if it is much, and structured content
/// unless it only repeats the text.
pub fn measure(result: &ToolResult) -> usize {
    let sizes = result.content.iter().map(BlockSize::of);
    let (payload, other) =
        sizes.fold((0, 0), |(payload, other), size| (payload + size.payload, other + size.other));
    let content = payload + other.saturating_sub(FREE_BLOCK_CHARS);
    let structured = match &result.structured {
        Some(structured) if !repeats_text(structured, result) => n_chars(structured.as_str()),
        Some(_) | None => 0,
    };
    content + structured
}

/// The characters of one content block.
struct BlockSize {
    /// Those of its text, or of its data in base64.
    payload: usize,
    /// All others.
    other: usize,
}

impl BlockSize {
    fn of(block: &Json) -> BlockSize {
        let kind: String = block.member_as("type").unwrap_or_default();
        let known = match kind.as_str() {
            "text" => split(block, &["text"]),
            "image" | "audio" => split(block, &["data"]),
            "resource" => block.member("resource").and_then(|resource| {
                let inner = split(&resource, &["text", "blob"])?;
                let around = n_chars(block.as_str()) - n_chars(resource.as_str());
                Some(BlockSize { other: inner.other + around, ..inner })
            }),
            _ => None,
        };
        known.unwrap_or_else(|| BlockSize { payload: n_chars(block.as_str()), other: 0 })
    }
}

/// Measures an object by the first of these members that it has as text, and by what else
/// is in it. `None` if it has none of them.
fn split(json: &Json, payloads: &[&str]) -> Option<BlockSize> {
    let members = Object::parse(json).ok()?;
    let mut texts =
        payloads.iter().filter_map(|key| Some((*key, members.get(key)?.string_value()?)));
    let (key, text) = texts.next()?;
    let encoded = members.get(key).map_or(0, |value| n_chars(value.as_str()));
    let other = n_chars(json.as_str()).saturating_sub(encoded);
    Some(BlockSize { payload: n_chars(&text), other })
}

fn repeats_text(structured: &Json, result: &ToolResult) -> bool {
    let text = result.text();
    if MAX_COMPARED_BYTES < structured.as_bytes().len() {
        // Parsing two trees of that size costs too much: a text of about the same
        // length that begins alike is taken for the same.
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

fn n_chars(text: &str) -> usize {
    text.chars().count()
}

/// Returns as much of the beginning of a result as its limit allows.
pub fn beginning(artifact: &Artifact, excess: &Excess) -> String {
    let text = artifact.text();
    match text.char_indices().nth(excess.limit) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Returns a `sizelimit` that lets `chars` characters through with some to spare.
pub fn suggested_limit(chars: usize) -> usize {
    let roomy = chars + chars / 25 + 50;
    roomy.div_ceil(100) * 100
}

#[cfg(test)]
mod tests;
