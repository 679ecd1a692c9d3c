//! What an upstream over HTTP is told of a trace.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use super::{act, free_port};
use crate::kit::{Home, PATIENCE, Served, eventually};

/// An upstream over HTTP with one tool. It passes on every call: the head of the request,
/// and the message.
struct Listening {
    port: u16,
    calls: Receiver<(String, Value)>,
}

impl Listening {
    fn start() -> Listening {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, (heard, calls)) = (listener.local_addr().unwrap().port(), channel());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let heard = heard.clone();
                std::thread::spawn(move || answer(stream, &heard));
            }
        });
        Listening { port, calls }
    }

    fn upstream(&self) -> String {
        format!("[[upstream]]\nlabel = \"files\"\nurl = \"http://127.0.0.1:{}/mcp\"\n", self.port)
    }
}

fn answer(stream: TcpStream, heard: &Sender<(String, Value)>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap_or(0))];
    reader.read_exact(&mut body).ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                     "serverInfo": {"name": "listening", "version": "1"}})
        }
        Some("tools/list") => {
            json!({"tools": [{"name": "act", "inputSchema": {"type": "object"}}]})
        }
        Some("tools/call") => {
            heard.send((head, message.clone())).ok()?;
            json!({"content": [{"type": "text", "text": "acted"}]})
        }
        Some(_) | None => Value::Null,
    };
    let (status, body) = match (result, &message["id"]) {
        (_, Value::Null) => ("202 Accepted", String::new()),
        (Value::Null, id) => {
            let error = json!({"code": -32601, "message": "no such method"});
            ("200 OK", json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
        }
        (result, id) => {
            ("200 OK", json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
        }
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    reader.get_mut().write_all(answer.as_bytes()).ok()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[test]
fn an_upstream_over_http_is_told_of_the_trace_in_its_headers_too() {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    for is_traced in [true, false] {
        let upstream = Listening::start();
        let traces = format!("[traces]\nendpoint = \"http://127.0.0.1:{}\"\n", free_port());
        let traces = if is_traced { traces.as_str() } else { "" };
        let home = Home::with(&format!("{traces}{}", upstream.upstream()));
        let served = Served::start(&home);
        eventually("it is up", || served.call("call", &act()).to_string().contains("acted"));
        let params = json!({"name": "call", "arguments": act(), "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "call"),
            ("traceparent", parent.as_str()),
            ("tracestate", "vendor=1"),
        ];
        while upstream.calls.try_recv().is_ok() {}
        assert_eq!(served.post(&message, &headers).status, 200);
        let (head, asked) = upstream.calls.recv_timeout(PATIENCE).unwrap();
        let told = header(&head, "traceparent");
        let meta = &asked["params"]["_meta"]["traceparent"];
        if is_traced {
            let told = told.unwrap_or_else(|| panic!("no header: {head}"));
            assert!(told.starts_with(&format!("00-{trace}-")) && told != parent, "{told}");
            assert_eq!(meta, told, "headers and `_meta` name one span");
            assert_eq!(header(&head, "tracestate"), Some("vendor=1"));
        } else {
            assert_eq!((told, meta), (None, &Value::Null), "{head}");
        }
    }
}
