//! The pipeline: one function that lists the stages of a call in order.

use std::sync::Arc;

use arc_swap::ArcSwap;
use catalog::{Catalog, Slot};
use offload::Stop;
use tool::{Context, Failure, Json, Reply};

use crate::builtin;
use crate::dispatch::measured::{Measured, is_long, measured, too_slow};
use crate::dispatch::origin::Origin;
use crate::dispatch::outcome::{CallError, Outcome, Plan, RenderReply};
use crate::dispatch::picking::{Part, Shapes, Wish, pick};
use crate::dispatch::script_runner::Scripting;
use crate::primitive;
use crate::recipes::{RecipeStore, Recipes};
use crate::record::{Ending, OpenRecord, Record, Recorder, Stage};
use artifacts::gate;
use policy::admission::Admission;
use policy::approval::ApprovalRequest;
use policy::attempt;
use policy::call::{Mode, Request, What};
use policy::code::code_of;
use policy::live::LiveStages;
use policy::question::Question;
use policy::refusal::{Refusal, Refused};
use policy::stages::Stages;
use policy::trust::Digest;
use policy::validate::{self, ValidCall};
use redact::Scrubber;
use roster::Snapshot;

/// Runs calls through the pipeline.
pub(crate) struct Dispatcher {
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) live: Arc<LiveStages>,
    pub(crate) gate: ArcSwap<gate::Config>,
    /// Which part of an answer goes out where the caller does not say.
    pub(crate) shapes: ArcSwap<Shapes>,
    pub(crate) artifacts: Arc<dyn artifacts::Store>,
    pub(crate) raw: artifacts::Raw,
    /// What runs scripts, where they are on.
    pub(crate) scripting: Option<Arc<Scripting>>,
    /// Scripts that are functions.
    pub(crate) recipes: Arc<ArcSwap<Recipes>>,
    /// Where models save recipes, where they can.
    pub(crate) recipe_store: Option<Arc<dyn RecipeStore>>,
    pub(crate) recorder: Arc<Recorder>,
}

impl Dispatcher {
    /// Runs a call, has the surface turn the outcome into a reply, and writes one
    /// record, however the call ended.
    pub(crate) fn dispatch(
        &self,
        snapshot: &Arc<Snapshot>,
        request: Request,
        origin: Origin,
        context: &Context,
        to_reply: impl FnOnce(Result<Outcome, CallError>) -> Reply,
    ) -> impl Future<Output = Reply> {
        self.dispatch_rendered(snapshot, request, origin, context, None, to_reply)
    }

    /// The same for an answer that the client gets in another form.
    pub(crate) async fn dispatch_rendered(
        &self,
        snapshot: &Arc<Snapshot>,
        request: Request,
        origin: Origin,
        context: &Context,
        render: Option<RenderReply<'_>>,
        to_reply: impl FnOnce(Result<Outcome, CallError>) -> Reply,
    ) -> Reply {
        let mut record = self.recorder.open(origin.surface, context);
        record.update(|record| {
            record.callee = Arc::clone(&request.target.callee);
            record.meta_tool = request.target.what.meta_tool();
            record.arguments.clone_from(&request.arguments);
            record.script.clone_from(&request.script);
        });
        // Boxed, so that neither future is larger than a kilobyte, which the
        // allocator hands out quickly.
        let running = self.run(snapshot, request, origin, context, render, &mut record);
        let outcome = Box::pin(running).await;
        match &outcome {
            Err(error) => record.update(|record| record.ending = ending(error)),
            Ok(Outcome::Kept { artifact, .. } | Outcome::Unpicked { artifact, .. }) => {
                record.update(|record| record.artifact = Some(Arc::clone(artifact)));
            }
            Ok(Outcome::Reply(_) | Outcome::Unkept { .. } | Outcome::Plan(_)) => {}
        }
        let reply = to_reply(outcome);
        record.close(match &reply {
            Reply::Result(json) => json,
            Reply::Error(error) => &error.raw,
        });
        reply
    }

    /// Writes the record of a call that a surface refused before dispatch.
    pub(crate) fn refused(&self, origin: Origin, context: &Context, why: Refused, reply: &Reply) {
        let mut record = self.recorder.open(origin.surface, context);
        record.update(|record| record.ending = Ending::Refused(why));
        record.close(match reply {
            Reply::Result(json) => json,
            Reply::Error(error) => &error.raw,
        });
    }

