//! Answers calls of `gatelet.view`, which return a part of an artifact without
//! asking an upstream.
//!
//! A view is cut to the size limit, so it is never stored as an artifact itself.

use tool::{Context, Json};

use crate::builtin::{self, AnswerBudget};
use crate::dispatch::approving::approve;
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::outcome::CallError;
use artifacts::Owner;
use artifacts::envelope;
use artifacts::gate::{self, Gated};
use policy::admission::Admission;
use policy::live::CurrentPolicies;
use policy::refusal::Refusal;
use policy::validate::ValidCall;

impl Dispatcher {
    /// Returns the part of the artifact that the call asks for, if the rules about
    /// the artifact and the quota allow it. `size_limit` is the caller's.
    pub(super) async fn view(
        &self,
        in_force: &CurrentPolicies,
        admission: Admission,
        call: &ValidCall,
        size_limit: Option<usize>,
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
            AnswerBudget::new(gate.limit(size_limit), gate.ceiling)
        };
        let arguments = call.arguments().cloned().unwrap_or_else(Json::empty_object);
        let reply = builtin::view(&*self.artifacts, &arguments, &budget, context).await;
        Ok(gate::decide(self.scrubber.scrub_reply(reply), usize::MAX))
    }

    /// Returns whether the rules let the caller view the artifact, or who has to
    /// approve it first.
    async fn admit_view(
        &self,
        in_force: &CurrentPolicies,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal> {
        let handle = call.arguments().and_then(|arguments| arguments.member_as::<String>("handle"));
        let Some(handle) = handle else { return Ok(Admission::Free) };
        let (handle, _) = envelope::split_handle(&handle);
        match self.artifacts.get(&Owner::from_context(context), handle).await? {
            Some(artifact) => in_force.admit_view(&artifact),
            // The view itself reports that the artifact does not exist.
            None => Ok(Admission::Free),
        }
    }
}
