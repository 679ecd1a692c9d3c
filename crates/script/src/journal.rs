//! What a script has done so far, so that it can go on later without doing it
//! again.
//!
//! A script that is run again with the same code and inputs makes the same
//! calls, as long as their answers come in the same order. So a journal has the
//! answers in the order in which they came, each with a digest of its call; it
//! refuses when a call is another than the one it was.
//!
//! A call that needs the client's input is no answer yet: the journal has what was
//! asked, and the call is made again with what the client says.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::protocol::{Answer, Call, Thrown};

/// The calls of a script and their answers, with the script itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Journal {
    pub code: String,
    pub inputs: Box<RawValue>,
    /// In the order in which the answers came.
    answered: Vec<Answered>,
    /// Where the answer of a call stands; made anew when a journal is read.
    #[serde(skip)]
    places: HashMap<u64, usize>,
    /// Calls that were begun, and whose answers are not known.
    begun: BTreeMap<u64, Made>,
    /// The call before which the script stopped.
    pub waiting: Option<u64>,
    /// The calls that wait for the client's input, each with the state that goes back
    /// with it.
    #[serde(default)]
    pub questions: BTreeMap<u64, Option<String>>,
    /// The recipe that it is, if it is one.
    #[serde(default)]
    pub recipe: Option<String>,
    /// Whether the script came to its end.
    pub finished: bool,
}

/// A call without what was given to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    pub path: Vec<String>,
    digest: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Answered {
    number: u64,
    call: Made,
    result: Result<Box<RawValue>, Thrown>,
}

/// What a journal knows of a call.
#[derive(Debug)]
pub enum Known {
    /// It was answered before.
    Answered,
    /// It was begun before, and may have run.
    Begun,
    /// It is new.
    New,
}

/// The call is another than the one that was made before.
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

impl Made {
    fn of(call: &Call) -> Made {
        let mut hash = Sha256::new();
        for part in call.path.iter().map(String::as_str).chain([call.arguments.get()]) {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize();
        let hex = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
        let digest = digest.iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]).collect();
        Made { path: call.path.clone(), digest }
    }
}

impl Journal {
    pub fn new(code: String, inputs: Box<RawValue>) -> Journal {
        Journal {
            code,
            inputs,
            answered: Vec::new(),
            places: HashMap::new(),
            begun: BTreeMap::new(),
            waiting: None,
            questions: BTreeMap::new(),
            recipe: None,
            finished: false,
        }
    }

    /// Finds the answers of a journal that was read.
    #[must_use]
    pub fn indexed(mut self) -> Journal {
        let places = self.answered.iter().enumerate().map(|(at, one)| (one.number, at));
        self.places = places.collect();
        self
    }

    /// How many calls were answered.
    pub fn n_answered(&self) -> usize {
        self.answered.len()
    }

    /// The calls that may have run, and whose answers nobody knows.
    pub fn begun(&self) -> impl Iterator<Item = &Made> {
        self.begun.values()
    }

    /// What is known of a call, if it is the one that was made before.
    pub fn known(&self, call: &Call) -> Result<Known, Diverged> {
        let answered = self.places.get(&call.number).and_then(|at| self.answered.get(*at));
        let (before, known) = match (answered, self.begun.get(&call.number)) {
            (Some(answered), _) => (&answered.call, Known::Answered),
            (None, Some(begun)) => (begun, Known::Begun),
            (None, None) => return Ok(Known::New),
        };
        if *before == Made::of(call) {
            return Ok(known);
        }
        let (number, before, now) = (call.number, before.path.clone(), call.path.clone());
        Err(Diverged { number, before, now })
    }

    /// The answer that came as number `at`, counted from 0.
    pub fn answer(&self, at: usize) -> Option<Answer> {
        let Answered { number, result, .. } = self.answered.get(at)?;
        Some(Answer { number: *number, result: result.clone() })
    }

    /// A call is about to be made.
    pub fn begin(&mut self, call: &Call) {
        self.begun.insert(call.number, Made::of(call));
    }

    /// A call did not run after all.
    pub fn forget(&mut self, call: &Call) {
        self.begun.remove(&call.number);
    }

    /// The answer of a call came.
    pub fn note(&mut self, call: &Call, result: &Result<Box<RawValue>, Thrown>) {
        let made = self.begun.remove(&call.number).unwrap_or_else(|| Made::of(call));
        self.places.insert(call.number, self.answered.len());
        self.answered.push(Answered { number: call.number, call: made, result: result.clone() });
    }
}

#[cfg(test)]
mod tests;
