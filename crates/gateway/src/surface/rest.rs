//! Everything a client asks that is no call: resources, prompts, completions,
//! tasks, log levels. The same on every surface.
//!
//! Reading a resource and getting a prompt go through dispatch, so the same
//! rules, limits, retries and scrubbing hold for them as for calls; the answer
//! passes whole, as the client asked for it.

use std::sync::Arc;

use futures::stream::BoxStream;
use tool::{Ask, Context, Event, Failure, GetPrompt, Json, Read, Reply, Resource, RpcError};

use super::cash::{IDENTITY, identity};
use super::offers::{Offers, Sight};
use super::{Surface, artifacts};
use crate::dispatch::{CallError, Mode, Outcome, Request, Target};
use crate::gateway::Shared;
use crate::roster::{Hall, Phase, Snapshot};
use crate::trust::confirm;

/// Who answers it, for one surface.
pub(crate) struct Rest {
    shared: Arc<Shared>,
    hall: Arc<Hall>,
    surface: Surface,
}

impl Rest {
    pub(crate) fn new(shared: &Arc<Shared>, hall: &Arc<Hall>, surface: Surface) -> Rest {
        Rest { shared: Arc::clone(shared), hall: Arc::clone(hall), surface }
    }

    pub(crate) fn events(&self) -> BoxStream<'static, Event> {
        self.hall.events()
    }

    /// What is there for this caller alone: what is kept of their answers.
    pub(crate) async fn resources(&self, context: &Context) -> Vec<Resource> {
        artifacts::listed(&self.shared, context).await
    }

    /// Passes on what concerns a resource, a prompt, a task or everybody.
    pub(crate) async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let snapshot = self.hall.snapshot();
        if let Ask::Read(read) = &ask {
            if read.uri.starts_with(artifacts::SCHEME) {
                let token = confirm::take(&mut read.rest.clone());
                return Ok(
                    artifacts::read(&self.shared, &read.uri, token.as_deref(), context).await
                );
            }
            if let Some(manifest) = self.shared.manifest.as_ref().filter(|_| read.uri == IDENTITY) {
                return Ok(identity(&manifest()));
            }
        }
        if let Ask::Other { method, .. } = &ask
            && method == "logging/setLevel"
        {
            return Ok(to_all(&snapshot, &ask, context).await);
        }
        let task = ask.rest().get("taskId").and_then(Json::text);
        if let Some(label) = task.and_then(|task| self.shared.tasks.upstream(&task))
            && let Some(at) = snapshot.catalog.sources().iter().position(|s| s.label == label)
        {
            return snapshot.ask(at, ask, context).await;
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

    /// Where a question about a resource or a prompt goes, if the caller knows
    /// of it.
    fn routed(
        &self,
        snapshot: &Snapshot,
        ask: Ask,
        context: &Context,
    ) -> Result<(usize, Ask), Ask> {
        let trust = &self.shared.dispatcher.stages.trust;
        let sight = Sight {
            knows: &|thing| trust.knows(&context.caller, thing),
            picks: trust.picks_resources(&context.caller),
        };
        snapshot.offers().route(&snapshot.catalog, ask, &sight)
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
        let mut failure = None;
        let refused = |message: String| Reply::Error(RpcError::new(-32600, message));
        let say = |outcome| match outcome {
            Ok(Outcome::Reply(reply)) => reply,
            // Nothing is kept or planned in this mode.
            Ok(Outcome::Kept { artifact, .. } | Outcome::Unkept { artifact, .. }) => {
                Reply::Result(artifact.result.clone())
            }
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
        let dispatcher = &self.shared.dispatcher;
        let reply = dispatcher.dispatch(snapshot, request, self.surface, context, say).await;
        // A client that talks to the upstream itself would see the failure too.
        failure.map_or(Ok(reply), Err)
    }
}

impl Snapshot {
    /// Where everything beside functions is, found out when first needed.
    pub(crate) fn offers(&self) -> &Offers {
        self.offers.get_or_init(|| Offers::of(&self.catalog))
    }
}

/// Tells every upstream that is up; what they answer does not matter.
async fn to_all(snapshot: &Arc<Snapshot>, ask: &Ask, context: &Context) -> Reply {
    let up = snapshot.links().iter().filter(|link| link.status().phase == Phase::Up);
    let asks = up.map(|link| link.ask(ask.clone(), context));
    futures::future::join_all(asks).await;
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
        Ask::Other { method, .. } if method.starts_with("tasks/") => {
            RpcError::new(-32602, "no upstream has that task")
        }
        Ask::Other { method, .. } => RpcError::new(-32601, format!("no method `{method}`")),
    }
}
