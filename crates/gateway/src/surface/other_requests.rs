//! All requests that are not tool calls: resources, prompts, completions, tasks,
//! log levels. They are the same on every surface.
//!
//! A request to one upstream goes through dispatch, so the same rules, limits,
//! retries, records and scrubbing hold as for calls. What is read, rendered or
//! completed passes whole, as the client asked for it; the result of a task is the
//! answer of a call and gated like one. Log levels, and that the client's roots
//! changed, go to all upstreams that the caller sees. A method that is not in
//! [`Method`] reaches no upstream.

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
use super::listed::Live;
use super::oversize;
use super::served_skills::{self, ServedSkills, SkillFile};
use super::tasks::Tasks;
use crate::choice::Surface;
use crate::dispatch::{CallError, Dispatcher, Origin, Outcome, RenderReply};
use artifacts::Owner;
use artifacts::envelope::Envelope;
use policy::call::{Completed, Mode, Request, SubscriptionChange, Target, What};
use policy::confirm;
use policy::refusal::Refused;
use roster::primitives::{Route, Viewer};
use roster::{Snapshot, UpstreamPool};

/// How long upstreams may take to accept a log level.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long they may take to handle a client's notification, which may make them
/// ask the client something.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(20);

/// Every method that may reach an upstream, by how it gets there. Calls have a
/// way of their own on every surface; whatever else a client names, an extension's
/// method or one that a server made up, is refused here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// To the one upstream that has the resource or prompt that is named.
    Routed,
    /// To the upstream that runs the task.
    Task,
    /// To upstreams with skills, which are asked for what they have.
    Skills,
    /// To none: namespaces are ours.
    Groups,
    /// To all.
    LogLevel,
    RootsChanged,
}

