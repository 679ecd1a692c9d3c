//! Picks the part of an answer that the caller asked for, or that the operator
//! configured for the function, with a jq program.

use artifacts::gate::thousands;
use artifacts::pick::{Pick, PickError, Picked};
use catalog::summary::cut;
use policy::call::CallMode;
use policy::pattern::Pattern;
use policy::validate::ValidCall;
use serde_json::json;
use tool::{Json, Object, Reply};

use crate::choice::Surface;

/// The operator's default picks, by function. The first pattern that matches counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultPicks(pub Vec<(Pattern, Pick)>);

impl DefaultPicks {
    fn for_call(&self, call: &ValidCall) -> Option<&Pick> {
        let fits = |(pattern, _): &&(Pattern, Pick)| pattern.matches_exactly(call.callee.names());
        self.0.iter().find(fits).map(|(_, pick)| pick)
    }
}

/// Which part of an answer goes out, and who chose it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PickChoice {
    Whole,
    Caller(Pick),
    Operator(Pick),
}

impl PickChoice {
    pub(super) fn new(
        callers: Option<Pick>,
        default_picks: &DefaultPicks,
        call: &ValidCall,
        mode: CallMode,
    ) -> PickChoice {
        match (callers, mode) {
            (_, CallMode::PassThrough | CallMode::DryRun | CallMode::FromScript) => {
                PickChoice::Whole
            }
            (Some(pick), _) => PickChoice::Caller(pick),
            (None, CallMode::Run | CallMode::Strict) if default_picks.0.is_empty() => {
                PickChoice::Whole
            }
            (None, CallMode::Run | CallMode::Strict) => default_picks
                .for_call(call)
                .map_or(PickChoice::Whole, |pick| PickChoice::Operator(pick.clone())),
        }
    }

    /// Returns whether the caller asked for a part.
    pub(super) fn is_callers(&self) -> bool {
        matches!(self, PickChoice::Caller(_))
    }
}

/// The reply that goes out, and the whole answer if it is only a part of that.
pub(super) struct PickedReply {
    pub(super) reply: Reply,
    pub(super) picked_from: PickedFrom,
}

/// The answer that a part was picked from.
pub(super) enum PickedFrom {
    /// Nothing was picked: the reply is the whole answer.
    NothingPicked,
    /// The reply is a part of this answer, which is worth storing if it is long.
    Whole(Json),
    /// The wanted part could not be picked from this answer.
    Failed { whole: Json, why: PickError },
}

impl PickedFrom {
    /// Returns the whole answer, if only a part of it goes out.
    pub(super) fn whole(&self) -> Option<&Json> {
        match self {
            PickedFrom::NothingPicked => None,
            PickedFrom::Whole(whole) | PickedFrom::Failed { whole, .. } => Some(whole),
        }
    }
}

/// Picks the chosen part of an answer, of at most `limit` characters. An answer that
/// is not a finished tool result, or reports an error, stays whole.
pub(super) async fn pick(choice: PickChoice, reply: Reply, limit: usize) -> PickedReply {
    let (pick, is_operators) = match choice {
        PickChoice::Whole => return PickedReply { reply, picked_from: PickedFrom::NothingPicked },
        PickChoice::Caller(pick) => (pick, false),
        PickChoice::Operator(pick) => (pick, true),
    };
    match reply {
        Reply::Result(whole) if is_finished(&whole) => {
            Box::pin(pick_from_result(pick, whole, limit, is_operators)).await
        }
        reply @ (Reply::Result(_) | Reply::Error(_)) => {
            PickedReply { reply, picked_from: PickedFrom::NothingPicked }
        }
    }
}

async fn pick_from_result(
    pick: Pick,
    whole: Json,
    limit: usize,
    is_operators: bool,
) -> PickedReply {
    match run(pick, &whole, limit).await {
        Ok(picked) => {
            let note = is_operators.then_some(PICKED_BY_OPERATOR);
            let reply = to_reply(&whole, &picked, note);
            PickedReply { reply, picked_from: PickedFrom::Whole(whole) }
        }
        // The caller did not ask for a part, so a result that it does not fit goes out whole.
        Err(why) if is_operators => {
            tracing::warn!(%why, "the operator's shape does not fit a result");
            PickedReply { reply: Reply::Result(whole), picked_from: PickedFrom::NothingPicked }
        }
        Err(why) => {
            let reply = Reply::Result(whole.clone());
            PickedReply { reply, picked_from: PickedFrom::Failed { whole, why } }
        }
    }
}

/// Tells a caller who did not ask for a part that they got one.
const PICKED_BY_OPERATOR: &str = "[shaped by the operator; `pick=\".\"` gives all]";

/// The longest part that is ever picked, in characters, whatever a caller asks for.
const MAX_CHARS: usize = 4 << 20;

/// Runs a pick on a thread of its own.
pub(super) async fn run(pick: Pick, whole: &Json, limit: usize) -> Result<Picked, PickError> {
    let whole = whole.clone();
    let limit = limit.min(MAX_CHARS);
    let work = move |stop: &offload::StopFlag| pick.run(&whole, limit, stop);
    let slow = |_| PickError::Program {
        why: artifacts::view::ViewError::Stopped,
        shape: Box::new(artifacts::shape::Shape::of_text("")),
    };
    offload::run(work).await.unwrap_or_else(|why| Err(slow(why)))
}

/// Returns whether a result is a final answer without an error: not a question to
/// the client, and not a task.
fn is_finished(result: &Json) -> bool {
    let has = |key: &str| result.mentions(key);
    let is_error = has("\"isError\"") && result.member_as("isError").unwrap_or(false);
    let kind = || result.member_as::<String>("resultType").unwrap_or_default();
    let is_unfinished = (has("\"resultType\"") && kind() != "complete")
        || (has("\"taskId\"") && result.member("taskId").is_some());
    !is_error && !is_unfinished
}

/// Makes a tool result of what was picked, in place of the whole one.
pub(super) fn to_reply(whole: &Json, picked: &Picked, note: Option<&str>) -> Reply {
    let mut content = vec![json!({"type": "text", "text": picked.text})];
    if let Some(data) = &picked.data_if_empty {
        let line = format!("[nothing there: the data is {}]", cut(data, 400));
        content.push(json!({"type": "text", "text": line}));
    }
    content.extend(note.map(|note| json!({"type": "text", "text": note})));
    let mut result = Object::new();
    result.push("content", Json::encode(&content));
    whole.member("_meta").into_iter().for_each(|meta| result.push("_meta", meta));
    Reply::Result(result.to_json())
}

/// Adds a line to a picked reply that says under which handle the whole answer is
/// stored. `chars` is the length of that answer.
pub(super) fn with_artifact_note(
    reply: Reply,
    chars: usize,
    handle: &str,
    surface: Surface,
) -> Reply {
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
