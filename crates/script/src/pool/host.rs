//! Who answers the calls of a script, and how a script ends.

use async_trait::async_trait;
use serde_json::value::RawValue;

use crate::journal::{Diverged, Journal};
use crate::limits::Limit;
use crate::protocol::{Call, Finished, Thrown};

/// Answers the calls of a script.
#[async_trait]
pub trait Host: Send + Sync {
    /// Whether a call that may have run can be made again.
    fn is_repeatable(&self, call: &Call) -> bool;

    /// Makes a call.
    async fn call(&self, call: &Call) -> Verdict;

    /// Keeps the journal before a call is made that is not repeatable. Where it cannot
    /// be kept, the call is not made, or it could happen twice.
    async fn keep(&self, journal: &Journal) -> Result<(), Thrown>;
}

/// What became of a call.
#[derive(Debug)]
pub enum Verdict {
    Answer(Result<Box<RawValue>, Thrown>),
    /// It did not run: somebody has to be asked first, so the script stops here.
    Pause,
}

/// How a script ended.
#[derive(Debug)]
pub enum Ended {
    Finished(Finished),
    /// A call waits for somebody.
    Paused,
    /// A limit was hit that the engine does not know of.
    Limit(Limit),
    /// Its worker died.
    Died(String),
    /// It does other things than before.
    Diverged(Diverged),
}
