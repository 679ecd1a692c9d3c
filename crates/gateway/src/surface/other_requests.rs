//! Answers all requests that are not tool calls: resources, prompts, completions, tasks,
//! log levels. They are the same on every surface.
//!
//! A request to one upstream goes through dispatch, so the same rules, limits,
//! retries, records and scrubbing hold as for calls. Resources, prompts and completions
//! pass whole; the result of a task is the answer of a call and gated like one. Log
//! levels, and that the client's roots changed, go to all upstreams that the caller
//! sees. A method that is not in [`Method`] reaches no upstream.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::Slot;
use catalog::summary::echo;
use futures::stream::BoxStream;
use tool::{
    Ask, Call, Context, Event, Failure, GetPrompt, Identity, Json, Object, ReadResource, Reply,
    Resource, RpcError,
};

use super::about::About;
use super::artifact_resources;
use super::groups;
use super::listed::ListedFunctions;
use super::oversize;
use super::served_skills::{self, ServedSkills, SkillFile};
use super::tasks::Tasks;
use crate::choice::Surface;
use crate::dispatch::{CallError, Dispatcher, ForwardedRequest, Origin, Outcome, RenderReply};
use artifacts::Owner;
use artifacts::envelope::Envelope;
use policy::call::{CallMode, CompletionSubject, Request, SubscriptionChange, Target, TargetKind};
use policy::confirm;
use policy::refusal::RefusalCode;
use policy::visibility::Item;
use roster::primitives::{Route, Viewer, completed_uri};
use roster::{Snapshot, UpstreamPool};

/// How long upstreams may take to accept a log level.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long upstreams may take to handle a client's notification, upon which they may
/// send requests to the client.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(20);

/// The methods that may reach an upstream, by where they are sent. Tool calls are not
/// among them; any other method, such as one of an extension, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Sent to the upstream that has the named resource or prompt.
    Routed,
    /// Sent to the upstream that runs the task.
    Task,
    /// Answered from the skills of gatelet and of upstreams.
    Skills,
    /// Answered by gatelet: groups are namespaces.
    Groups,
    /// Sent to all upstreams.
    LogLevel,
    /// Sent to all upstreams.
    RootsChanged,
}

impl Method {
    fn parse(method: &str) -> Option<Method> {
        Some(match method {
            "resources/read"
            | "prompts/get"
            | "completion/complete"
            | SubscriptionChange::BEGIN
            | SubscriptionChange::END => Method::Routed,
            // `tasks/update` is of 2026-07-28, `tasks/result` of the revision before.
            "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel" => Method::Task,
            served_skills::LIST | served_skills::GET => Method::Skills,
            groups::LIST => Method::Groups,
            "logging/setLevel" => Method::LogLevel,
            "notifications/roots/list_changed" => Method::RootsChanged,
            _ => return None,
        })
    }
}

/// Answers requests that are not tool calls, for one surface.
pub(crate) struct OtherRequests {
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    pub(crate) skills: ServedSkills,
    pub(crate) listed: Arc<ListedFunctions>,
    pub(crate) origin: Origin,
}

