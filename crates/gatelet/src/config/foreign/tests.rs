//! Files as the clients themselves write them.

use std::path::Path as FilePath;

use super::super::problem::Source;
use super::super::{Process, import, read, upstream};

fn source(text: &str) -> Source {
    Source { name: "mcp.json".to_owned(), text: text.to_owned() }
}

/// The TOML that an import writes, and the notes beside it.
#[track_caller]
fn check(text: &str, expected: &str, notes: &[&str]) {
    let (found, problems) = import(source(text), FilePath::new("/home/me/work/.vscode")).unwrap();
    let raws = found.into_iter().map(|found| found.raw).collect();
    assert_eq!(upstream::write(raws).trim(), expected.trim());
    let said: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(said, notes);
}

#[test]
fn claude_desktop() {
    check(
        r#"{"mcpServers": {"filesystem": {"command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
            "env": {"DEBUG": 1}}}, "globalShortcut": ""}"#,
        r#"
[[upstream]]
label = "filesystem"
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]

[upstream.env]
DEBUG = "1"
"#,
        &[],
    );
}

#[test]
fn claude_code() {
    check(
        r#"{"mcpServers": {
            "api": {"type": "http", "url": "${API_BASE:-https://example.org}/mcp",
                    "headers": {"Authorization": "Bearer ${API_KEY}"}},
            "gatelet": {"command": "/usr/bin/gatelet", "args": ["serve", "--stdio"]}},
           "projects": {"/p": {"mcpServers": {"x": {"command": "y"}}}}}"#,
        r#"
[[upstream]]
label = "api"
url = "${env:API_BASE:-https://example.org}/mcp"
transport = "http"

[upstream.headers]
Authorization = "Bearer ${env:API_KEY}"
"#,
        &[
            "`mcpServers.gatelet`: is gatelet itself and was left out",
            "`projects./p.mcpServers`: 1 servers of this project only were left out",
        ],
    );
}

#[test]
fn vs_code_with_inputs_and_comments() {
    check(
        r#"{
  // What we use.
  "inputs": [{"type": "promptString", "id": "perplexity-key", "description": "Perplexity API Key", "password": true}],
  "servers": {
    "perplexity": {
      "type": "stdio", "command": "npx", "args": ["-y", "server-perplexity-ask"],
      "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}", "ROOT": "${workspaceFolder}/data"},
      "envFile": "${workspaceFolder}/.env",
      "dev": {"watch": "src/**"},
    },
    "old one": {"type": "sse", "url": "https://example.org/sse"},
  },
}"#,
        r#"
[[upstream]]
label = "perplexity"
command = "npx"
args = ["-y", "server-perplexity-ask"]
env_file = "/home/me/work/.env"

[upstream.env]
PERPLEXITY_API_KEY = "${env:PERPLEXITY_KEY}"
ROOT = "/home/me/work/data"

[[upstream]]
label = "old-one"
url = "https://example.org/sse"
transport = "sse"
"#,
        &[
            "`servers.perplexity.env.PERPLEXITY_API_KEY`: `${input:perplexity-key}` (Perplexity API Key) is read from the environment variable `PERPLEXITY_KEY`",
            "`servers.perplexity.dev` was left out: gatelet has no counterpart for it",
            "`servers.old one`: `old one` becomes the namespace `old-one`",
        ],
    );
}

#[test]
fn windsurf_and_cline() {
    check(
        r#"{"mcpServers": {
            "a": {"serverUrl": "https://example.org/mcp", "disabledTools": ["rm"]},
            "b": {"command": "b", "disabled": true, "autoApprove": [], "timeout": 60}}}"#,
        r#"
[[upstream]]
label = "a"
url = "https://example.org/mcp"

[[upstream]]
label = "b"
command = "b"
call_timeout = "60000ms"
disabled = true
"#,
        &[
            "`mcpServers.a.disabledTools` was left out: which tools it may use is decided behind the gate",
            "`mcpServers.b.autoApprove` was left out: approval stays with the client",
        ],
    );
}

