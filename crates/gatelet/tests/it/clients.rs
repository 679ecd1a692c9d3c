//! Real clients work through the three tools, over stdio and over HTTP.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::kit::{Home, Served, node, npm_upstream, text, tool};

const CONFIG: &str = "[builtin]\ntools = true\n\n";

fn home() -> Home {
    Home::with(&format!("{CONFIG}{}", npm_upstream("everything", "server-everything", &[])))
}

/// What every client is made to do.
fn calls() -> Value {
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
fn check(client: &str, seen: &Value, protocol: &str) {
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
