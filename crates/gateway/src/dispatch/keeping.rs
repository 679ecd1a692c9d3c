//! Stores answers that are over the size limit as artifacts, and returns stored
//! ones to callers who ask again.

use std::sync::Arc;

use offload::ReadingTurn;
use tool::{Context, Failure, Json, Reply};

use crate::dispatch::delivery::Delivery;
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::measuring::measure;
use crate::dispatch::origin::Origin;
use crate::dispatch::outcome::Outcome;
use crate::dispatch::picking::{self, PickChoice, PickedFrom};
use artifacts::gate::{self, Gated};
use artifacts::pick::PickError;
use artifacts::{self, Artifact, Owner, StoredIn};
use policy::admission::Admission;
use policy::approval::ApprovalRequest;
use policy::call::Callee;
use policy::refusal::{Refusal, RefusalCode};
use policy::rules;
use policy::validate::ValidCall;

/// An artifact in memory. It is one of a few until it is dropped.
pub(crate) struct LoadedArtifact {
    pub(crate) artifact: Arc<Artifact>,
    _turn: ReadingTurn,
}

impl Dispatcher {
    /// Returns the caller's artifact with this handle, if the rules let them view
    /// it. `approval_token` is the token that the caller got for an approval. Only a few
    /// are loaded at a time, and none stays loaded while somebody is asked.
    pub(crate) async fn viewable_artifact(
        &self,
        handle: &str,
        approval_token: Option<&str>,
        context: &Context,
    ) -> Result<Option<LoadedArtifact>, Refusal> {
        let Some(loaded) = self.load_artifact(handle, context).await? else { return Ok(None) };
        let in_force = self.live.now();
        if let Admission::Ask(question) = in_force.admit_view(&loaded.artifact)? {
            let key = format!("{}\u{1f}{handle}", rules::VIEW);
            let arguments = serde_json::json!({"handle": handle}).to_string();
            let callee = Callee::new("", &loaded.artifact.upstream, rules::VIEW);
            drop(loaded);
            let request = ApprovalRequest {
                key,
                callee: &callee,
                digest: None,
                arguments: &arguments,
                token: approval_token,
                call_text: String::new(),
            };
            in_force.stages.approval.agree(&question, &request, context).await?;
            return self.load_artifact(handle, context).await;
        }
        Ok(Some(loaded))
    }

    async fn load_artifact(
        &self,
        handle: &str,
        context: &Context,
    ) -> Result<Option<LoadedArtifact>, Refusal> {
        let turn = offload::reading_turn(context.caller.caller_key()).await;
        let turn = turn.map_err(|_| Refusal {
            code: RefusalCode::RateLimited,
            message: "too many stored results are being read for this caller; read fewer at a time"
                .to_owned(),
            retry_after: None,
        })?;
        let found = self.artifacts.get(&Owner::from_context(context), handle).await?;
        Ok(found.map(|artifact| LoadedArtifact { artifact, _turn: turn }))
    }

    /// Returns the stored answer of an identical call, for a caller who now gives a
    /// size limit, or asks for a part. The call that made it was approved and paid for.
    ///
    /// The function has run; running it again because its answer was long would
    /// repeat its side effects. Once the answer was returned whole, or the part
    /// that was asked for, the next call runs.
    pub(super) async fn replay(
        &self,
        call: &ValidCall,
        delivery: &Delivery<'_>,
    ) -> Result<Option<Outcome>, Refusal> {
        let asks_again = delivery.has_size_limit || delivery.pick.is_callers();
        if !asks_again || call.continues() {
            return Ok(None);
        }
        // Boxed, here and below, so that rare cases do not enlarge the future of
        // every call.
        Box::pin(self.find_stored(call, delivery)).await
    }

    async fn find_stored(
        &self,
        call: &ValidCall,
        delivery: &Delivery<'_>,
    ) -> Result<Option<Outcome>, Refusal> {
        let Delivery { limit, pick: choice, origin, context, .. } = delivery;
        let owner = Owner::from_context(context);
        let key = Artifact::fingerprint(&call.key());
        let Some(artifact) = self.artifacts.find_by_call(&owner, &key).await? else {
            return Ok(None);
        };
        if let PickChoice::Caller(pick) = choice {
            return Ok(Some(match picking::run(pick.clone(), &artifact.result, *limit).await {
                Ok(picked) => {
                    self.artifacts.forget_call(&owner, &artifact.handle).await;
                    let reply = picking::to_reply(&artifact.result, &picked, None);
                    let (chars, handle) = (artifact.chars, &artifact.handle);
                    Outcome::Reply(picking::with_artifact_note(
                        reply,
                        chars,
                        handle,
                        origin.surface,
                    ))
                }
                Err(why) => Outcome::Unpicked { artifact, why, stored: Ok(()) },
            }));
        }
        let whole = Reply::Result(artifact.result.clone());
        let measured = measure(whole, *limit, |reply| reply).await;
        let gated = measured.map_err(|failure| not_measurable(&failure))?.gated;
        Ok(Some(match gated.excess() {
            Some(over) => Outcome::Kept { artifact, over: over.clone() },
            None => {
                self.artifacts.forget_call(&owner, &artifact.handle).await;
                Outcome::Reply(gated.raw().clone())
            }
        }))
    }

