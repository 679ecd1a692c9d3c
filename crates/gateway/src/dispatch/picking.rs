//! The part of an answer that a caller asked for, or that the operator set for
//! a function.

use artifacts::gate::thousands;
use artifacts::pick::{Pick, PickError, Picked};
use catalog::summary::cut;
use policy::call::Mode;
use policy::pattern::Pattern;
use policy::validate::ValidCall;
use serde_json::json;
use tool::{Json, Object, Reply};

use crate::choice::Surface;

/// The operator's default picks, by function: the first that fits counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shapes(pub Vec<(Pattern, Pick)>);

impl Shapes {
    fn of(&self, call: &ValidCall) -> Option<&Pick> {
        let fits = |(pattern, _): &&(Pattern, Pick)| pattern.means(call.callee.named());
        self.0.iter().find(fits).map(|(_, pick)| pick)
    }
}

/// Which part of an answer goes out, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Whole,
    Caller(Pick),
    Operator(Pick),
}

impl Wish {
    pub(super) fn new(asked: Option<Pick>, shapes: &Shapes, call: &ValidCall, mode: Mode) -> Wish {
        match (asked, mode) {
            (_, Mode::Pass | Mode::Plan | Mode::Inner) => Wish::Whole,
            (Some(pick), _) => Wish::Caller(pick),
            (None, Mode::Run | Mode::Strict) if shapes.0.is_empty() => Wish::Whole,
            (None, Mode::Run | Mode::Strict) => {
                shapes.of(call).map_or(Wish::Whole, |pick| Wish::Operator(pick.clone()))
            }
        }
    }

    /// Whether the caller asked for a part.
    pub(super) fn is_callers(&self) -> bool {
        matches!(self, Wish::Caller(_))
    }
}

/// An answer from which a part may have been picked, and what it was picked
/// from.
pub(super) struct Part {
    pub(super) reply: Reply,
    pub(super) source: Source,
}

/// What the part was picked from.
pub(super) enum Source {
    /// The answer is whole.
    Itself,
    /// A whole answer; it is worth keeping if it is long.
    Whole(Json),
    /// Nothing could be picked from this.
    Unpicked { whole: Json, why: PickError },
}

impl Source {
    /// The whole answer, where only a part of it goes out.
    pub(super) fn whole(&self) -> Option<&Json> {
        match self {
            Source::Itself => None,
            Source::Whole(whole) | Source::Unpicked { whole, .. } => Some(whole),
        }
    }
}

/// Picks the wanted part of an answer, of at most `limit` characters. What is no
/// result of a tool, or reports an error, stays whole.
pub(super) async fn pick(wish: Wish, reply: Reply, limit: usize) -> Part {
    let (pick, is_operators) = match wish {
        Wish::Whole => return Part { reply, source: Source::Itself },
        Wish::Caller(pick) => (pick, false),
        Wish::Operator(pick) => (pick, true),
    };
    match reply {
        Reply::Result(whole) if is_finished(&whole) => {
            Box::pin(picked(pick, whole, limit, is_operators)).await
        }
        reply @ (Reply::Result(_) | Reply::Error(_)) => Part { reply, source: Source::Itself },
    }
}

async fn picked(pick: Pick, whole: Json, limit: usize, is_operators: bool) -> Part {
    match run(pick, &whole, limit).await {
        Ok(picked) => {
            let note = is_operators.then_some(SHAPED);
            let reply = to_reply(&whole, &picked, note);
            Part { reply, source: Source::Whole(whole) }
        }
        // Nobody asked for it, so what nothing can be picked from goes on whole.
        Err(why) if is_operators => {
            tracing::warn!(%why, "the operator's shape does not fit a result");
            Part { reply: Reply::Result(whole), source: Source::Itself }
        }
        Err(why) => {
            let reply = Reply::Result(whole.clone());
            Part { reply, source: Source::Unpicked { whole, why } }
        }
    }
}

/// What a caller is told who did not ask for a part.
const SHAPED: &str = "[shaped by the operator; `pick=\".\"` gives all]";

/// More is never picked, whatever a caller asks for.
const LONGEST: usize = 4 << 20;

/// Runs a pick on a thread of its own.
pub(super) async fn run(pick: Pick, whole: &Json, limit: usize) -> Result<Picked, PickError> {
    let whole = whole.clone();
    let limit = limit.min(LONGEST);
    let work = move |stop: &offload::Stop| pick.run(&whole, limit, stop);
    let slow = |_| PickError::Program {
        why: artifacts::view::ViewError::Stopped,
        shape: Box::new(artifacts::shape::Shape::of_text("")),
    };
    offload::run(work).await.unwrap_or_else(|why| Err(slow(why)))
}

/// Whether a result is an answer without an error, not a question or a task.
fn is_finished(result: &Json) -> bool {
    let says = |key: &str| result.mentions(key);
    let is_error = says("\"isError\"") && result.member_as("isError").unwrap_or(false);
    let kind = || result.member_as::<String>("resultType").unwrap_or_default();
    let is_unfinished = (says("\"resultType\"") && kind() != "complete")
        || (says("\"taskId\"") && result.member("taskId").is_some());
    !is_error && !is_unfinished
}

/// What was picked, as a result in place of the whole one.
pub(super) fn to_reply(whole: &Json, picked: &Picked, note: Option<&str>) -> Reply {
    let mut content = vec![json!({"type": "text", "text": picked.text})];
    if let Some(data) = &picked.nothing {
        let line = format!("[nothing there: the data is {}]", cut(data, 400));
        content.push(json!({"type": "text", "text": line}));
    }
    content.extend(note.map(|note| json!({"type": "text", "text": note})));
    let mut result = Object::new();
    result.push("content", Json::encode(&content));
    whole.member("_meta").into_iter().for_each(|meta| result.push("_meta", meta));
    Reply::Result(result.to_json())
}

/// The reply with a line about what it was picked from.
pub(super) fn noted(reply: Reply, chars: usize, handle: &str, surface: Surface) -> Reply {
    let Reply::Result(json) = &reply else { return reply };
    let Ok(mut result) = Object::parse(json) else { return reply };
    let content = result.get("content").and_then(|content| content.parse_as::<Vec<Json>>().ok());
    let mut content = content.unwrap_or_default();
    let view = match surface {
        Surface::Gateway | Surface::Proxy => "tool_view",
        Surface::Cash | Surface::Direct | Surface::Auto => "gatelet.view",
    };
    let line =
        format!("[picked from {} characters, kept as `{handle}` for {view}]", thousands(chars));
    content.push(json!({"type": "text", "text": line}).into());
    result.set("content", Json::encode(&content));
    Reply::Result(result.to_json())
}
