//! A client on the other end of a gatelet's stdin and stdout.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::{Home, PATIENCE, text};

/// A gatelet that serves over stdio, with a session open.
pub(crate) struct Pipe {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
    /// What `initialize` answered.
    pub(crate) welcome: Value,
}

impl Pipe {
    /// Starts gatelet at home and opens a session.
    pub(crate) fn open(home: &Home) -> Pipe {
        let mut command = home.gatelet();
        command.args(["serve", "--stdio"]);
        Pipe::start(command)
    }

    /// Starts gatelet with these words and opens a session.
    pub(crate) fn open_with(home: &Home, words: &[&str]) -> Pipe {
        let mut command = home.gatelet();
        command.args(words);
        Pipe::start(command)
    }

    /// Starts this command and opens a session.
    pub(crate) fn start(mut command: Command) -> Pipe {
        command.stderr(Stdio::inherit());
        Pipe::start_quiet(command)
    }

    /// The same, with stderr where the command has it.
    pub(crate) fn start_quiet(mut command: Command) -> Pipe {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line);
                let message = message.unwrap_or_else(|_| panic!("not a message: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let mut pipe = Pipe { child, stdin, lines, next: 0, welcome: Value::Null };
        pipe.welcome = pipe.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "it", "version": "1"},
            }),
        )["result"]
            .clone();
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        pipe
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The answer to one of the three verbs.
    pub(crate) fn verb(&mut self, verb: &str, arguments: &Value) -> Value {
        let params = json!({"name": verb, "arguments": arguments});
        let answer = self.request("tools/call", &params);
        answer.get("result").cloned().unwrap_or_else(|| panic!("no result: {answer}"))
    }

    /// The text of `call(namespace, function, kwargs)`, which must succeed.
    #[track_caller]
    pub(crate) fn call(&mut self, function: &str, kwargs: &Value) -> String {
        let (namespace, function) = function.rsplit_once('.').unwrap();
        let arguments = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
        let result = self.verb("call", &arguments);
        assert_ne!(result["isError"], true, "{namespace}.{function}: {}", text(&result));
        text(&result)
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.lines.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|_| panic!("no answer to {method}"));
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The answer to a request that takes long. A ping that is sent behind it,
    /// as soon as it is `under_way`, must be answered before it.
    #[track_caller]
    pub(crate) fn overtaken(
        &mut self,
        method: &str,
        params: &Value,
        under_way: impl FnOnce(),
    ) -> Value {
        let (slow, ping) = (self.next + 1, self.next + 2);
        self.next = ping;
        self.send(&json!({"jsonrpc": "2.0", "id": slow, "method": method, "params": params}));
        under_way();
        self.send(&json!({"jsonrpc": "2.0", "id": ping, "method": "ping"}));
        let mut answers = std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok())
            .filter(|message| message["id"] == slow || message["id"] == ping);
        let first = answers.next().unwrap_or_else(|| panic!("no answer to a ping"));
        assert_eq!(first["id"], ping, "it answered before the ping: {params}");
        answers.next().unwrap_or_else(|| panic!("no answer to {method}"))
    }

    /// What comes until gatelet closes its end.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok()).collect()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
        stdin.flush().unwrap();
    }

    /// Closes the pipe, as a host does when it ends, and waits for the end.
    pub(crate) fn close(mut self) -> std::process::ExitStatus {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits for the end, which somebody else asked for.
    pub(crate) fn wait(mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }

    /// Kills gatelet without a chance to tidy up.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
