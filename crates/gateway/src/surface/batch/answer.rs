//! The answers of several calls, put together.

use artifacts::{gate, pick};
use serde_json::{Map, Value, json};
use tool::{Json, Object, Reply};

use super::make_call::MakeCall;
use crate::dispatch::{CallError, Outcome};
use artifacts::pick::PickError;

/// One call, and what it came to.
pub(super) struct Answered {
    /// As it was made.
    pub(super) call: Json,
    pub(super) reply: Reply,
}

/// An answer that was too long for its share.
pub(crate) struct Over {
    pub(super) kind: OverKind,
    /// Under which the whole answer is kept.
    pub(super) handle: String,
    /// How many characters would go out.
    pub(super) chars: usize,
}

/// What was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverKind {
    /// The answer.
    Gated,
    /// What was picked from it.
    Picked,
}

/// The key of `_meta` that says by how much an answer is too long, where the
/// surface has no words of its own for that.
const OVER: &str = "gatelet/over";

impl Over {
    /// By how much the answer of a call is too long, if it is and was kept.
    pub(crate) fn of_outcome(outcome: &Result<Outcome, CallError>) -> Option<Over> {
        let (kind, artifact, chars) = match outcome {
            Ok(Outcome::Kept { artifact, .. }) => (OverKind::Gated, artifact, artifact.chars),
            Ok(Outcome::Unpicked {
                artifact,
                why: PickError::TooLong { at_least, .. },
                stored: Ok(()),
            }) => (OverKind::Picked, artifact, *at_least),
            Ok(
                Outcome::Reply(_)
                | Outcome::Unkept { .. }
                | Outcome::Unpicked { .. }
                | Outcome::Plan(_),
            )
            | Err(_) => return None,
        };
        Some(Over { kind, handle: artifact.handle.clone(), chars })
    }

    /// The reply with this in its `_meta`.
    pub(crate) fn noted_in(&self, reply: Reply) -> Reply {
        let Reply::Result(json) = &reply else { return reply };
        let Ok(mut result) = Object::parse(json) else { return reply };
        let meta = result.get("_meta").and_then(|meta| Object::parse(meta).ok());
        let mut meta = meta.unwrap_or_default();
        let kind = match self.kind {
            OverKind::Gated => "gated",
            OverKind::Picked => "picked",
        };
        let over = json!({"kind": kind, "handle": self.handle, "chars": self.chars});
        meta.set(OVER, over.into());
        result.set("_meta", meta.to_json());
        Reply::Result(result.to_json())
    }

    fn noted(meta: &Json) -> Option<Over> {
        let over = meta.member(OVER)?;
        let kind = match over.member_as::<String>("kind")?.as_str() {
            "gated" => OverKind::Gated,
            _ => OverKind::Picked,
        };
        Some(Over { kind, handle: over.member_as("handle")?, chars: over.member_as("chars")? })
    }
}

impl Answered {
    /// A call that was not made.
    pub(super) fn not_run(call: &Json, why: &str) -> Answered {
        let reply = Reply::error_text(&format!("**Error:** Not run: {why}."));
        Answered { call: call.clone(), reply }
    }

    pub(super) fn is_error(&self) -> bool {
        self.reply.tool_result().is_none_or(|result| result.is_error)
    }

    pub(super) fn chars(&self) -> usize {
        match self.reply.tool_result() {
            Some(result) => gate::measure(&result),
            None => self.json().as_str().chars().count(),
        }
    }

    fn json(&self) -> &Json {
        match &self.reply {
            Reply::Result(json) => json,
            Reply::Error(error) => &error.raw,
        }
    }

    /// What is told of it in `_meta`.
    fn meta(&self) -> Option<Json> {
        self.json().member("_meta")
    }

    /// By how much it is too long, if it is and was kept.
    pub(super) fn over(&self) -> Option<Over> {
        let meta = self.meta()?;
        let over = |kind, key: &str, chars: &str| {
            let told = meta.member(key)?;
            Some(Over { kind, handle: told.member_as("handle")?, chars: told.member_as(chars)? })
        };
        let gated = || over(OverKind::Gated, "cash/gated", "chars");
        let picked = || over(OverKind::Picked, "cash/unpicked", "picked");
        gated().or_else(picked).or_else(|| Over::noted(&meta))
    }

    /// Its content with a first line that says whose it is.
    fn blocks(&self, at: usize, name: &str) -> Vec<Value> {
        let mark = if self.is_error() { " (error)" } else { "" };
        let head = format!("[{at}] {name}{mark}:");
        let result = self.reply.tool_result();
        let content = result.as_ref().map(|result| result.content.as_slice()).unwrap_or_default();
        let text = match (&self.reply, content) {
            (Reply::Error(error), _) => Some(error.message.clone()),
            (Reply::Result(json), []) => {
                let data = result.as_ref().and_then(|result| result.structured.as_ref());
                Some(data.unwrap_or(json).to_string())
            }
            (Reply::Result(_), [first, ..]) => first.member_as::<String>("text"),
        };
        let head = match &text {
            Some(text) => format!("{head}\n{text}"),
            None => head,
        };
        let rest = if text.is_some() { content.get(1..).unwrap_or_default() } else { content };
        let rest = rest.iter().filter_map(|block| block.to_value().ok());
        [json!({"type": "text", "text": head})].into_iter().chain(rest).collect()
    }
}

/// How lines of ours begin that stand behind a result, and are no data of it.
const NOTES: [&str; 3] = ["[picked from ", "[shaped by the operator", "[tool_id read as "];

/// The data of a result that a later call may refer to.
pub(super) fn data_of(reply: &Reply) -> Option<String> {
    let mut result = reply.tool_result()?;
    let is_note = |block: &Json| {
        let text = block.member_as::<String>("text").unwrap_or_default();
        NOTES.iter().any(|note| text.starts_with(note))
    };
    while 1 < result.content.len() && result.content.last().is_some_and(is_note) {
        result.content.pop();
    }
    pick::data(&result).map(std::borrow::Cow::into_owned)
}

/// All of them as one result. It is an error when every one is.
pub(super) fn together(answered: &[Answered], by: &dyn MakeCall) -> Reply {
    let each = answered.iter().enumerate();
    let blocks: Vec<Value> =
        each.flat_map(|(at, one)| one.blocks(at, &by.name(&one.call))).collect();
    let mut result = Object::new();
    result.push("content", Json::encode(&blocks));
    if answered.iter().all(Answered::is_error) {
        result.push("isError", Json::encode(&true));
    }
    let told = answered.iter().enumerate();
    let told: Map<String, Value> =
        told.filter_map(|(at, one)| Some((at.to_string(), one.meta()?.to_value().ok()?))).collect();
    if !told.is_empty() {
        result.push("_meta", json!({by.meta_key(): told}).into());
    }
    Reply::Result(result.to_json())
}
