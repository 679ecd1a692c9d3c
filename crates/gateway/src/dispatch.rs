//! Carries one call to its upstream and the answer back.
//!
//! Every surface comes through here, so that what holds for one holds for all:
//! the same checks in the same order, the same gate, one record per call.

mod keeping;
mod request;

use std::sync::Arc;

use arc_swap::ArcSwap;
use catalog::Catalog;
use tool::{Context, Json, Reply};

use crate::artifact::{self, Owner};
use crate::envelope;
use crate::error::code_of;
use crate::gate::{self, Gated};
use crate::own::{self, Room};
use crate::primitive;
use crate::record::{Desk, Ending, Open, Record};
use crate::redact::Scrubber;
use crate::roster::Snapshot;
use crate::stage::live::Live;
use crate::stage::{Admission, Stages, Trust, ValidCall, attempt, validate};
use crate::surface::Surface;

pub(crate) use request::Telling;
pub use request::{CallError, Callee, Mode, Outcome, Refusal, Refused, Request, Target, What};

/// The pipeline.
pub(crate) struct Dispatcher {
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) live: Arc<Live>,
    pub(crate) gate: ArcSwap<gate::Config>,
    pub(crate) artifacts: Arc<dyn artifact::Store>,
    pub(crate) raw: artifact::Raw,
    pub(crate) desk: Arc<Desk>,
}

impl Dispatcher {
    /// Who may see and do what, by the rules of the moment.
    pub(crate) fn trust(&self) -> &dyn Trust {
        &*self.live
    }

    /// Carries a call, has the surface put the outcome into its words, and
    /// writes the record of it all, once, however it ended.
    pub(crate) fn dispatch(
        &self,
        snapshot: &Arc<Snapshot>,
        request: Request,
        surface: Surface,
        context: &Context,
        say: impl FnOnce(Result<Outcome, CallError>) -> Reply,
    ) -> impl Future<Output = Reply> {
        self.dispatch_told(snapshot, request, surface, context, None, say)
    }

