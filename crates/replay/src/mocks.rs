//! Mock MCP servers with recorded definitions and results, over Streamable HTTP on
//! loopback, in one process and each under its own path.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::recording::{Recording, Server, Tool};
use crate::session::{self, ToolOutput};

/// The mock servers of a recording. Dropping this stops them.
pub struct Mocks {
    address: SocketAddr,
    state: Arc<State>,
    listener: Option<JoinHandle<()>>,
}

struct State {
    servers: Vec<Server>,
    /// The result of the next call; without one, every tool has its own answer.
    answer: Mutex<Option<Value>>,
    /// The calls that arrived, as `label/tool`.
    calls: Mutex<Vec<String>>,
    is_stopped: AtomicBool,
}

impl Mocks {
    pub fn start(recording: &Recording) -> io::Result<Mocks> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            servers: recording.servers.clone(),
            answer: Mutex::default(),
            calls: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let shared = state.clone();
        let listen = move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.is_stopped.load(Ordering::SeqCst) {
                    return;
                }
                let state = shared.clone();
                thread::spawn(move || serve(&stream, &state));
            }
        };
        Ok(Mocks { address, state, listener: Some(thread::spawn(listen)) })
    }

    /// Returns the label and the URL of every server.
    pub fn upstreams(&self) -> Vec<(String, String)> {
        let servers = self.state.servers.iter();
        servers.map(|server| (server.label.clone(), self.url(&server.label))).collect()
    }

    /// Returns the recorded servers.
    pub fn servers(&self) -> &[Server] {
        &self.state.servers
    }

    /// Calls a tool as a client of its server would; `None` if there is no such tool.
    pub fn call(&self, label: &str, tool: &str, arguments: &Value) -> Option<ToolOutput> {
        let server = self.state.servers.iter().find(|server| server.label == label)?;
        let tool = server.tools.iter().find(|known| known.name == tool)?;
        Some(session::tool_output(&own_answer(tool, arguments)))
    }

    fn url(&self, label: &str) -> String {
        format!("http://{}/{label}/mcp", self.address)
    }

    /// Sets the result of the next call, and forgets earlier calls.
    pub(crate) fn expect(&self, result: &Value) {
        *lock(&self.state.answer) = Some(mcp_result(result));
        lock(&self.state.calls).clear();
    }

    /// Returns whether this tool was called since [`Mocks::expect`].
    pub(crate) fn was_called(&self, label: &str, tool: &str) -> bool {
        lock(&self.state.calls).contains(&format!("{label}/{tool}"))
    }

    /// Returns the result of a call without a gateway, or the error for an unknown tool.
    pub(crate) fn answer(servers: &[Server], label: &str, tool: &str, result: &Value) -> Value {
        let server = servers.iter().find(|server| server.label == label);
        match server.is_some_and(|server| server.tools.iter().any(|known| known.name == tool)) {
            true => mcp_result(result),
            false => unknown_tool(tool),
        }
    }
}

