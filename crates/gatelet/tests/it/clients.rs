//! Real clients work through the three tools, over stdio and over HTTP.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::kit::{Home, Served, eventually, node, npm_upstream, shell, text, tool, upstream};

const CONFIG: &str = "[builtin]\ntools = true\n\n";

fn home() -> Home {
    Home::with(&format!("{CONFIG}{}", npm_upstream("everything", "server-everything", &[])))
}

/// What every client is made to do.
pub(crate) fn calls() -> Value {
    json!([
        // The first call waits for its upstream; a search would not.
        ["call", {"namespace": "everything", "function": "echo", "kwargs": {"message": "hello"}}],
        ["help", {}],
        ["help", {"kwargs": {"query": "echo a message"}}],
        ["call", {"namespace": "everything", "function": "no-such-thing"}],
        ["skill", {"skillname": "first_steps"}],
    ])
}

/// What every client must have seen.
#[track_caller]
pub(crate) fn check(client: &str, seen: &Value, protocol: &str) {
    assert_eq!(seen["tools"], json!(["call", "help", "skill"]), "{client}");
    assert_eq!(seen["protocol"], protocol, "{client}");
    let result = |at: usize| seen["results"][at].clone();
    let said = |at: usize| result(at)["text"].as_str().unwrap_or_default().to_owned();
    assert!(said(0).contains("hello"), "{client}: {}", said(0));
    assert!(said(1).contains("everything"), "{client}: {}", said(1));
    assert!(said(2).contains("echo"), "{client}: {}", said(2));
    assert_eq!(result(3)["isError"], true, "{client}");
    assert!(said(4).contains("Working through the gate"), "{client}: {}", said(4));
}

/// Runs a client script and reads the JSON that it prints.
#[track_caller]
pub(crate) fn run(home: &Home, program: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(program);
    home.settle(&mut command);
    command.args(words).stdin(Stdio::null()).stderr(Stdio::inherit());
    let ended = command.output().unwrap();
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{words:?} said {out}");
    let last = out.trim().lines().last().unwrap_or_default();
    serde_json::from_str(&out)
        .or_else(|_| serde_json::from_str(last))
        .unwrap_or_else(|_| panic!("no JSON: {out}"))
}