    /// The same for an answer that is read in another form than it comes in.
    pub(crate) async fn dispatch_told(
        &self,
        snapshot: &Arc<Snapshot>,
        request: Request,
        surface: Surface,
        context: &Context,
        telling: Option<Telling<'_>>,
        say: impl FnOnce(Result<Outcome, CallError>) -> Reply,
    ) -> Reply {
        let mut record = self.desk.open(surface, context);
        record.note(|record| {
            record.callee = Arc::clone(&request.target.callee);
            record.meta_tool = request.target.what.meta_tool();
            record.arguments.clone_from(&request.arguments);
        });
        // Boxed, so that neither part is longer than what an allocator has at
        // hand: a kilobyte.
        let carried = self.carry(snapshot, request, surface, context, telling, &mut record);
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
    pub(crate) fn refused(&self, surface: Surface, context: &Context, why: Refused, reply: &Reply) {
        let mut record = self.desk.open(surface, context);
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
        surface: Surface,
        context: &Context,
        telling: Option<Telling<'_>>,
        record: &mut Open<'_>,
    ) -> impl Future<Output = Result<Outcome, CallError>> {
        async move {
            let (wanted, mode) = (request.wanted, request.mode);
            let stages = self.live.now();
            let call = validate::check(&snapshot.catalog, request)
                .map_err(|problems| CallError::BadArguments { problems })?;
            if mode == Mode::Plan {
                record.note(|record| record.ending = Ending::Planned);
                return Ok(Outcome::Plan(Box::new(call)));
            }
            let admission = stages.trust.admit(&snapshot.catalog, &call, context)?;
            let look = match own::looks_at(&call) {
                Some(handle) => Box::pin(self.look(&handle, context)).await?,
                None => Admission::Free,
            };
            // What is kept was agreed to and paid for by the call that made it.
            if let Some(kept) = self.kept(&call, wanted, context).await {
                record.note(|record| record.ending = Ending::Replayed);
                return Ok(kept);
            }
            stages.quota.spend(&call, context)?;
            if let Admission::Ask(question) = admission.and(look) {
                let written = written(surface, &snapshot.catalog, &call);
                Box::pin(agreed(&stages, &question, &call, written, context)).await?;
            }
            let limit = match mode {
                Mode::Pass => usize::MAX,
                Mode::Run | Mode::Strict | Mode::Plan => self.gate.load().limit(wanted),
            };
            // A look keeps within the limit by itself: what is kept is not kept again.
            let room = own::is_look(&call).then(|| Room::of(limit, self.gate.load().ceiling));
            let limit = if room.is_some() { usize::MAX } else { limit };
            if let Some(reply) = stages.cache.get(&call, &snapshot.catalog, context) {
                let reply =
                    self.told(telling, &reply).unwrap_or_else(|| shaped(&call, mode, reply));
                let gated = gate::decide(reply, limit);
                let outcome = self.keep(&call, gated, None, context).await;
                record.note(|record| record.ending = Ending::Cached);
                return Ok(outcome);
            }
            let asking = || snapshot.asked(&call, room.as_ref(), context);
            let (outcome, attempts) = attempt::run(&*stages.retry, &call, asking).await;
            record.note(|record| record.attempts = attempts);
            let failed = |cause| {
                let cause = self.scrubber.clean_failure(cause);
                CallError::Failed { upstream: call.callee.upstream.clone(), cause }
            };
            let raw = outcome.map_err(failed)?;
            let (told, spare) = (self.told(telling, &raw), self.spare(&raw));
            let reply = self.scrubber.clean(raw);
            stages.cache.put(&call, &snapshot.catalog, context, &reply);
            let reply = told.unwrap_or_else(|| shaped(&call, mode, reply));
            let gated = gate::decide(reply, limit);
            record.note(|record| note_answer(record, &gated));
            Ok(self.keep(&call, gated, spare, context).await)
        }
    }

    /// An answer in the form in which it is read, scrubbed after that: what is
    /// checked on the way is what the upstream said.
    fn told(&self, telling: Option<Telling<'_>>, raw: &Reply) -> Option<Reply> {
        telling.map(|telling| self.scrubber.clean(telling(raw)))
    }

    /// An answer as it came, where such are kept.
    fn spare(&self, raw: &Reply) -> Option<Reply> {
        match self.raw {
            artifact::Raw::Kept => Some(raw.clone()),
            artifact::Raw::Dropped => None,
        }
    }

    /// Whether what a call of the gate's own looks at may be looked at.
    async fn look(&self, handle: &str, context: &Context) -> Result<Admission, Refusal> {
        let (handle, _) = envelope::split_handle(handle);
        match self.artifacts.get(&Owner::of(context), handle).await {
            Some(artifact) => self.trust().admit_look(&artifact),
            // Whoever answers says that nothing is there.
            None => Ok(Admission::Free),
        }
    }
}

/// Has somebody agree to a call.
///
/// Only to one that the quota lets through, or an agreement that is good
/// once would be spent on a call that does not run. What nobody agrees to
/// costs nothing.
async fn agreed(
    stages: &Stages,
    question: &str,
    call: &ValidCall,
    written: String,
    context: &Context,
) -> Result<(), Refusal> {
    let agreed = stages.approval.agree(question, &call.deed(written), context).await;
    if agreed.is_err() {
        stages.quota.give_back(call, context);
    }
    agreed
}

/// Arguments that are longer are not repeated to who made a call.
const REPEATED: usize = 400;

/// A call as its surface has it written, open at the end; empty where calls are
/// not written in one way.
fn written(surface: Surface, catalog: &Catalog, call: &ValidCall) -> String {
    let arguments = call.arguments().map_or("{}", Json::as_str);
    let arguments = if arguments.len() <= REPEATED { arguments } else { "{…}" };
    match (surface, &call.what) {
        (Surface::Cash | Surface::Auto, What::Tool(slot)) => format!(
            "call(namespace=\"{}\", function=\"{}\", kwargs={arguments}",
            catalog.path(*slot),
            catalog.function(*slot).name
        ),
        (Surface::Gateway | Surface::Proxy, What::Tool(_)) => {
            format!("tool_execute(tool_id=\"{}\", args={arguments}", call.callee.id)
        }
        (Surface::Gateway, What::Prompt { .. }) => {
            format!("prompt_get(prompt_id=\"{}\", args={arguments}", call.callee.id)
        }
        (Surface::Gateway, What::Resource { uri, .. }) => {
            let uri = Json::encode(uri);
            if uri.as_str().len() <= REPEATED {
                format!("resource_read(uri={uri}")
            } else {
                String::new()
            }
        }
        (
            Surface::Cash | Surface::Auto | Surface::Gateway | Surface::Proxy | Surface::Direct,
            What::Tool(_)
            | What::Resource { .. }
            | What::Prompt { .. }
            | What::Skill { .. }
            | What::Task { .. }
            | What::Help { .. },
        ) => String::new(),
    }
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
        (What::Tool(_) | What::Skill { .. } | What::Task { .. } | What::Help { .. }, reply)
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
