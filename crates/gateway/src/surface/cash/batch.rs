//! Several calls in one: `calls=[{namespace, function, kwargs, pick}, …]`.
//!
//! Each is a call of its own, with its own approval, limits, record and error.
//! They run in order, because whoever writes them one after another means it so
//! and servers that change something seldom bear two calls at once. Only neighbours
//! that merely read, and refer to no other, run side by side. All answers together keep to the size limit: each has a fair
//! share, and what others leave of theirs goes to those that need more.

mod answer;
mod reference;

use futures::StreamExt;
use tool::{Call, Context, Json, Object, Reply};

use super::super::names;
use super::arguments::{self, CallArguments};
use super::request::{Cash, Scope};
use answer::{Answered, Over, OverKind};

/// The member of `call` that has them.
pub(super) const CALLS: &str = "calls";

/// How many calls one request may make.
const MOST: usize = 50;

/// How many run at once.
const PARALLEL: usize = 8;

/// No answer has less room than this.
const LEAST: usize = 200;

/// Several calls, as they were written.
#[derive(Debug)]
pub(super) struct Batch {
    calls: Vec<Json>,
    /// How many characters all answers may have, if the caller says so.
    wanted: Option<usize>,
}

impl Batch {
    /// Reads several calls, if there are any; the error says what is wrong.
    pub(super) fn read(arguments: Option<&Json>) -> Option<Result<Batch, String>> {
        let arguments = arguments.filter(|given| given.mentions(CALLS))?;
        let object = Object::parse(arguments).ok()?;
        let own = ["namespace", "function", "kwargs"].map(|key| object.get(key));
        let is_named = |json: &Json| {
            !json.is_null() && json.string_value().is_none_or(|text| !text.is_empty())
        };
        let [_, function, kwargs] = own;
        // What others put into `kwargs` of a function of that name is meant so, too.
        let inner =
            kwargs.filter(|_| function.and_then(Json::string_value).as_deref() == Some(CALLS));
        let inner = inner.and_then(|kwargs| kwargs.member(CALLS));
        let calls = match (object.get(CALLS).filter(|calls| !calls.is_null()), inner) {
            (Some(calls), _) => calls.clone(),
            (None, Some(calls)) => calls,
            (None, None) => return None,
        };
        let text = function.and_then(Json::string_value).unwrap_or_default();
        if function.is_some_and(is_named) && text != CALLS {
            return None;
        }
        let wanted = object.get("sizelimit").and_then(arguments::size);
        Some(Batch::of(&calls, wanted))
    }

    fn of(calls: &Json, wanted: Option<usize>) -> Result<Batch, String> {
        let expected = "`calls` must be a list of calls such as {\"namespace\": \"…\", \"function\": \
                        \"…\", \"kwargs\": {…}, \"pick\": \"…\"}";
        // Lists that were written as text are read as such.
        let text = calls.string_value().and_then(|text| Json::parse(text).ok());
        let calls: Vec<Json> =
            text.as_ref().unwrap_or(calls).parse_as().map_err(|_| expected.to_owned())?;
        if calls.is_empty() || calls.iter().any(|call| !call.is_object()) {
            return Err(expected.to_owned());
        }
        if let Some(why) = calls.iter().find_map(names::in_one_call) {
            return Err(why);
        }
        if MOST < calls.len() {
            let n_calls = calls.len();
            return Err(format!("`calls` has {n_calls} calls; at most {MOST} go into one request"));
        }
        Ok(Batch { calls, wanted })
    }
}

impl Cash {
    /// Makes several calls and puts their answers together, in order.
    pub(super) async fn calls(
        &self,
        batch: Batch,
        rest: &Object,
        scope: Scope,
        context: &Context,
    ) -> Reply {
        let Batch { calls, wanted } = batch;
        let limit = self.pipeline.gate.load().limit(wanted);
        let share = (limit / calls.len()).max(LEAST);
        let mut answered: Vec<Answered> = Vec::with_capacity(calls.len());
        let mut left = calls.into_iter().peekable();
        while let Some(call) = left.next() {
            let mut neighbours = vec![call];
            while self.merely_reads(&neighbours[0], context)
                && let Some(next) = left.next_if(|next| self.merely_reads(next, context))
            {
                neighbours.push(next);
            }
            let run = |call| self.resolved(call, &answered, share, rest, scope, context);
            let next = futures::stream::iter(neighbours.into_iter().map(run)).buffered(PARALLEL);
            let next: Vec<Answered> = next.collect().await;
            answered.extend(next);
        }
        let answered = self.with_room(answered, limit, rest, scope, context).await;
        answer::together(&answered)
    }

    /// Whether a call refers to no other and is of a function that says that it only
    /// reads. Believing that costs nothing but order.
    fn merely_reads(&self, call: &Json, context: &Context) -> bool {
        let snapshot = self.pool.snapshot();
        let request = self.request(&snapshot, context);
        let hint = || {
            let arguments = CallArguments::read(Some(call)).ok()?;
            let slot = request.resolve(&arguments.namespace, &arguments.function).ok()?;
            snapshot.catalog.tool(slot).annotations.read_only
        };
        !reference::has_any(call) && hint() == Some(true)
    }

    /// One of the calls, with the values that it takes from `earlier` ones.
    async fn resolved(
        &self,
        call: Json,
        earlier: &[Answered],
        share: usize,
        rest: &Object,
        scope: Scope,
        context: &Context,
    ) -> Answered {
        match reference::resolved(&call, earlier, self, context).await {
            Ok(call) => self.answered(call, share, rest, scope, context).await,
            Err(why) => Answered::not_run(&call, &why),
        }
    }

    /// One of the calls, and what it came to.
    async fn answered(
        &self,
        call: Json,
        share: usize,
        rest: &Object,
        scope: Scope,
        context: &Context,
    ) -> Answered {
        let arguments = Some(call.clone());
        let asked = Call { name: "call".to_owned(), arguments, other_params: rest.clone() };
        let reply = Box::pin(self.call_within(asked, scope, Some(share), context)).await;
        Answered { call, reply }
    }

    /// The answers that were too long for their share, whole where the others left
    /// enough room: the shortest first. Nothing runs again for that.
    async fn with_room(
        &self,
        mut answered: Vec<Answered>,
        limit: usize,
        rest: &Object,
        scope: Scope,
        context: &Context,
    ) -> Vec<Answered> {
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
                    let owner = artifacts::Owner::from_context(context);
                    let kept = self.pipeline.artifacts.get(&owner, &over.handle).await;
                    let Ok(Some(artifact)) = kept else { continue };
                    self.pipeline.artifacts.forget_call(&owner, &over.handle).await;
                    answered[at].reply = Reply::Result(artifact.result.clone());
                }
                OverKind::Picked => {
                    let call = answered[at].call.clone();
                    answered[at] = self.answered(call, room, rest, scope, context).await;
                }
            }
            used = without + answered[at].chars();
        }
        answered
    }
}
