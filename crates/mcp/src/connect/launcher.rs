//! Starts programs that die when gatelet dies, even by SIGKILL.
//!
//! Linux sends a process a signal of its choice when its parent is gone, but
//! the process itself must ask for that, between `fork` and `exec`, where safe
//! Rust cannot reach. So a program is started through our own executable, which
//! asks for the signal and then becomes the program by `exec`: one more `exec`
//! per start, no extra process, nothing left running in between.
//!
//! The signal comes when the *thread* that started the process ends. Therefore the
//! thread that starts a child waits for its end.

use std::path::PathBuf;
use std::process::Command;

use super::platform;

/// The first argument that makes our executable launch a program.
pub const ARGUMENT: &str = "__launch";

/// The exit code of a launcher that could not start the program, as in shells.
pub const EXIT_NOT_STARTED: u8 = 127;

/// The start of its error message.
pub(super) const CANNOT_RUN: &str = "cannot run `";

/// An executable that calls [`run_if_requested`](super::launch::run_if_requested) first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// The executable of this process.
    Ourselves,
    Other(PathBuf),
}

impl Launcher {
    /// Returns the command that starts the executable.
    pub(super) fn command(&self) -> Command {
        match self {
            Launcher::Other(program) => Command::new(program),
            Launcher::Ourselves => platform::own_executable(),
        }
    }

    /// Returns the command that starts `command` so that it ends with this process.
    pub(super) fn command_for(&self, command: &std::path::Path) -> Command {
        let mut tied = self.command();
        tied.arg(ARGUMENT).arg(std::process::id().to_string()).arg(command);
        tied
    }
}
