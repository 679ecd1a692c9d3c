//! Our own executable, started to confine itself and then become the program.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::policy::Policy;
use crate::{confine, preset};

/// The first argument that makes our executable confine itself.
pub const ARGUMENT: &str = "__sandbox";

/// What a refusal by the sandbox begins with.
pub const REFUSAL: &str = "the sandbox cannot be set up";

/// The arguments for our executable that make it become `program`, confined.
pub fn arguments(policy: &Policy, program: &str, args: &[String]) -> Vec<String> {
    let policy = serde_json::to_string(policy).unwrap_or_default();
    let own = [ARGUMENT.to_owned(), policy, program.to_owned()];
    own.into_iter().chain(args.iter().cloned()).collect()
}

/// Becomes the program that `args` (without the executable's own name) name, or the
/// relay of a program's ports, if they ask for that. `None` when they do not. A
/// program that could not be started is an error; a relay ends with its program.
pub fn take(mut args: impl Iterator<Item = OsString>) -> Option<io::Result<()>> {
    let first = args.next()?;
    #[cfg(target_os = "linux")]
    if first == crate::port_relay::ARGUMENT {
        return Some(crate::port_relay::run(args));
    }
    (first == ARGUMENT).then(|| become_program(args))
}

fn become_program(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let usage =
        || io::Error::new(io::ErrorKind::InvalidInput, "a sandbox needs a policy and a program");
    let policy = args.next().and_then(|text| serde_json::from_str::<Policy>(text.to_str()?).ok());
    let mut policy = policy.ok_or_else(usage)?;
    let program = args.next().ok_or_else(usage)?;
    let shown = program.display().to_string();
    let home = std::env::home_dir();
    #[expect(clippy::disallowed_methods, reason = "where the program is looked for")]
    let places = std::env::var_os("PATH").unwrap_or_default();
    let path = found(Path::new(&program), &places);
    if let Some(path) = &path {
        policy.read.extend(preset::own_directories(path, home.as_deref()));
    }
    confine(&policy)
        .map_err(|error| io::Error::other(format!("cannot run `{shown}`: {REFUSAL}: {error}")))?;
    let error = Command::new(&program).args(args).exec();
    Err(io::Error::new(
        error.kind(),
        format!("cannot run `{shown}`: {error} (in its sandbox: {policy})"),
    ))
}

/// Returns where a program is that is named as on a command line.
fn found(program: &Path, places: &OsString) -> Option<PathBuf> {
    if 1 < program.components().count() {
        return Some(program.to_owned());
    }
    std::env::split_paths(places).map(|place| place.join(program)).find(|path| path.is_file())
}
