//! How the answer to a call is to be delivered: which part of it, of which size, in
//! which form.

use tool::{Context, Json, Reply};

use crate::dispatch::origin::Origin;
use crate::dispatch::picking::PickChoice;
use crate::primitive;
use artifacts::pick::Pick;
use policy::call::{CallMode, Request, TargetKind};
use policy::validate::ValidCall;

/// What a request says about its reply.
pub(super) struct ReplyOptions {
    pub(super) mode: CallMode,
    /// The size limit that the caller asks for, in characters.
    pub(super) size_limit: Option<usize>,
    /// The share of a batch's size limit that this call may use, in characters.
    pub(super) share: Option<usize>,
    /// The part of the answer that the caller asks for.
    pub(super) pick: Option<Pick>,
}

impl ReplyOptions {
    pub(super) fn from_request(request: &Request) -> ReplyOptions {
        ReplyOptions {
            mode: request.mode,
            size_limit: request.wanted,
            share: request.share,
            pick: request.pick.clone(),
        }
    }
}

/// How one answer is delivered: the caller's [`ReplyOptions`] and the operator's
/// settings together.
pub(super) struct Delivery<'a> {
    pub(super) mode: CallMode,
    /// Whether the caller gave a size limit.
    pub(super) has_size_limit: bool,
    /// The most characters that may go out.
    pub(super) limit: usize,
    pub(super) pick: PickChoice,
    pub(super) origin: Origin,
    pub(super) context: &'a Context,
}

/// An answer whose secrets are masked.
pub(super) struct ScrubbedAnswer {
    pub(super) reply: Reply,
    /// The same answer in the form that the client gets, where that is another one.
    pub(super) rendered: Option<Reply>,
    /// The answer with its secrets, where the operator wants it stored.
    pub(super) unscrubbed: Option<Reply>,
}

/// Returns the reply that goes out, and the conversion that makes a tool result of
/// it: the gate and the models know no other form.
pub(super) fn with_conversion(
    call: &ValidCall,
    mode: CallMode,
    rendered: Option<Reply>,
    reply: Reply,
) -> (Reply, fn(Reply) -> Reply) {
    match rendered {
        Some(rendered) => (rendered, |reply| reply),
        None => (reply, conversion(call, mode)),
    }
}

/// Returns the function that makes a tool result of a resource or a prompt.
fn conversion(call: &ValidCall, mode: CallMode) -> fn(Reply) -> Reply {
    match &call.kind {
        _ if mode == CallMode::PassThrough => |reply| reply,
        TargetKind::Resource { .. } => {
            |reply| map_result(reply, primitive::resource_to_tool_result)
        }
        TargetKind::Prompt { .. } => |reply| map_result(reply, primitive::prompt_to_tool_result),
        TargetKind::Tool(_)
        | TargetKind::Skill { .. }
        | TargetKind::Task { .. }
        | TargetKind::Help { .. }
        | TargetKind::Completion { .. }
        | TargetKind::Subscription { .. } => |reply| reply,
    }
}

fn map_result(reply: Reply, convert: fn(&Json) -> Json) -> Reply {
    match reply {
        Reply::Result(json) => Reply::Result(convert(&json)),
        Reply::Error(_) => reply,
    }
}
