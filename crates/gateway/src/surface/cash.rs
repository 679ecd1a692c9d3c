//! Three tools for everything: `call`, `help`, `skill`.
//!
//! `call` runs a function by namespace and name, `help` tells what there is in
//! strict layers, `skill` returns instructions. However many functions stand
//! behind it, a client pays for three definitions. Mistakes are answered so
//! that the next attempt is right.

mod arguments;
mod definitions;
mod delegate;
mod gated;
mod help;
mod leaf;
mod skill;
mod teach;
mod upstream_skill;

use std::sync::Arc;

use async_trait::async_trait;
use catalog::{Catalog, Slot, reply};
use futures::stream::BoxStream;
use tool::{
    Ask, Call, Context, Event, Failure, Identity, Json, Listing, Object, Provider, Reply, Resource,
    RpcError, Tool,
};

use super::about::About;
use super::by_name::ByName;
use super::hints::Facts;
use super::listed::{self, ClientKind, Live};
use super::rest::Rest;
use super::{capabilities, listings, tasks::Tasks};
use crate::choice::Surface;
use crate::dispatch::{CallError, Dispatcher, Origin, Outcome, repeated_arguments};
use crate::search::Search;
use arguments::{BadCall, CallArguments};
use policy::call::{Mode, Request, What};
use policy::confirm;
use policy::refusal::Refused;
use policy::validate::{self, ValidCall};
use policy::visibility::Visible;
use roster::{Snapshot, UpstreamPool};
use skills::skill_index::SkillIndex;

pub(crate) use definitions::MAP;
pub use definitions::tools;
pub use delegate::{DISTANT, HELP};

/// Where calls of this surface come from.
pub(crate) const ORIGIN: Origin = Origin { surface: Surface::Cash, call_text };

/// A call as this surface has it written.
fn call_text(catalog: &Catalog, call: &ValidCall) -> String {
    match &call.what {
        What::Tool(slot) => format!(
            "call(namespace=\"{}\", function=\"{}\", kwargs={}",
            catalog.path(*slot),
            catalog.function(*slot).name,
            repeated_arguments(call),
        ),
        What::Resource { .. }
        | What::Prompt { .. }
        | What::Skill { .. }
        | What::Task { .. }
        | What::Help { .. }
        | What::Completion { .. }
        | What::Subscription { .. } => String::new(),
    }
}

/// Which functions a call may run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Reading,
}

/// The surface, for clients of one kind.
pub struct Cash {
    pub(crate) pool: Arc<UpstreamPool>,
    /// Who came in.
    pub(crate) caller: Arc<Identity>,
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) skills: Arc<SkillIndex>,
    pub(crate) search: Arc<Search>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    /// What is listed beside the three.
    pub(crate) listed: Arc<Live>,
    pub(crate) client: ClientKind,
    /// Answers everything that is no call.
    pub(crate) rest: Rest,
}

impl Cash {
    async fn tool(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        if self.pool.any_first_listing() {
            let namespace = |all: &Json| all.member_as::<String>("namespace");
            let namespace = call.arguments.as_ref().and_then(namespace).unwrap_or_default();
            if self.may_wait(&namespace, context) {
                Box::pin(self.pool.first_listing(&namespace)).await;
            }
        }
        let scope = match call.name.as_str() {
            "call" => Some(Scope::All),
            definitions::READ if self.listed.config().read_tool => Some(Scope::Reading),
            _ => None,
        };
        if let Some(scope) = scope {
            return Ok(Box::pin(self.call(call, scope, context)).await);
        }
        let snapshot = self.pool.snapshot();
        let view = self.view(&snapshot, context);
        // Boxed, so that calls do not carry room for them.
        match call.name.as_str() {
            "help" => Ok(match Box::pin(view.delegated(call.arguments.as_ref())).await {
                Some(reply) => reply,
                None => Box::pin(view.help(call.arguments.as_ref())).await,
            }),
            "skill" => Ok(Box::pin(view.skill(call.arguments.as_ref())).await),
            _ => Ok(Box::pin(self.called_by_name(call, context)).await),
        }
    }

    /// A function that is called by the name under which it is listed, or could
    /// be: what is listed may have changed since the client looked.
    async fn called_by_name(&self, call: Call, context: &Context) -> Reply {
        let call = confirm::lift(call);
        let by_name = ByName { pool: &self.pool, live: &self.pipeline.live };
        let (snapshot, found) = match self.listed.lists_any(self.client) {
            true => by_name.resolve(&call.name, context).await,
            false => (self.pool.snapshot(), None),
        };
        let Some(slot) = found else {
            let name = catalog::summary::echo(&call.name);
            let message = format!(
                "no tool `{name}`: there are `call`, `help` and `skill`; functions are run with `call`"
            );
            return Reply::Error(RpcError::new(-32602, message));
        };
        let view = self.view(&snapshot, context);
        let given = call.arguments.filter(|given| !given.is_null());
        let kwargs = match given.map(arguments::object_of) {
            None => None,
            Some(kwargs @ Some(_)) => kwargs,
            Some(None) => return view.refuse(Refused::BadCall, view.bad_call(BadCall::NoObject)),
        };
        // An interface is made of the whole answer.
        let shows = self.client.interfaces && listed::has_interface(snapshot.catalog.tool(slot));
        let mode = if shows { Mode::Pass } else { Mode::Run };
        let (namespace, function) = (String::new(), String::new());
        let arguments = CallArguments { namespace, function, kwargs, wanted: None };
        view.run(slot, arguments, call.rest, mode).await
    }

