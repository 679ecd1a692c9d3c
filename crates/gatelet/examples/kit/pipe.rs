//! A gate on a pipe, and a client that asks one thing at a time.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The first message of a client.
pub(crate) const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

/// A gate on a pipe, ended when dropped.
pub(crate) struct Pipe {
    pub(crate) child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pipe {
    pub(crate) fn start(command: &mut Command) -> io::Result<Pipe> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Ok(Pipe { child, input, output })
    }

    /// Asks, and waits for the answer; notifications are passed over.
    pub(crate) fn ask(&mut self, message: &str) -> io::Result<String> {
        writeln!(self.input, "{message}")?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                return Err(io::Error::other("the gate ended"));
            }
            if line.contains("\"id\":") {
                return Ok(line);
            }
        }
    }
}
