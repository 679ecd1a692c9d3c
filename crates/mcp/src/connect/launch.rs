//! The other side of a [`Launcher`](super::Launcher): our executable, started to
//! become a program or to be the reaper.

use std::ffi::OsString;
use std::io;
use std::process::Command;

use super::launcher::{ARGUMENT, CANNOT_RUN};
use super::{platform, reaper};

/// Becomes the program that `args` (without the executable's own name) name,
/// if they ask for that, or is the reaper, if they ask for that. `None` when
/// they ask for neither; otherwise the executable has nothing else to do.
///
/// The first thing an executable does in `main` when it is used as a
/// [`Launcher`](super::Launcher).
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
