//! An MCP client session with a gateway over stdio.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

/// A session with a gateway process. Dropping it ends the process.
pub struct Session {
    child: Arc<Mutex<Child>>,
    /// Dropping it tells the watch that the session is over.
    watch: Option<mpsc::Sender<()>>,
    limit: Duration,
    was_ended: Arc<AtomicBool>,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The id of the last request.
    n_asked: u64,
}

/// The result of a tool call, as text that a model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    pub text: String,
    pub is_error: bool,
}

impl Session {
    /// Starts a gateway and opens a session.
    pub fn start(command: Command) -> io::Result<Session> {
        Session::start_within(command, Duration::MAX)
    }

    /// Starts a gateway and opens a session; the gateway is ended after `limit`.
    pub fn start_within(mut command: Command, limit: Duration) -> io::Result<Session> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("{:?}: {error}", piped.get_program()))
        })?;
        let gone = || io::Error::other("no pipe");
        let (input, output) = (child.stdin.take().ok_or_else(gone)?, child.stdout.take());
        let output = BufReader::new(output.ok_or_else(gone)?);
        let child = Arc::new(Mutex::new(child));
        let was_ended = Arc::new(AtomicBool::new(false));
        let watch = watch(&child, &was_ended, limit);
        let input = Some(input);
        let mut session = Session { child, watch, limit, was_ended, input, output, n_asked: 0 };
        let client = json!({"name": "replay", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        session.ask("initialize", &params)?;
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(session)
    }

    /// Lists the tool definitions, with only the members that a model reads.
    pub fn definitions(&mut self) -> io::Result<Vec<Value>> {
        let (mut tools, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let params = match cursor.as_str() {
                None => json!({}),
                Some(cursor) => json!({"cursor": cursor}),
            };
            let page = self.ask("tools/list", &params)?;
            tools.extend(page["tools"].as_array().cloned().unwrap_or_default());
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
            tool.retain(|key, _| ["name", "description", "inputSchema"].contains(&key.as_str()));
        }
        Ok(tools)
    }

    /// Calls a tool; a protocol error becomes an output with `is_error`.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> io::Result<ToolOutput> {
        let params = json!({"name": tool, "arguments": arguments});
        Ok(match self.ask("tools/call", &params) {
            Ok(result) => tool_output(&result),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                ToolOutput { text: error.to_string(), is_error: true }
            }
            Err(error) => return Err(error),
        })
    }

    /// Sends a request and waits for the response. A protocol error has the kind
    /// `InvalidInput`.
    fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.n_asked += 1;
        let id = self.n_asked;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message).map_err(|_| self.ended_at(method))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(self.ended_at(method));
            }
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if message["id"] != id || message.get("method").is_some() {
                continue;
            }
            return match message.get("error") {
                Some(error) => {
                    let text = error["message"].as_str().unwrap_or_default().to_owned();
                    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
                }
                None => Ok(message["result"].clone()),
            };
        }
    }

    fn ended_at(&self, method: &str) -> io::Error {
        match self.was_ended.load(Ordering::SeqCst) {
            true => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("it was ended after {:.0} min", self.limit.as_secs_f64() / 60.0),
            ),
            false => io::Error::new(io::ErrorKind::UnexpectedEof, format!("it ended at {method}")),
        }
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let input = self.input.as_mut().ok_or_else(|| io::Error::other("the pipe is closed"))?;
        input.write_all(format!("{message}\n").as_bytes())?;
        input.flush()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.watch.take());
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Ends a process after `limit`, unless what is returned is dropped before.
fn watch(
    child: &Arc<Mutex<Child>>,
    was_ended: &Arc<AtomicBool>,
    limit: Duration,
) -> Option<mpsc::Sender<()>> {
    if limit == Duration::MAX {
        return None;
    }
    let (sender, receiver) = mpsc::channel::<()>();
    let (child, was_ended) = (child.clone(), was_ended.clone());
    std::thread::spawn(move || {
        if receiver.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            was_ended.store(true, Ordering::SeqCst);
            let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
        }
    });
    Some(sender)
}

/// Returns the text of an MCP result; other content counts as its JSON.
pub(crate) fn tool_output(result: &Value) -> ToolOutput {
    let parts = result["content"].as_array().into_iter().flatten();
    let parts = parts.map(|part| match part["text"].as_str() {
        Some(text) => text.to_owned(),
        None => part.to_string(),
    });
    let text = parts.collect::<Vec<_>>().join("\n");
    ToolOutput { text, is_error: result["isError"] == true }
}
