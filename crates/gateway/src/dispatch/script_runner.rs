//! The pool that runs scripts, and the set of scripts that are running.

use std::collections::HashSet;

use parking_lot::Mutex;
use script::Pool;

/// Runs scripts, and keeps one script from running twice at a time.
pub struct ScriptRunner {
    pub pool: Pool,
    /// The handles of the scripts that are running.
    running: Mutex<HashSet<String>>,
}

impl ScriptRunner {
    pub fn new(pool: Pool) -> ScriptRunner {
        ScriptRunner { pool, running: Mutex::default() }
    }

    /// Marks a script as running until the guard is dropped; `None` if it already
    /// is.
    pub(super) fn mark_running(&self, handle: &str) -> Option<RunningScript<'_>> {
        let is_new = self.running.lock().insert(handle.to_owned());
        is_new.then(|| RunningScript { runner: self, handle: handle.to_owned() })
    }
}

/// A guard: the script counts as running until this is dropped.
pub(super) struct RunningScript<'a> {
    runner: &'a ScriptRunner,
    handle: String,
}

impl Drop for RunningScript<'_> {
    fn drop(&mut self) {
        self.runner.running.lock().remove(&self.handle);
    }
}