impl Drop for Mocks {
    fn drop(&mut self) {
        self.state.is_stopped.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Converts a recorded result to an MCP result.
fn mcp_result(result: &Value) -> Value {
    let parsed = result.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let object = parsed.as_ref().unwrap_or(result);
    if let Some(content) = object.get("content").filter(|content| content.is_array()) {
        // Recorders wrote `null` for missing members.
        let parts = content.as_array().into_iter().flatten().map(without_nulls);
        let is_error = object["isError"] == true;
        return json!({"content": parts.collect::<Vec<_>>(), "isError": is_error});
    }
    let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
    json!({"content": [{"type": "text", "text": text}], "isError": false})
}

fn without_nulls(part: &Value) -> Value {
    let members = part.as_object().into_iter().flatten();
    let members = members.filter(|(_, value)| !value.is_null());
    Value::Object(members.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// What a tool answers by itself: that the arguments are wrong, or its own answer.
fn own_answer(tool: &Tool, arguments: &Value) -> Value {
    let given = if arguments.is_null() { &json!({}) } else { arguments };
    let required = tool.definition["inputSchema"]["required"].as_array().into_iter().flatten();
    let mut missing = required.filter_map(Value::as_str).filter(|name| given.get(name).is_none());
    match missing.next() {
        Some(name) => error_result(&format!("`{name}` is missing")),
        None => mcp_result(&tool.answer),
    }
}

fn unknown_tool(tool: &str) -> Value {
    error_result(&format!("Unknown tool: {tool}"))
}

fn error_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// Forwards messages between stdio and the mock at `url`, until stdin ends.
pub fn bridge(url: &str) -> io::Result<()> {
    let wrong = || io::Error::other(format!("`{url}` is no address of a mock"));
    let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
    let (host, path) = rest.split_once('/').ok_or_else(wrong)?;
    let stream = TcpStream::connect(host)?;
    let mut reader = BufReader::new(&stream);
    for line in io::stdin().lock().lines() {
        let line = line?;
        let head = format!(
            "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n",
            line.len()
        );
        (&mut &stream).write_all([head.as_bytes(), line.as_bytes()].concat().as_slice())?;
        let (.., body) = read_message(&mut reader).ok_or_else(wrong)?;
        if !body.is_empty() {
            let mut out = io::stdout().lock();
            out.write_all(&body)?;
            out.write_all(b"\n")?;
            out.flush()?;
        }
    }
    Ok(())
}

/// Answers the requests of one connection until it is closed.
fn serve(stream: &TcpStream, state: &State) {
    let mut reader = BufReader::new(stream);
    while let Some((method, path, body)) = read_message(&mut reader) {
        let label = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        let (status, body) = match method.as_str() {
            "POST" if path.ends_with("/mcp") => answer(label, &body, state),
            _ if !path.ends_with("/mcp") => (404, String::new()),
            "DELETE" => (200, String::new()),
            _ => (405, String::new()),
        };
        let head = format!(
            "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if (&mut &*stream)
            .write_all([head.as_bytes(), body.as_bytes()].concat().as_slice())
            .is_err()
        {
            return;
        }
    }
}

/// Reads an HTTP message: the first two words of its first line, and the body.
fn read_message(reader: &mut BufReader<&TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut words = head.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let lower = head.to_ascii_lowercase();
    let body = match lower.contains("transfer-encoding: chunked") {
        true => read_chunks(reader)?,
        false => {
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length:"));
            let mut body = vec![0; length.and_then(|n| n.trim().parse().ok()).unwrap_or(0)];
            reader.read_exact(&mut body).ok()?;
            body
        }
    };
    Some((method, path, body))
}

fn read_chunks(reader: &mut BufReader<&TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        let start = body.len();
        body.resize(start + length, 0);
        reader.read_exact(&mut body[start..]).ok()?;
        reader.read_line(&mut line).ok()?;
        if length == 0 {
            return Some(body);
        }
    }
}

/// Answers a JSON-RPC message; returns the HTTP status and the body.
fn answer(label: &str, body: &[u8], state: &State) -> (u16, String) {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    if message.get("id").is_none() {
        return (202, String::new());
    }
    let Some(server) = state.servers.iter().find(|server| server.label == label) else {
        return (404, String::new());
    };
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": server.label, "version": "1"},
        }),
        "ping" => json!({}),
        "tools/list" => {
            json!({"tools": server.tools.iter().map(|tool| &tool.definition).collect::<Vec<_>>()})
        }
        "tools/call" => {
            let tool = message["params"]["name"].as_str().unwrap_or_default();
            match server.tools.iter().find(|known| known.name == tool) {
                Some(tool) => {
                    lock(&state.calls).push(format!("{label}/{}", tool.name));
                    let recorded = lock(&state.answer).clone();
                    recorded.unwrap_or_else(|| own_answer(tool, &message["params"]["arguments"]))
                }
                None => unknown_tool(tool),
            }
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return (
                200,
                json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string(),
            );
        }
    };
    (200, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invented_tool_answers_and_says_what_is_missing() {
        let mocks = Mocks::start(&Recording::invented(10)).unwrap();
        let (server, tool) = (&mocks.servers()[0], &mocks.servers()[0].tools[1]);
        let wrong = mocks.call(&server.label, &tool.name, &json!({})).unwrap();
        assert!(wrong.is_error && wrong.text.contains("is missing"), "{wrong:?}");
        let right = mocks.call(&server.label, &tool.name, &json!({"id": "7"})).unwrap();
        assert!(!right.is_error && right.text.contains("no vessel"), "{right:?}");
        assert!(mocks.call(&server.label, "gone", &json!({})).is_none());
        let call = json!({"id": 1, "method": "tools/call",
            "params": {"name": tool.name, "arguments": {"id": "7"}}});
        let (_, body) = answer(&server.label, call.to_string().as_bytes(), &mocks.state);
        assert!(body.contains("no vessel"), "the same over the wire: {body}");
    }
}