impl OtherRequests {
    /// Returns the events for a caller: none of upstreams that the caller does not see,
    /// and none about resources that the caller may no longer subscribe to.
    pub(crate) fn events(&self, caller: &Arc<Identity>) -> BoxStream<'static, Event> {
        let (pipeline, caller) = (Arc::clone(&self.pipeline), Arc::clone(caller));
        // A listener does not keep the pool alive.
        let pool = Arc::downgrade(&self.pool);
        self.pool.events_from(move |label, event| {
            let visible = pipeline.live.visible_to(&caller);
            match event {
                Event::Updated { uri, .. } => pool.upgrade().is_some_and(|pool| {
                    may_subscribe(&pipeline, &pool.snapshot(), label, uri, &caller)
                }),
                Event::Changed(_) | Event::Notification(_) | Event::Gone { .. } => {
                    visible.shows_all()
                        || pool.upgrade().is_some_and(|pool| {
                            visible.shows_upstream(&pool.snapshot().catalog, label)
                        })
                }
            }
        })
    }

    /// Returns the resources of this caller alone: the artifacts.
    pub(crate) async fn resources(&self, context: &Context) -> Vec<Resource> {
        artifact_resources::list(&*self.pipeline.artifacts, context).await
    }

    /// Answers a request, or sends it to the upstreams it is for.
    pub(crate) async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let snapshot = self.pool.snapshot();
        if let Ask::ReadResource(read) = &ask {
            if read.uri.starts_with(artifact_resources::SCHEME) {
                let token = confirm::take_token(&mut read.other_params.clone());
                return Ok(artifact_resources::read(
                    &self.pipeline,
                    &read.uri,
                    token.as_deref(),
                    context,
                )
                .await);
            }
            if let Some(manifest) = self.about.read(&read.uri) {
                return Ok(manifest);
            }
            if served_skills::is_skill_uri(&read.uri) {
                match Box::pin(self.skills.file(&snapshot, &read.uri, context)).await {
                    Some(file) => return self.skill_file(&snapshot, file, ask, context).await,
                    // Only gatelet has such URIs, and this caller does not see the file.
                    None if served_skills::is_gatelets_own(&snapshot, &read.uri) => {
                        return Ok(Reply::Error(unrouted(&ask)));
                    }
                    None => {}
                }
            }
        }
        match Method::parse(ask.method()) {
            Some(Method::Skills) => {
                Ok(Box::pin(self.skills.answer(&snapshot, &ask, context)).await)
            }
            Some(Method::Groups) if self.listed.config().groups => {
                let visible = self.pipeline.live.visible_to(&context.caller);
                let cursor = ask.other_params().get("cursor").and_then(Json::string_value);
                let groups = groups::list(&snapshot.catalog, &visible, cursor.as_deref());
                Ok(Reply::Result(groups))
            }
            Some(Method::LogLevel) => {
                self.pool.set_log_level(&ask, context);
                Ok(self.send_to_all(&snapshot, &ask, context, LOG_LEVEL_TIMEOUT).await)
            }
            Some(Method::RootsChanged) => {
                Ok(self.send_to_all(&snapshot, &ask, context, NOTIFICATION_TIMEOUT).await)
            }
            Some(Method::Task) => {
                match self.function_of_task(&snapshot, ask.other_params(), context) {
                    Ok(slot) => {
                        let params = ask.other_params().clone();
                        Box::pin(self.task(&snapshot, slot, ask.method(), params, context)).await
                    }
                    Err(error) => Ok(Reply::Error(error)),
                }
            }
            Some(Method::Routed) => match self.route(&snapshot, &ask, context) {
                Some(route) => self.pass_through(&snapshot, route, ask, context).await,
                None => Ok(Reply::Error(unrouted(&ask))),
            },
            Some(Method::Groups) | None => Ok(Reply::Error(unrouted(&ask))),
        }
    }

    /// Reads a file of a skill: from gatelet, or from its upstream like any resource.
    async fn skill_file(
        &self,
        snapshot: &Arc<Snapshot>,
        file: SkillFile,
        ask: Ask,
        context: &Context,
    ) -> Result<Reply, Failure> {
        match file {
            SkillFile::Local(reply) => Ok(reply),
            SkillFile::Upstream(file) => {
                let route = Route::Read { source: file.source, uri: file.upstream_uri.clone() };
                Ok(file.check_and_rename(self.pass_through(snapshot, route, ask, context).await?))
            }
        }
    }

    /// Returns the function that started the task in the parameters, if the task is this
    /// caller's and the caller still sees the function.
    fn function_of_task(
        &self,
        snapshot: &Snapshot,
        params: &Object,
        context: &Context,
    ) -> Result<Slot, RpcError> {
        let id = params.get("taskId").and_then(Json::string_value).unwrap_or_default();
        let origins = self.tasks.origins(&Owner::from_context(context), &id);
        let visible = self.pipeline.live.visible_to(&context.caller);
        let slot = match origins.as_slice() {
            [] => None,
            [origin] => origin.slot(&snapshot.catalog),
            _ => {
                let id = catalog::summary::cut(&id, 80);
                let message = format!("several upstreams have a task `{id}`");
                return Err(RpcError::new(-32602, message));
            }
        };
        let seen = slot.filter(|slot| visible.shows_function(&snapshot.catalog, *slot));
        seen.ok_or_else(|| RpcError::new(-32602, NO_TASK))
    }

    /// Sends a request about a task to the upstream that runs it.
    async fn task(
        &self,
        snapshot: &Arc<Snapshot>,
        slot: Slot,
        method: &str,
        params: Object,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let what = TargetKind::Task { slot, method: method.to_owned() };
        let target = Target { kind: what, ..snapshot.target(slot) };
        let mode = match self.origin.surface {
            Surface::Direct => CallMode::PassThrough,
            Surface::Cash | Surface::Gateway | Surface::Proxy | Surface::Auto => CallMode::Strict,
        };
        // Only the result of the task is gated; its other members pass unchanged.
        let task_members: OnceLock<Object> = OnceLock::new();
        let render = |reply: &Reply| match task_and_result(reply) {
            Some((task, result)) => {
                task_members.get_or_init(|| task);
                Reply::Result(result)
            }
            None => reply.clone(),
        };
        let render: Option<RenderReply<'_>> = (mode != CallMode::PassThrough).then_some(&render);
        let forwarded = ForwardedRequest {
            target,
            arguments: None,
            other_params: params,
            size_limit: None,
            mode,
            render,
        };
        let reply = self.forward(snapshot, forwarded, context).await?;
        let Reply::Result(result) = &reply else { return Ok(reply) };
        Ok(match task_members.get() {
            Some(task) => {
                let mut task = task.clone();
                task.set("result", result.clone());
                let scrubber = &self.pipeline.scrubber;
                Reply::Result(scrubber.scrub_json(&task.to_json()))
            }
            None => reply,
        })
    }

    /// Returns the upstream that a request about a resource or a prompt is for, if the
    /// caller may see it.
    fn route(&self, snapshot: &Snapshot, ask: &Ask, context: &Context) -> Option<Route> {
        let visible = self.pipeline.live.visible_to(&context.caller);
        let viewer = Viewer {
            shows: &|thing| visible.shows_directly(thing),
            hides_resources: visible.hides_resources(),
        };
        snapshot.primitives().route(&snapshot.catalog, ask, &viewer)
    }

    /// Forwards a request whose answer passes whole.
    async fn pass_through(
        &self,
        snapshot: &Arc<Snapshot>,
        route: Route,
        ask: Ask,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let (arguments, other_params) = match ask {
            Ask::Call(Call { arguments, other_params, .. })
            | Ask::Prompt(GetPrompt { arguments, other_params, .. }) => (arguments, other_params),
            Ask::ReadResource(ReadResource { other_params, .. }) => (None, other_params),
            Ask::Complete(params) | Ask::Other { params, .. } => (None, params),
        };
        if let Route::Completion { source, filled_uri: Some(uri), .. } = &route
            && let Err((why, message)) = self.may_complete(snapshot, *source, uri, context)
        {
            let reply = Reply::Error(RpcError::new(-32600, message));
            self.pipeline.record_refusal(self.origin, context, why, &reply);
            return Ok(reply);
        }
        let completed = match &route {
            Route::Completion {
                source,
                of: CompletionSubject::Resource(template),
                filled_uri: Some(_),
                params,
            } => Some(CompletedTemplate {
                source: *source,
                template: template.clone(),
                params: params.clone(),
            }),
            Route::Completion { .. }
            | Route::Read { .. }
            | Route::Prompt { .. }
            | Route::Subscription { .. } => None,
        };
        let (target, other_params) = match route {
            Route::Read { source, uri } => (snapshot.resource(source, &uri), other_params),
            Route::Prompt { source, name } => (snapshot.prompt(source, &name), other_params),
            Route::Completion { source, of, params, .. } => {
                (snapshot.completion(source, of), params)
            }
            Route::Subscription { source, uri, change } => {
                (snapshot.subscription(source, &uri, change), other_params)
            }
        };
        let forwarded = ForwardedRequest {
            target,
            arguments,
            other_params,
            size_limit: None,
            mode: CallMode::PassThrough,
            render: None,
        };
        let reply = self.forward(snapshot, forwarded, context).await?;
        Ok(match &completed {
            Some(completed) => self.without_hidden_values(snapshot, completed, reply, context),
            None => reply,
        })
    }

    /// Removes values of a completion that make a URI which the caller may not read: an
    /// upstream that is asked about `s` tells what is in `srv`.
    fn without_hidden_values(
        &self,
        snapshot: &Snapshot,
        completed: &CompletedTemplate,
        reply: Reply,
        context: &Context,
    ) -> Reply {
        let visible = self.pipeline.live.visible_to(&context.caller);
        if visible.shows_all() && self.pipeline.live.now().stages.checks.is_empty() {
            return reply;
        }
        let CompletedTemplate { source, template, params } = completed;
        let upstream = &snapshot.catalog.sources()[*source].label;
        let may_know = |value: &String| {
            let uri = completed_uri(template, params, value);
            visible.shows_directly(&Item::Resource { upstream, uri: &uri })
                && self.may_complete(snapshot, *source, &uri, context).is_ok()
        };
        let Reply::Result(result) = &reply else { return reply };
        let (Ok(mut members), Some(completion)) =
            (Object::parse(result), result.member("completion"))
        else {
            return reply;
        };
        let values: Vec<String> = completion.member_as("values").unwrap_or_default();
        let values = values.into_iter().take(MAX_COMPLETIONS).filter(may_know);
        // How many there are in all would count the hidden ones, too.
        let kept = serde_json::json!({"values": values.collect::<Vec<_>>()});
        members.remove("completion");
        members.push("completion", kept.into());
        Reply::Result(members.to_json())
    }

    /// Returns whether the caller may complete a URI: only if they may read the
    /// resource that it leads to. The error is the refusal's code and message.
    fn may_complete(
        &self,
        snapshot: &Snapshot,
        source: usize,
        uri: &str,
        context: &Context,
    ) -> Result<(), (RefusalCode, String)> {
        let target = snapshot.completion(source, CompletionSubject::Resource(uri.to_owned()));
        let request =
            Request { mode: CallMode::PassThrough, ..Request::new(target, Json::empty_object()) };
        let call = policy::validate::check(&snapshot.catalog, request)
            .map_err(|_| (RefusalCode::BadArguments, "the value makes no URI".to_owned()))?;
        let admitted = self.pipeline.live.now().admit(&snapshot.catalog, &call, context);
        admitted.map(drop).map_err(|refusal| (refusal.code, refusal.message))
    }

    /// Sends a request to every upstream that is up and that the caller sees. Their
    /// answers do not matter, and one that does not answer delays no other.
    async fn send_to_all(
        &self,
        snapshot: &Arc<Snapshot>,
        ask: &Ask,
        context: &Context,
        timeout: Duration,
    ) -> Reply {
        let visible = self.pipeline.live.visible_to(&context.caller);
        let sources = 0..snapshot.catalog.sources().len();
        let seen = sources.filter(|source| visible.shows_source(&snapshot.catalog, *source));
        let upstreams = seen.filter_map(|source| snapshot.upstream(source));
        let sent = upstreams.map(|upstream| upstream.notify(ask.clone(), context, timeout));
        futures::future::join_all(sent).await;
        Reply::Result(Json::empty_object())
    }

    /// Forwards a request to its upstream and turns the outcome into a reply.
    async fn forward(
        &self,
        snapshot: &Arc<Snapshot>,
        forwarded: ForwardedRequest<'_>,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let callee = Arc::clone(&forwarded.target.callee);
        let mut failure = None;
        let refused = |message: String| Reply::Error(RpcError::new(-32600, message));
        let to_reply = |outcome| match (outcome, self.origin.surface) {
            (Ok(Outcome::Kept { artifact, over }), Surface::Gateway | Surface::Proxy) => {
                let provenance = artifact_resources::provenance(&artifact, &callee.id);
                Envelope::new(&artifact, provenance, over.is_error).to_reply()
            }
            (outcome, _) => {
                let gate = self.pipeline.gate.load();
                match oversize::outcome_reply(&gate, "Result", None, outcome) {
                    Ok(reply) => reply,
                    Err(CallError::Failed { cause, .. }) => {
                        let reply = refused(cause.to_string());
                        failure = Some(cause);
                        reply
                    }
                    Err(error @ (CallError::BadArguments { .. } | CallError::Refused(_))) => {
                        refused(error.to_string())
                    }
                }
            }
        };
        let pipeline = &self.pipeline;
        let reply = pipeline.forward(snapshot, forwarded, self.origin, context, to_reply).await;
        // A client that talks to the upstream itself would see the failure too.
        failure.map_or(Ok(reply), Err)
    }
}

