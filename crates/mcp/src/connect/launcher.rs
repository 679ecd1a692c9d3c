//! Programs that die when we die, even by SIGKILL.
//!
//! Linux sends a process a signal of its choice when its parent is gone, but
//! the process itself must ask for that, between `fork` and `exec`, where safe
//! Rust cannot reach. So a program is started through our own executable, which
//! asks for the signal and then becomes the program by `exec`: one more `exec`
//! per start, no extra process, nothing left running in between.
//!
//! The signal comes when the *thread* that started the process ends. The
//! thread that starts a child therefore waits for it to its end.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use super::{platform, reaper};

/// The first argument that makes our executable launch a program.
pub const ARGUMENT: &str = "__launch";

/// How an executable ends that could not become the program, as shells do.
pub const UNSTARTED: u8 = 127;

/// How it begins to say why.
pub(super) const CANNOT_RUN: &str = "cannot run `";

/// An executable that calls [`take`] before anything else.
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

/// Becomes the program that `args` (without the executable's own name) name,
/// if they ask for that, or is the reaper, if they ask for that. `None` when
/// they ask for neither; otherwise the executable has nothing else to do.
///
/// The first thing an executable does in `main` when it is used as a
/// [`Launcher`].
pub fn take(mut args: impl Iterator<Item = OsString>) -> Option<io::Result<()>> {
    let first = args.next()?;
    if let Some(stood) = reaper::take(&first) {
        return Some(stood);
    }
    if first != ARGUMENT {
        return None;
    }
    Some(become_program(args))
}

fn become_program(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    use std::os::unix::process::CommandExt;

    let usage =
        || io::Error::new(io::ErrorKind::InvalidInput, "a launcher needs a parent and a program");
    let parent: i32 = args.next().and_then(|id| id.to_str()?.parse().ok()).ok_or_else(usage)?;
    let program = args.next().ok_or_else(usage)?;
    platform::die_with(parent)?;
    let error = Command::new(&program).args(args).exec();
    let reason = format!("{CANNOT_RUN}{}`: {error}", program.display());
    Err(io::Error::new(error.kind(), reason))
}
