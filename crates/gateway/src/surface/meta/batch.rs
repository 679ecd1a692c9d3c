//! Several calls in one: `calls=[{tool_id, args, pick}, …]`.

use async_trait::async_trait;
use catalog::summary::echo;
use policy::confirm;
use tool::{Call, Context, Json, Reply};

use super::arguments;
use super::request::{Answer, Meta, bad};
use crate::lengths::too_long;
use crate::surface::batch::{self, CALLS, MakeCall};

const EXAMPLE: &str = "{\"tool_id\": \"…\", \"args\": {…}, \"pick\": \"…\"}";

/// The calls of a request, if it has several.
pub(super) fn calls(arguments: Option<&Json>) -> Option<Json> {
    arguments.filter(|given| given.mentions(CALLS))?.member(CALLS).filter(|calls| !calls.is_null())
}

/// The ids that the calls of a request name.
pub(crate) fn ids(arguments: Option<&Json>) -> Vec<String> {
    let calls = calls(arguments).and_then(|calls| read(&calls).ok());
    let id = |call: &Json| call.member_as::<String>("tool_id");
    calls.unwrap_or_default().iter().filter_map(id).collect()
}

/// A list of calls, none of which names something that is too long to look for.
fn read(calls: &Json) -> Result<Vec<Json>, String> {
    let calls = batch::read(calls, EXAMPLE)?;
    let is_too_long =
        |call: &Json| too_long("tool_id", &call.member_as::<String>("tool_id").unwrap_or_default());
    match calls.iter().find_map(is_too_long) {
        Some(why) => Err(why),
        None => Ok(calls),
    }
}

impl Meta<'_> {
    /// Makes several calls and puts their answers together, in order.
    pub(super) async fn execute_several(&self, calls: &Json) -> Answer {
        let calls = read(calls).map_err(|why| bad(&why))?;
        let limit = self.tools.pipeline.gate.load().limit(None);
        Ok(Box::pin(batch::run(calls, limit, self)).await)
    }
}

#[async_trait]
impl MakeCall for Meta<'_> {
    fn only_reads(&self, call: &Json) -> bool {
        let id = call.member_as::<String>("tool_id").unwrap_or_default();
        let slot = self.resolve(&id).ok().map(|(_, slot, _)| slot);
        let hint = slot.and_then(|slot| self.snapshot.catalog.tool(slot).annotations.read_only);
        hint == Some(true)
    }

    async fn make(&self, call: &Json, share: usize) -> Reply {
        let asked = Call::new("tool_execute", call.clone());
        let asked = confirm::lift(Call { other_params: self.rest.clone(), ..asked });
        let answer =
            match (arguments::check("tool_execute", asked.arguments.as_ref()), calls(Some(call))) {
                (Err(error), _) => Err(error),
                (Ok(()), Some(_)) => Err(bad("`calls` cannot stand in one of `calls`")),
                (Ok(()), None) => {
                    let execute =
                        self.execute_one(asked.arguments.as_ref(), asked.other_params, Some(share));
                    Box::pin(execute).await
                }
            };
        self.settled(answer)
    }

    fn name(&self, call: &Json) -> String {
        echo(&call.member_as::<String>("tool_id").unwrap_or_default())
    }

    fn meta_key(&self) -> &'static str {
        "gatelet/calls"
    }

    fn artifacts(&self) -> &dyn artifacts::Store {
        &*self.tools.pipeline.artifacts
    }

    fn context(&self) -> &Context {
        self.context
    }
}
