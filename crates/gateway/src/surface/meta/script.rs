//! `tool_run`: runs a script that calls tools.

use tool::{Json, Reply};

use super::request::{Answer, Meta, MetaTools, bad_argument, refusal_error};
use crate::builtin::LABEL;
use crate::dispatch::{CallError, Outcome};
use artifacts::envelope::{Envelope, Provenance};
use policy::call::{CallMode, Request};

/// The tool id in the replies of scripts.
const ID: &str = "gatelet:run";

impl Meta<'_> {
    /// Answers `tool_run`.
    pub(super) async fn run_script(&self, arguments: Option<&Json>) -> Answer {
        let slot = self.snapshot.catalog.resolve(LABEL, "run").ok().filter(|slot| self.sees(*slot));
        let slot = slot.ok_or_else(|| {
            bad_argument("scripts are off; the operator can switch them on in `[scripts]`")
        })?;
        let arguments = arguments.cloned().unwrap_or_else(Json::empty_object);
        let target = self.snapshot.target(slot);
        let request = Request {
            rest: self.rest.clone(),
            mode: CallMode::Strict,
            ..Request::new(target, arguments)
        };
        let to_reply = |outcome| outcome_reply(outcome).unwrap_or_else(|error| error.to_reply());
        let MetaTools { pipeline, origin, .. } = self.tools;
        Ok(pipeline.dispatch(self.snapshot, request, *origin, self.context, to_reply).await)
    }
}

fn outcome_reply(outcome: Result<Outcome, CallError>) -> Answer {
    let envelope = |artifact, is_error| Envelope::new(artifact, Provenance::of_tool(ID), is_error);
    Ok(match outcome {
        Ok(Outcome::Reply(reply)) => reply,
        Ok(Outcome::Kept { artifact, over }) => envelope(&artifact, over.is_error).to_reply(),
        Ok(Outcome::Unkept { artifact, over, why, beginning }) => {
            envelope(&artifact, over.is_error).unkept(&over, why, &beginning).to_reply()
        }
        // Nothing is planned or picked here.
        Ok(Outcome::Plan(_) | Outcome::Unpicked { .. }) => Reply::text(""),
        Err(CallError::Refused(refusal)) => return Err(refusal_error(&refusal, ID)),
        Err(CallError::BadArguments { problems }) => {
            let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(bad_argument(&messages.join("; ")));
        }
        Err(CallError::Failed { cause, .. }) => Reply::error_text(&cause.to_string()),
    })
}
