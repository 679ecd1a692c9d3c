//! Writes into a call's record what was asked and how it ended.

use std::sync::Arc;

use tool::{Json, Reply};

use crate::dispatch::measuring::Measured;
use crate::dispatch::outcome::{CallError, Outcome};
use crate::record::{Ending, OpenRecord, Record};
use artifacts::gate::Gated;
use policy::call::Request;
use policy::code::classify_rpc_error;
use policy::refusal::RefusalCode;

/// Returns the JSON of a reply, as the record stores it.
pub(super) fn reply_json(reply: &Reply) -> &Json {
    match reply {
        Reply::Result(json) => json,
        Reply::Error(error) => &error.raw,
    }
}

/// Notes what is called, and with which arguments.
pub(super) fn note_request(record: &mut Record, request: &Request) {
    record.callee = Arc::clone(&request.target.callee);
    record.meta_tool = request.target.kind.meta_tool();
    record.arguments.clone_from(&request.arguments);
    record.script.clone_from(&request.script);
}

/// Notes why the call failed, or which artifact was stored.
pub(super) fn note_outcome(record: &mut Record, outcome: &Result<Outcome, CallError>) {
    match outcome {
        Err(error) => record.ending = ending(error),
        Ok(Outcome::Kept { artifact, .. } | Outcome::Unpicked { artifact, .. }) => {
            record.artifact = Some(Arc::clone(artifact));
        }
        Ok(Outcome::Reply(_) | Outcome::Unkept { .. } | Outcome::Plan(_)) => {}
    }
}

/// Notes the view of an artifact and returns it as the outcome of the call.
pub(super) fn note_view(record: &mut OpenRecord<'_>, view: Gated) -> Outcome {
    let measured = Measured::short(view);
    record.update(|record| {
        record.attempts = 1;
        note_answer(record, &measured, None);
    });
    Outcome::Reply(measured.gated.into_parts().0)
}

/// Notes how the upstream answered. `whole` is its entire answer where only a part
/// of it goes out.
pub(super) fn note_answer(record: &mut Record, measured: &Measured, whole: Option<&Json>) {
    let gated = &measured.gated;
    record.ending = match (gated.excess(), gated.raw()) {
        (Some(_), _) => Ending::Gated,
        (None, Reply::Result(_)) if measured.reports_error() => Ending::ToolError,
        (None, Reply::Result(_)) => Ending::Answered,
        (None, Reply::Error(error)) => Ending::Rejected(classify_rpc_error(error)),
    };
    if let Reply::Result(json) = gated.raw() {
        record.raw = Some(whole.unwrap_or(json).clone());
    }
}

fn ending(error: &CallError) -> Ending {
    match error {
        CallError::BadArguments { .. } => Ending::Refused(RefusalCode::BadArguments),
        CallError::Refused(refusal) => Ending::Refused(refusal.code),
        CallError::Failed { cause, .. } => Ending::Failed(cause.clone()),
    }
}