    /// The statements below are the pipeline, in order. Where order is a matter
    /// of safety the types force it: only `validate` makes the call that later
    /// stages take, and only `gate` makes what may be returned.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` keeps its arguments twice")]
    fn run(
        &self,
        snapshot: &Arc<Snapshot>,
        request: Request,
        origin: Origin,
        context: &Context,
        render: Option<RenderReply<'_>>,
        record: &mut OpenRecord<'_>,
    ) -> impl Future<Output = Result<Outcome, CallError>> {
        async move {
            let (size_limit, mode) = (request.wanted, request.mode);
            let (share, asked) = (request.share, request.pick.clone());
            let in_force = self.live.now();
            let stages = &in_force.stages;
            if let Some(slot) = long_schema(&snapshot.catalog, &request) {
                Box::pin(compile(snapshot, slot)).await;
            }
            record.enter(Stage::Validate);
            let call = validate::check(&snapshot.catalog, request)
                .map_err(|problems| CallError::BadArguments { problems })?;
            if mode == Mode::Plan {
                let is_within_limits = stages.quota.check(&call, context).await.is_ok();
                return Ok(planned(Plan { call, is_within_limits }, record));
            }
            record.enter(Stage::Admission);
            let admission = in_force.admit(&snapshot.catalog, &call, context)?;
            let admission = admission.and(self.admit_saving(&call, stages)?);
            let call_text = || (origin.call_text)(&snapshot.catalog, &call);
            if builtin::is_view(&call) {
                record.enter(Stage::View);
                let view = self.view(&in_force, admission, &call, size_limit, &call_text, context);
                return Ok(viewed(Measured::short(Box::pin(view).await?), record));
            }
            record.enter(Stage::Kept);
            let wish = Wish::new(asked, &self.shapes.load(), &call, mode);
            // What is kept was agreed to and paid for by the call that made it.
            let limit = self.limit(mode, size_limit).min(share.unwrap_or(usize::MAX));
            if (size_limit.is_some() || wish.is_callers())
                && let Some(kept) = self.replay(&call, limit, &wish, origin, context).await?
            {
                record.update(|record| record.ending = Ending::Replayed);
                return Ok(kept);
            }
            record.enter(Stage::Quota);
            stages.quota.spend(&call, context).await?;
            if let Admission::Ask(question) = admission {
                record.enter(Stage::Approval);
                let digest = digest(&snapshot.catalog, &call);
                let request = call.approval_request(digest, call_text());
                Box::pin(approve(stages, &question, &call, &request, context)).await?;
            }
            record.enter(Stage::Cache);
            if let Some(reply) = stages.cache.get(&call, &snapshot.catalog, context) {
                let (reply, shape) = shaped(&call, mode, self.render(render, &reply), reply);
                let Part { reply, source } = pick(wish, reply, limit).await;
                let gated = measured(reply, limit, shape).await.map_err(failed(self, &call))?.gated;
                let outcome = self.keep(&call, gated, source, None, origin, context).await;
                record.update(|record| record.ending = Ending::Cached);
                return Ok(outcome);
            }
            record.enter(Stage::Upstream);
            let raw = if builtin::is_script(&call) {
                Box::pin(self.run_script(snapshot, &call, origin, context)).await
            } else {
                let send = || snapshot.send(&call, context);
                let (answer, attempts) = attempt::run(&*stages.retry, &call, context, send).await;
                record.update(|record| record.attempts = attempts);
                answer.map_err(failed(self, &call))?
            };
            record.enter(Stage::Scrub);
            let (rendered, unscrubbed) = (self.render(render, &raw), self.unscrubbed(&raw));
            let reply = match is_long(&raw) {
                true => Box::pin(self.scrub_long(raw)).await.map_err(failed(self, &call))?,
                false => self.scrubber.scrub_reply(raw),
            };
            stages.cache.put(&call, &snapshot.catalog, context, &reply);
            record.enter(Stage::Gate);
            let (reply, shape) = shaped(&call, mode, rendered, reply);
            let Part { reply, source } = pick(wish, reply, limit).await;
            let measured = measured(reply, limit, shape).await.map_err(failed(self, &call))?;
            record.update(|record| note_answer(record, &measured, source.whole()));
            Ok(self.keep(&call, measured.gated, source, unscrubbed, origin, context).await)
        }
    }

    /// The size that an answer may have; what is only passed on has none.
    fn limit(&self, mode: Mode, wanted: Option<usize>) -> usize {
        match mode {
            Mode::Pass | Mode::Inner => usize::MAX,
            Mode::Run | Mode::Strict | Mode::Plan => self.gate.load().limit(wanted),
        }
    }

