//! Views of a kept answer: the short path that asks no upstream.
//!
//! A view is cut to the size limit, so it is never kept in turn.

use tool::{Context, Json};

use crate::builtin::{self, AnswerBudget};
use crate::dispatch::outcome::CallError;
use crate::dispatch::pipeline::{Dispatcher, approve};
use artifacts::Owner;
use artifacts::envelope;
use artifacts::gate::{self, Gated};
use policy::admission::Admission;
use policy::live::InForce;
use policy::refusal::Refusal;
use policy::validate::ValidCall;

impl Dispatcher {
    /// Answers a view, if the rules about the kept answer allow it, too.
    pub(super) async fn view(
        &self,
        in_force: &InForce,
        admission: Admission,
        call: &ValidCall,
        wanted: Option<usize>,
        call_text: &(dyn Fn() -> String + Sync),
        context: &Context,
    ) -> Result<Gated, CallError> {
        let admission = admission.and(self.admit_view(in_force, call, context).await?);
        in_force.stages.quota.spend(call, context).await?;
        if let Admission::Ask(question) = admission {
            let request = call.approval_request(None, call_text());
            approve(&in_force.stages, &question, call, &request, context).await?;
        }
        let budget = {
            let gate = self.gate.load();
            AnswerBudget::of(gate.limit(wanted), gate.ceiling)
        };
        let arguments = call.arguments().cloned().unwrap_or_else(Json::empty_object);
        let reply = builtin::view(&*self.artifacts, &arguments, &budget, context).await;
        Ok(gate::decide(self.scrubber.scrub_reply(reply), usize::MAX))
    }

    /// Whether the rules let the caller view this artifact.
    async fn admit_view(
        &self,
        in_force: &InForce,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal> {
        let handle = call.arguments().and_then(|given| given.member_as::<String>("handle"));
        let Some(handle) = handle else { return Ok(Admission::Free) };
        let (handle, _) = envelope::split_handle(&handle);
        match self.artifacts.get(&Owner::from_context(context), handle).await? {
            Some(artifact) => in_force.admit_view(&artifact),
            // The view itself reports that there is none.
            None => Ok(Admission::Free),
        }
    }
}
