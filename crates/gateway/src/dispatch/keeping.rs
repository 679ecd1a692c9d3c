//! Keeps answers that are over the size limit, and returns them again.

use std::sync::Arc;

use tool::{Context, Json, Reply};

use crate::dispatch::measured::measured;
use crate::dispatch::outcome::Outcome;
use crate::dispatch::pipeline::Dispatcher;
use artifacts::gate::{self, Gated};
use artifacts::{self, Artifact, Owner, StoredIn};
use policy::admission::Admission;
use policy::approval::ApprovalRequest;
use policy::call::Callee;
use policy::refusal::Refusal;
use policy::rules;
use policy::validate::ValidCall;

impl Dispatcher {
    /// A kept answer, for its owner, if the rules let them view it.
    pub(crate) async fn viewable(
        &self,
        handle: &str,
        token: Option<&str>,
        context: &Context,
    ) -> Result<Option<Arc<Artifact>>, Refusal> {
        let found = self.artifacts.get(&Owner::from_context(context), handle).await;
        if let Some(artifact) = &found
            && let in_force = self.live.now()
            && let Admission::Ask(question) = in_force.admit_view(artifact)?
        {
            let key = format!("{}\u{1f}{handle}", rules::VIEW);
            let arguments = serde_json::json!({"handle": handle}).to_string();
            let callee = Callee::new("", &artifact.upstream, rules::VIEW);
            let request = ApprovalRequest {
                key,
                callee: &callee,
                digest: None,
                arguments: &arguments,
                token,
                call_text: String::new(),
            };
            in_force.stages.approval.agree(&question, &request, context).await?;
        }
        Ok(found)
    }

    /// The kept answer of an identical call, for a caller who now gives a size
    /// limit.
    ///
    /// The function has run; running it again because its answer was long would
    /// repeat its side effects. Once an answer was returned whole, the next call
    /// runs.
    pub(super) async fn replay(
        &self,
        call: &ValidCall,
        wanted: Option<usize>,
        context: &Context,
    ) -> Option<Outcome> {
        // Boxed, here and below, so that rare cases do not enlarge the future of
        // every call.
        let wanted = wanted.filter(|_| !call.continues())?;
        Box::pin(self.find_kept(call, wanted, context)).await
    }

    async fn find_kept(
        &self,
        call: &ValidCall,
        wanted: usize,
        context: &Context,
    ) -> Option<Outcome> {
        let owner = Owner::from_context(context);
        let key = Artifact::fingerprint(&call.key());
        let artifact = self.artifacts.find_by_call(&owner, &key).await?;
        let limit = self.gate.load().limit(Some(wanted));
        let whole = Reply::Result(artifact.result.clone());
        let gated = measured(whole, limit, |reply| reply).await.ok()?.gated;
        Some(match gated.over() {
            Some(over) => Outcome::Kept { artifact, over: over.clone() },
            None => {
                self.artifacts.forget_call(&owner, &artifact.handle).await;
                Outcome::Reply(gated.raw().clone())
            }
        })
    }

    /// Keeps an answer that is over the limit, with its unscrubbed form where the
    /// operator wants that.
    pub(super) async fn keep(
        &self,
        call: &ValidCall,
        gated: Gated,
        raw: Option<Reply>,
        context: &Context,
    ) -> Outcome {
        match gated.apart() {
            (Reply::Result(result), Some(over)) => {
                Box::pin(self.store_artifact(call, over, result, raw, context)).await
            }
            (reply, _) => Outcome::Reply(reply),
        }
    }

    /// Stores a long result under a new handle.
    async fn store_artifact(
        &self,
        call: &ValidCall,
        over: gate::Over,
        result: Json,
        raw: Option<Reply>,
        context: &Context,
    ) -> Outcome {
        let owner = Owner::from_context(context);
        let artifact = Artifact {
            handle: Artifact::new_handle(&owner),
            owner,
            made: self.recorder.clock.unix_millis(),
            upstream: call.callee.upstream.clone(),
            tool: call.callee.tool.clone(),
            id: call.callee.id.clone(),
            key: Artifact::fingerprint(&call.key()),
            result,
            raw: match raw {
                Some(Reply::Result(raw)) => Some(raw),
                Some(Reply::Error(_)) | None => None,
            },
            chars: over.chars,
            parts: artifacts::Parts::default(),
        };
        // What is told of it takes reading all of it, so it is done once, here; if
        // it takes too long, it goes on in the background.
        if offload::is_long(artifact.bytes()) {
            let read = artifact.clone();
            let _ = offload::run(move |_| read.overview().tokens).await;
        }
        let kept = self.artifacts.put(artifact.clone()).await;
        let artifact = Arc::new(artifact);
        match kept {
            Ok(StoredIn::Stored) => Outcome::Kept { artifact, over },
            Ok(StoredIn::MemoryFallback { reason }) => {
                let handle = &artifact.handle;
                tracing::warn!(handle, reason, "a long result is kept in memory only");
                Outcome::Kept { artifact, over }
            }
            Err(why) => {
                tracing::warn!(upstream = call.callee.upstream, %why, "a long result is not kept");
                let (read, bound) = (Arc::clone(&artifact), over.clone());
                let beginning = offload::run(move |_| gate::beginning(&read, &bound)).await;
                let beginning = beginning.unwrap_or_else(|slow| format!("({slow})"));
                Outcome::Unkept { artifact, over, why, beginning }
            }
        }
    }
}
