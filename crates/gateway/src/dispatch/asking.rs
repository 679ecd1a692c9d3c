//! Gets the answer to a call: from its upstream, with retries, or from a script.

use std::sync::Arc;

use tool::{Context, Failure, Reply};

use crate::builtin;
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::origin::Origin;
use crate::dispatch::outcome::CallError;
use crate::record::OpenRecord;
use policy::attempt;
use policy::stages::Stages;
use policy::validate::ValidCall;
use roster::Snapshot;

impl Dispatcher {
    /// Asks the upstream, or runs the script, and returns the unscrubbed answer.
    pub(super) async fn ask_upstream(
        &self,
        snapshot: &Arc<Snapshot>,
        call: &ValidCall,
        stages: &Stages,
        origin: Origin,
        context: &Context,
        record: &mut OpenRecord<'_>,
    ) -> Result<Reply, CallError> {
        if builtin::is_script(call) {
            return Ok(Box::pin(self.run_script(snapshot, call, origin, context)).await);
        }
        let send = || snapshot.send(call, context);
        let (answer, attempts) = attempt::run(&*stages.retry, call, context, send).await;
        record.update(|record| record.attempts = attempts);
        answer.map_err(|failure| self.scrub_failure(call, failure))
    }

    /// Returns the error for a call that got no answer, without secrets.
    pub(super) fn scrub_failure(&self, call: &ValidCall, failure: Failure) -> CallError {
        let cause = self.scrubber.scrub_failure(failure);
        CallError::Failed { upstream: call.callee.upstream.clone(), cause }
    }
}
