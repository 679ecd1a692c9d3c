//! Short programs that are asked for a secret.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a program may take; a password manager may ask its user first.
const WITHIN: Duration = Duration::from_secs(60);
/// No secret is longer.
const LONGEST: u64 = 64 << 10;

/// What a program answered.
pub(super) struct Answer {
    pub(super) is_success: bool,
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

/// Runs a program with something on its input, and ends it when it takes too
/// long.
pub(super) fn run(mut command: Command, input: &str) -> Result<Answer, String> {
    use std::os::unix::process::CommandExt;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let name = command.get_program().display().to_string();
    let mut child = command.spawn().map_err(|error| format!("`{name}` cannot be run: {error}"))?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (done, answer) = mpsc::channel();
    let input = input.to_owned();
    std::thread::spawn(move || {
        if let Some(mut stdin) = child.stdin.take() {
            // A program that reads nothing is told nothing.
            let _ = stdin.write_all(input.as_bytes());
        }
        let err = child.stderr.take().map(|err| std::thread::spawn(move || text(err)));
        let out = child.stdout.take().map(text).unwrap_or_default();
        let err = err.and_then(|err| err.join().ok()).unwrap_or_default();
        let status = child.wait();
        let code = status.as_ref().ok().and_then(std::process::ExitStatus::code);
        let is_success = status.is_ok_and(|status| status.success());
        let _ = done.send(Answer { is_success, code, out, err });
    });
    answer.recv_timeout(WITHIN).map_err(|_| {
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        format!("`{name}` gave no answer within {} s", WITHIN.as_secs())
    })
}

fn text(stream: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = stream.take(LONGEST).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a command line prints, as `${cmd:…}` means it: without the last line end.
pub(crate) fn run_line(line: &str) -> Result<String, String> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line);
    let answer = run(command, "")?;
    if !answer.is_success {
        let said = answer.err.lines().next_back().unwrap_or_default();
        let how = answer.code.map_or("a signal".to_owned(), |code| format!("code {code}"));
        return Err(format!("it ended with {how}: {}", said.chars().take(200).collect::<String>()));
    }
    let value = answer.out.trim_end_matches(['\r', '\n']);
    if value.is_empty() { Err("it printed nothing".to_owned()) } else { Ok(value.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gives_its_output_or_says_why_not() {
        assert_eq!(run_line("printf 'a b\\n\\n'").unwrap(), "a b");
        assert!(run_line("echo locked >&2; exit 3").unwrap_err().contains("code 3: locked"));
        assert!(run_line("true").unwrap_err().contains("printed nothing"));
        assert!(run_line("no-such-program-here").is_err());
    }
}