    /// A long answer with its secrets masked, on a thread of its own.
    async fn scrub_long(&self, raw: Reply) -> Result<Reply, Failure> {
        let scrubber = Arc::clone(&self.scrubber);
        offload::run(move |_| scrubber.scrub_reply(raw)).await.map_err(too_slow)
    }

    /// An answer in the form in which the client gets it, scrubbed after
    /// rendering, because `render` may check what the upstream really sent.
    fn render(&self, render: Option<RenderReply<'_>>, raw: &Reply) -> Option<Reply> {
        render.map(|render| self.scrubber.scrub_reply(render(raw)))
    }

    /// A copy of the answer with its secrets, where the operator wants it kept.
    fn unscrubbed(&self, raw: &Reply) -> Option<Reply> {
        match self.raw {
            artifacts::Raw::Kept => Some(raw.clone()),
            artifacts::Raw::Dropped => None,
        }
    }
}

/// The tool of a request, if compiling its schema would block other calls.
fn long_schema(catalog: &Catalog, request: &Request) -> Option<Slot> {
    let What::Tool(slot) = request.target.what else { return None };
    offload::is_long(catalog.tool(slot).input_schema.as_bytes().len()).then_some(slot)
}

/// Compiles a long schema on a thread of its own, unless it is compiled already.
/// Where that takes too long, it is compiled when the arguments are checked.
async fn compile(snapshot: &Arc<Snapshot>, slot: Slot) {
    let snapshot = Arc::clone(snapshot);
    let compile = move |_: &Stop| snapshot.catalog.contract(slot).damage().is_some();
    let _ = offload::run(compile).await;
}

/// What is told of a call from which no answer came.
fn failed(dispatcher: &Dispatcher, call: &ValidCall) -> impl FnOnce(Failure) -> CallError {
    |cause| {
        let cause = dispatcher.scrubber.scrub_failure(cause);
        CallError::Failed { upstream: call.callee.upstream.clone(), cause }
    }
}

/// How the tool of a call looks, if it is one.
fn digest(catalog: &Catalog, call: &ValidCall) -> Option<String> {
    call.slot().map(|slot| Digest::of(catalog.tool(slot)).short().to_owned())
}

/// Asks somebody to approve a call.
///
/// Only after the quota, or a single-use approval would be spent on a call that
/// does not run. What is not approved is given back to the quota.
pub(super) async fn approve(
    stages: &Stages,
    question: &Question,
    call: &ValidCall,
    request: &ApprovalRequest<'_>,
    context: &Context,
) -> Result<(), Refusal> {
    let agreed = stages.approval.agree(question, request, context).await;
    if agreed.is_err() {
        stages.quota.refund(call, context).await;
    }
    agreed
}

/// The answer in the form that the client gets, or as it came with what makes a
/// tool result of it: the only form that the gate and a model know.
fn shaped(
    call: &ValidCall,
    mode: Mode,
    rendered: Option<Reply>,
    reply: Reply,
) -> (Reply, fn(Reply) -> Reply) {
    match rendered {
        Some(rendered) => (rendered, |reply| reply),
        None => (reply, shaping(call, mode)),
    }
}

/// What makes a tool result of a resource or a prompt.
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

/// The end of a dry run.
fn planned(plan: Plan, record: &mut OpenRecord<'_>) -> Outcome {
    record.update(|record| record.ending = Ending::Planned);
    Outcome::Plan(Box::new(plan))
}

/// The end of a view of something kept.
fn viewed(measured: Measured, record: &mut OpenRecord<'_>) -> Outcome {
    record.update(|record| {
        record.attempts = 1;
        note_answer(record, &measured, None);
    });
    Outcome::Reply(measured.gated.apart().0)
}

/// Notes how the upstream answered; `whole` is its answer where only a part of it
/// goes out.
fn note_answer(record: &mut Record, measured: &Measured, whole: Option<&Json>) {
    let gated = &measured.gated;
    record.ending = match (gated.over(), gated.raw()) {
        (Some(_), _) => Ending::Gated,
        (None, Reply::Result(_)) if measured.reports_error() => Ending::ToolError,
        (None, Reply::Result(_)) => Ending::Answered,
        (None, Reply::Error(error)) => Ending::Rejected(code_of(error)),
    };
    if let Reply::Result(json) = gated.raw() {
        record.raw = Some(whole.unwrap_or(json).clone());
    }
}

fn ending(error: &CallError) -> Ending {
    match error {
        CallError::BadArguments { .. } => Ending::Refused(Refused::BadArguments),
        CallError::Refused(refusal) => Ending::Refused(refusal.code),
        CallError::Failed { cause, .. } => Ending::Failed(cause.clone()),
    }
}
