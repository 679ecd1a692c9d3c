//! The sandbox that a server gets when it is added, if gatelet knows the server.

use std::path::{Path, PathBuf};

use sandbox::{Network, Policy, preset};

use tool::Failure;

use crate::commands::person;
use crate::exit::CliError;
use crate::terminal::{WARNING, foreign, paint, say};
use config::{Environment, ProcessEnvironment, RawSandbox, RawUpstream};

/// Adds a sandbox to the entry of a server that gatelet knows. Returns a description of the
/// sandbox; `None` when the server is not known or has a sandbox already.
pub(super) fn confine(raw: &mut RawUpstream) -> Option<String> {
    let home = ProcessEnvironment.get("HOME").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let directory = raw.cwd.as_deref().filter(|cwd| cwd.is_absolute()).or(here.as_deref());
    let command = raw.command.as_deref().filter(|_| raw.sandbox.is_none())?;
    let run = preset::Run { command, args: &raw.args, directory, home: home.as_deref() };
    let policy = preset::find(run, Path::exists)?;
    if let Err(why) = policy.check(sandbox::support()) {
        return Some(format!("it runs without a sandbox: {why}"));
    }
    for directory in home.iter().flat_map(|home| preset::runner_directories(command, home)) {
        // Where it cannot be made the runner says so, too.
        let _ = std::fs::create_dir_all(directory);
    }
    raw.sandbox = Some(RawSandbox::AUTO);
    Some(describe(&policy))
}

fn describe(policy: &Policy) -> String {
    let list = |paths: &[PathBuf]| {
        let paths = paths.iter().map(|path| path.display().to_string());
        paths.collect::<Vec<_>>().join(", ")
    };
    let changes = match policy.write.as_slice() {
        [] => "no files".to_owned(),
        paths => list(paths),
    };
    let network = match policy.network {
        Network::None => "no network",
        Network::Loopback => "a loopback of its own",
        Network::All => "the network",
    };
    format!(
        "it may change {changes}; it has {network} (`sandbox = \"auto\"`, --no-sandbox leaves it out)"
    )
}

/// Asks the person whether to try a server without the sandbox in which it did not start.
/// Package runners are installed differently on every machine, so the sandbox may be wrong;
/// but a server may also fail on purpose, so it never runs outside without consent.
pub(super) fn ask_to_release(failure: &Failure) -> bool {
    if !person::is_there() {
        return false;
    }
    let note = format!("it does not start in the sandbox that gatelet knows for it ({failure})");
    say(&format!("{} {}", paint(WARNING, "note:"), foreign(&note)));
    person::agrees("Try it without a sandbox, so that it may do whatever you may do?")
}

/// The error for a server that did not start in its sandbox.
pub(super) fn sandbox_error(label: &str, failure: &Failure) -> CliError {
    CliError::NoAnswer(format!(
        "`{label}` gave no listing in the sandbox that gatelet knows for it: {failure}. Nothing was \
         written. If the sandbox is at fault and you trust the server, --no-sandbox adds it without; \
         a table in `sandbox` of its entry confines it by your own rules"
    ))
}