#[test]
fn gemini_cli() {
    check(
        r#"{"mcp": {"allowed": ["py"]}, "mcpServers": {"py": {"command": "python", "args": ["-m", "s"],
            "env": {"KEY": "$MY_TOKEN"}, "cwd": "./s", "timeout": 30000, "trust": false},
            "web": {"httpUrl": "http://localhost:3000/mcp"}}}"#,
        r#"
[[upstream]]
label = "py"
command = "python"
args = ["-m", "s"]
cwd = "./s"
call_timeout = "30000ms"

[upstream.env]
KEY = "${env:MY_TOKEN}"

[[upstream]]
label = "web"
url = "http://localhost:3000/mcp"
"#,
        &["`mcpServers.py.trust` was left out: approval stays with the client"],
    );
}

#[test]
fn opencode_old_and_new() {
    let expected = r#"
[[upstream]]
label = "local"
command = "bun"
args = ["x", "tool"]
disabled = true

[upstream.env]
A = "b"

[[upstream]]
label = "remote"
url = "https://example.org"

[upstream.headers]
X = "${env:KEY}"
"#;
    let servers = r#"{
        "local": {"type": "local", "command": ["bun", "x", "tool"], "enabled": false, "environment": {"A": "b"}},
        "remote": {"type": "remote", "url": "https://example.org", "headers": {"X": "{env:KEY}"}}}"#;
    check(&format!(r#"{{"$schema": "x", "mcp": {servers}}}"#), expected, &[]);
    check(&format!(r#"{{"mcp": {{"servers": {servers}}}}}"#), expected, &[]);
}

#[test]
fn zed() {
    check(
        r#"{"theme": "x", "context_servers": {
            "new": {"source": "custom", "command": "s", "args": ["a"], "env": {}},
            "old": {"command": {"path": "s", "args": ["b"], "env": {"K": "v"}}, "settings": {}},
            "extension": {"source": "extension", "settings": {"x": 1}}}}"#,
        r#"
[[upstream]]
label = "new"
command = "s"
args = ["a"]

[[upstream]]
label = "old"
command = "s"
args = ["b"]

[upstream.env]
K = "v"
"#,
        &[
            "`context_servers.old.settings` was left out: these are for the client's extension",
            "`context_servers.extension.settings` was left out: these are for the client's extension",
            "`context_servers.extension`: has neither a command nor an address and was left out",
        ],
    );
}

#[test]
fn codex_has_toml() {
    let text = r#"
model = "x"
[mcp_servers.docs]
url = "https://example.org/mcp"
bearer_token_env_var = "DOCS_TOKEN"
tool_timeout_sec = 5
"#;
    let source = Source { name: "config.toml".to_owned(), text: text.to_owned() };
    let (found, problems) = import(source, FilePath::new("")).unwrap();
    assert!(problems.is_empty());
    let raw = &found[0].raw;
    assert_eq!(raw.headers["Authorization"], "Bearer ${env:DOCS_TOKEN}");
    assert_eq!(raw.call_timeout.as_deref(), Some("5000ms"));
}

#[test]
fn a_bare_map_of_servers_is_enough() {
    check(r#"{"x": {"command": "y"}}"#, "[[upstream]]\nlabel = \"x\"\ncommand = \"y\"", &[]);
}

#[test]
fn labels_that_would_collide_get_a_number() {
    check(
        r#"{"mcpServers": {"a_b": {"command": "x"}, "a b": {"command": "y"}}}"#,
        "[[upstream]]\nlabel = \"a_b\"\ncommand = \"x\"\n\n[[upstream]]\nlabel = \"a-b-2\"\ncommand = \"y\"",
        &["`mcpServers.a b`: `a b` becomes the namespace `a-b-2`"],
    );
}

#[test]
fn a_file_without_servers_says_what_is_known() {
    let error = import(source(r#"{"editor.fontSize": 12}"#), FilePath::new("")).unwrap_err();
    assert!(error.to_string().contains("`mcpServers`"), "{error}");
}

#[test]
fn what_has_no_counterpart_is_told_at_its_place() {
    check(
        r#"{"mcpServers": {
            "a": {"command": "x", "args": "-y pkg", "env": "A=1", "disabled": "yes"},
            "b": {"command": "x", "args": ["-y", null, {"a": 1}], "env": {"A": null}},
            "c": {"url": "https://x.example", "headers": {"Authorization": "Bearer $TOKEN"}},
            "d": {"command": "x", "args": ["${command:pick}", "${config:a.b}", "${env:MINE}"]},
            "e": {"command": "x", "timeout": -5},
            "f": {}}}"#,
        r#"
[[upstream]]
label = "a"
command = "x"

[[upstream]]
label = "b"
command = "x"
args = ["-y"]

[[upstream]]
label = "c"
url = "https://x.example"

[upstream.headers]
Authorization = "Bearer $TOKEN"

[[upstream]]
label = "d"
command = "x"
args = ["${command:pick}", "${config:a.b}", "${env:MINE}"]

[[upstream]]
label = "e"
command = "x"
"#,
        &[
            "`mcpServers.a.args` was left out: it is not a list",
            "`mcpServers.a.env` was left out: it is not a table",
            "`mcpServers.a.disabled` was left out: it is neither true nor false",
            "`mcpServers.b.args[1]` was left out: it is not text",
            "`mcpServers.b.args[2]` was left out: it is not text",
            "`mcpServers.b.env.A` was left out: it is not text",
            "`mcpServers.c.headers.Authorization`: `$TOKEN` stays as it is; `${env:TOKEN}` is the variable",
            "`mcpServers.d.args[0]`: `${command:pick}` has no counterpart: write what it is",
            "`mcpServers.d.args[1]`: `${config:a.b}` has no counterpart: write what it is",
            "`mcpServers.e.timeout` was left out: nobody waits that long, or that short",
            "`mcpServers.f`: has neither a command nor an address and was left out",
        ],
    );
}

#[test]
fn what_is_written_is_a_configuration_that_can_be_read() {
    let text = r#"{"mcpServers": {
        "socket": {"url": "ws://x.example"}, "number": {"url": 5},
        "both": {"command": "x", "url": "https://x.example"},
        "dressed": {"command": "x", "headers": {"A": "b"}},
        "loaded": {"url": "https://x.example", "args": ["a"], "env": {"A": "b"}, "cwd": "/"}}}"#;
    let expected = "[[upstream]]\nlabel = \"both\"\ncommand = \"x\"\n\n\
        [[upstream]]\nlabel = \"dressed\"\ncommand = \"x\"\n\n\
        [[upstream]]\nlabel = \"loaded\"\nurl = \"https://x.example\"";
    check(
        text,
        expected,
        &[
            "`mcpServers.both.url`: was left out: a program has none",
            "`mcpServers.dressed.headers`: was left out: a program has none",
            "`mcpServers.loaded.args`: was left out: a server at an address has none",
            "`mcpServers.loaded.env`: was left out: a server at an address has none",
            "`mcpServers.loaded.cwd`: was left out: a server at an address has none",
            "`mcpServers.socket.url`: must start with `https://` or `http://`: the server was left out",
            "`mcpServers.number.url`: must start with `https://` or `http://`: the server was left out",
        ],
    );
    let (found, _) = import(source(text), FilePath::new("/")).unwrap();
    let written = upstream::write(found.into_iter().map(|found| found.raw).collect());
    let written = Source { name: "gatelet.toml".to_owned(), text: written };
    let (_, problems) = read(written, FilePath::new("/"), &Process).unwrap();
    assert!(problems.is_empty(), "{problems}");
}
