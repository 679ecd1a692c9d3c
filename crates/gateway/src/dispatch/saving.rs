//! Decides whether a model may save a recipe: never without somebody outside of
//! the conversation who approves exactly this code.

use crate::builtin;
use crate::dispatch::dispatcher::Dispatcher;
use crate::recipes::{Draft, PREFIX};
use policy::admission::Admission;
use policy::question::Question;
use policy::refusal::{Refusal, RefusalCode};
use policy::stages::Stages;
use policy::validate::ValidCall;
use tool::Json;

impl Dispatcher {
    /// Returns the approval that saving a recipe needs, or why it is refused. Any
    /// call that does not save a recipe needs none.
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
            return Err(refused(RefusalCode::Denied, message));
        };
        if !stages.approval.is_outside_of_the_model() {
            let message = "a model saves recipes only where somebody outside of the conversation agrees, \
                           and here tokens do; give the user the code for `gatelet recipe add`";
            return Err(refused(RefusalCode::Denied, message.to_owned()));
        }
        let arguments = call.arguments().cloned().unwrap_or_else(Json::empty_object);
        let draft = Draft::parse(&arguments).and_then(|draft| store.check(&draft).map(|()| draft));
        let draft = draft.map_err(|why| refused(RefusalCode::BadArguments, why))?;
        let name = draft.name;
        let text = format!(
            "it saves a script as the function `{}.{PREFIX}{name}`, which everybody can call",
            builtin::LABEL
        );
        Ok(Admission::Ask(Question { text, ended_by_trust: false }))
    }
}
