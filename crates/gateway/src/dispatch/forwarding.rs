//! Forwards to an upstream what is not a tool call: resources, prompts, skills,
//! tasks, completions and help.

use std::sync::Arc;

use tool::{Context, Json, Object, Reply};

use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::origin::Origin;
use crate::dispatch::outcome::{CallError, Outcome, RenderReply};
use policy::call::{CallMode, Request, Target};
use roster::Snapshot;

/// A request that is forwarded to an upstream.
pub(crate) struct ForwardedRequest<'a> {
    pub(crate) target: Target,
    pub(crate) arguments: Option<Json>,
    /// The parameters beside the name and the arguments.
    pub(crate) other_params: Object,
    /// The size limit that the caller asks for, in characters.
    pub(crate) size_limit: Option<usize>,
    pub(crate) mode: CallMode,
    /// Turns the upstream's answer into the form that the client gets.
    pub(crate) render: Option<RenderReply<'a>>,
}

impl Dispatcher {
    /// Runs a request through the pipeline to its upstream, so that the same rules,
    /// limits, scrubbing and records hold as for a tool call.
    pub(crate) fn forward(
        &self,
        snapshot: &Arc<Snapshot>,
        forwarded: ForwardedRequest<'_>,
        origin: Origin,
        context: &Context,
        to_reply: impl FnOnce(Result<Outcome, CallError>) -> Reply,
    ) -> impl Future<Output = Reply> {
        let ForwardedRequest { target, arguments, other_params, size_limit, mode, render } =
            forwarded;
        let request = Request {
            arguments,
            rest: other_params,
            wanted: size_limit,
            mode,
            ..Request::new(target, Json::empty_object())
        };
        self.dispatch_rendered(snapshot, request, origin, context, render, to_reply)
    }
}
