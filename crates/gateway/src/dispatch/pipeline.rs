//! The pipeline: one function that lists the stages of a call in order.

use std::sync::Arc;

use tool::{Context, Reply};

use crate::builtin;
use crate::dispatch::approving::{approve, digest};
use crate::dispatch::compiling::compile_long_schema;
use crate::dispatch::delivery::ReplyOptions;
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::origin::Origin;
use crate::dispatch::outcome::{CallError, Outcome, RenderReply};
use crate::dispatch::planning::plan;
use crate::dispatch::recording;
use crate::record::{Ending, OpenRecord, Stage};
use policy::admission::Admission;
use policy::call::{CallMode, Request};
use policy::refusal::RefusalCode;
use policy::validate;
use roster::Snapshot;

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

    /// Does what [`Dispatcher::dispatch`] does, for an upstream answer that `render`
    /// turns into another form before it is measured.
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
        record.update(|record| recording::note_request(record, &request));
        // Boxed, so that neither future is larger than a kilobyte, which the
        // allocator hands out quickly.
        let running = self.run(snapshot, request, origin, context, render, &mut record);
        let outcome = Box::pin(running).await;
        record.update(|record| recording::note_outcome(record, &outcome));
        let reply = to_reply(outcome);
        record.close(recording::reply_json(&reply));
        reply
    }

    /// Writes the record of a call that a surface refused before dispatch.
    pub(crate) fn record_refusal(
        &self,
        origin: Origin,
        context: &Context,
        why: RefusalCode,
        reply: &Reply,
    ) {
        let mut record = self.recorder.open(origin.surface, context);
        record.update(|record| record.ending = Ending::Refused(why));
        record.close(recording::reply_json(reply));
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
            let (in_force, catalog) = (self.live.now(), &snapshot.catalog);
            let (stages, options) = (&in_force.stages, ReplyOptions::from_request(&request));
            compile_long_schema(snapshot, &request).await;
            record.enter(Stage::Validate);
            let call = validate::check(catalog, request).map_err(CallError::bad_arguments)?;
            if options.mode == CallMode::DryRun {
                return Ok(plan(call, stages, context, record).await);
            }
            record.enter(Stage::Admission);
            let admission = in_force.admit(catalog, &call, context)?;
            let admission = admission.and(self.admit_saving(&call, stages)?);
            let call_text = || (origin.call_text)(catalog, &call);
            if builtin::is_view(&call) {
                record.enter(Stage::View);
                let size = options.size_limit;
                let view = self.view(&in_force, admission, &call, size, &call_text, context);
                return Ok(recording::note_view(record, Box::pin(view).await?));
            }
            record.enter(Stage::Kept);
            let delivery = self.delivery(&call, options, origin, context);
            if let Some(kept) = self.replay(&call, &delivery).await? {
                record.update(|record| record.ending = Ending::Replayed);
                return Ok(kept);
            }
            record.enter(Stage::Quota);
            stages.quota.spend(&call, context).await?;
            if let Admission::Ask(question) = admission {
                record.enter(Stage::Approval);
                let request = call.approval_request(digest(catalog, &call), call_text());
                Box::pin(approve(stages, &question, &call, &request, context)).await?;
            }
            record.enter(Stage::Cache);
            if let Some(reply) = stages.cached(&call, catalog, context).await {
                let answer = self.cached_answer(reply, render);
                let outcome = self.deliver(&call, answer, delivery, None).await?;
                record.update(|record| record.ending = Ending::Cached);
                return Ok(outcome);
            }
            record.enter(Stage::Upstream);
            let raw = self.ask_upstream(snapshot, &call, stages, origin, context, record).await?;
            record.enter(Stage::Scrub);
            let answer = self.scrub_answer(&call, raw, render).await?;
            stages.cache.put(&call, catalog, context, &answer.reply);
            record.enter(Stage::Gate);
            self.deliver(&call, answer, delivery, Some(record)).await
        }
    }
}
