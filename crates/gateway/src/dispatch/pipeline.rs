//! The pipeline.

use std::sync::Arc;

use arc_swap::ArcSwap;
use catalog::Slot;
use offload::Stop;
use tool::{Context, Failure, Json, Reply};

use crate::builtin;
use crate::dispatch::measured::{Measured, is_long, measured, too_slow};
use crate::dispatch::origin::Origin;
use crate::dispatch::outcome::{CallError, Outcome, RenderReply};
use crate::primitive;
use crate::record::{Ending, OpenRecord, Record, Recorder};
use artifacts::gate;
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
                let viewed = Measured::short(Box::pin(viewed).await?);
                record.note(|record| {
                    record.attempts = 1;
                    note_answer(record, &viewed);
                });
                return Ok(Outcome::Reply(viewed.gated.apart().0));
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
                let measured = match self.rendered(render, &reply) {
                    Some(rendered) => measured(rendered, limit, |reply| reply).await,
                    None => measured(reply, limit, shaping(&call, mode)).await,
                };
                let gated = measured.map_err(failed(self, &call))?.gated;
                let outcome = self.keep(&call, gated, None, context).await;
                record.note(|record| record.ending = Ending::Cached);
                return Ok(outcome);
            }
            let asking = || snapshot.send(&call, context);
            let (outcome, attempts) = attempt::run(&*stages.retry, &call, context, asking).await;
            record.note(|record| record.attempts = attempts);
            let raw = outcome.map_err(failed(self, &call))?;
            let (rendered, spare) = (self.rendered(render, &raw), self.spare(&raw));
            let reply = match is_long(&raw) {
                true => Box::pin(self.cleaned(raw)).await.map_err(failed(self, &call))?,
                false => self.scrubber.clean(raw),
            };
            stages.cache.put(&call, &snapshot.catalog, context, &reply);
            let measured = match rendered {
                Some(rendered) => measured(rendered, limit, |reply| reply).await,
                None => measured(reply, limit, shaping(&call, mode)).await,
            };
            let measured = measured.map_err(failed(self, &call))?;
            record.note(|record| note_answer(record, &measured));
            Ok(self.keep(&call, measured.gated, spare, context).await)
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

/// Compiles a long schema on a thread of its own, if nobody did before. Where
/// that takes too long, it is compiled when the arguments are checked.
async fn compiled(snapshot: &Arc<Snapshot>, slot: Slot) {
    let snapshot = Arc::clone(snapshot);
    let compile = move |_: &Stop| snapshot.catalog.contract(slot).damage().is_some();
    let _ = offload::run(compile).await;
}

/// What is told of a call from which no answer came.
fn failed(dispatcher: &Dispatcher, call: &ValidCall) -> impl FnOnce(Failure) -> CallError {
    |cause| {
        let cause = dispatcher.scrubber.clean_failure(cause);
        CallError::Failed { upstream: call.callee.upstream.clone(), cause }
    }
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
fn shaping(call: &ValidCall, mode: Mode) -> fn(Reply) -> Reply {
    match &call.what {
        _ if mode == Mode::Pass => |reply| reply,
        What::Resource { .. } => |reply| as_result(reply, primitive::read),
        What::Prompt { .. } => |reply| as_result(reply, primitive::prompt),
        What::Tool(_)
        | What::Skill { .. }
        | What::Task { .. }
        | What::Help { .. }
        | What::Completion { .. }
        | What::Subscription { .. } => |reply| reply,
    }
}

fn as_result(reply: Reply, shape: fn(&Json) -> Json) -> Reply {
    match reply {
        Reply::Result(json) => Reply::Result(shape(&json)),
        Reply::Error(_) => reply,
    }
}

fn note_answer(record: &mut Record, measured: &Measured) {
    let gated = &measured.gated;
    record.ending = match (gated.over(), gated.raw()) {
        (Some(_), _) => Ending::Gated,
        (None, Reply::Result(_)) if measured.reports_error() => Ending::ToolError,
        (None, Reply::Result(_)) => Ending::Answered,
        (None, Reply::Error(error)) => Ending::Rejected(code_of(error)),
    };
    if let Reply::Result(json) = gated.raw() {
        record.raw = Some(json.clone());
    }
}

fn ending(error: &CallError) -> Ending {
    match error {
        CallError::BadArguments { .. } => Ending::Refused(Refused::BadArguments),
        CallError::Refused(refusal) => Ending::Refused(refusal.code),
        CallError::Failed { cause, .. } => Ending::Failed(cause.clone()),
    }
}
