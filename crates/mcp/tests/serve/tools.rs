//! Programs of others that tests use.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

pub(crate) use testkit::needs::tool;
use tokio::process::Command;

/// How long a program may run.
const TO_RUN: Duration = Duration::from_secs(180);

/// A JavaScript program.
pub(crate) fn node(script: &str) -> Command {
    let mut command = Command::new(tool("node/bin/node"));
    command.arg(tool(script));
    command
}

/// A program of ours that is only an example.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let built = test.ancestors().nth(2).expect("tests are built in target/PROFILE/deps");
    let path = built.join("examples").join(name);
    let hint = "cargo build -p gatelet-mcp --examples";
    assert!(path.exists(), "{} is missing: run `{hint}`", path.display());
    path
}

/// Runs a program to its end and returns what it said.
pub(crate) async fn output(mut command: Command) -> String {
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(TO_RUN, command.output()).await;
    let output = output.expect("the program ends in time").expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{complained}", output.status);
    said
}