    /// Stores an answer that is over the limit, and a long one of which only a part
    /// goes out. `unscrubbed` is stored with it where the operator wants that.
    pub(super) async fn keep(
        &self,
        call: &ValidCall,
        gated: Gated,
        picked_from: PickedFrom,
        unscrubbed: Option<Reply>,
        origin: Origin,
        context: &Context,
    ) -> Outcome {
        match (gated.into_parts(), picked_from) {
            ((_, _), PickedFrom::Failed { whole, why }) => {
                Box::pin(self.store_unpicked(call, whole, why, unscrubbed, context)).await
            }
            (
                (Reply::Result(result), Some(over)),
                PickedFrom::NothingPicked | PickedFrom::Whole(_),
            ) => Box::pin(self.store_over_limit(call, over, result, unscrubbed, context)).await,
            ((reply, None), PickedFrom::Whole(whole)) => {
                Box::pin(self.store_whole(call, reply, whole, unscrubbed, origin, context)).await
            }
            ((reply, _), _) => Outcome::Reply(reply),
        }
    }

    /// Stores a long answer of which a part goes out. The artifact does not answer
    /// the same call made again, because the caller may want that to run.
    async fn store_whole(
        &self,
        call: &ValidCall,
        part: Reply,
        whole: Json,
        unscrubbed: Option<Reply>,
        origin: Origin,
        context: &Context,
    ) -> Outcome {
        let limit = self.gate.load().limit(None);
        if whole.as_bytes().len() <= limit {
            return Outcome::Reply(part);
        }
        let chars = whole.as_str().chars().count();
        let artifact = self.new_artifact(call, chars, whole, unscrubbed, context);
        let key = Artifact::fingerprint(&artifact.handle);
        let artifact = Artifact { key, ..artifact };
        let handle = artifact.handle.clone();
        match self.artifacts.put(artifact).await {
            Ok(_) => {
                Outcome::Reply(picking::with_artifact_note(part, chars, &handle, origin.surface))
            }
            Err(why) => {
                tracing::debug!(upstream = call.callee.upstream, %why, "the rest is not kept");
                Outcome::Reply(part)
            }
        }
    }

    /// Stores an answer of which the wanted part could not be picked, so that the
    /// same call with another `pick` does not run again.
    async fn store_unpicked(
        &self,
        call: &ValidCall,
        whole: Json,
        why: PickError,
        unscrubbed: Option<Reply>,
        context: &Context,
    ) -> Outcome {
        let chars = whole.as_str().chars().count();
        let artifact = self.new_artifact(call, chars, whole, unscrubbed, context);
        compute_overview(&artifact).await;
        let stored = self.artifacts.put(artifact.clone()).await.map(|_| ());
        Outcome::Unpicked { artifact: Arc::new(artifact), why, stored }
    }

    fn new_artifact(
        &self,
        call: &ValidCall,
        chars: usize,
        result: Json,
        unscrubbed: Option<Reply>,
        context: &Context,
    ) -> Artifact {
        let owner = Owner::from_context(context);
        Artifact {
            handle: Artifact::new_handle(&owner),
            owner,
            made: self.recorder.clock.unix_millis(),
            upstream: call.callee.upstream.clone(),
            tool: call.callee.tool.clone(),
            id: call.callee.id.clone(),
            key: Artifact::fingerprint(&call.key()),
            result,
            raw: match unscrubbed {
                Some(Reply::Result(raw)) => Some(raw),
                Some(Reply::Error(_)) | None => None,
            },
            chars,
            parts: artifacts::PartIndex::default(),
        }
    }

    /// Stores a result that is over the limit under a new handle.
    async fn store_over_limit(
        &self,
        call: &ValidCall,
        over: gate::Excess,
        result: Json,
        unscrubbed: Option<Reply>,
        context: &Context,
    ) -> Outcome {
        let artifact = self.new_artifact(call, over.chars, result, unscrubbed, context);
        compute_overview(&artifact).await;
        let stored = self.artifacts.put(artifact.clone()).await;
        let artifact = Arc::new(artifact);
        match stored {
            Ok(StoredIn::Stored) => Outcome::Kept { artifact, over },
            Ok(StoredIn::MemoryFallback { reason }) => {
                let handle = &artifact.handle;
                tracing::warn!(handle, reason, "a long result is kept in memory only");
                Outcome::Kept { artifact, over }
            }
            Err(why) => {
                tracing::warn!(upstream = call.callee.upstream, %why, "a long result is not kept");
                let (stored, bound) = (Arc::clone(&artifact), over.clone());
                let beginning = offload::run(move |_| gate::beginning(&stored, &bound)).await;
                let beginning = beginning.unwrap_or_else(|slow| format!("({slow})"));
                Outcome::Unkept { artifact, over, why, beginning }
            }
        }
    }
}

/// Computes the overview of a long artifact, which its reply needs and which takes
/// reading all of it, once and on another thread. If that takes too long, it goes
/// on in the background.
async fn compute_overview(artifact: &Artifact) {
    if offload::is_long(artifact.bytes()) {
        let artifact = artifact.clone();
        let _ = offload::run(move |_| artifact.overview().tokens).await;
    }
}

/// Refuses a call whose stored answer cannot be measured now. The call has run
/// before, so it must not run again.
fn not_measurable(why: &Failure) -> Refusal {
    let message = format!(
        "the result of this call is kept and cannot be measured now: {why}. Nothing was called; \
         view it in pieces"
    );
    Refusal { code: RefusalCode::Unavailable, message, retry_after: None }
}
