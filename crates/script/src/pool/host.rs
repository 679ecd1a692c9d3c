//! The interface of whoever answers the calls of a script, and how a script ends.

use async_trait::async_trait;
use serde_json::value::RawValue;

use crate::journal::{Diverged, Journal};
use crate::limits::Limit;
use crate::protocol::{Call, Finished, Thrown};

/// Answers the calls of a script.
#[async_trait]
pub trait Host: Send + Sync {
    /// Returns whether a call that may have run may be made again.
    fn is_repeatable(&self, call: &Call) -> bool;

    /// Makes a call.
    async fn call(&self, call: &Call) -> Verdict;

    /// Returns whether the journal is stored while the script runs. If it is not, a
    /// script ends with its gatelet.
    fn stores_journal(&self) -> bool;

    /// Adds lines to the stored journal; they are stored by [`Host::store`].
    fn add_lines(&self, lines: &[u8]);

    /// Stores the journal before calls that are not repeatable: whole if it is given,
    /// else the lines that were added. If that fails the calls are not made, because
    /// they could run twice.
    async fn store(&self, whole: Option<Journal>) -> Result<(), NotStored>;
}

/// Why the journal is not stored.
#[derive(Debug)]
pub enum NotStored {
    /// It cannot be written; the error is for the calls that are not made.
    Unwritable(Thrown),
    /// The script is being run by somebody else, who goes on with it.
    TakenOver,
}

/// The outcome of a call.
#[derive(Debug)]
pub enum Verdict {
    Answer(Result<Box<RawValue>, Thrown>),
    /// It did not run, because somebody has to be asked first: the script pauses.
    Pause,
}

/// How a script ended.
#[derive(Debug)]
pub enum Ended {
    Finished(Finished),
    /// A call waits for somebody.
    Paused,
    /// It hit a limit that the engine does not check, such as the time.
    Limit(Limit),
    /// Its worker died, and why.
    Died(String),
    /// It made other calls than in the run before.
    Diverged(Diverged),
    /// Somebody else runs it.
    TakenOver,
}
