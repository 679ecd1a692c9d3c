//! Upstreams that fail in exactly one way each.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

/// An HTTP server with one tool, `act`, at every path. What a call of it gets
/// is the path's: `/429` a status, `/slow` nothing, `/mcp` an answer.
pub(crate) struct Fake {
    address: SocketAddr,
    gone: Arc<AtomicBool>,
}

/// What no model may read.
pub(crate) const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

impl Fake {
    pub(crate) fn start() -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gone = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&gone);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::spawn(move || answer(stream));
            }
        });
        Fake { address, gone }
    }

    /// An `[[upstream]]` at a path here.
    pub(crate) fn upstream(&self, label: &str, path: &str) -> String {
        let url = format!("http://{}/{path}", self.address);
        format!("[[upstream]]\nlabel = {label:?}\nurl = {url:?}\ncall_timeout = \"1s\"\n\n")
    }

    /// Closes the port: from now on nobody is there.
    pub(crate) fn stop(&self) {
        self.gone.store(true, Ordering::SeqCst);
        // The thread looks only when somebody comes.
        while TcpStream::connect(self.address).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

fn answer(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap_or(0))];
    reader.read_exact(&mut body).ok()?;
    let path = head.split_whitespace().nth(1)?.trim_start_matches('/').to_owned();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, body) = said(&path, &message);
    let extra = if status == 429 { "Retry-After: 7\r\n" } else { "" };
    let answer = format!(
        "HTTP/1.1 {status} Word\r\nContent-Type: application/json\r\nConnection: close\r\n{extra}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    reader.get_mut().write_all(answer.as_bytes()).ok()
}

fn said(path: &str, message: &Value) -> (u16, String) {
    let result = |result: Value| {
        (200, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
    };
    match message["method"].as_str() {
        Some("initialize") => result(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        Some("tools/list") => {
            let schema = json!({"type": "object"});
            result(json!({"tools": [
                {"name": "act", "description": "Acts.", "inputSchema": schema},
            ]}))
        }
        Some("tools/call") => match path {
            "slow" => {
                std::thread::sleep(std::time::Duration::from_secs(30));
                result(json!({"content": []}))
            }
            path => match path.parse::<u16>() {
                Ok(status) => (status, format!("it broke with token {SECRET}")),
                Err(_) => result(json!({"content": [{"type": "text", "text": "acted"}]})),
            },
        },
        Some(_) if message["id"].is_null() => (202, String::new()),
        Some(_) => {
            let error = json!({"code": -32601, "message": "no such method"});
            (200, json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string())
        }
        None => (405, String::new()),
    }
}

/// A program with one tool, `act`; what a call of it leads to is `deed`, a line
/// of Python.
pub(crate) fn program(deed: &str) -> String {
    format!(
        r#"
import json, os, sys, time
def say(id, result):
    sys.stdout.write(json.dumps({{"jsonrpc": "2.0", "id": id, "result": result}}) + "\n")
    sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        say(id, {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}},
                 "serverInfo": {{"name": "fake", "version": "1"}}}})
    elif method == "tools/list":
        say(id, {{"tools": [{{"name": "act", "description": "Acts.",
                            "inputSchema": {{"type": "object"}}}}]}})
    elif method == "tools/call":
        {deed}
    elif id is not None:
        error = {{"code": -32601, "message": "no such method"}}
        sys.stdout.write(json.dumps({{"jsonrpc": "2.0", "id": id, "error": error}}) + "\n")
        sys.stdout.flush()
"#
    )
}
