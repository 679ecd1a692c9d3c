//! `tool_run`.

use tool::{Json, Reply};

use super::request::{Answer, Meta, MetaTools, bad, refused};
use crate::builtin::LABEL;
use crate::dispatch::{CallError, Outcome};
use artifacts::envelope::{Envelope, Provenance};
use policy::call::{Mode, Request};

/// What answers of scripts are said to come from.
const ID: &str = "gatelet:run";

impl Meta<'_> {
    /// Runs a script that calls tools.
    pub(super) async fn run_script(&self, arguments: Option<&Json>) -> Answer {
        let slot = self.snapshot.catalog.resolve(LABEL, "run").ok().filter(|slot| self.sees(*slot));
        let slot = slot.ok_or_else(|| {
            bad("scripts are off; the operator can switch them on in `[scripts]`")
        })?;
        let arguments = arguments.cloned().unwrap_or_else(Json::empty_object);
        let target = self.snapshot.target(slot);
        let request = Request {
            rest: self.rest.clone(),
            mode: Mode::Strict,
            ..Request::new(target, arguments)
        };
        let say = |outcome| said(outcome).unwrap_or_else(|error| error.to_reply());
        let MetaTools { pipeline, origin, .. } = self.tools;
        Ok(pipeline.dispatch(self.snapshot, request, *origin, self.context, say).await)
    }
}

fn said(outcome: Result<Outcome, CallError>) -> Answer {
    let envelope = |artifact, is_error| Envelope::new(artifact, Provenance::of_tool(ID), is_error);
    Ok(match outcome {
        Ok(Outcome::Reply(reply)) => reply,
        Ok(Outcome::Kept { artifact, over }) => envelope(&artifact, over.is_error).to_reply(),
        Ok(Outcome::Unkept { artifact, over, why, beginning }) => {
            envelope(&artifact, over.is_error).unkept(&over, why, &beginning).to_reply()
        }
        // Nothing is planned or picked here.
        Ok(Outcome::Plan(_) | Outcome::Unpicked { .. }) => Reply::text(""),
        Err(CallError::Refused(refusal)) => return Err(refused(&refusal, ID)),
        Err(CallError::BadArguments { problems }) => {
            let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(bad(&said.join("; ")));
        }
        Err(CallError::Failed { cause, .. }) => Reply::error_text(&cause.to_string()),
    })
}
