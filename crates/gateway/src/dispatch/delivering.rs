//! The last stages of a call: picks the wanted part of the answer, measures it
//! against the size limit and stores what is too long.

use tool::Context;

use crate::dispatch::delivery::{Delivery, ReplyOptions, ScrubbedAnswer, with_conversion};
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::measuring::measure;
use crate::dispatch::origin::Origin;
use crate::dispatch::outcome::{CallError, Outcome};
use crate::dispatch::picking::{PickChoice, PickedReply, pick};
use crate::dispatch::recording::note_answer;
use crate::record::OpenRecord;
use policy::call::CallMode;
use policy::validate::ValidCall;

impl Dispatcher {
    /// Combines what the caller asks for with what the operator configured.
    pub(super) fn delivery<'a>(
        &self,
        call: &ValidCall,
        options: ReplyOptions,
        origin: Origin,
        context: &'a Context,
    ) -> Delivery<'a> {
        let ReplyOptions { mode, size_limit, share, pick } = options;
        let limit = match mode {
            CallMode::PassThrough | CallMode::FromScript => usize::MAX,
            CallMode::Run | CallMode::Strict | CallMode::DryRun => {
                self.gate.load().limit(size_limit)
            }
        };
        Delivery {
            mode,
            has_size_limit: size_limit.is_some(),
            limit: limit.min(share.unwrap_or(usize::MAX)),
            pick: PickChoice::new(pick, &self.default_picks.load(), call, mode),
            origin,
            context,
        }
    }

    /// Returns what the client gets of an answer. Notes the answer in `record`, if
    /// one is given.
    pub(super) async fn deliver(
        &self,
        call: &ValidCall,
        answer: ScrubbedAnswer,
        delivery: Delivery<'_>,
        record: Option<&mut OpenRecord<'_>>,
    ) -> Result<Outcome, CallError> {
        let Delivery { mode, limit, pick: choice, origin, context, .. } = delivery;
        let ScrubbedAnswer { reply, rendered, unscrubbed } = answer;
        let (reply, convert) = with_conversion(call, mode, rendered, reply);
        let PickedReply { reply, picked_from } = pick(choice, reply, limit).await;
        let measured = measure(reply, limit, convert).await;
        let measured = measured.map_err(|failure| self.scrub_failure(call, failure))?;
        if let Some(record) = record {
            record.update(|record| note_answer(record, &measured, picked_from.whole()));
        }
        Ok(self.keep(call, measured.gated, picked_from, unscrubbed, origin, context).await)
    }
}