impl Method {
    fn read(method: &str) -> Option<Method> {
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

/// Answers them, for one surface.
pub(crate) struct OtherRequests {
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    pub(crate) skills: ServedSkills,
    pub(crate) listed: Arc<Live>,
    pub(crate) origin: Origin,
}

impl OtherRequests {
    /// What a caller is told without asking: nothing of upstreams that they do
    /// not see, and nothing of a resource that they may not subscribe to any more.
    pub(crate) fn events(&self, caller: &Arc<Identity>) -> BoxStream<'static, Event> {
        let (pipeline, caller) = (Arc::clone(&self.pipeline), Arc::clone(caller));
        // Who listens keeps nothing running.
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

    /// The resources of this caller alone: their kept answers.
    pub(crate) async fn resources(&self, context: &Context) -> Vec<Resource> {
        artifact_resources::listed(&*self.pipeline.artifacts, context).await
    }

    /// Answers a request, or sends it to the upstreams it is for.
    pub(crate) async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let snapshot = self.pool.snapshot();
        if let Ask::ReadResource(read) = &ask {
            if read.uri.starts_with(artifact_resources::SCHEME) {
                let token = confirm::take(&mut read.other_params.clone());
                return Ok(artifact_resources::read(
                    &self.pipeline,
                    &read.uri,
                    token.as_deref(),
                    context,
                )
                .await);
            }
            if let Some(identity) = self.about.read(&read.uri) {
                return Ok(identity);
            }
            if served_skills::is_file(&read.uri) {
                match Box::pin(self.skills.file(&snapshot, &read.uri, context)).await {
                    Some(file) => return self.skill_file(&snapshot, file, ask, context).await,
                    // It is ours, and not there for this caller: no upstream is
                    // asked for it.
                    None if served_skills::owns(&snapshot, &read.uri) => {
                        return Ok(Reply::Error(unrouted(&ask)));
                    }
                    None => {}
                }
            }
        }
        match Method::read(ask.method()) {
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

    /// Reads a file of a skill, the way of every resource where it is at an upstream.
    async fn skill_file(
        &self,
        snapshot: &Arc<Snapshot>,
        file: SkillFile,
        ask: Ask,
        context: &Context,
    ) -> Result<Reply, Failure> {
        match file {
            SkillFile::Here(reply) => Ok(reply),
            SkillFile::Distant(file) => {
                let route = Route::Read { source: file.source, uri: file.original.clone() };
                Ok(file.reply(self.pass_through(snapshot, route, ask, context).await?))
            }
        }
    }

    /// The function that began the task that is asked about, if the task is
    /// this caller's and they still see the function.
    fn function_of_task(
        &self,
        snapshot: &Snapshot,
        params: &Object,
        context: &Context,
    ) -> Result<Slot, RpcError> {
        let id = params.get("taskId").and_then(Json::string_value).unwrap_or_default();
        let began = self.tasks.began(&Owner::from_context(context), &id);
        let visible = self.pipeline.live.visible_to(&context.caller);
        let slot = match began.as_slice() {
            [] => None,
            [began] => began.slot(&snapshot.catalog),
            _ => {
                let id = catalog::summary::cut(&id, 80);
                let message = format!("several upstreams have a task `{id}`");
                return Err(RpcError::new(-32602, message));
            }
        };
        let seen = slot.filter(|slot| visible.shows_function(&snapshot.catalog, *slot));
        seen.ok_or_else(|| RpcError::new(-32602, NO_TASK))
    }

    /// Asks about a task where it runs.
    async fn task(
        &self,
        snapshot: &Arc<Snapshot>,
        slot: Slot,
        method: &str,
        params: Object,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let what = What::Task { slot, method: method.to_owned() };
        let target = Target { what, ..snapshot.target(slot) };
        let mode = match self.origin.surface {
            Surface::Direct => Mode::Pass,
            Surface::Cash | Surface::Gateway | Surface::Proxy | Surface::Auto => Mode::Strict,
        };
        let request = Request {
            target,
            arguments: None,
            rest: params,
            wanted: None,
            share: None,
            pick: None,
            script: None,
            mode,
        };
        // Only the result in it is gated; the client reads the task's own members.
        let outer: OnceLock<Object> = OnceLock::new();
        let render = |reply: &Reply| match task_and_result(reply) {
            Some((task, result)) => {
                outer.get_or_init(|| task);
                Reply::Result(result)
            }
            None => reply.clone(),
        };
        let render: Option<RenderReply<'_>> = (mode != Mode::Pass).then_some(&render);
        let reply = self.dispatch(snapshot, request, render, context).await?;
        let Reply::Result(result) = &reply else { return Ok(reply) };
        Ok(match outer.get() {
            Some(task) => {
                let mut task = task.clone();
                task.set("result", result.clone());
                let scrubber = &self.pipeline.scrubber;
                Reply::Result(scrubber.scrub_json(&task.to_json()))
            }
            None => reply,
        })
    }

    /// The source that a request about a resource or a prompt is for, if the
    /// caller may see it.
    fn route(&self, snapshot: &Snapshot, ask: &Ask, context: &Context) -> Option<Route> {
        let visible = self.pipeline.live.visible_to(&context.caller);
        let viewer = Viewer {
            shows: &|thing| visible.shows_directly(thing),
            hides_resources: visible.hides_resources(),
        };
        snapshot.primitives().route(&snapshot.catalog, ask, &viewer)
    }

    /// Dispatches a request whose answer passes whole.
    async fn pass_through(
        &self,
        snapshot: &Arc<Snapshot>,
        route: Route,
        ask: Ask,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let (arguments, rest) = match ask {
            Ask::Call(Call { arguments, other_params: rest, .. })
            | Ask::Prompt(GetPrompt { arguments, other_params: rest, .. }) => (arguments, rest),
            Ask::ReadResource(ReadResource { other_params: rest, .. }) => (None, rest),
            Ask::Complete(params) | Ask::Other { params, .. } => (None, params),
        };
        if let Route::Completion { source, judged: Some(uri), .. } = &route
            && let Err((why, message)) = self.may_complete(snapshot, *source, uri, context)
        {
            let reply = Reply::Error(RpcError::new(-32600, message));
            self.pipeline.refused(self.origin, context, why, &reply);
            return Ok(reply);
        }
        let (target, rest) = match route {
            Route::Read { source, uri } => (snapshot.resource(source, &uri), rest),
            Route::Prompt { source, name } => (snapshot.prompt(source, &name), rest),
            Route::Completion { source, of, params, .. } => {
                (snapshot.completion(source, of), params)
            }
            Route::Subscription { source, uri, change } => {
                (snapshot.subscription(source, &uri, change), rest)
            }
        };
        let request = Request {
            target,
            arguments,
            rest,
            wanted: None,
            share: None,
            pick: None,
            script: None,
            mode: Mode::Pass,
        };
        self.dispatch(snapshot, request, None, context).await
    }

    /// Whether a caller may be helped to write a URI: only where they may read
    /// what it leads to.
    fn may_complete(
        &self,
        snapshot: &Snapshot,
        source: usize,
        uri: &str,
        context: &Context,
    ) -> Result<(), (Refused, String)> {
        let target = snapshot.completion(source, Completed::Resource(uri.to_owned()));
        let request = Request { mode: Mode::Pass, ..Request::new(target, Json::empty_object()) };
        let call = policy::validate::check(&snapshot.catalog, request)
            .map_err(|_| (Refused::BadArguments, "the value makes no URI".to_owned()))?;
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
        limit: Duration,
    ) -> Reply {
        let visible = self.pipeline.live.visible_to(&context.caller);
        let sources = 0..snapshot.catalog.sources().len();
        let seen = sources.filter(|source| visible.shows_source(&snapshot.catalog, *source));
        let upstreams = seen.filter_map(|source| snapshot.upstream(source));
        let sent = upstreams.map(|upstream| upstream.notify(ask.clone(), context, limit));
        futures::future::join_all(sent).await;
        Reply::Result(Json::empty_object())
    }

    /// Runs a request through the pipeline.
    async fn dispatch(
        &self,
        snapshot: &Arc<Snapshot>,
        request: Request,
        render: Option<RenderReply<'_>>,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let callee = Arc::clone(&request.target.callee);
        let mut failure = None;
        let refused = |message: String| Reply::Error(RpcError::new(-32600, message));
        let say = |outcome| match outcome {
            Ok(Outcome::Reply(reply)) => reply,
            Ok(Outcome::Kept { artifact, over }) => match self.origin.surface {
                Surface::Gateway | Surface::Proxy => {
                    let provenance = artifact_resources::provenance(&artifact, &callee.id);
                    Envelope::new(&artifact, provenance, over.is_error).to_reply()
                }
                Surface::Cash | Surface::Direct | Surface::Auto => {
                    oversize::kept(&self.pipeline.gate.load(), "Result", None, &artifact, &over)
                }
            },
            Ok(Outcome::Unkept { over, why, beginning, .. }) => {
                oversize::lost(&self.pipeline.gate.load(), "Result", &over, why, &beginning)
            }
            // Nothing here is planned.
            // Nothing is planned or picked here.
            Ok(Outcome::Plan(_) | Outcome::Unpicked { .. }) => Reply::Result(Json::empty_object()),
            Err(CallError::Failed { cause, .. }) => {
                let reply = refused(cause.to_string());
                failure = Some(cause);
                reply
            }
            Err(error @ (CallError::BadArguments { .. } | CallError::Refused(_))) => {
                refused(error.to_string())
            }
        };
        let reply = self
            .pipeline
            .dispatch_rendered(snapshot, request, self.origin, context, render, say)
            .await;
        // A client that talks to the upstream itself would see the failure too.
        failure.map_or(Ok(reply), Err)
    }
}

const NO_TASK: &str = "no upstream has that task";

/// A task and the result in it.
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
        Ask::Other { method, .. } if SubscriptionChange::of_method(method).is_some() => {
            RpcError::new(-32002, "no upstream has that resource")
        }
        Ask::Other { method, .. } => {
            let method = catalog::summary::cut(method, 80);
            RpcError::new(-32601, format!("no method `{method}`"))
        }
    }
}

/// Whether a caller could subscribe to a resource now, by the rules of the moment:
/// a subscription lasts for as long as they let it begin.
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
    let (arguments, rest) = (None, Object::new());
    let request = Request {
        target,
        arguments,
        rest,
        wanted: None,
        share: None,
        pick: None,
        script: None,
        mode: Mode::Pass,
    };
    let Ok(call) = policy::validate::check(&snapshot.catalog, request) else { return false };
    let context = Context { caller: Arc::clone(caller), ..Context::anonymous() };
    in_force.admit(&snapshot.catalog, &call, &context).is_ok()
}

#[cfg(test)]
mod tests;
