//! The limits of a script.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of one script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The time from its start to its end, calls included.
    pub time: Duration,
    /// The number of operations of the engine, counted in units of ten thousand.
    pub steps: u64,
    /// The memory of its values in bytes.
    pub memory: usize,
    /// The number of calls of functions.
    pub calls: usize,
    /// The number of calls at the same time; further ones wait.
    pub parallel: usize,
    /// The size of its result as JSON, in bytes.
    pub returned: usize,
    /// The size of its log in bytes; further lines are only counted.
    pub logged: usize,
}

/// The engine checks the limit of steps after so many operations.
pub(crate) const STEPS_AT_ONCE: u64 = 10_000;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(120),
            steps: 1_000_000_000,
            memory: 64 << 20,
            calls: 200,
            parallel: 8,
            returned: 4 << 20,
            logged: 8 << 10,
        }
    }
}

/// The limit that a script hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Time,
    Steps,
    Memory,
    Stack,
    Calls,
    Returned,
}

impl Limits {
    /// Explains to the author of a script which limit was hit, and what to do.
    pub fn explain(&self, limit: Limit) -> String {
        match limit {
            Limit::Time => format!(
                "it took longer than {} s; do less in one script, or side by side with Promise.all",
                self.time.as_secs()
            ),
            Limit::Steps => format!(
                "it took more than {} steps; look for a loop without end, or let a function filter",
                self.steps
            ),
            Limit::Memory => format!(
                "it used more than {} MB; keep only the fields that are needed of each result",
                self.memory >> 20
            ),
            Limit::Stack => "its calls nest too deeply; use a loop instead of recursion".to_owned(),
            Limit::Calls => format!(
                "it made more than {} calls; ask a function for several things at once, or split \
                 the work between scripts",
                self.calls
            ),
            Limit::Returned => format!(
                "it returned more than {} kB; return only what is asked for",
                self.returned >> 10
            ),
        }
    }
}
