//! Everything a client asks that is no call: resources, prompts, completions,
//! tasks, log levels. The same on every surface.
//!
//! Reading a resource, getting a prompt and asking about a task go through
//! dispatch, so the same rules, limits, retries and scrubbing hold for them as
//! for calls. What is read or rendered passes whole, as the client asked for
//! it; what came of a task is the answer of a call, and gated like one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::Slot;
use futures::stream::BoxStream;
use tool::{
    Ask, Context, Event, Failure, GetPrompt, Json, Object, Read, Reply, Resource, RpcError,
};

use super::about::About;
use super::kept;
use super::oversize;
use super::tasks::Tasks;
use crate::choice::Surface;
use crate::dispatch::{CallError, Dispatcher, Origin, Outcome, RenderReply};
use artifacts::Owner;
use artifacts::envelope::Envelope;
use policy::call::{Mode, Request, Target, What};
use policy::confirm;
use roster::primitives::Viewer;
use roster::{Snapshot, UpstreamPool};

/// How long upstreams may take to hear of a log level.
const HEARING: Duration = Duration::from_secs(5);

/// How long they may take to hear news of a client and to ask about them.
const ASKING: Duration = Duration::from_secs(20);

/// Who answers it, for one surface.
pub(crate) struct Rest {
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    pub(crate) origin: Origin,
}

impl Rest {
    pub(crate) fn events(&self) -> BoxStream<'static, Event> {
        self.pool.events()
    }

    /// What is there for this caller alone: what is kept of their answers.
    pub(crate) async fn resources(&self, context: &Context) -> Vec<Resource> {
        kept::listed(&*self.pipeline.artifacts, context).await
    }

    /// Passes on what concerns a resource, a prompt, a task or everybody.
    pub(crate) async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let snapshot = self.pool.snapshot();
        if let Ask::Read(read) = &ask {
            if read.uri.starts_with(kept::SCHEME) {
                let token = confirm::take(&mut read.rest.clone());
                return Ok(kept::read(&self.pipeline, &read.uri, token.as_deref(), context).await);
            }
            if let Some(identity) = self.about.read(&read.uri) {
                return Ok(identity);
            }
        }
        if let Ask::Other { method, .. } = &ask {
            if method == "logging/setLevel" {
                self.pool.set_log_level(&ask, context);
                return Ok(to_all(&snapshot, &ask, context, HEARING).await);
            }
            if method.starts_with("notifications/") {
                return Ok(to_all(&snapshot, &ask, context, ASKING).await);
            }
        }
        if let Ask::Other { method, params } = &ask
            && method.starts_with("tasks/")
        {
            return match self.begun(&snapshot, params, context) {
                Ok(slot) => {
                    let asked = self.task(&snapshot, slot, method, params.clone(), context);
                    Box::pin(asked).await
                }
                Err(error) => Ok(Reply::Error(error)),
            };
        }
        match self.routed(&snapshot, ask, context) {
            Ok((source, Ask::Read(Read { uri, rest }))) => {
                let target = snapshot.resource(source, &uri);
                self.carry(&snapshot, target, None, rest, context).await
            }
            Ok((source, Ask::Prompt(GetPrompt { name, arguments, rest }))) => {
                let target = snapshot.prompt(source, &name);
                self.carry(&snapshot, target, arguments, rest, context).await
            }
            Ok((source, ask)) => snapshot.ask(source, ask, context).await,
            Err(ask) => Ok(Reply::Error(unrouted(&ask))),
        }
    }

    /// The function that began the task that is asked about, if the task is
    /// this caller's and they still see the function.
    fn begun(
        &self,
        snapshot: &Snapshot,
        params: &Object,
        context: &Context,
    ) -> Result<Slot, RpcError> {
        let id = params.get("taskId").and_then(Json::text).unwrap_or_default();
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
        let request = Request { target, arguments: None, rest: params, wanted: None, mode };
        // What a task says of itself is the client's to read, so only the
        // result in it is gated.
        let around: OnceLock<Object> = OnceLock::new();
        let render = |reply: &Reply| match inside(reply) {
            Some((task, result)) => {
                around.get_or_init(|| task);
                Reply::Result(result)
            }
            None => reply.clone(),
        };
        let render: Option<RenderReply<'_>> = (mode != Mode::Pass).then_some(&render);
        let reply = self.dispatch(snapshot, request, render, context).await?;
        let Reply::Result(result) = &reply else { return Ok(reply) };
        Ok(match around.get() {
            Some(task) => {
                let mut task = task.clone();
                task.set("result", result.clone());
                let scrubber = &self.pipeline.scrubber;
                Reply::Result(scrubber.scrub_json(&task.to_json()))
            }
            None => reply,
        })
    }

    /// Where a question about a resource or a prompt goes, if the caller knows
    /// of it.
    fn routed(
        &self,
        snapshot: &Snapshot,
        ask: Ask,
        context: &Context,
    ) -> Result<(usize, Ask), Ask> {
        let visible = self.pipeline.live.visible_to(&context.caller);
        let viewer = Viewer {
            shows: &|thing| visible.shows(thing),
            hides_resources: visible.hides_resources(),
        };
        snapshot.primitives().route(&snapshot.catalog, ask, &viewer)
    }

    async fn carry(
        &self,
        snapshot: &Arc<Snapshot>,
        target: Target,
        arguments: Option<Json>,
        rest: tool::Object,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let request = Request { target, arguments, rest, wanted: None, mode: Mode::Pass };
        self.dispatch(snapshot, request, None, context).await
    }

    /// Carries a question through the pipeline.
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
                    let provenance = kept::provenance(&artifact, &callee.id);
                    Envelope::new(&artifact, provenance, over.is_error).to_reply()
                }
                Surface::Cash | Surface::Direct | Surface::Auto => {
                    oversize::kept(&self.pipeline.gate.load(), "Result", None, &artifact, &over)
                }
            },
            Ok(Outcome::Unkept { artifact, over, why }) => {
                oversize::lost(&self.pipeline.gate.load(), "Result", &artifact, &over, why)
            }
            // Nothing here is planned.
            Ok(Outcome::Plan(_)) => Reply::Result(Json::empty_object()),
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

