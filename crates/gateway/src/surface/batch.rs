//! Runs a batch: several calls in one request (`calls=[…]`), each written as the surface
//! writes a call.
//!
//! Each is a call of its own, with its own approval, limits, record and error. They
//! run in order; only neighbours that merely read, and refer to no other call, run in
//! parallel. All answers together fit the size limit: each gets an equal share, and
//! what short answers leave goes to longer ones.

mod answer;
mod make_call;
mod reference;

use futures::StreamExt;
use tool::{Json, Reply};

use answer::AnsweredCall;

pub(crate) use answer::{Oversized, OversizedPart};
pub(crate) use make_call::MakeCall;

/// The argument with the list of calls.
pub(crate) const CALLS: &str = "calls";

/// The most calls of one batch.
const MAX_CALLS: usize = 50;

/// How many calls run in parallel.
const PARALLEL: usize = 8;

/// The smallest share of an answer, in characters.
const MIN_SHARE: usize = 200;

/// Parses a list of calls. `example` is a call for the error message.
pub(crate) fn parse(calls: &Json, example: &str) -> Result<Vec<Json>, String> {
    let expected = || format!("`{CALLS}` must be a list of calls such as {example}");
    // A list may be written as JSON text.
    let text = calls.string_value().and_then(|text| Json::parse(text).ok());
    let calls: Vec<Json> = text.as_ref().unwrap_or(calls).parse_as().map_err(|_| expected())?;
    if calls.is_empty() || calls.iter().any(|call| !call.is_object()) {
        return Err(expected());
    }
    if MAX_CALLS < calls.len() {
        let n_calls = calls.len();
        return Err(format!(
            "`{CALLS}` has {n_calls} calls; at most {MAX_CALLS} go into one request"
        ));
    }
    Ok(calls)
}

/// Makes several calls through `call_maker` and joins their answers, in order, within
/// `limit` characters.
pub(crate) async fn run(calls: Vec<Json>, limit: usize, call_maker: &dyn MakeCall) -> Reply {
    let share = (limit / calls.len().max(1)).max(MIN_SHARE);
    let may_run_in_parallel =
        |call: &Json| !reference::has_any(call) && call_maker.only_reads(call);
    let mut answered: Vec<AnsweredCall> = Vec::with_capacity(calls.len());
    let mut left = calls.into_iter().peekable();
    while let Some(call) = left.next() {
        let mut neighbours = vec![call];
        while may_run_in_parallel(&neighbours[0])
            && let Some(next) = left.next_if(may_run_in_parallel)
        {
            neighbours.push(next);
        }
        let run = |call| make_call(call, &answered, share, call_maker);
        let next = futures::stream::iter(neighbours.into_iter().map(run)).buffered(PARALLEL);
        let next: Vec<AnsweredCall> = next.collect().await;
        answered.extend(next);
    }
    let answered = with_unused_room(answered, limit, call_maker).await;
    answer::join(&answered, call_maker)
}

/// Makes one call, after replacing its references to `earlier` ones.
async fn make_call(
    call: Json,
    earlier: &[AnsweredCall],
    share: usize,
    call_maker: &dyn MakeCall,
) -> AnsweredCall {
    match reference::resolve(&call, earlier, call_maker).await {
        Ok(call) => AnsweredCall { reply: call_maker.make(&call, share).await, call },
        Err(why) => AnsweredCall::not_run(&call, &why),
    }
}

/// Returns answers that were too long for their share whole, the shortest first, as far
/// as other answers left room. No function runs again.
async fn with_unused_room(
    mut answered: Vec<AnsweredCall>,
    limit: usize,
    call_maker: &dyn MakeCall,
) -> Vec<AnsweredCall> {
    let mut used: usize = answered.iter().map(AnsweredCall::chars).sum();
    let oversized =
        answered.iter().enumerate().filter_map(|(at, one)| Some((at, one.oversized()?)));
    let mut oversized: Vec<(usize, Oversized)> = oversized.collect();
    oversized.sort_by_key(|(_, oversized)| oversized.chars);
    for (at, oversized) in oversized {
        let without = used - answered[at].chars();
        let room = limit.saturating_sub(without);
        if room < oversized.chars {
            break;
        }
        match oversized.part {
            OversizedPart::Gated => {
                let owner = artifacts::Owner::from_context(call_maker.context());
                let kept = call_maker.artifacts().get(&owner, &oversized.handle).await;
                let Ok(Some(artifact)) = kept else { continue };
                call_maker.artifacts().forget_call(&owner, &oversized.handle).await;
                answered[at].reply = Reply::Result(artifact.result.clone());
            }
            OversizedPart::Picked => {
                answered[at].reply = call_maker.make(&answered[at].call, room).await
            }
        }
        used = without + answered[at].chars();
    }
    answered
}
