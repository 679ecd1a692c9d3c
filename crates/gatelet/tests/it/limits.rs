//! What bad input gets, and what a caller may cost.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::kit::{Answer, Home, PATIENCE, Served, eventually, program, shell, upstream};

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "it", "version": "1"}}})
}

const JSON: (&str, &str) = ("Content-Type", "application/json");
const BOTH: (&str, &str) = ("Accept", "application/json, text/event-stream");

#[track_caller]
fn refused(answer: &Answer, status: u16, code: i64) {
    assert_eq!(answer.status, status, "{}", answer.body);
    assert_eq!(answer.message()["error"]["code"], code, "{}", answer.body);
}

#[test]
fn bad_input_gets_a_precise_error() {
    let limits = "[serve.limits]\nbody_bytes = 2000\nhead_bytes = 8192\nanswer_bytes = 3000\n";
    let home = Home::with(&format!("[builtin]\ntools = true\n{limits}"));
    let served = Served::start(&home);
    let send = |headers: &[(&str, &str)], body: &str| served.send("POST", headers, body);
    refused(&send(&[JSON, BOTH], "{nonsense"), 400, -32700);
    refused(&send(&[JSON, BOTH], "{\"jsonrpc\":\"2.0\",\"id\":1}"), 400, -32600);
    refused(&send(&[JSON, BOTH], "[]"), 400, -32600);
    refused(&send(&[JSON, BOTH], "\"text\""), 400, -32600);
    refused(&send(&[("Content-Type", "text/plain"), BOTH], "{}"), 415, -32000);
    refused(&send(&[BOTH], "{}"), 415, -32000);
    refused(&send(&[JSON, ("Accept", "text/html")], "{}"), 406, -32000);
    refused(&send(&[JSON, BOTH], &"x".repeat(3000)), 413, -32600);
    refused(&send(&[JSON, BOTH, ("Host", "evil.example")], "{}"), 403, -32000);
    refused(&send(&[JSON, BOTH, ("Origin", "https://evil.example")], "{}"), 403, -32000);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    refused(&served.post(&ping, &[]), 400, -32000);
    refused(&served.post(&ping, &[("Mcp-Session-Id", "nobody")]), 404, -32000);
    assert_eq!(served.send("PUT", &[JSON], "{}").status, 405);
    // A head that is too large is told so.
    let mut stream = TcpStream::connect(served.authority()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let large =
        format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(9000));
    stream.write_all(large.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    // An answer that is too large says so.
    let listed = served.asked(None, "tools/call", &json!({"name": "help", "arguments": {}}));
    assert!(listed["result"].is_object(), "{listed}");
    let text = "a".repeat(900);
    let arguments = json!({"namespace": "text", "function": "replace", "sizelimit": 100_000,
        "kwargs": {"text": text, "pattern": "a", "with": "bbbbbbbb"}});
    let large = served.asked(None, "tools/call", &json!({"name": "call", "arguments": arguments}));
    assert_eq!(large["error"]["code"], -32603, "{large}");
}

#[test]
fn a_session_belongs_to_who_opened_it_and_ends_for_good() {
    let home = Home::with("[builtin]\ntools = true\n");
    let served = Served::start(&home);
    let key = |name: &str| shell(&home, &["key", "create", name]).out.trim().to_owned();
    let (ann, bob) = (key("ann"), key("bob"));
    eventually("the keys count", || {
        served.post(&initialize(), &[("X-Api-Key", &bob)]).status == 200
    });
    let opened = served.post(&initialize(), &[("X-Api-Key", &ann)]);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let as_who = |key: Option<&str>| {
        let mut headers = vec![("Mcp-Session-Id", session.as_str())];
        headers.extend(key.map(|key| ("X-Api-Key", key)));
        served.post(&ping, &headers)
    };
    assert_eq!(as_who(Some(&ann)).status, 200);
    refused(&as_who(Some(&bob)), 404, -32000);
    refused(&as_who(None), 404, -32000);
    let unknown = served.post(&ping, &[("Mcp-Session-Id", "0123")]);
    assert_eq!(as_who(None).body, unknown.body, "a foreign session is as unknown as none");
    let ended = served.send("DELETE", &[("Mcp-Session-Id", &session), ("X-Api-Key", &ann)], "");
    assert_eq!(ended.status, 204);
    refused(&as_who(Some(&ann)), 404, -32000);
}

#[test]
fn a_body_that_never_comes_is_given_up() {
    let limits = "[serve.limits]\nbody_time = \"300ms\"\n";
    let home = Home::with(&format!("[builtin]\ntools = true\n{limits}"));
    let served = Served::start(&home);
    let mut stream = TcpStream::connect(served.authority()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\n{}: {}\r\n{}: {}\r\ncontent-length: 100\r\n\r\n{{",
        JSON.0, JSON.1, BOTH.0, BOTH.1
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[test]
fn one_connection_too_many_is_turned_away() {
    let home = Home::with("[builtin]\ntools = true\n[serve.limits]\nconnections = 1\n");
    let served = Served::start(&home);
    let mut held = TcpStream::connect(served.authority()).unwrap();
    let ask = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    held.write_all(ask).unwrap();
    let mut first = [0; 15];
    held.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    // A request whose body has not come yet is under way.
    let head = "content-type: application/json\r\naccept: application/json, text/event-stream";
    let begun =
        format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{head}\r\ncontent-length: 9\r\n\r\n{{");
    held.write_all(begun.as_bytes()).unwrap();
    eventually("the only place is taken", || served.send("GET", &[BOTH], "").status == 503);
    let away = served.send("GET", &[BOTH], "");
    assert_eq!(away.status, 503, "{}", away.body);
    assert_eq!(away.header("retry-after"), Some("1"));
    let health = served.path("/health").send("GET", &[], "");
    assert_eq!(health.status, 200, "how we are is always told: {}", health.body);
}

#[test]
fn strangers_with_equal_clients_do_not_see_each_others_results() {
    let home = Home::with("[builtin]\ntools = true\n[gate]\nlimit = 100\n");
    let served = Served::start(&home);
    let call = |namespace: &str, function: &str, kwargs: Value| {
        let arguments = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
        served.told(None, "call", &arguments)
    };
    // Every request of this client is a connection of its own.
    let gated = call("text", "case", json!({"text": "secret ".repeat(100), "to": "upper"}));
    let handle = gated.split(|c: char| !c.is_ascii_hexdigit()).find(|word| word.len() == 24);
    let handle = handle.unwrap_or_else(|| panic!("no handle of 24 digits in {gated}"));
    let listed = call("gatelet", "view", json!({}));
    assert!(!listed.contains(handle), "a stranger lists it: {listed}");
    let seen = call("gatelet", "view", json!({"handle": handle, "head": 20}));
    assert!(seen.contains("SECRET"), "the handle is the key: {seen}");
}

#[test]
fn a_gate_has_as_many_threads_as_it_is_told_and_all_of_them_answer() {
    let home = Home::with("[builtin]\ntools = true\n");
    for threads in [1, 12] {
        let served = Served::start_with(&home, &["--threads", &threads.to_string()]);
        let tasks = std::fs::read_dir(format!("/proc/{}/task", served.id())).unwrap();
        let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
        // A few that may wait have the same name; one that answers alone has another.
        let n_workers = names.filter(|name| matches!(name, Ok(name) if name.contains("tokio-rt")));
        assert_eq!(12 <= n_workers.count(), threads == 12);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for n in 0..20 {
                        let kwargs = json!({"text": format!("{n}"), "pattern": "x", "with": "y"});
                        let call =
                            json!({"namespace": "text", "function": "replace", "kwargs": kwargs});
                        let told = served.told(None, "call", &call);
                        assert!(told.contains(&n.to_string()), "{told}");
                    }
                });
            }
        });
    }
}

/// A gate with an upstream that is started when it is first called.
fn with_upstream() -> Home {
    let program = program(r#"say(id, {"content": [{"type": "text", "text": "acted"}]})"#);
    let upstream = upstream("late", Path::new("python3"), &["-c", &program]);
    Home::with(&upstream.replace("[[upstream]]", "[[upstream]]\nstart = \"on-demand\""))
}

fn acts(served: &Served) -> bool {
    let call = json!({"namespace": "late", "function": "act"});
    served.told(None, "call", &call).contains("acted")
}

#[test]
fn idle_connections_leave_descriptors_for_callers_and_upstreams() {
    let home = with_upstream();
    let served = Served::start_short_of_files(&home, 128, 128);
    let idle: Vec<TcpStream> =
        (0..400).map(|_| TcpStream::connect(served.authority()).unwrap()).collect();
    assert!(acts(&served), "a call, with an upstream that has to be started for it");
    let health = served.path("/health").send("GET", &[], "");
    assert_eq!(health.status, 200, "{}", health.body);
    let open = std::fs::read_dir(format!("/proc/{}/fd", served.id())).unwrap().count();
    assert!(open < 120, "{open} descriptors are open");
    drop(idle);
    assert!(acts(&served));
}

#[test]
fn the_limit_of_open_files_is_raised_as_far_as_the_system_allows() {
    let home = Home::new();
    let served = Served::start_short_of_files(&home, 64, 600);
    let busy: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(served.authority()).unwrap();
            stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let mut answer = [0; 15];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, *b"HTTP/1.1 200 OK");
            stream
        })
        .collect();
    let open = std::fs::read_dir(format!("/proc/{}/fd", served.id())).unwrap().count();
    assert!(busy.len() < open, "{open} descriptors for {} connections", busy.len());
}