    async fn call(&self, call: Call, scope: Scope, context: &Context) -> Reply {
        let call = confirm::lift(call);
        let arguments = CallArguments::read(call.arguments.as_ref());
        let mut snapshot = self.pool.snapshot();
        let view = self.view(&snapshot, context);
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(problem) => return view.refuse(Refused::BadCall, view.bad_call(problem)),
        };
        let mut found = view.resolve(&arguments.namespace, &arguments.function);
        // What is remembered of an upstream may be out of date: a function that
        // nobody knows is looked for at its upstream before it is called unknown.
        if found.is_err() && self.may_wait(&arguments.namespace, context) {
            Box::pin(self.pool.current_listing(&arguments.namespace)).await;
            snapshot = self.pool.snapshot();
            found =
                self.view(&snapshot, context).resolve(&arguments.namespace, &arguments.function);
        }
        let view = self.view(&snapshot, context);
        match found {
            Ok(slot) if scope == Scope::Reading && !view.only_reads(slot) => {
                view.refuse(Refused::Denied, view.may_change(slot))
            }
            Ok(slot) => view.run(slot, arguments, call.rest, Mode::Run).await,
            Err(why) => view.refuse(Refused::UnknownFunction, view.unknown(&why, &arguments)),
        }
    }

    fn view<'a>(&'a self, snapshot: &'a Arc<Snapshot>, context: &'a Context) -> View<'a> {
        View {
            cash: self,
            snapshot,
            context,
            visible: self.pipeline.live.visible_to(&context.caller),
        }
    }

    /// Whether an upstream may be waited for: not for who must not know that
    /// it is there, because an unknown namespace is answered at once.
    fn may_wait(&self, namespace: &str, context: &Context) -> bool {
        let snapshot = self.pool.snapshot();
        let view = self.view(&snapshot, context);
        snapshot.catalog.namespace(namespace).is_ok_and(|found| view.shows(found))
    }
}

/// Everything one request needs.
struct View<'a> {
    cash: &'a Cash,
    snapshot: &'a Arc<Snapshot>,
    context: &'a Context,
    /// What the caller sees.
    visible: Visible<'a>,
}

impl View<'_> {
    /// Whether a function only reads, by the operator's word or by its own where
    /// the operator vouched for it.
    fn only_reads(&self, slot: Slot) -> bool {
        let live = self.cash.pipeline.live.now();
        let vouched = |path: &str, tool: &Tool| live.stages.vouches(path, tool);
        listed::only_reads(&self.cash.listed.config(), self.snapshot, slot, vouched)
    }

    async fn run(
        &self,
        slot: Slot,
        mut arguments: CallArguments,
        mut rest: Object,
        mode: Mode,
    ) -> Reply {
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
        let request = Request { target, arguments: Some(kwargs), rest, wanted, mode };
        let say = |outcome| self.say(slot, outcome);
        self.cash.pipeline.dispatch(self.snapshot, request, ORIGIN, self.context, say).await
    }

    /// An answer to a call that never got as far as the pipeline; it leaves a
    /// record all the same.
    fn refuse(&self, why: Refused, reply: Reply) -> Reply {
        self.cash.pipeline.refused(ORIGIN, self.context, why, &reply);
        reply
    }

    fn say(&self, slot: Slot, outcome: Result<Outcome, CallError>) -> Reply {
        match outcome {
            Ok(Outcome::Reply(Reply::Error(error))) => self.rejected(error),
            Ok(Outcome::Reply(reply)) => {
                self.cash.tasks.notice_call(self.snapshot, slot, self.context, &reply);
                reply
            }
            Ok(Outcome::Kept { artifact, over }) => self.gated(slot, &artifact, &over),
            Ok(Outcome::Unkept { artifact, over, why, beginning }) => {
                self.unkept(slot, &artifact, &over, why, &beginning)
            }
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
        let snapshot = self.pool.snapshot();
        let visible = self.pipeline.live.visible_to(&self.caller);
        let variant = self.listed.variant(self.client);
        listings::listing(&snapshot, Surface::Cash, variant, visible.key(), || {
            let sees = |slot| visible.shows_function(&snapshot.catalog, slot);
            let map = reply::map(&snapshot.catalog, definitions::MAP, &sees);
            let gate = &self.pipeline.gate.load();
            let facts = Facts { map: &map, gate, view_chars: 0 };
            let can = capabilities::whole(&self.skills, &self.listed.config(), &snapshot, &visible);
            let mut listing = definitions::listing(&self.about, &snapshot, &facts, can, &visible);
            if self.listed.config().read_tool {
                listing.tools.push(facts.hinted(definitions::read_tool()));
            }
            let listed = self.listed.listed(&snapshot, self.client, &visible);
            listing.tools.extend(listed.tools);
            listing.findings.extend(listed.findings);
            listing
        })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.pool.events()
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

#[cfg(test)]
mod tests;
