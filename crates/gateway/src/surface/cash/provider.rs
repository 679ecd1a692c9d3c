//! The surface as a provider: which tool answers what.

use std::sync::Arc;

use async_trait::async_trait;
use catalog::{Slot, reply};
use futures::stream::BoxStream;
use tool::{
    Ask, Call, Context, Event, Failure, Json, Listing, Object, Provider, Reply, Resource, RpcError,
    Tool,
};

use super::super::by_name::ByName;
use super::super::hints::Facts;
use super::super::oversize::unpicked;
use super::super::{capabilities, listed, listings, names};
use super::arguments::{self, BadCall, CallArguments, ForFunction};
use super::batch::Batch;
use super::definitions;
use super::request::{Cash, CashRequest, ORIGIN, Scope};
use crate::builtin;
use crate::choice::Surface;
use crate::dispatch::{CallError, Outcome};
use crate::surface::answer::{Effect, finished};
use policy::call::{Mode, Request};
use policy::confirm;
use policy::refusal::Refused;
use policy::validate;

impl Cash {
    async fn tool(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        if self.pool.any_first_listing() {
            Box::pin(self.first_listings(&call, context)).await;
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
        let request = self.request(&snapshot, context);
        // Boxed, so that calls do not carry room for them.
        match call.name.as_str() {
            "help" => Ok(match Box::pin(request.remote_help(call.arguments.as_ref())).await {
                Some(reply) => reply,
                None => Box::pin(request.help(call.arguments.as_ref())).await,
            }),
            "skill" => Ok(Box::pin(request.skill(call.arguments.as_ref())).await),
            _ => Ok(Box::pin(self.call_by_name(call, context)).await),
        }
    }

    /// A function that is called by the name under which it is listed, or could
    /// be: what is listed may have changed since the client listed it.
    async fn call_by_name(&self, call: Call, context: &Context) -> Reply {
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
        let request = self.request(&snapshot, context);
        let given = call.arguments.filter(|given| !given.is_null());
        let kwargs = match given.map(arguments::object_of) {
            None => None,
            Some(kwargs @ Some(_)) => kwargs,
            Some(None) => {
                return request.refuse(Refused::BadCall, request.bad_call(BadCall::NotAnObject));
            }
        };
        // An interface is made of the whole answer.
        let shows = self.client.interfaces && listed::has_interface(snapshot.catalog.tool(slot));
        let mode = if shows { Mode::Pass } else { Mode::Run };
        let (namespace, function) = (String::new(), String::new());
        let arguments = CallArguments { namespace, function, kwargs, wanted: None, pick: None };
        request.run(slot, arguments, call.other_params, None, mode).await
    }

    /// One call, or several.
    async fn call(&self, call: Call, scope: Scope, context: &Context) -> Reply {
        match Batch::read(call.arguments.as_ref()) {
            None => self.call_within(call, scope, None, context).await,
            Some(Ok(batch)) => {
                Box::pin(self.calls(batch, &call.other_params, scope, context)).await
            }
            Some(Err(why)) => {
                let snapshot = self.pool.snapshot();
                let request = self.request(&snapshot, context);
                request.refuse(Refused::BadCall, request.bad_batch(&why))
            }
        }
    }

    /// One call, whose answer may have at most `share` characters.
    pub(super) async fn call_within(
        &self,
        call: Call,
        scope: Scope,
        share: Option<usize>,
        context: &Context,
    ) -> Reply {
        if share.is_some() && self.pool.any_first_listing() {
            Box::pin(self.first_listings(&call, context)).await;
        }
        let call = confirm::lift(call);
        let arguments = CallArguments::read(call.arguments.as_ref());
        let mut snapshot = self.pool.snapshot();
        let request = self.request(&snapshot, context);
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(problem) => return request.refuse(Refused::BadCall, request.bad_call(problem)),
        };
        let mut found = request.resolve(&arguments.namespace, &arguments.function);
        // What is remembered of an upstream may be out of date: a function that
        // nobody knows is looked for at its upstream before it is called unknown.
        if found.is_err() && self.may_wait(&arguments.namespace, context) {
            Box::pin(self.pool.current_listing(&arguments.namespace)).await;
            snapshot = self.pool.snapshot();
            found =
                self.request(&snapshot, context).resolve(&arguments.namespace, &arguments.function);
        }
        let request = self.request(&snapshot, context);
        match found {
            Ok(slot) if scope == Scope::Reading && !request.only_reads(slot) => {
                request.refuse(Refused::Denied, request.may_change(slot))
            }
            Ok(slot) => request.run(slot, arguments, call.other_params, share, Mode::Run).await,
            Err(why) => request.refuse(Refused::UnknownFunction, request.unknown(&why, &arguments)),
        }
    }