/// A template of an upstream of which a variable is completed.
struct CompletedTemplate {
    /// The index of the upstream among the catalog's sources.
    source: usize,
    template: String,
    params: Object,
}

/// How many values a completion may have, by the protocol.
const MAX_COMPLETIONS: usize = 100;

/// The error for a task that does not exist for the caller.
const NO_TASK: &str = "no upstream has that task";

/// Splits a task into its members and the result among them.
fn task_and_result(reply: &Reply) -> Option<(Object, Json)> {
    let Reply::Result(json) = reply else { return None };
    if !json.mentions("\"taskId\"") {
        return None;
    }
    let task = Object::parse(json).ok()?;
    task.get("taskId")?;
    let result = task.get("result").filter(|result| result.is_object())?.clone();
    Some((task, result))
}

/// Returns the error for a request that no upstream can answer.
fn unrouted(ask: &Ask) -> RpcError {
    match ask {
        Ask::ReadResource(read) => {
            RpcError::new(-32002, format!("no upstream has a resource `{}`", echo(&read.uri)))
        }
        Ask::Prompt(prompt) => {
            RpcError::new(-32602, format!("no upstream has a prompt `{}`", echo(&prompt.name)))
        }
        Ask::Complete(_) => RpcError::new(-32602, "nothing of that name can be completed"),
        Ask::Call(_) => RpcError::new(-32602, "no such tool"),
        Ask::Other { method, .. } if SubscriptionChange::from_method(method).is_some() => {
            RpcError::new(-32002, "no upstream has that resource")
        }
        Ask::Other { method, .. } => {
            let method = catalog::summary::cut(method, 80);
            RpcError::new(-32601, format!("no method `{method}`"))
        }
    }
}

/// Returns whether the current rules let a caller subscribe to a resource. Events are
/// held back when they no longer do.
fn may_subscribe(
    pipeline: &Dispatcher,
    snapshot: &Snapshot,
    label: &str,
    uri: &str,
    caller: &Arc<Identity>,
) -> bool {
    let in_force = pipeline.live.now();
    if pipeline.live.visible_to(caller).shows_all() && in_force.stages.checks.is_empty() {
        return true;
    }
    let is_from = |source: &catalog::Source| source.label == label;
    let Some(source) = snapshot.catalog.sources().iter().position(is_from) else { return false };
    let target = snapshot.subscription(source, uri, SubscriptionChange::Begin);
    let request = Request {
        arguments: None,
        mode: CallMode::PassThrough,
        ..Request::new(target, Json::empty_object())
    };
    let Ok(call) = policy::validate::check(&snapshot.catalog, request) else { return false };
    let context = Context { caller: Arc::clone(caller), ..Context::anonymous() };
    in_force.admit(&snapshot.catalog, &call, &context).is_ok()
}

#[cfg(test)]
mod tests;
