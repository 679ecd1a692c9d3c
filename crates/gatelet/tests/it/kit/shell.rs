//! One command from the shell.

use std::io::Write;
use std::process::Stdio;

use super::Home;

/// How a command ended and what it wrote.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `gatelet WORDS…` at home.
pub(crate) fn shell(home: &Home, words: &[&str]) -> Ended {
    shell_with(home, words, "")
}

/// As [`shell`], with something on standard input.
pub(crate) fn shell_with(home: &Home, words: &[&str], input: &str) -> Ended {
    let mut command = home.gatelet();
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Ended {
    /// What it wrote to stdout, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}
