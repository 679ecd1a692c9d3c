//! One run: every task through one way, with every token counted.

use anyhow::Result;
use catalog::tokens;
use cost::{Conversation, Prices, Totals, Turn};
use serde_json::{Value, json};

use crate::model::{Action, CallResult, Model};
use crate::task::Task;
use crate::way::Connected;
use crate::world::World;

/// A task that takes more calls than this is given up.
pub(crate) const MAX_CALLS: usize = 20;

/// What is said before every task.
const RULES: &str = "Do the following with the tools that you have, and only with them. Be sparing. When it is done, \
                     answer in one short line, without calling a tool.\n\n";

/// How one task went.
pub(crate) struct Outcome {
    pub(crate) id: &'static str,
    pub(crate) is_right: bool,
    pub(crate) calls: usize,
    pub(crate) errors: usize,
    pub(crate) totals: Totals,
}

impl Outcome {
    fn as_json(&self) -> Value {
        let Totals { context, written, read, .. } = self.totals;
        json!({
            "task": self.id, "right": self.is_right, "calls": self.calls, "errors": self.errors,
            "context": context, "written": written, "read": read,
        })
    }
}

/// Does one task.
pub(crate) fn play(
    task: &Task,
    max_calls: usize,
    world: &World,
    connected: &mut Connected<'_>,
    model: &mut Model,
) -> Result<Outcome> {
    let text = format!("{RULES}{}", world.filled_in(task.text));
    let definitions = connected.definitions.iter().map(|tool| count(&tool.to_string())).sum();
    let mut conversation = Conversation { definitions, question: count(&text), turns: Vec::new() };
    let (mut calls, mut errors) = (0, 0);
    model.begin(&text, &connected.definitions)?;
    let answer = loop {
        let actions = model.next()?;
        let mut results = Vec::new();
        let mut turn = Turn::default();
        let mut answer = None;
        for action in actions {
            match action {
                Action::Answer(text) => answer = Some(text),
                Action::Call { id, name, arguments } => {
                    calls += 1;
                    let (text, is_error) = connected.call(&name, &arguments)?;
                    errors += usize::from(is_error);
                    turn.written +=
                        count(&json!({"name": name, "arguments": arguments}).to_string());
                    turn.read += count(&text);
                    results.push(CallResult { id, text, is_error });
                }
            }
        }
        match answer {
            Some(answer) => break answer,
            None if max_calls < calls => break String::new(),
            None => {
                conversation.turns.push(turn);
                model.give(&results)?;
            }
        }
    };
    let is_right = (task.verdict)(world, &answer);
    Ok(Outcome { id: task.id, is_right, calls, errors, totals: conversation.totals() })
}

fn count(text: &str) -> u64 {
    tokens::count(text) as u64
}

/// What a run adds up to.
pub(crate) fn summary(outcomes: &[Outcome], definitions: u64) -> Value {
    let totals: Totals = outcomes.iter().map(|outcome| outcome.totals).sum();
    let right = outcomes.iter().filter(|outcome| outcome.is_right).count();
    let wrong: Vec<&str> =
        outcomes.iter().filter(|outcome| !outcome.is_right).map(|outcome| outcome.id).collect();
    json!({
        "tasks": outcomes.len(),
        "right": right,
        "wrong": wrong,
        "calls": outcomes.iter().map(|outcome| outcome.calls).sum::<usize>(),
        "errors": outcomes.iter().map(|outcome| outcome.errors).sum::<usize>(),
        "definitions": definitions,
        "written": totals.written,
        "read": totals.read,
        "context": totals.context,
        "price_with_cache": totals.price(Prices::WITH_CACHE).round(),
        "each": outcomes.iter().map(Outcome::as_json).collect::<Vec<_>>(),
    })
}

/// What the definitions of a way cost.
pub(crate) fn definitions(connected: &Connected<'_>) -> u64 {
    connected.definitions.iter().map(|tool| count(&tool.to_string())).sum()
}
