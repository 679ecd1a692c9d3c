//! Answers the tool calls of the surface: `call`, `help`, `skill`, and functions by name.

use catalog::{Slot, reply};
use tool::{Call, Context, Failure, Json, Listing, Object, Reply, RpcError, Tool};

use super::super::by_name::NameResolver;
use super::super::capabilities;
use super::super::hints::{self, HintContext};
use super::super::instructions::ListedDirectly;
use super::super::listed::{self, ClientKind};
use super::super::oversize::pick_failed;
use super::super::provider::ToolSurface;
use super::arguments::{self, BadCall, CallArguments, SplitArguments};
use super::batch::Batch;
use super::definitions;
use super::request::{Cash, CashRequest, ORIGIN, Scope};
use crate::builtin;
use crate::dispatch::{CallError, Outcome};
use crate::surface::answer::{Effect, polish};
use policy::call::{CallMode, Request};
use policy::confirm;
use policy::refusal::RefusalCode;
use policy::validate;
use policy::visibility::CallerView;
use roster::Snapshot;

impl Cash {
    /// Answers a call of one of the surface's tools, or of a function by its name.
    async fn answer(&self, call: Call, context: &Context) -> Reply {
        if self.pool.any_first_listing() {
            Box::pin(self.first_listings(&call, context)).await;
        }
        let scope = match call.name.as_str() {
            "call" => Some(Scope::All),
            definitions::CALL_READ if self.listed.config().read_tool => Some(Scope::ReadOnly),
            _ => None,
        };
        if let Some(scope) = scope {
            return Box::pin(self.call_functions(call, scope, context)).await;
        }
        let snapshot = self.pool.snapshot();
        let request = self.request(&snapshot, context);
        // Boxed, so that calls do not carry room for them.
        match call.name.as_str() {
            "help" => match Box::pin(request.remote_help(call.arguments.as_ref())).await {
                Some(reply) => reply,
                None => Box::pin(request.help(call.arguments.as_ref())).await,
            },
            "skill" => Box::pin(request.skill(call.arguments.as_ref())).await,
            _ => Box::pin(self.call_by_name(call, context)).await,
        }
    }

    /// Runs a function by the name under which it is listed, or could be: what is listed
    /// may have changed since the client listed it.
    async fn call_by_name(&self, call: Call, context: &Context) -> Reply {
        let call = confirm::move_to_meta(call);
        let by_name = NameResolver { pool: &self.pool, live: &self.pipeline.live };
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
        let kwargs = match given.map(arguments::parse_object) {
            None => None,
            Some(kwargs @ Some(_)) => kwargs,
            Some(None) => {
                return request
                    .refuse(RefusalCode::BadCall, request.bad_call(BadCall::NotAnObject));
            }
        };
        // A user interface needs the whole answer.
        let shows = self.client.interfaces && listed::has_interface(snapshot.catalog.tool(slot));
        let mode = if shows { CallMode::PassThrough } else { CallMode::Run };
        let (namespace, function) = (String::new(), String::new());
        let arguments = CallArguments { namespace, function, kwargs, size_limit: None, pick: None };
        request.run(slot, arguments, call.other_params, None, mode).await
    }

    /// Runs one function, or several where the arguments are a batch.
    async fn call_functions(&self, call: Call, scope: Scope, context: &Context) -> Reply {
        match Batch::parse(call.arguments.as_ref()) {
            None => self.call_within(call, scope, None, context).await,
            Some(Ok(batch)) => {
                Box::pin(self.run_batch(batch, &call.other_params, scope, context)).await
            }
            Some(Err(why)) => {
                let snapshot = self.pool.snapshot();
                let request = self.request(&snapshot, context);
                request.refuse(RefusalCode::BadCall, request.bad_batch(&why))
            }
        }
    }

    /// Runs one function, whose answer may have at most `share` characters.
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
        let call = confirm::move_to_meta(call);
        let arguments = CallArguments::parse(call.arguments.as_ref());
        let mut snapshot = self.pool.snapshot();
        let request = self.request(&snapshot, context);
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(problem) => return request.refuse(RefusalCode::BadCall, request.bad_call(problem)),
        };
        let mut found = request.resolve(&arguments.namespace, &arguments.function);
        // A remembered listing may be out of date: the upstream is listed again before a
        // function is called unknown.
        if found.is_err() && self.may_wait(&arguments.namespace, context) {
            Box::pin(self.pool.current_listing(&arguments.namespace)).await;
            snapshot = self.pool.snapshot();
            found =
                self.request(&snapshot, context).resolve(&arguments.namespace, &arguments.function);
        }
        let request = self.request(&snapshot, context);
        match found {
            Ok(slot) if scope == Scope::ReadOnly && !request.only_reads(slot) => {
                request.refuse(RefusalCode::Denied, request.may_change(slot))
            }
            Ok(slot) => request.run(slot, arguments, call.other_params, share, CallMode::Run).await,
            Err(why) => request
                .refuse(RefusalCode::UnknownFunction, request.unknown_function(&why, &arguments)),
        }
    }

    /// Waits until the upstream that a call names is listed, or all upstreams for a script,
    /// which may call any.
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

    /// Returns whether a request may wait for an upstream: not if the caller may not see
    /// it, because an unknown namespace is answered at once.
    fn may_wait(&self, namespace: &str, context: &Context) -> bool {
        let snapshot = self.pool.snapshot();
        let request = self.request(&snapshot, context);
        snapshot.catalog.namespace(namespace).is_ok_and(|found| request.shows(found))
    }
}