    /// Waits until the upstreams that a call names are listed: one, or all of them
    /// for a script, which may call any.
    async fn first_listings(&self, call: &Call, context: &Context) {
        let member = |key: &str| call.arguments.as_ref()?.member_as::<String>(key);
        let namespace = member("namespace").unwrap_or_default();
        let is_script = namespace.starts_with(builtin::LABEL)
            && !["find", "view", "status"]
                .contains(&member("function").unwrap_or_default().as_str());
        let namespaces = match is_script {
            true => {
                let snapshot = self.pool.snapshot();
                snapshot.catalog.sources().iter().map(|source| source.label.clone()).collect()
            }
            false => vec![namespace],
        };
        let waits = namespaces.iter().filter(|namespace| self.may_wait(namespace, context));
        futures::future::join_all(waits.map(|namespace| self.pool.first_listing(namespace))).await;
    }

    /// Whether a request may wait for an upstream: not if its caller may not see
    /// it, because an unknown namespace is answered at once.
    fn may_wait(&self, namespace: &str, context: &Context) -> bool {
        let snapshot = self.pool.snapshot();
        let request = self.request(&snapshot, context);
        snapshot.catalog.namespace(namespace).is_ok_and(|found| request.shows(found))
    }
}

impl CashRequest<'_> {
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
        share: Option<usize>,
        mode: Mode,
    ) -> Reply {
        let contract = self.snapshot.catalog.contract(slot);
        if let Some(kwargs) = &mut arguments.kwargs {
            confirm::lift_from(kwargs, contract, &mut rest);
        }
        let ForFunction { kwargs, wanted, pick, problems } = arguments.for_function(contract);
        if !problems.is_empty() {
            let problems = validate::problems(contract, problems, &kwargs);
            return self.refuse(Refused::BadArguments, self.bad_kwargs(slot, &problems));
        }
        let target = self.snapshot.target(slot);
        let given = kwargs.clone();
        let request = Request { rest, wanted, share, pick, mode, ..Request::new(target, kwargs) };
        let say = |outcome| self.to_reply(slot, &given, outcome);
        self.cash.pipeline.dispatch(self.snapshot, request, ORIGIN, self.context, say).await
    }

    /// An answer to a call that never got as far as the pipeline; it leaves a
    /// record all the same.
    fn refuse(&self, why: Refused, reply: Reply) -> Reply {
        self.cash.pipeline.refused(ORIGIN, self.context, why, &reply);
        reply
    }

    fn to_reply(&self, slot: Slot, given: &Json, outcome: Result<Outcome, CallError>) -> Reply {
        match outcome {
            Ok(Outcome::Reply(Reply::Error(error))) => self.rejected(error),
            Ok(Outcome::Reply(reply)) => {
                self.cash.tasks.notice_call(self.snapshot, slot, self.context, &reply);
                let same_data = self.cash.pipeline.gate.load().same_data;
                let effect = Effect::of_tool(self.snapshot.catalog.tool(slot));
                finished(reply, same_data, effect)
            }
            Ok(Outcome::Kept { artifact, over }) => self.gated(slot, given, &artifact, &over),
            Ok(Outcome::Unkept { artifact, over, why, beginning }) => {
                self.unkept(slot, given, &artifact, &over, why, &beginning)
            }
            Ok(Outcome::Unpicked { artifact, why, stored }) => {
                let is_error = self.cash.pipeline.gate.load().gated_is_error;
                unpicked(&artifact, &why, stored, is_error)
            }
            Ok(Outcome::Plan(plan)) => Reply::text(&format!(
                "Would call `{}` of `{}` with {}",
                plan.call.callee.tool,
                plan.call.callee.upstream,
                plan.call.arguments().map_or("{}", Json::as_str)
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
        self.other_requests.events(&self.caller)
    }

    async fn resources_for(&self, context: &Context) -> Vec<Resource> {
        self.other_requests.resources(context).await
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        if let Some(reply) = names::refused(&ask, &self.pipeline, ORIGIN, context) {
            return Ok(reply);
        }
        match ask {
            Ask::Call(call) => self.tool(call, context).await,
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Box::pin(self.other_requests.ask(ask, context)).await
            }
        }
    }
}
