//! The steps of opening a session that are in progress, so that a timeout can name them.

use parking_lot::{Mutex, MutexGuard};

use super::stderr::StderrTail;

/// The steps in progress, by MCP method, and the stderr of the program.
#[derive(Default)]
pub(super) struct Steps {
    open: Mutex<Vec<&'static str>>,
    pub(super) stderr: StderrTail,
}

/// A step in progress, until dropped.
pub(super) struct Step<'a> {
    steps: &'a Steps,
    name: &'static str,
}

impl Steps {
    pub(super) fn enter(&self, name: &'static str) -> Step<'_> {
        self.lock().push(name);
        Step { steps: self, name }
    }

    /// Returns the steps in progress as text, for an error message.
    pub(super) fn describe_open(&self) -> String {
        match self.lock().as_slice() {
            [] => "connect".to_owned(),
            steps => steps.join("`, `"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<&'static str>> {
        self.open.lock()
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        let mut steps = self.steps.lock();
        if let Some(at) = steps.iter().position(|step| *step == self.name) {
            steps.remove(at);
        }
    }
}
