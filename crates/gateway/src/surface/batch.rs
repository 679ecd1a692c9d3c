//! Several calls in one request: `calls=[…]`, each written as the surface writes a
//! call.
//!
//! Each is a call of its own, with its own approval, limits, record and error.
//! They run in order, because whoever writes them one after another means it so
//! and servers that change something seldom bear two calls at once. Only neighbours
//! that merely read, and refer to no other, run side by side. All answers together keep to the size limit: each has a fair
//! share, and what others leave of theirs goes to those that need more.

mod answer;
mod make_call;
mod reference;

use futures::StreamExt;
use tool::{Json, Reply};

use answer::Answered;

pub(crate) use answer::{Over, OverKind};
pub(crate) use make_call::MakeCall;

/// The argument that has them.
pub(crate) const CALLS: &str = "calls";

/// How many calls one request may make.
const MOST: usize = 50;

/// How many run at once.
const PARALLEL: usize = 8;

/// No answer has less room than this.
const LEAST: usize = 200;

/// Reads a list of calls; `example` is one, for the error that says what is wrong.
pub(crate) fn read(calls: &Json, example: &str) -> Result<Vec<Json>, String> {
    let expected = || format!("`{CALLS}` must be a list of calls such as {example}");
    // Lists that were written as text are read as such.
    let text = calls.string_value().and_then(|text| Json::parse(text).ok());
    let calls: Vec<Json> = text.as_ref().unwrap_or(calls).parse_as().map_err(|_| expected())?;
    if calls.is_empty() || calls.iter().any(|call| !call.is_object()) {
        return Err(expected());
    }
    if MOST < calls.len() {
        let n_calls = calls.len();
        return Err(format!("`{CALLS}` has {n_calls} calls; at most {MOST} go into one request"));
    }
    Ok(calls)
}

/// Makes several calls and puts their answers together, in order, within `limit`
/// characters.
pub(crate) async fn run(calls: Vec<Json>, limit: usize, by: &dyn MakeCall) -> Reply {
    let share = (limit / calls.len().max(1)).max(LEAST);
    let may_overtake = |call: &Json| !reference::has_any(call) && by.only_reads(call);
    let mut answered: Vec<Answered> = Vec::with_capacity(calls.len());
    let mut left = calls.into_iter().peekable();
    while let Some(call) = left.next() {
        let mut neighbours = vec![call];
        while may_overtake(&neighbours[0])
            && let Some(next) = left.next_if(may_overtake)
        {
            neighbours.push(next);
        }
        let run = |call| resolved(call, &answered, share, by);
        let next = futures::stream::iter(neighbours.into_iter().map(run)).buffered(PARALLEL);
        let next: Vec<Answered> = next.collect().await;
        answered.extend(next);
    }
    let answered = with_room(answered, limit, by).await;
    answer::together(&answered, by)
}

/// One of the calls, with the values that it takes from `earlier` ones.
async fn resolved(call: Json, earlier: &[Answered], share: usize, by: &dyn MakeCall) -> Answered {
    match reference::resolved(&call, earlier, by).await {
        Ok(call) => Answered { reply: by.make(&call, share).await, call },
        Err(why) => Answered::not_run(&call, &why),
    }
}

/// The answers that were too long for their share, whole where the others left
/// enough room: the shortest first. Nothing runs again for that.
async fn with_room(mut answered: Vec<Answered>, limit: usize, by: &dyn MakeCall) -> Vec<Answered> {
    let mut used: usize = answered.iter().map(Answered::chars).sum();
    let over = answered.iter().enumerate().filter_map(|(at, one)| Some((at, one.over()?)));
    let mut over: Vec<(usize, Over)> = over.collect();
    over.sort_by_key(|(_, over)| over.chars);
    for (at, over) in over {
        let without = used - answered[at].chars();
        let room = limit.saturating_sub(without);
        if room < over.chars {
            break;
        }
        match over.kind {
            OverKind::Gated => {
                let owner = artifacts::Owner::from_context(by.context());
                let kept = by.artifacts().get(&owner, &over.handle).await;
                let Ok(Some(artifact)) = kept else { continue };
                by.artifacts().forget_call(&owner, &over.handle).await;
                answered[at].reply = Reply::Result(artifact.result.clone());
            }
            OverKind::Picked => answered[at].reply = by.make(&answered[at].call, room).await,
        }
        used = without + answered[at].chars();
    }
    answered
}
