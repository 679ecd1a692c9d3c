//! Keeps answers that are over the size limit, and returns them again.

use std::sync::Arc;

use tool::{Context, Failure, Json, Reply};

use crate::dispatch::measured::measured;
use crate::dispatch::origin::Origin;
use crate::dispatch::outcome::Outcome;
use crate::dispatch::picking::{self, Source, Wish};
use crate::dispatch::pipeline::Dispatcher;
use artifacts::gate::{self, Gated};
use artifacts::pick::PickError;
use artifacts::{self, Artifact, Owner, StoredIn};
use policy::admission::Admission;
use policy::approval::ApprovalRequest;
use policy::call::Callee;
use policy::refusal::{Refusal, Refused};
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
        let found = self.artifacts.get(&Owner::from_context(context), handle).await?;
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
    /// limit, or asks for a part.
    ///
    /// The function has run; running it again because its answer was long would
    /// repeat its side effects. Once an answer was returned whole, or the part
    /// that was asked for, the next call runs.
    pub(super) async fn replay(
        &self,
        call: &ValidCall,
        limit: usize,
        wish: &Wish,
        origin: Origin,
        context: &Context,
    ) -> Result<Option<Outcome>, Refusal> {
        if call.continues() {
            return Ok(None);
        }
        // Boxed, here and below, so that rare cases do not enlarge the future of
        // every call.
        Box::pin(self.find_kept(call, limit, wish, origin, context)).await
    }

    async fn find_kept(
        &self,
        call: &ValidCall,
        limit: usize,
        wish: &Wish,
        origin: Origin,
        context: &Context,
    ) -> Result<Option<Outcome>, Refusal> {
        let owner = Owner::from_context(context);
        let key = Artifact::fingerprint(&call.key());
        let Some(artifact) = self.artifacts.find_by_call(&owner, &key).await? else {
            return Ok(None);
        };
        if let Wish::Caller(pick) = wish {
            return Ok(Some(match picking::run(pick.clone(), &artifact.result, limit).await {
                Ok(picked) => {
                    self.artifacts.forget_call(&owner, &artifact.handle).await;
                    let reply = picking::to_reply(&artifact.result, &picked, None);
                    let (chars, handle) = (artifact.chars, &artifact.handle);
                    Outcome::Reply(picking::noted(reply, chars, handle, origin.surface))
                }
                Err(why) => Outcome::Unpicked { artifact, why, stored: Ok(()) },
            }));
        }
        let whole = Reply::Result(artifact.result.clone());
        let measured = measured(whole, limit, |reply| reply).await;
        let gated = measured.map_err(|slow| unmeasured(&slow))?.gated;
        Ok(Some(match gated.over() {
            Some(over) => Outcome::Kept { artifact, over: over.clone() },
            None => {
                self.artifacts.forget_call(&owner, &artifact.handle).await;
                Outcome::Reply(gated.raw().clone())
            }
        }))
    }

    /// Keeps an answer that is over the limit, and a long one of which only a part
    /// goes out, with its unscrubbed form where the operator wants that.
    pub(super) async fn keep(
        &self,
        call: &ValidCall,
        gated: Gated,
        source: Source,
        raw: Option<Reply>,
        origin: Origin,
        context: &Context,
    ) -> Outcome {
        match (gated.apart(), source) {
            ((_, _), Source::Unpicked { whole, why }) => {
                Box::pin(self.keep_unpicked(call, whole, why, raw, context)).await
            }
            ((Reply::Result(result), Some(over)), Source::Itself | Source::Whole(_)) => {
                Box::pin(self.store_artifact(call, over, result, raw, context)).await
            }
            ((reply, None), Source::Whole(whole)) => {
                Box::pin(self.keep_rest(call, reply, whole, raw, origin, context)).await
            }
            ((reply, _), _) => Outcome::Reply(reply),
        }
    }

    /// Keeps a long answer of which a part goes out. It is not the answer to the
    /// same call made again, which the caller may mean to run.
    async fn keep_rest(
        &self,
        call: &ValidCall,
        part: Reply,
        whole: Json,
        raw: Option<Reply>,
        origin: Origin,
        context: &Context,
    ) -> Outcome {
        let limit = self.gate.load().limit(None);
        if whole.as_bytes().len() <= limit {
            return Outcome::Reply(part);
        }
        let chars = whole.as_str().chars().count();
        let artifact = self.new_artifact(call, chars, whole, raw, context);
        let key = Artifact::fingerprint(&artifact.handle);
        let artifact = Artifact { key, ..artifact };
        let handle = artifact.handle.clone();
        match self.artifacts.put(artifact).await {
            Ok(_) => Outcome::Reply(picking::noted(part, chars, &handle, origin.surface)),
            Err(why) => {
                tracing::debug!(upstream = call.callee.upstream, %why, "the rest is not kept");
                Outcome::Reply(part)
            }
        }
    }

    /// Keeps an answer of which the wanted part could not be had, so that the
    /// same call with another `pick` does not run again.
    async fn keep_unpicked(
        &self,
        call: &ValidCall,
        whole: Json,
        why: PickError,
        raw: Option<Reply>,
        context: &Context,
    ) -> Outcome {
        let chars = whole.as_str().chars().count();
        let artifact = self.new_artifact(call, chars, whole, raw, context);
        look_through(&artifact).await;
        let stored = self.artifacts.put(artifact.clone()).await.map(|_| ());
        Outcome::Unpicked { artifact: Arc::new(artifact), why, stored }
    }

    fn new_artifact(
        &self,
        call: &ValidCall,
        chars: usize,
        result: Json,
        raw: Option<Reply>,
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
            raw: match raw {
                Some(Reply::Result(raw)) => Some(raw),
                Some(Reply::Error(_)) | None => None,
            },
            chars,
            parts: artifacts::Parts::default(),
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
        let artifact = self.new_artifact(call, over.chars, result, raw, context);
        look_through(&artifact).await;
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

/// What is told of a long answer takes reading all of it, so it is done once,
/// here; if it takes too long, it goes on in the background.
async fn look_through(artifact: &Artifact) {
    if offload::is_long(artifact.bytes()) {
        let read = artifact.clone();
        let _ = offload::run(move |_| read.overview().tokens).await;
    }
}

/// What is told where a kept answer cannot be measured. Its call has run, so it
/// does not run now.
fn unmeasured(why: &Failure) -> Refusal {
    let message = format!(
        "the result of this call is kept and cannot be measured now: {why}. Nothing was called; \
         view it in pieces"
    );
    Refusal { code: Refused::Unavailable, message, retry_after: None }
}
