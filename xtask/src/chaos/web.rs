//! An upstream over HTTP with a fault for every path, on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use serde_json::{Value, json};

use super::stdio::{LATE, done, kept, note, reply};

/// Serves until the process ends.
pub(crate) struct Server {
    port: u16,
}

/// Where calls that were carried out are noted; known once gatelet has a place.
static EFFECTS: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Says where to note calls that were carried out.
pub(crate) fn note_in(effects: &Path) {
    *EFFECTS.lock().expect("nobody panics here") = Some(effects.to_owned());
}

impl Server {
    pub(crate) fn start() -> Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let listener = Arc::new(listener);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || while converse(&stream).unwrap_or(false) {});
            }
        });
        Ok(Server { port })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// One request and its answer; whether another may follow.
fn converse(stream: &TcpStream) -> Result<bool> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(false) };
    let (method, fault) = (method.to_owned(), path.trim_start_matches('/').to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Ok(false);
        }
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    if method != "POST" {
        send(stream, if method == "DELETE" { "204 No Content" } else { "405 Nope" }, "", b"")?;
        return Ok(true);
    }
    let message: Value = serde_json::from_slice(&body)?;
    let id = &message["id"];
    let asked = message["method"].as_str().unwrap_or_default();
    if id.is_null() {
        send(stream, "202 Accepted", "", b"")?;
    } else if asked == "tools/call" && refuses(stream, &fault)? {
        return Ok(true);
    } else if asked == "tools/call" {
        let key = message["params"]["arguments"]["key"].as_str().unwrap_or_default();
        if let Some(effects) = EFFECTS.lock().expect("nobody panics here").as_deref() {
            note(effects, key);
        }
        return misbehave(stream, &fault, id, key);
    } else {
        let session = "Mcp-Session-Id: one\r\n";
        send_json(stream, "200 OK", session, &reply(id, asked))?;
    }
    Ok(true)
}

/// Refuses a call before it is carried out, where that is the fault.
fn refuses(stream: &TcpStream, fault: &str) -> Result<bool> {
    let (status, challenge) = match fault {
        "http-401-bearer" => ("401 No", "Bearer error=\"invalid_token\""),
        "http-403-scope" => ("403 No", "Bearer error=\"insufficient_scope\", scope=\"write\""),
        _ => return Ok(false),
    };
    send(stream, status, &format!("WWW-Authenticate: {challenge}\r\n"), b"")?;
    Ok(true)
}

/// Answers a call that was carried out; whether the connection stays.
fn misbehave(mut stream: &TcpStream, fault: &str, id: &Value, key: &str) -> Result<bool> {
    let answer = done(id, key);
    let text = answer.to_string();
    let event = format!("event: message\ndata: {text}\n\n");
    let stream_type = "Content-Type: text/event-stream\r\n";
    let refusal = |code: i64| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "it broke"}});
    match fault {
        "http-sse" => send(stream, "200 OK", stream_type, event.as_bytes())?,
        "http-sse-cut" => send(stream, "200 OK", stream_type, b": nothing\n\n")?,
        "http-sse-half" => {
            let half = &event.as_bytes()[..event.len() / 2];
            send(stream, "200 OK", stream_type, half)?;
        }
        "http-close" => return Ok(false),
        "http-close-head" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-")?;
            return Ok(false);
        }
        "http-close-body" => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                text.len()
            );
            stream.write_all(head.as_bytes())?;
            stream.write_all(&text.as_bytes()[..text.len() / 2])?;
            return Ok(false);
        }
        "http-hang" => std::thread::sleep(LATE * 4),
        "http-late" => {
            std::thread::sleep(LATE);
            send_json(stream, "200 OK", "", &answer)?;
        }
        "http-garbage" => send(stream, "200 OK", "Content-Type: application/json\r\n", b"{ no")?,
        "http-html" => send(stream, "200 OK", "Content-Type: text/html\r\n", b"<h1>Hello</h1>")?,
        "http-empty" => send(stream, "200 OK", "Content-Type: application/json\r\n", b"")?,
        "http-wrong-id" => send_json(stream, "200 OK", "", &done(&json!("nobody"), key))?,
        "http-accepted" => send(stream, "202 Accepted", "", b"")?,
        "http-error" => send_json(stream, "200 OK", "", &refusal(-32000))?,
        "http-error-400" => send_json(stream, "400 Bad", "", &refusal(-32602))?,
        "http-302" | "http-307" => {
            let status = format!("{} Elsewhere", &fault[5..]);
            send(stream, &status, "Location: /http-healthy\r\n", b"")?;
        }
        "http-kept" => send_json(stream, "200 OK", "", &kept(id, key))?,
        "http-503-after" => send(stream, "503 Busy", "Retry-After: 1\r\n", b"")?,
        "http-healthy" => send_json(stream, "200 OK", "", &answer)?,
        status => send(stream, &format!("{} No", &status[5..]), "", b"it broke")?,
    }
    Ok(true)
}

fn send_json(stream: &TcpStream, status: &str, headers: &str, body: &Value) -> Result<()> {
    let headers = format!("Content-Type: application/json\r\n{headers}");
    send(stream, status, &headers, body.to_string().as_bytes())
}

fn send(mut stream: &TcpStream, status: &str, headers: &str, body: &[u8]) -> Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), body].concat())?;
    Ok(())
}