impl CashRequest<'_> {
    /// Returns whether a function only reads: according to the operator, or according to
    /// its annotations if the operator vouched for them.
    fn only_reads(&self, slot: Slot) -> bool {
        let live = self.cash.pipeline.live.now();
        let vouched = |path: &str, tool: &Tool| live.stages.vouches(path, tool);
        listed::only_reads(&self.cash.listed.config(), self.snapshot, slot, vouched)
    }

    /// Dispatches a call of a function. `rest` is the parameters beside the arguments.
    async fn run(
        &self,
        slot: Slot,
        mut arguments: CallArguments,
        mut rest: Object,
        share: Option<usize>,
        mode: CallMode,
    ) -> Reply {
        let contract = self.snapshot.catalog.contract(slot);
        if let Some(kwargs) = &mut arguments.kwargs {
            confirm::move_to_meta_unless_declared(kwargs, contract, &mut rest);
        }
        let SplitArguments { kwargs, size_limit, pick, problems } = arguments.split(contract);
        if !problems.is_empty() {
            let problems = validate::problems(contract, problems, &kwargs);
            return self.refuse(RefusalCode::BadArguments, self.bad_kwargs(slot, &problems));
        }
        let target = self.snapshot.target(slot);
        let given = kwargs.clone();
        let request =
            Request { rest, wanted: size_limit, share, pick, mode, ..Request::new(target, kwargs) };
        let to_reply = |outcome| self.to_reply(slot, &given, outcome);
        self.cash.pipeline.dispatch(self.snapshot, request, ORIGIN, self.context, to_reply).await
    }

    /// Records that a call was refused before the pipeline, and returns the reply.
    fn refuse(&self, why: RefusalCode, reply: Reply) -> Reply {
        self.cash.pipeline.record_refusal(ORIGIN, self.context, why, &reply);
        reply
    }

    /// Turns the outcome of a call with the arguments `given` into a reply.
    fn to_reply(&self, slot: Slot, given: &Json, outcome: Result<Outcome, CallError>) -> Reply {
        match outcome {
            Ok(Outcome::Reply(Reply::Error(error))) => self.rejected(error),
            Ok(Outcome::Reply(reply)) => {
                self.cash.tasks.remember_call(self.snapshot, slot, self.context, &reply);
                let same_data = self.cash.pipeline.gate.load().same_data;
                let effect = Effect::of_tool(self.snapshot.catalog.tool(slot));
                polish(reply, same_data, effect)
            }
            Ok(Outcome::Kept { artifact, over }) => self.over_limit(slot, given, &artifact, &over),
            Ok(Outcome::Unkept { artifact, over, why, beginning }) => {
                self.over_limit_not_stored(slot, given, &artifact, &over, why, &beginning)
            }
            Ok(Outcome::Unpicked { artifact, why, stored }) => {
                let is_error = self.cash.pipeline.gate.load().gated_is_error;
                pick_failed(&artifact, &why, stored, is_error)
            }
            Ok(Outcome::Plan(plan)) => Reply::text(&format!(
                "Would call `{}` of `{}` with {}",
                plan.call.callee.tool,
                plan.call.callee.upstream,
                plan.call.arguments().map_or("{}", Json::as_str)
            )),
            Err(error) => self.call_error(slot, &error),
        }
    }
}

impl ToolSurface for Cash {
    fn listing(&self, snapshot: &Snapshot, visible: &CallerView<'_>) -> Listing {
        let sees = |slot| visible.shows_function(&snapshot.catalog, slot);
        let map = reply::map(&snapshot.catalog, definitions::MAX_MAP_TOKENS, &sees);
        let gate = &self.pipeline.gate.load();
        let confirms = hints::confirms(&self.pipeline.live);
        let hints = HintContext { map: &map, gate, view_chars: 0, confirms };
        let capabilities =
            capabilities::of_primitives(&self.skills, &self.listed.config(), snapshot, visible);
        let listed = self.listed.listed(snapshot, self.client, visible);
        let catalog = &snapshot.catalog;
        let is_own = |slot: &Slot| catalog.is_builtin(*slot);
        let n_seen = catalog.slots().filter(|slot| !is_own(slot) && sees(*slot)).count();
        let direct = match listed.tools.len() {
            n if 0 < n && n == n_seen => ListedDirectly::All,
            _ => ListedDirectly::NotAll,
        };
        let mut listing =
            definitions::listing(&self.about, snapshot, &hints, capabilities, visible, direct);
        if self.listed.config().read_tool {
            listing.tools.push(hints.with_hints(definitions::read_tool()));
        }
        listing.tools.extend(listed.tools);
        listing.findings.extend(listed.findings);
        listing
    }

    fn client_kind(&self) -> ClientKind {
        self.client
    }

    async fn call(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        Ok(self.answer(call, context).await)
    }
}