/// What is known of a task, and the result that has come of it.
fn inside(reply: &Reply) -> Option<(Object, Json)> {
    let Reply::Result(json) = reply else { return None };
    if !json.mentions("\"taskId\"") {
        return None;
    }
    let task = Object::parse(json).ok()?;
    task.get("taskId")?;
    let result = task.get("result").filter(|result| result.is_object())?.clone();
    Some((task, result))
}

/// Tells every upstream that is up; what they answer does not matter, and who
/// does not answer holds up nobody.
async fn to_all(snapshot: &Arc<Snapshot>, ask: &Ask, context: &Context, limit: Duration) -> Reply {
    let told =
        snapshot.upstreams().iter().map(|upstream| upstream.notify(ask.clone(), context, limit));
    futures::future::join_all(told).await;
    Reply::Result(Json::empty_object())
}

fn unrouted(ask: &Ask) -> RpcError {
    match ask {
        Ask::Read(read) => {
            RpcError::new(-32002, format!("no upstream has a resource `{}`", read.uri))
        }
        Ask::Prompt(prompt) => {
            RpcError::new(-32602, format!("no upstream has a prompt `{}`", prompt.name))
        }
        Ask::Complete(_) => RpcError::new(-32602, "nothing of that name can be completed"),
        Ask::Call(_) => RpcError::new(-32602, "no such tool"),
        Ask::Other { method, .. } if method.starts_with("resources/") => {
            RpcError::new(-32002, "no upstream has that resource")
        }
        Ask::Other { method, .. } if method.starts_with("tasks/") => RpcError::new(-32602, NO_TASK),
        Ask::Other { method, .. } => RpcError::new(-32601, format!("no method `{method}`")),
    }
}

#[cfg(test)]
mod tests;
