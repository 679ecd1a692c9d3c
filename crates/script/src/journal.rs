//! The journal of a script: its calls and their answers, so that it can be continued
//! without running them again.
//!
//! A script that is run again with the same code and inputs makes the same calls, as
//! long as their answers come in the same order. So a journal has the answers in the
//! order in which they came, each with a digest of its call, and fails if a call is
//! not the same as before.
//!
//! A call that needs the client's input has no answer yet: the journal has the
//! question, and the call is made again with the client's input.
//!
//! A journal is stored whole once; what happens after that is one line each
//! ([`events`]), so that a call costs the same however long its script is.

mod events;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::protocol::{Answer, Call, Thrown};
use events::{Answered, Event};

pub use events::{CallDigest, DamagedLog};

/// The calls of a script and their answers, with the script itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Journal {
    pub code: String,
    pub inputs: Box<RawValue>,
    /// In the order in which the answers came.
    answered: Vec<Answered>,
    /// The index in `answered` by the number of the call; not stored.
    #[serde(skip)]
    answer_indices: HashMap<u64, usize>,
    /// Calls that were started and have no answer yet.
    begun: BTreeMap<u64, CallDigest>,
    /// The call before which the script paused.
    pub waiting: Option<u64>,
    /// The calls that wait for the client's input, each with the request state to send
    /// back with it.
    #[serde(default)]
    pub questions: BTreeMap<u64, Option<String>>,
    /// The name of the recipe, if the script is one.
    #[serde(default)]
    pub recipe: Option<String>,
    /// Whether the script has ended.
    pub finished: bool,
    /// What happened since the lines were taken last; `None` as long as the journal is
    /// not stored.
    #[serde(skip)]
    lines: Option<Vec<u8>>,
}

/// What a journal has of a call.
#[derive(Debug)]
pub enum CallState {
    /// It was answered before.
    Answered,
    /// It was started before, and may have run.
    Begun,
    /// It is new.
    New,
}

/// The error for a call that is not the same as in the run before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "call {number} is `tools.{}` with other arguments than before, where it was `tools.{}`",
    now.join("."),
    before.join(".")
)]
pub struct Diverged {
    pub number: u64,
    pub before: Vec<String>,
    pub now: Vec<String>,
}

impl Journal {
    pub fn new(code: String, inputs: Box<RawValue>) -> Journal {
        Journal {
            code,
            inputs,
            answered: Vec::new(),
            answer_indices: HashMap::new(),
            begun: BTreeMap::new(),
            waiting: None,
            questions: BTreeMap::new(),
            recipe: None,
            finished: false,
            lines: None,
        }
    }

    /// Builds the index of the answers, after a journal was deserialized.
    #[must_use]
    pub fn indexed(mut self) -> Journal {
        let answer_indices = self.answered.iter().enumerate().map(|(at, one)| (one.number, at));
        self.answer_indices = answer_indices.collect();
        self
    }

    /// Returns how many calls have answers.
    pub fn n_answered(&self) -> usize {
        self.answered.len()
    }

    /// Returns the calls that were started and have no answer: they may have run.
    pub fn begun(&self) -> impl Iterator<Item = &CallDigest> {
        self.begun.values()
    }

    /// Returns the state of a call. Fails if the call of that number was another one.
    pub fn lookup(&self, call: &Call) -> Result<CallState, Diverged> {
        let answered = self.answer_indices.get(&call.number).and_then(|at| self.answered.get(*at));
        let (before, known) = match (answered, self.begun.get(&call.number)) {
            (Some(answered), _) => (&answered.call, CallState::Answered),
            (None, Some(begun)) => (begun, CallState::Begun),
            (None, None) => return Ok(CallState::New),
        };
        if *before == CallDigest::new(call) {
            return Ok(known);
        }
        let (number, before, now) = (call.number, before.path.clone(), call.path.clone());
        Err(Diverged { number, before, now })
    }

    /// Returns an answer by its position in the order in which they came, from 0.
    pub fn answer(&self, at: usize) -> Option<Answer> {
        let Answered { number, result, .. } = self.answered.get(at)?;
        Some(Answer { number: *number, result: result.clone() })
    }

    /// Records that a call is about to be made.
    pub fn record_start(&mut self, call: &Call) {
        let (number, call) = (call.number, CallDigest::new(call));
        self.log(&Event::Begun { number, call: call.clone() });
        self.begun.insert(number, call);
    }

    /// Removes a call that did not run after all.
    pub fn forget(&mut self, call: &Call) {
        self.begun.remove(&call.number);
        self.log(&Event::Forgotten(call.number));
    }

    /// Records the answer to a call.
    pub fn record_answer(&mut self, call: &Call, result: &Result<Box<RawValue>, Thrown>) {
        let made = self.begun.remove(&call.number).unwrap_or_else(|| CallDigest::new(call));
        let answered = Answered { number: call.number, call: made, result: result.clone() };
        self.log(&Event::Answered(&answered));
        self.push(answered);
    }

    fn push(&mut self, answered: Answered) {
        self.answer_indices.insert(answered.number, self.answered.len());
        self.answered.push(answered);
    }

    /// Records that the script runs again. The number differs from that of every other
    /// run, so that the lines of two runs are never the same.
    pub fn record_resume(&mut self, run: u64) {
        self.log(&Event::Resumed(run));
    }

    /// Records how a run of the script ended: whether it finished, else what it waits
    /// for.
    pub fn record_stop(
        &mut self,
        finished: bool,
        waiting: Option<u64>,
        questions: BTreeMap<u64, Option<String>>,
    ) {
        self.log(&Event::Stopped { finished, waiting, questions: questions.clone() });
        (self.finished, self.waiting, self.questions) = (finished, waiting, questions);
    }

    /// Collects what happens from now on as lines, because everything before is
    /// stored.
    pub fn start_lines(&mut self) {
        self.lines = Some(Vec::new());
    }

    /// Stops collecting lines, because the journal is not stored after all.
    pub fn stop_lines(&mut self) {
        self.lines = None;
    }

    /// Returns whether lines are collected.
    pub fn has_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// Takes the lines of what happened since they were taken last.
    pub fn take_lines(&mut self) -> Vec<u8> {
        self.lines.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn log(&mut self, event: &Event<&Answered>) {
        if let Some(lines) = &mut self.lines {
            events::write(lines, event);
        }
    }

    /// Adds what happened after this journal was stored.
    pub fn with_lines(mut self, lines: &[u8]) -> Result<Journal, DamagedLog> {
        events::read(lines)?.into_iter().for_each(|event| self.apply(event));
        Ok(self)
    }

    fn apply(&mut self, event: Event<Answered>) {
        match event {
            Event::Begun { number, call } => drop(self.begun.insert(number, call)),
            Event::Answered(answered) => {
                self.begun.remove(&answered.number);
                self.push(answered);
            }
            Event::Forgotten(number) => drop(self.begun.remove(&number)),
            // What it waited for is known until it stops again: it may be killed before.
            Event::Resumed(_) => {}
            Event::Stopped { finished, waiting, questions } => {
                (self.finished, self.waiting, self.questions) = (finished, waiting, questions);
            }
        }
    }
}

#[cfg(test)]
mod tests;
