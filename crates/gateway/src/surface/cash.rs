//! Three tools for everything: `call`, `help`, `skill`.
//!
//! `call` runs a function by namespace and name, `help` tells what there is in
//! strict layers, `skill` returns instructions. However many functions stand
//! behind it, a client pays for three definitions. Mistakes are answered so
//! that the next attempt is right.

mod arguments;
mod definitions;
mod delegate;
mod distant;
pub(crate) mod gated;
mod help;
mod leaf;
mod skills;
mod teach;

use std::sync::Arc;

use async_trait::async_trait;
use catalog::{Slot, reply};
use futures::stream::BoxStream;
use tool::{
    Ask, Call, Context, Event, Failure, Identity, Json, Listing, Object, Provider, Reply, Resource,
    RpcError,
};

use super::{Surface, rest::Rest};
use crate::dispatch::{CallError, Mode, Outcome, Refused, Request};
use crate::gateway::Shared;
use crate::roster::{Hall, Snapshot};
use crate::stage::validate;
use crate::trust::confirm;
use crate::visibility::Thing;
use arguments::CallArguments;

pub use definitions::tools;
pub(crate) use definitions::{IDENTITY, MAP, identity};
pub use delegate::{DISTANT, HELP};

/// The surface, for clients of one kind.
pub struct Cash {
    shared: Arc<Shared>,
    hall: Arc<Hall>,
    /// Who came in.
    caller: Arc<Identity>,
    /// Answers everything that is no call.
    rest: Rest,
}

impl Cash {
    pub(crate) fn new(shared: Arc<Shared>, hall: Arc<Hall>, caller: Arc<Identity>) -> Cash {
        let rest = Rest::new(&shared, &hall, Surface::Cash);
        Cash { shared, hall, caller, rest }
    }

    async fn tool(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        if self.hall.awaits_any() {
            let namespace = |all: &Json| all.member_as::<String>("namespace");
            let namespace = call.arguments.as_ref().and_then(namespace).unwrap_or_default();
            if self.may_wait(&namespace, context) {
                Box::pin(self.hall.known(&namespace)).await;
            }
        }
        if call.name == "call" {
            return Ok(Box::pin(self.call(call, context)).await);
        }
        let snapshot = self.hall.snapshot();
        let view = self.view(&snapshot, context);
        // Boxed, so that calls do not carry room for them.
        match call.name.as_str() {
            "help" => Ok(match Box::pin(view.delegated(call.arguments.as_ref())).await {
                Some(reply) => reply,
                None => view.help(call.arguments.as_ref()),
            }),
            "skill" => Ok(Box::pin(view.skill(call.arguments.as_ref())).await),
            other => {
                let other = catalog::summary::echo(other);
                let message = format!(
                    "no tool `{other}`: there are `call`, `help` and `skill`; functions are run with `call`"
                );
                Ok(Reply::Error(RpcError::new(-32602, message)))
            }
        }
    }

    async fn call(&self, call: Call, context: &Context) -> Reply {
        let call = confirm::lift(call);
        let arguments = CallArguments::read(call.arguments.as_ref());
        let mut snapshot = self.hall.snapshot();
        let view = self.view(&snapshot, context);
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(problem) => return view.refuse(Refused::BadCall, view.bad_call(problem)),
        };
        let mut found = view.resolve(&arguments.namespace, &arguments.function);
        // What is remembered of an upstream may be out of date: a function that
        // nobody knows is looked for at its upstream before it is called unknown.
        if found.is_err() && self.may_wait(&arguments.namespace, context) {
            Box::pin(self.hall.verified(&arguments.namespace)).await;
            snapshot = self.hall.snapshot();
            found =
                self.view(&snapshot, context).resolve(&arguments.namespace, &arguments.function);
        }
        let view = self.view(&snapshot, context);
        match found {
            Ok(slot) => view.run(slot, arguments, call.rest).await,
            Err(why) => view.refuse(Refused::UnknownFunction, view.unknown(&why, &arguments)),
        }
    }

    fn view<'a>(&'a self, snapshot: &'a Arc<Snapshot>, context: &'a Context) -> View<'a> {
        View { shared: &self.shared, snapshot, context }
    }

    /// Whether an upstream may be waited for: not for who must not know that
    /// it is there, because an unknown namespace is answered at once.
    fn may_wait(&self, namespace: &str, context: &Context) -> bool {
        let snapshot = self.hall.snapshot();
        let view = self.view(&snapshot, context);
        snapshot.catalog.namespace(namespace).is_ok_and(|found| view.shows(found))
    }
}