pub(crate) fn script(name: &str) -> String {
    format!("{}/tests/it/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

const GATELET: &str = env!("CARGO_BIN_EXE_gatelet");

#[test]
fn the_python_sdk() {
    testkit::needs!(Tools);
    let home = home();
    let served = Served::start(&home);
    let python = tool("py/bin/python");
    let (script, calls) = (script("python.py"), calls().to_string());
    for (mode, protocol) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let http = run(&home, &python, &[&script, mode, &calls, "http", &served.url]);
        check(&format!("python {mode} http"), &http, protocol);
        let stdio = [&script, mode, &calls, "stdio", GATELET, "serve", "--stdio"];
        check(&format!("python {mode} stdio"), &run(&home, &python, &stdio), protocol);
    }
}

#[test]
fn the_typescript_sdk_of_both_generations() {
    testkit::needs!(Tools);
    let home = home();
    let served = Served::start(&home);
    let (script, calls) = (script("typescript.mjs"), calls().to_string());
    let generations = [("v1", "2025-11-25"), ("v2", "2026-07-28"), ("v2-legacy", "2025-11-25")];
    for (generation, protocol) in generations {
        let http = run(&home, &node(), &[&script, generation, &calls, "http", &served.url]);
        // The first generation does not say which protocol it speaks on stdio.
        check(&format!("typescript {generation} http"), &http, protocol);
        let stdio = [&script, generation, &calls, "stdio", GATELET, "serve", "--stdio"];
        let mut stdio = run(&home, &node(), &stdio);
        if generation == "v1" {
            stdio["protocol"] = json!(protocol);
        }
        check(&format!("typescript {generation} stdio"), &stdio, protocol);
    }
}

#[test]
fn the_inspector() {
    testkit::needs!(Tools);
    let home = home();
    let served = Served::start(&home);
    let inspector = tool("npm/node_modules/.bin/mcp-inspector");
    let inspector = inspector.to_str().unwrap();
    let http = ["--cli", served.url.as_str(), "--transport", "http"];
    let stdio = ["--cli", GATELET, "serve", "--stdio"];
    for target in [&http, &stdio] {
        let ask = |words: &[&str]| {
            let mut all = vec![inspector];
            all.extend(target.iter().copied());
            all.extend(words);
            run(&home, &node(), &all)
        };
        let tools = ask(&["--method", "tools/list"]);
        assert_eq!(tools["tools"].as_array().map(Vec::len), Some(3), "{tools}");
        let call = ask(&[
            "--method",
            "tools/call",
            "--tool-name",
            "call",
            "--tool-arg",
            "namespace=everything",
            "--tool-arg",
            "function=echo",
            "--tool-arg",
            r#"kwargs={"message":"hello"}"#,
        ]);
        assert!(text(&call).contains("hello"), "{call}");
    }
}

/// The configuration of a surface, and what clients do there to have a message echoed.
fn on_surface(surface: &str) -> (Home, Value) {
    let everything = npm_upstream("everything", "server-everything", &[]);
    let config = format!("[serve]\nsurface = {surface:?}\n{everything}");
    let message = json!({"message": "hello"});
    let run = json!(["tool_execute", {"tool_id": "everything:echo", "args": message}]);
    let calls = match surface {
        "gateway" => json!([["tool_browse", {"query": "echo a message"}], run]),
        "proxy" => json!([["tool_hydrate", {"tool_id": "everything:echo"}], run]),
        "direct" => json!([["everything_echo", message]]),
        _ => json!([
            ["call", {"namespace": "everything", "function": "echo", "kwargs": message}],
            ["help", {"kwargs": {"query": "echo a message"}}],
        ]),
    };
    (Home::with(&config), calls)
}

#[test]
fn the_official_clients_work_on_every_surface() {
    testkit::needs!(Tools);
    for surface in ["auto", "cash", "gateway", "proxy", "direct"] {
        let (home, calls) = on_surface(surface);
        let served = Served::start(&home);
        // Clients list tools before they call any, so the server has to be there.
        eventually("the server is up", || {
            shell(&home, &["upstreams"]).json().to_string().contains("\"up\"")
        });
        let calls = calls.to_string();
        let clients = [
            ("python", tool("py/bin/python"), script("python.py"), "auto"),
            ("typescript 1", node(), script("typescript.mjs"), "v1"),
            ("typescript 2", node(), script("typescript.mjs"), "v2"),
        ];
        for (client, program, script, mode) in clients {
            let words = [script.as_str(), mode, calls.as_str(), "http", served.url.as_str()];
            let seen = run(&home, &program, &words);
            let told = format!("{client} on {surface}: {seen}");
            let results = seen["results"].as_array().unwrap();
            assert!(results.iter().all(|result| result["isError"] == false), "{told}");
            let said = |word: &str| {
                results.iter().any(|one| one["text"].as_str().unwrap_or_default().contains(word))
            };
            assert!(said("hello"), "{told}");
            let listed = seen["tools"].to_string();
            let first = match surface {
                "gateway" => "tool_browse",
                "proxy" => "tool_hydrate",
                "direct" => "everything_echo",
                _ => "help",
            };
            assert!(listed.contains(first), "{told}");
        }
    }
}

#[test]
fn an_interface_made_with_the_official_helpers_reaches_hosts_that_show_it() {
    testkit::needs!(Tools);
    let server = upstream("weather", &node(), &[&script("app_server.mjs")]);
    let tools = testkit::needs::tools().unwrap();
    let server = format!("{server}env = {{ GATELET_TOOLS = {tools:?} }}\n");
    for surface in ["auto", "cash", "gateway", "direct"] {
        let config =
            format!("[listing]\neverything_below = 0\n[serve]\nsurface = {surface:?}\n{server}");
        let home = Home::with(&config);
        let served = Served::start(&home);
        eventually("the server is up", || {
            shell(&home, &["upstreams"]).json().to_string().contains("\"up\"")
        });
        let host = |kind: &str| run(&home, &node(), &[&script("app_host.mjs"), &served.url, kind]);
        let seen = host("ui");
        let uri = "ui://weather/view.html";
        assert_eq!(seen["interfaces"]["weather_forecast"], uri, "{surface}: {seen}");
        // As the server gave it, whole: an interface reads the data.
        let data = json!({"place": "Rome", "sky": "sunny"});
        assert_eq!(seen["answer"]["structuredContent"], data, "{surface}: {seen}");
        assert_eq!(seen["page"]["_meta"]["ui"]["prefersBorder"], true, "{surface}: {seen}");
        assert_eq!((&seen["isApp"], &seen["page"]["uri"]), (&json!(true), &json!(uri)));
        let plain = host("plain");
        let is_listed = surface == "direct";
        assert_eq!(plain["interfaces"] != json!({}), is_listed, "{surface}: {plain}");
    }
}
