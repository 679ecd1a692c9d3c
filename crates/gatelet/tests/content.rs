//! `gatelet content` as its users meet it: the real program, over a pipe and
//! over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

fn gatelet(state: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatelet"));
    command.arg("--state").arg(state.path()).arg("content").args(arguments);
    command.env_remove("SAPI_JWT_SECRET").env_remove("GATELET_CONTENT_DATABASE");
    command
}

fn run(state: &TempDir, arguments: &[&str]) -> Output {
    gatelet(state, arguments).output().unwrap()
}

/// A server over HTTP that ends with the test.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(state: &TempDir, arguments: &[&str]) -> Server {
        let mut process = gatelet(state, &["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let line = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("http://")));
        let line = line.unwrap().unwrap();
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        // Somebody must read on, or a full pipe would stop the server.
        std::thread::spawn(move || lines.for_each(drop));
        Server { process, address }
    }

    /// Status, head and body of the answer to one request.
    fn post(&self, path: &str, token: Option<&str>, body: &str) -> (u16, String, Value) {
        let credential =
            token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n{credential}\r\n{body}",
            self.address,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), serde_json::from_str(body).unwrap_or_default())
    }

    fn ask(&self, token: &str, method: &str, params: &Value) -> (u16, Value) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, _, body) = self.post("/mcp/content", Some(token), &body.to_string());
        (status, body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_check_of_the_sample_site_calls_every_tool() {
    let state = tempfile::tempdir().unwrap();
    let output = run(&state, &["check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("call: evo.").count(), 14, "{text}");
}

#[test]
fn a_check_of_nothing_says_what_to_fix() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("empty.sqlite");
    std::fs::write(&file, "").unwrap();
    let url = format!("sqlite:{}", file.display());
    let output = run(&state, &["check", "--database", &url]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("evo_site_content") && text.contains("--prefix"), "{text}");
}

#[test]
fn a_token_opens_the_door_until_it_is_revoked() {
    let state = tempfile::tempdir().unwrap();
    let made = run(&state, &["token", "create", "test", "--owner", "2"]);
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert_eq!((token.len(), &token[..5]), (45, "emcp_"));
    let server = Server::start(&state, &["--per-minute", "0"]);

    let (status, body) = server.ask(&token, "initialize", &json!({}));
    assert_eq!(status, 200);
    assert_eq!(body["result"]["serverInfo"]["platform"], "eMCP");
    assert_eq!(body["result"]["capabilities"]["evo"]["toolsetVersion"], "1.0");
    let (_, body) = server.ask(&token, "tools/list", &json!({}));
    assert_eq!(body["result"]["tools"].as_array().unwrap().len(), 14);
    let get = json!({"name": "evo.content.get", "arguments": {"id": 1}});
    let (_, body) = server.ask(&token, "tools/call", &get);
    assert_eq!(body["result"]["structuredContent"]["item"]["pagetitle"], "Home");
    // The owner sees no drafts.
    let draft = json!({"name": "evo.content.get", "arguments": {"id": 6}});
    let (_, body) = server.ask(&token, "tools/call", &draft);
    assert_eq!(body["result"]["structuredContent"]["item"], Value::Null);
    let range = json!({"name": "evo.content.children_range",
        "arguments": {"id": 1, "from": 5, "to": 2, "limit": 1}});
    let (status, body) = server.ask(&token, "tools/call", &range);
    assert_eq!((status, &body["error"]["code"]), (200, &json!(-32602)));
    assert_eq!(body["error"]["message"], "to must be greater than or equal to from.");
    let (_, body) = server.ask(&token, "tools/call", &json!({"name": "evo.nothing"}));
    assert_eq!(body["error"]["code"], -32601);

    let (status, head, body) = server.post("/mcp/content", None, "{}");
    assert_eq!((status, &body["error"]["code"]), (401, &json!("unauthenticated")));
    assert!(head.contains("x-trace-id"), "{head}");
    let big =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","x":"{}"}}"#, "x".repeat(300_000));
    let (status, _, body) = server.post("/mcp/content", Some(&token), &big);
    assert_eq!((status, &body["error"]["code"]), (413, &json!("payload_too_large")));

    let listed = run(&state, &["token", "list"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["owner"]), (&json!("test"), &json!(2)));
    assert!(!listed.to_string().contains(&token));
    assert!(run(&state, &["token", "revoke", "1"]).status.success());
    let (status, body) = server.ask(&token, "ping", &json!({}));
    assert_eq!((status, &body["error"]["code"]), (401, &json!("invalid_token")));
}

#[test]
fn the_limits_and_scopes_of_a_server_really_apply() {
    let state = tempfile::tempdir().unwrap();
    let made = run(&state, &["token", "create", "reader", "--scopes", "mcp:read"]);
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let server = Server::start(
        &state,
        &[
            "--per-minute",
            "0",
            "--max-items",
            "5",
            "--max-depth",
            "2",
            "--max-offset",
            "10",
            "--max-payload-bytes",
            "1000",
            "--deny-tool",
            "evo.model.*",
            "--scope",
            "tools/call=mcp:read",
            "--scope",
            "ping=mcp:admin",
        ],
    );
    let (_, body) = server.ask(&token, "tools/list", &json!({}));
    assert_eq!(body["result"]["tools"].as_array().unwrap().len(), 12);
    let call = |tool: &str, arguments: Value| {
        server.ask(&token, "tools/call", &json!({"name": tool, "arguments": arguments}))
    };
    let (status, body) = call("evo.content.search", json!({"limit": 1}));
    assert_eq!((status, &body["result"]["structuredContent"]["meta"]["count"]), (200, &json!(1)));
    for (arguments, message) in [
        (json!({"limit": 6}), "limit must be between 1 and 5."),
        (json!({"limit": 1, "offset": 11}), "offset must be between 0 and 10."),
        (json!({"limit": 1, "depth": 3}), "depth must be between 1 and 2."),
    ] {
        assert_eq!(call("evo.content.search", arguments).1["error"]["message"], message);
    }
    let (status, body) = call("evo.model.list", json!({"model": "User", "limit": 1}));
    assert_eq!((status, &body["error"]["code"]), (403, &json!("tool_denied")));
    let (status, body) = call("evo.content.get", json!({"id": 1, "x": "x".repeat(1000)}));
    assert_eq!((status, &body["error"]["code"]), (413, &json!("payload_too_large")));
    let (status, body) = server.ask(&token, "ping", &json!({}));
    assert_eq!((status, &body["error"]["code"]), (403, &json!("scope_denied")));

    let made = run(&state, &["token", "create", "caller"]);
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let server = Server::start(&state, &["--max-result-bytes", "3000"]);
    for (limit, expected) in [(1, 200), (20, 413)] {
        let search = json!({"name": "evo.content.search", "arguments": {"limit": limit}});
        assert_eq!(server.ask(&token, "tools/call", &search).0, expected);
    }
}

#[test]
fn a_dispatched_request_is_run_by_the_server() {
    let state = tempfile::tempdir().unwrap();
    let made = run(&state, &["token", "create", "test"]);
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let server = Server::start(&state, &["--per-minute", "0"]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "idempotency_key": "k",
        "params": {"name": "evo.content.search", "arguments": {"limit": 1}}});
    let dispatch = || server.post("/mcp/content/dispatch", Some(&token), &body.to_string());
    let (status, _, first) = dispatch();
    assert_eq!((status, &first["status"]), (202, &json!("accepted")));
    let done = (0..500).map(|_| dispatch().2).find(|answer| answer["status"] == "completed");
    let response = &done.unwrap()["result"]["response"]["result"]["structuredContent"];
    assert_eq!(response["items"][0]["id"], 1);
}

#[test]
fn nobody_is_let_in_unasked_from_elsewhere() {
    let state = tempfile::tempdir().unwrap();
    let output = run(&state, &["serve", "--listen", "0.0.0.0:0", "--auth", "open"]);
    assert_eq!(output.status.code(), Some(2));
    let output = run(&state, &["serve", "--listen", "127.0.0.1:0", "--auth", "jwt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("SAPI_JWT_SECRET"));
}

#[test]
fn a_host_talks_to_it_over_a_pipe() {
    let state = tempfile::tempdir().unwrap();
    let mut process = gatelet(&state, &["serve", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut ask = |message: Value| {
        writeln!(input, "{message}").unwrap();
        serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()
    };
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    let welcome = ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    assert_eq!(welcome["result"]["serverInfo"]["platform"], "eMCP");
    assert_eq!(welcome["result"]["capabilities"]["evo"]["toolsetVersion"], "1.0");
    let params = json!({"name": "evo.content.search", "arguments": {"limit": 2}});
    let found = ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
    assert_eq!(found["result"]["structuredContent"]["meta"]["count"], 2);
    drop(input);
    assert!(process.wait().unwrap().success());
}

#[test]
fn missing_indexes_are_only_suggested() {
    let state = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", state.path().join("site.sqlite").display());
    let made = run(&state, &["bench-site", "--database", &url, "--documents", "200"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let indexes = run(&state, &["indexes", "--database", &url]);
    let text = String::from_utf8(indexes.stdout).unwrap();
    assert!(text.contains(r#"on "evo_site_content" ("parent", "menuindex");"#), "{text}");
    assert_eq!(run(&state, &["indexes", "--database", &url]).stdout, text.as_bytes());
    let again = run(&state, &["bench-site", "--database", &url]);
    assert!(!again.status.success());
}

#[test]
fn a_site_behind_the_gate_is_a_namespace_like_any_other() {
    let state = tempfile::tempdir().unwrap();
    let config = state.path().join("gatelet.toml");
    std::fs::write(&config, "[[upstream]]\nlabel = \"evo\"\nkind = \"content\"\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatelet"));
    command.arg("--state").arg(state.path()).arg("--config").arg(&config);
    let output = command.args(["call", "evo.content.get", "id:=1"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("Welcome to the sample site"),
        "{text}{:?}",
        output.stderr.escape_ascii().to_string()
    );
}
