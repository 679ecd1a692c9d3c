//! The answers of several calls, put together.

use artifacts::{gate, pick};
use catalog::summary::echo;
use serde_json::{Map, Value, json};
use tool::{Json, Object, Reply};

/// One call, and what it came to.
pub(super) struct Answered {
    /// As it was made.
    pub(super) call: Json,
    pub(super) reply: Reply,
}

/// An answer that was too long for its share.
pub(super) struct Over {
    pub(super) kind: OverKind,
    /// Under which the whole answer is kept.
    pub(super) handle: String,
    /// How many characters would go out.
    pub(super) chars: usize,
}

/// What was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverKind {
    /// The answer.
    Gated,
    /// What was picked from it.
    Picked,
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
        gated().or_else(|| over(OverKind::Picked, "cash/unpicked", "picked"))
    }

    /// Its content with a first line that says whose it is.
    fn blocks(&self, at: usize) -> Vec<Value> {
        let mark = if self.is_error() { " (error)" } else { "" };
        let head = format!("[{at}] {}{mark}:", name(&self.call));
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

/// `orders.list`, as the caller wrote it.
fn name(call: &Json) -> String {
    let text = |key: &str| call.member_as::<String>(key).unwrap_or_default();
    let (namespace, function) = (text("namespace"), text("function"));
    match namespace.as_str() {
        "" => echo(&function),
        _ => echo(&format!("{namespace}.{function}")),
    }
}

/// The data of a result that a later call may refer to.
pub(super) fn data_of(reply: &Reply) -> Option<String> {
    let result = reply.tool_result()?;
    pick::data(&result).map(std::borrow::Cow::into_owned)
}

/// All of them as one result. It is an error when every one is.
pub(super) fn together(answered: &[Answered]) -> Reply {
    let blocks: Vec<Value> =
        answered.iter().enumerate().flat_map(|(at, one)| one.blocks(at)).collect();
    let mut result = Object::new();
    result.push("content", Json::encode(&blocks));
    if answered.iter().all(Answered::is_error) {
        result.push("isError", Json::encode(&true));
    }
    let told = answered.iter().enumerate();
    let told: Map<String, Value> =
        told.filter_map(|(at, one)| Some((at.to_string(), one.meta()?.to_value().ok()?))).collect();
    if !told.is_empty() {
        result.push("_meta", json!({"cash/calls": told}).into());
    }
    Reply::Result(result.to_json())
}
