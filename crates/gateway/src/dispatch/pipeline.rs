//! The pipeline.

use std::sync::Arc;

use arc_swap::ArcSwap;
use catalog::Slot;
use offload::{Stop, TooSlow};
use tool::{Context, Failure, Json, Reply};

use crate::builtin;
use crate::dispatch::origin::Origin;
use crate::dispatch::outcome::{CallError, Outcome, RenderReply};
use crate::primitive;
use crate::record::{Ending, OpenRecord, Record, Recorder};
use artifacts::gate::{self, Gated};
use policy::admission::Admission;
use policy::attempt;
use policy::call::{Mode, Request, What};
use policy::code::code_of;
use policy::live::LiveStages;
use policy::refusal::{Refusal, Refused};
use policy::stages::Stages;
use policy::validate::{self, ValidCall};
use redact::Scrubber;
use roster::Snapshot;

/// The pipeline, and what it needs.
pub(crate) struct Dispatcher {
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) live: Arc<LiveStages>,
    pub(crate) gate: ArcSwap<gate::Config>,
    pub(crate) artifacts: Arc<dyn artifacts::Store>,
    pub(crate) raw: artifacts::Raw,
    pub(crate) recorder: Arc<Recorder>,
}

impl Dispatcher {
    /// Carries a call, has the surface put the outcome into its words, and
    /// writes the record of it all, once, however it ended.
    pub(crate) fn dispatch(
        &self,
        snapshot: &Arc<Snapshot>,
        request: Request,
        origin: Origin,
        context: &Context,
        say: impl FnOnce(Result<Outcome, CallError>) -> Reply,
    ) -> impl Future<Output = Reply> {
        self.dispatch_rendered(snapshot, request, origin, context, None, say)
    }

    /// The same for an answer that is read in another form than it comes in.
    pub(crate) async fn dispatch_rendered(
        &self,
        snapshot: &Arc<Snapshot>,
        request: Request,
        origin: Origin,
        context: &Context,
        render: Option<RenderReply<'_>>,
        say: impl FnOnce(Result<Outcome, CallError>) -> Reply,
    ) -> Reply {
        let mut record = self.recorder.open(origin.surface, context);
        record.note(|record| {
            record.callee = Arc::clone(&request.target.callee);
            record.meta_tool = request.target.what.meta_tool();
            record.arguments.clone_from(&request.arguments);
        });
        // Boxed, so that neither part is longer than what an allocator has at
        // hand: a kilobyte.
        let carried = self.carry(snapshot, request, origin, context, render, &mut record);
        let outcome = Box::pin(carried).await;
        match &outcome {
            Err(error) => record.note(|record| record.ending = ending(error)),
            Ok(Outcome::Kept { artifact, .. }) => {
                record.note(|record| record.artifact = Some(Arc::clone(artifact)));
            }
            Ok(Outcome::Reply(_) | Outcome::Unkept { .. } | Outcome::Plan(_)) => {}
        }
        let reply = say(outcome);
        record.close(match &reply {
            Reply::Result(json) => json,
            Reply::Error(error) => &error.raw,
        });
        reply
    }

    /// The record of a call that a surface could not make anything of.
    pub(crate) fn refused(&self, origin: Origin, context: &Context, why: Refused, reply: &Reply) {
        let mut record = self.recorder.open(origin.surface, context);
        record.note(|record| record.ending = Ending::Refused(why));
        record.close(match reply {
            Reply::Result(json) => json,
            Reply::Error(error) => &error.raw,
        });
    }

    /// The statements below are the pipeline, in order. Where order is a matter
    /// of safety the types force it: only `validate` makes the call that later
    /// stages take, and only `gate` makes what may be returned.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` keeps its arguments twice")]
    fn carry(
        &self,
        snapshot: &Arc<Snapshot>,
        request: Request,
        origin: Origin,
        context: &Context,
        render: Option<RenderReply<'_>>,
        record: &mut OpenRecord<'_>,
    ) -> impl Future<Output = Result<Outcome, CallError>> {
        async move {
            let (wanted, mode) = (request.wanted, request.mode);
            let in_force = self.live.now();
            let stages = &in_force.stages;
            if let What::Tool(slot) = request.target.what
                && offload::is_long(snapshot.catalog.tool(slot).input_schema.as_bytes().len())
            {
                Box::pin(compiled(snapshot, slot)).await;
            }
            let call = validate::check(&snapshot.catalog, request)
                .map_err(|problems| CallError::BadArguments { problems })?;
            if mode == Mode::Plan {
                record.note(|record| record.ending = Ending::Planned);
                return Ok(Outcome::Plan(Box::new(call)));
            }
            let admission = in_force.admit(&snapshot.catalog, &call, context)?;
            if builtin::is_view(&call) {
                let call_text = || (origin.call_text)(&snapshot.catalog, &call);
                let viewed = self.view(&in_force, admission, &call, wanted, &call_text, context);
                let gated = Box::pin(viewed).await?;
                record.note(|record| {
                    record.attempts = 1;
                    note_answer(record, &gated);
                });
                return Ok(Outcome::Reply(gated.apart().0));
            }
            // What is kept was agreed to and paid for by the call that made it.
            if let Some(kept) = self.kept(&call, wanted, context).await {
                record.note(|record| record.ending = Ending::Replayed);
                return Ok(kept);
            }
            stages.quota.spend(&call, context)?;
            if let Admission::Ask(question) = admission {
                let call_text = (origin.call_text)(&snapshot.catalog, &call);
                Box::pin(agreed(stages, &question, &call, call_text, context)).await?;
            }
            let limit = match mode {
                Mode::Pass => usize::MAX,
                Mode::Run | Mode::Strict | Mode::Plan => self.gate.load().limit(wanted),
            };
            if let Some(reply) = stages.cache.get(&call, &snapshot.catalog, context) {
                let reply =
                    self.rendered(render, &reply).unwrap_or_else(|| shaped(&call, mode, reply));
                let gated = gate::decide(reply, limit);
                let outcome = self.keep(&call, gated, None, context).await;
                record.note(|record| record.ending = Ending::Cached);
                return Ok(outcome);
            }
            let asking = || snapshot.send(&call, context);
            let (outcome, attempts) = attempt::run(&*stages.retry, &call, context, asking).await;
            record.note(|record| record.attempts = attempts);
            let failed = |cause| {
                let cause = self.scrubber.clean_failure(cause);
                CallError::Failed { upstream: call.callee.upstream.clone(), cause }
            };
            let raw = outcome.map_err(failed)?;
            let (rendered, spare) = (self.rendered(render, &raw), self.spare(&raw));
            let reply = match is_long(&raw) {
                true => Box::pin(self.cleaned(raw)).await.map_err(failed)?,
                false => self.scrubber.clean(raw),
            };
            stages.cache.put(&call, &snapshot.catalog, context, &reply);
            let reply = rendered.unwrap_or_else(|| shaped(&call, mode, reply));
            let gated = match is_long(&reply) {
                true => Box::pin(measured(reply, limit)).await.map_err(failed)?,
                false => gate::decide(reply, limit),
            };
            record.note(|record| note_answer(record, &gated));
            Ok(self.keep(&call, gated, spare, context).await)
        }
    }

