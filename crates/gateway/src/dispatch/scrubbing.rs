//! Masks the secrets in an answer.

use std::sync::Arc;

use tool::{Failure, Reply};

use crate::dispatch::delivery::ScrubbedAnswer;
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::measuring::{is_long, too_slow};
use crate::dispatch::outcome::{CallError, RenderReply};
use policy::validate::ValidCall;

impl Dispatcher {
    /// Scrubs what an upstream answered.
    pub(super) async fn scrub_answer(
        &self,
        call: &ValidCall,
        raw: Reply,
        render: Option<RenderReply<'_>>,
    ) -> Result<ScrubbedAnswer, CallError> {
        let (rendered, unscrubbed) = (self.render(render, &raw), self.unscrubbed(&raw));
        let reply = match is_long(&raw) {
            true => {
                let scrubbed = Box::pin(self.scrub_long(raw)).await;
                scrubbed.map_err(|failure| self.scrub_failure(call, failure))?
            }
            false => self.scrubber.scrub_reply(raw),
        };
        Ok(ScrubbedAnswer { reply, rendered, unscrubbed })
    }

    /// Returns an answer from the cache, which was scrubbed before it was stored.
    pub(super) fn cached_answer(
        &self,
        reply: Reply,
        render: Option<RenderReply<'_>>,
    ) -> ScrubbedAnswer {
        ScrubbedAnswer { rendered: self.render(render, &reply), reply, unscrubbed: None }
    }

    /// Scrubs a long answer on a thread of its own.
    async fn scrub_long(&self, raw: Reply) -> Result<Reply, Failure> {
        let scrubber = Arc::clone(&self.scrubber);
        offload::run(move |_| scrubber.scrub_reply(raw)).await.map_err(too_slow)
    }

    /// Renders an answer and scrubs the result. In this order, because `render` may
    /// check what the upstream really sent.
    fn render(&self, render: Option<RenderReply<'_>>, raw: &Reply) -> Option<Reply> {
        render.map(|render| self.scrubber.scrub_reply(render(raw)))
    }

    /// Returns a copy of the answer with its secrets, if the operator wants it stored.
    fn unscrubbed(&self, raw: &Reply) -> Option<Reply> {
        match self.raw {
            artifacts::RawResults::Kept => Some(raw.clone()),
            artifacts::RawResults::Dropped => None,
        }
    }
}
