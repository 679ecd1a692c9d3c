//! One command at a terminal, with somebody who answers what it asks.

use std::process::Stdio;

use serde_json::json;

use super::{Ended, Home};

/// Opens a terminal, runs the command in it, and types each answer after its question. All that
/// the terminal showed goes to stdout. What nobody asked is an error.
const PERSON: &str = r#"
import json, os, pty, sys
answers, words = json.loads(sys.argv[1]), sys.argv[2:]
process, terminal = pty.fork()
if process == 0:
    os.execvp(words[0], words)
shown, start = b"", 0
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece:
        break
    shown += piece
    while answers and answers[0][0].encode() in shown[start:]:
        start = len(shown)
        os.write(terminal, answers.pop(0)[1].encode() + b"\n")
status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
sys.stdout.buffer.write(shown)
sys.stdout.flush()
sys.exit(f"nobody asked {answers[0][0]}" if answers else status)
"#;

/// Runs `gatelet WORDS…` at a terminal at home, where each question of `answers` is answered by
/// what stands beside it.
#[track_caller]
pub(crate) fn at_terminal(home: &Home, words: &[&str], answers: &[(&str, &str)]) -> Ended {
    let gatelet = home.gatelet_with_bin();
    let mut command = std::process::Command::new("python3");
    command.arg("-c").arg(PERSON).arg(json!(answers).to_string());
    command.arg(gatelet.get_program()).args(words);
    home.settle(&mut command);
    super::put_in_front(&home.path().join("bin"), &mut command);
    command.env("NO_COLOR", "1").env("TERM", "xterm");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!err.contains("nobody asked"), "{err}: {}", String::from_utf8_lossy(&output.stdout));
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).replace('\r', ""),
        err,
    }
}
