//! Runs programs that print a secret, such as a password manager or the keyring's tool.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a program may take; a password manager may ask its user first.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How many bytes of the output are read.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// How a program ended, and what it printed.
pub(super) struct ProgramOutput {
    pub(super) is_success: bool,
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs a program with `input` on its stdin, and kills it when it takes too long.
pub(super) fn run(mut command: Command, input: &str) -> Result<ProgramOutput, String> {
    use std::os::unix::process::CommandExt;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let name = command.get_program().display().to_string();
    let mut child = command.spawn().map_err(|error| format!("`{name}` cannot be run: {error}"))?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (done, output) = mpsc::channel();
    let input = input.to_owned();
    std::thread::spawn(move || {
        if let Some(mut stdin) = child.stdin.take() {
            // A program may not read its input.
            let _ = stdin.write_all(input.as_bytes());
        }
        let stderr = child.stderr.take().map(|err| std::thread::spawn(move || read_text(err)));
        let stdout = child.stdout.take().map(read_text).unwrap_or_default();
        let stderr = stderr.and_then(|stderr| stderr.join().ok()).unwrap_or_default();
        let status = child.wait();
        let code = status.as_ref().ok().and_then(std::process::ExitStatus::code);
        let is_success = status.is_ok_and(|status| status.success());
        let _ = done.send(ProgramOutput { is_success, code, stdout, stderr });
    });
    output.recv_timeout(TIMEOUT).map_err(|_| {
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        format!("`{name}` gave no answer within {} s", TIMEOUT.as_secs())
    })
}

fn read_text(stream: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = stream.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs a command line in a shell and returns what it prints without the line end, as
/// `${cmd:…}` is resolved.
pub(crate) fn run_shell_line(line: &str) -> Result<String, String> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line);
    let output = run(command, "")?;
    if !output.is_success {
        let last = output.stderr.lines().next_back().unwrap_or_default();
        let how = output.code.map_or("a signal".to_owned(), |code| format!("code {code}"));
        return Err(format!("it ended with {how}: {}", last.chars().take(200).collect::<String>()));
    }
    let value = output.stdout.trim_end_matches(['\r', '\n']);
    if value.is_empty() { Err("it printed nothing".to_owned()) } else { Ok(value.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gives_its_output_or_says_why_not() {
        assert_eq!(run_shell_line("printf 'a b\\n\\n'").unwrap(), "a b");
        assert!(run_shell_line("echo locked >&2; exit 3").unwrap_err().contains("code 3: locked"));
        assert!(run_shell_line("true").unwrap_err().contains("printed nothing"));
        assert!(run_shell_line("no-such-program-here").is_err());
    }
}
