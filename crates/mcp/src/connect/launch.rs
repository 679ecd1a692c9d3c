//! The executable's side of a [`Launcher`](super::Launcher): becomes a server program, or
//! runs the reaper, when started with the arguments for that.

use std::ffi::OsString;
use std::io;
use std::process::Command;

use super::launcher::{ARGUMENT, CANNOT_RUN};
use super::{platform, reaper};

/// Becomes the program that `args` (without the executable's own name) name, or runs the
/// reaper, if they ask for that. Returns `None` if they ask for neither; after `Some`, the
/// executable must exit.
///
/// Must come first in `main` of an executable that is used as a
/// [`Launcher`](super::Launcher).
pub fn run_if_requested(mut args: impl Iterator<Item = OsString>) -> Option<io::Result<()>> {
    let first = args.next()?;
    if let Some(done) = reaper::run_if_requested(&first) {
        return Some(done);
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
