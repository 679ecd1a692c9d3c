//! Batches of `tool_execute`: `calls=[{tool_id, args, pick}, …]`.

use async_trait::async_trait;
use catalog::summary::echo;
use policy::confirm;
use tool::{Call, Context, Json, Reply};

use super::arguments;
use super::request::{Answer, Meta, bad_argument};
use crate::lengths::too_long;
use crate::surface::batch::{self, CALLS, MakeCall};

const EXAMPLE: &str = "{\"tool_id\": \"…\", \"args\": {…}, \"pick\": \"…\"}";

/// Returns the list of calls, if the request is a batch.
pub(super) fn calls(arguments: Option<&Json>) -> Option<Json> {
    arguments.filter(|given| given.mentions(CALLS))?.member(CALLS).filter(|calls| !calls.is_null())
}

/// Returns the tool ids in a batch.
pub(crate) fn ids(arguments: Option<&Json>) -> Vec<String> {
    let calls = calls(arguments).and_then(|calls| parse(&calls).ok());
    let id = |call: &Json| call.member_as::<String>("tool_id");
    calls.unwrap_or_default().iter().filter_map(id).collect()
}

/// Parses a list of calls, and checks that their ids are not too long.
fn parse(calls: &Json) -> Result<Vec<Json>, String> {
    let calls = batch::parse(calls, EXAMPLE)?;
    let is_too_long =
        |call: &Json| too_long("tool_id", &call.member_as::<String>("tool_id").unwrap_or_default());
    match calls.iter().find_map(is_too_long) {
        Some(why) => Err(why),
        None => Ok(calls),
    }
}

impl Meta<'_> {
    /// Makes the calls of a batch and joins their answers, in order.
    pub(super) async fn execute_batch(&self, calls: &Json) -> Answer {
        let calls = parse(calls).map_err(|why| bad_argument(&why))?;
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
        let asked = confirm::move_to_meta(Call { other_params: self.rest.clone(), ..asked });
        let answer =
            match (arguments::check("tool_execute", asked.arguments.as_ref()), calls(Some(call))) {
                (Err(error), _) => Err(error),
                (Ok(()), Some(_)) => Err(bad_argument("`calls` cannot stand in one of `calls`")),
                (Ok(()), None) => {
                    let execute =
                        self.execute_one(asked.arguments.as_ref(), asked.other_params, Some(share));
                    Box::pin(execute).await
                }
            };
        self.reply_and_record(answer)
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
