//! The answers of a batch: which are oversized, and how all are joined into one result.

use artifacts::{gate, pick};
use serde_json::{Map, Value, json};
use tool::{Json, Object, Reply};

use super::make_call::MakeCall;
use crate::dispatch::{CallError, Outcome};
use artifacts::pick::PickError;

/// A call of a batch, and its reply.
pub(super) struct AnsweredCall {
    /// The call as it was made, with references replaced.
    pub(super) call: Json,
    pub(super) reply: Reply,
}

/// An answer that was too long for its share and is stored as an artifact.
pub(crate) struct Oversized {
    pub(super) part: OversizedPart,
    /// The handle of the whole answer.
    pub(super) handle: String,
    /// The characters of what was too long.
    pub(super) chars: usize,
}

/// Which part of an answer was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OversizedPart {
    /// The whole answer.
    Gated,
    /// The part that was picked from the answer.
    Picked,
}

/// The key of `_meta` that marks an oversized answer, on surfaces that have no mark of
/// their own.
const OVERSIZED_KEY: &str = "gatelet/over";

impl Oversized {
    /// Returns the oversized answer of a call, if it is one and was stored.
    pub(crate) fn of_outcome(outcome: &Result<Outcome, CallError>) -> Option<Oversized> {
        let (part, artifact, chars) = match outcome {
            Ok(Outcome::Kept { artifact, .. }) => (OversizedPart::Gated, artifact, artifact.chars),
            Ok(Outcome::Unpicked {
                artifact,
                why: PickError::TooLong { at_least, .. },
                stored: Ok(()),
            }) => (OversizedPart::Picked, artifact, *at_least),
            Ok(
                Outcome::Reply(_)
                | Outcome::Unkept { .. }
                | Outcome::Unpicked { .. }
                | Outcome::Plan(_),
            )
            | Err(_) => return None,
        };
        Some(Oversized { part, handle: artifact.handle.clone(), chars })
    }

    /// Marks a reply as oversized in its `_meta`.
    pub(crate) fn mark(&self, reply: Reply) -> Reply {
        let Reply::Result(json) = &reply else { return reply };
        let Ok(mut result) = Object::parse(json) else { return reply };
        let meta = result.get("_meta").and_then(|meta| Object::parse(meta).ok());
        let mut meta = meta.unwrap_or_default();
        let kind = match self.part {
            OversizedPart::Gated => "gated",
            OversizedPart::Picked => "picked",
        };
        let oversized = json!({"kind": kind, "handle": self.handle, "chars": self.chars});
        meta.set(OVERSIZED_KEY, oversized.into());
        result.set("_meta", meta.to_json());
        Reply::Result(result.to_json())
    }

    fn from_mark(meta: &Json) -> Option<Oversized> {
        let mark = meta.member(OVERSIZED_KEY)?;
        let part = match mark.member_as::<String>("kind")?.as_str() {
            "gated" => OversizedPart::Gated,
            _ => OversizedPart::Picked,
        };
        Some(Oversized { part, handle: mark.member_as("handle")?, chars: mark.member_as("chars")? })
    }
}

impl AnsweredCall {
    /// Makes the answer of a call that was not made.
    pub(super) fn not_run(call: &Json, why: &str) -> AnsweredCall {
        let reply = Reply::error_text(&format!("**Error:** Not run: {why}."));
        AnsweredCall { call: call.clone(), reply }
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

    /// Returns the `_meta` of the reply.
    fn meta(&self) -> Option<Json> {
        self.json().member("_meta")
    }

    /// Returns what was too long for its share, by the marks in the reply's `_meta`.
    pub(super) fn oversized(&self) -> Option<Oversized> {
        let meta = self.meta()?;
        let marked = |part, key: &str, chars: &str| {
            let mark = meta.member(key)?;
            Some(Oversized {
                part,
                handle: mark.member_as("handle")?,
                chars: mark.member_as(chars)?,
            })
        };
        let gated = || marked(OversizedPart::Gated, "cash/gated", "chars");
        let picked = || marked(OversizedPart::Picked, "cash/unpicked", "picked");
        gated().or_else(picked).or_else(|| Oversized::from_mark(&meta))
    }

    /// Returns the content of the reply, under a line with the call's number and name.
    fn blocks(&self, number: usize, name: &str) -> Vec<Value> {
        let mark = if self.is_error() { " (error)" } else { "" };
        let head = format!("[{number}] {name}{mark}:");
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

/// How the notes begin that gatelet adds to a result, which are not its data.
const NOTES: [&str; 3] = ["[picked from ", "[shaped by the operator", "[tool_id read as "];

/// Returns the data of a result that a later call may refer to.
pub(super) fn result_data(reply: &Reply) -> Option<String> {
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

/// Joins all answers into one result, which is an error if all of them are.
pub(super) fn join(answered: &[AnsweredCall], call_maker: &dyn MakeCall) -> Reply {
    let each = answered.iter().enumerate();
    let blocks: Vec<Value> =
        each.flat_map(|(at, one)| one.blocks(at, &call_maker.name(&one.call))).collect();
    let mut result = Object::new();
    result.push("content", Json::encode(&blocks));
    if answered.iter().all(AnsweredCall::is_error) {
        result.push("isError", Json::encode(&true));
    }
    let metas = answered.iter().enumerate();
    let metas: Map<String, Value> = metas
        .filter_map(|(at, one)| Some((at.to_string(), one.meta()?.to_value().ok()?)))
        .collect();
    if !metas.is_empty() {
        result.push("_meta", json!({call_maker.meta_key(): metas}).into());
    }
    Reply::Result(result.to_json())
}