/// Everything one request needs.
struct View<'a> {
    shared: &'a Arc<Shared>,
    snapshot: &'a Arc<Snapshot>,
    context: &'a Context,
}

impl View<'_> {
    async fn run(&self, slot: Slot, mut arguments: CallArguments, mut rest: Object) -> Reply {
        let contract = self.snapshot.catalog.contract(slot);
        if let Some(kwargs) = &mut arguments.kwargs {
            confirm::lift_from(kwargs, contract, &mut rest);
        }
        let (kwargs, wanted, problems) = arguments.settle(contract);
        if !problems.is_empty() {
            let problems = validate::problems(contract, problems, &kwargs);
            return self.refuse(Refused::BadArguments, self.bad_kwargs(slot, &problems));
        }
        let target = self.snapshot.target(slot);
        let request = Request { target, arguments: Some(kwargs), rest, wanted, mode: Mode::Run };
        let say = |outcome| self.say(slot, outcome);
        let dispatcher = &self.shared.dispatcher;
        dispatcher.dispatch(self.snapshot, request, Surface::Cash, self.context, say).await
    }

    /// An answer to a call that never got as far as the pipeline; it leaves a
    /// record all the same.
    fn refuse(&self, why: Refused, reply: Reply) -> Reply {
        self.shared.dispatcher.refused(Surface::Cash, self.context, why, &reply);
        reply
    }

    fn say(&self, slot: Slot, outcome: Result<Outcome, CallError>) -> Reply {
        match outcome {
            Ok(Outcome::Reply(Reply::Error(error))) => self.rejected(error),
            Ok(Outcome::Reply(reply)) => {
                self.snapshot.notice_task(&self.shared.tasks, slot, self.context, &reply);
                reply
            }
            Ok(Outcome::Kept { artifact, over }) => self.gated(slot, &artifact, &over),
            Ok(Outcome::Unkept { artifact, over, why }) => self.unkept(slot, &artifact, &over, why),
            Ok(Outcome::Plan(call)) => Reply::text(&format!(
                "Would call `{}` of `{}` with {}",
                call.callee.tool,
                call.callee.upstream,
                call.arguments().map_or("{}", Json::as_str)
            )),
            Err(error) => self.failed(slot, &error),
        }
    }
}

#[async_trait]
impl Provider for Cash {
    fn listing(&self) -> Arc<Listing> {
        let snapshot = self.hall.snapshot();
        let trust = self.shared.dispatcher.trust();
        snapshot.listing(Surface::Cash, trust.sight(&self.caller), || {
            let sees = |slot| trust.sees(&self.caller, &snapshot.catalog, slot);
            let knows = |thing: &Thing<'_>| trust.knows(&self.caller, thing);
            let map = reply::map(&snapshot.catalog, definitions::MAP, &sees);
            definitions::listing(&self.shared, &snapshot, &map, &knows)
        })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.hall.events()
    }

    async fn resources_for(&self, context: &Context) -> Vec<Resource> {
        self.rest.resources(context).await
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(call) => self.tool(call, context).await,
            Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Box::pin(self.rest.ask(ask, context)).await
            }
        }
    }
}

/// A text result with structured metadata beside it.
fn annotated(text: &str, is_error: bool, meta: &serde_json::Value) -> Reply {
    let mut result = Object::new();
    result.push("content", serde_json::json!([{"type": "text", "text": text}]).into());
    if is_error {
        result.push("isError", Json::encode(&true));
    }
    result.push("_meta", Json::encode(meta));
    Reply::Result(result.to_json())
}

#[cfg(test)]
mod tests;
