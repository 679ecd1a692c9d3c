//! Whether a model may save a recipe: never without somebody outside of the
//! conversation who agrees to exactly this code.

use crate::builtin;
use crate::dispatch::pipeline::Dispatcher;
use crate::recipes::{Draft, PREFIX};
use policy::admission::Admission;
use policy::question::Question;
use policy::refusal::{Refusal, Refused};
use policy::stages::Stages;
use policy::validate::ValidCall;
use tool::Json;

impl Dispatcher {
    /// What has to be agreed to before a recipe is saved, or why it cannot be. Any
    /// other call is free.
    pub(super) fn admit_saving(
        &self,
        call: &ValidCall,
        stages: &Stages,
    ) -> Result<Admission, Refusal> {
        if !builtin::is_saving(call) {
            return Ok(Admission::Free);
        }
        let refused = |code, message| Refusal { code, message, retry_after: None };
        let Some(store) = &self.recipe_store else {
            let message = "recipes cannot be saved here".to_owned();
            return Err(refused(Refused::Denied, message));
        };
        if !stages.approval.is_outside_of_the_model() {
            let message = "a model saves recipes only where somebody outside of the conversation agrees, \
                           and here tokens do; give the user the code for `gatelet recipe add`";
            return Err(refused(Refused::Denied, message.to_owned()));
        }
        let arguments = call.arguments().cloned().unwrap_or_else(Json::empty_object);
        let draft = Draft::read(&arguments).and_then(|draft| store.check(&draft).map(|()| draft));
        let draft = draft.map_err(|why| refused(Refused::BadArguments, why))?;
        let name = draft.name;
        let text = format!(
            "it saves a script as the function `{}.{PREFIX}{name}`, which everybody can call",
            builtin::LABEL
        );
        Ok(Admission::Ask(Question { text, ended_by_trust: false }))
    }
}