    /// A long answer with its secrets masked, on a thread of its own.
    async fn cleaned(&self, raw: Reply) -> Result<Reply, Failure> {
        let scrubber = Arc::clone(&self.scrubber);
        offload::run(move |_| scrubber.clean(raw)).await.map_err(too_slow)
    }

    /// An answer in the form in which it is read, scrubbed after that: what is
    /// checked on the way is what the upstream said.
    fn rendered(&self, render: Option<RenderReply<'_>>, raw: &Reply) -> Option<Reply> {
        render.map(|render| self.scrubber.clean(render(raw)))
    }

    /// An answer as it came, where such are kept.
    fn spare(&self, raw: &Reply) -> Option<Reply> {
        match self.raw {
            artifacts::Raw::Kept => Some(raw.clone()),
            artifacts::Raw::Dropped => None,
        }
    }
}

/// Whether an answer is so long that looking at it would keep others waiting.
fn is_long(reply: &Reply) -> bool {
    offload::is_long(match reply {
        Reply::Result(json) => json.as_bytes().len(),
        Reply::Error(error) => error.raw.as_bytes().len(),
    })
}

/// A long answer, measured on a thread of its own.
async fn measured(reply: Reply, limit: usize) -> Result<Gated, Failure> {
    offload::run(move |_| gate::decide(reply, limit)).await.map_err(too_slow)
}

/// Compiles a long schema on a thread of its own, if nobody did before. Where
/// that takes too long, it is compiled when the arguments are checked.
async fn compiled(snapshot: &Arc<Snapshot>, slot: Slot) {
    let snapshot = Arc::clone(snapshot);
    let compile = move |_: &Stop| snapshot.catalog.contract(slot).damage().is_some();
    let _ = offload::run(compile).await;
}

fn too_slow(slow: TooSlow) -> Failure {
    Failure::Unusable { reason: format!("the answer cannot be looked through: {slow}") }
}

/// Has somebody agree to a call.
///
/// Only to one that the quota lets through, or an agreement that is good
/// once would be spent on a call that does not run. What nobody agrees to
/// costs nothing.
pub(super) async fn agreed(
    stages: &Stages,
    question: &str,
    call: &ValidCall,
    call_text: String,
    context: &Context,
) -> Result<(), Refusal> {
    let agreed = stages.approval.agree(question, &call.approval_request(call_text), context).await;
    if agreed.is_err() {
        stages.quota.refund(call, context);
    }
    agreed
}

/// What was read or rendered, as a tool result, which is what a gate and a
/// model know.
fn shaped(call: &ValidCall, mode: Mode, reply: Reply) -> Reply {
    if mode == Mode::Pass {
        return reply;
    }
    match (&call.what, reply) {
        (What::Resource { .. }, Reply::Result(json)) => Reply::Result(primitive::read(&json)),
        (What::Prompt { .. }, Reply::Result(json)) => Reply::Result(primitive::prompt(&json)),
        (
            What::Tool(_)
            | What::Skill { .. }
            | What::Task { .. }
            | What::Help { .. }
            | What::Completion { .. }
            | What::Subscription { .. },
            reply,
        )
        | (_, reply @ Reply::Error(_)) => reply,
    }
}

fn note_answer(record: &mut Record, gated: &Gated) {
    record.ending = match (gated.over(), gated.raw()) {
        (Some(_), _) => Ending::Gated,
        (None, Reply::Result(json)) if reports_error(json) => Ending::ToolError,
        (None, Reply::Result(_)) => Ending::Answered,
        (None, Reply::Error(error)) => Ending::Rejected(code_of(error)),
    };
    if let Reply::Result(json) = gated.raw() {
        record.raw = Some(json.clone());
    }
}

/// Whether a result says that it is an error, read only if it can say so.
fn reports_error(json: &Json) -> bool {
    json.mentions("\"isError\"") && json.member_as("isError").unwrap_or(false)
}

fn ending(error: &CallError) -> Ending {
    match error {
        CallError::BadArguments { .. } => Ending::Refused(Refused::BadArguments),
        CallError::Refused(refusal) => Ending::Refused(refusal.code),
        CallError::Failed { cause, .. } => Ending::Failed(cause.clone()),
    }
}
