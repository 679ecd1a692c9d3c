//! Starts a confined program: gatelet's executable confines itself and then becomes the
//! program.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::policy::Policy;
use crate::{confine, preset};

/// The first argument that makes gatelet's executable confine itself.
pub const ARGUMENT: &str = "__sandbox";

/// Begins the message if the sandbox cannot be set up.
pub const REFUSAL: &str = "the sandbox cannot be set up";

/// Returns the arguments that make gatelet's executable become `program`, confined.
pub fn arguments(policy: &Policy, program: &str, args: &[String]) -> Vec<String> {
    let policy = serde_json::to_string(policy).unwrap_or_default();
    let own = [ARGUMENT.to_owned(), policy, program.to_owned()];
    own.into_iter().chain(args.iter().cloned()).collect()
}

/// Becomes a confined program, or runs as the relay of its ports, if `args` (without the
/// executable's own name) request it; otherwise returns `None`. Returns an error if the
/// program cannot be started; a relay ends with its program.
pub fn run_if_requested(mut args: impl Iterator<Item = OsString>) -> Option<io::Result<()>> {
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
    let program_name = program.display().to_string();
    let home = std::env::home_dir();
    #[expect(clippy::disallowed_methods, reason = "where the program is looked for")]
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let path = find_program(Path::new(&program), &search_path);
    if let Some(path) = &path {
        policy.read.extend(preset::own_directories(path, home.as_deref()));
    }
    confine(&policy).map_err(|error| {
        io::Error::other(format!("cannot run `{program_name}`: {REFUSAL}: {error}"))
    })?;
    let error = Command::new(&program).args(args).exec();
    Err(io::Error::new(
        error.kind(),
        format!("cannot run `{program_name}`: {error} (in its sandbox: {policy})"),
    ))
}

/// Finds a program in the directories of `PATH`, unless its name is a path.
fn find_program(program: &Path, search_path: &OsString) -> Option<PathBuf> {
    if 1 < program.components().count() {
        return Some(program.to_owned());
    }
    std::env::split_paths(search_path).map(|place| place.join(program)).find(|path| path.is_file())
}
