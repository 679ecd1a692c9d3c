//! Starts programs that die when gatelet dies, even by SIGKILL.
//!
//! Linux sends a process a signal of its choice when its parent is gone, but
//! the process itself must ask for that, between `fork` and `exec`, where safe
//! Rust cannot reach. So a program is started through our own executable, which
//! asks for the signal and then becomes the program by `exec`: one more `exec`
//! per start, no extra process, nothing left running in between.
//!
//! The signal comes when the *thread* that started the process ends. The
//! thread that starts a child therefore waits for it to its end.

use std::path::PathBuf;
use std::process::Command;

use super::platform;

/// The first argument that makes our executable launch a program.
pub const ARGUMENT: &str = "__launch";

/// How an executable ends that could not become the program, as shells do.
pub const UNSTARTED: u8 = 127;

/// How it begins to say why.
pub(super) const CANNOT_RUN: &str = "cannot run `";

/// An executable that calls [`take`](super::launch::take) before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// The one that this process runs.
    Ourselves,
    Other(PathBuf),
}

impl Launcher {
    /// The command that starts the executable.
    pub(super) fn command(&self) -> Command {
        match self {
            Launcher::Other(program) => Command::new(program),
            Launcher::Ourselves => platform::ourselves(),
        }
    }

    /// The command that starts `command` so that it ends with this process.
    pub(super) fn tie(&self, command: &std::path::Path) -> Command {
        let mut tied = self.command();
        tied.arg(ARGUMENT).arg(std::process::id().to_string()).arg(command);
        tied
    }
}
