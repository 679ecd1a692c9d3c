//! Files as the clients themselves write them.

use std::path::Path as FilePath;

use super::super::problem::SourceFile;
use super::super::{ProcessEnvironment, import, parse, raw_upstream};

fn source(text: &str) -> SourceFile {
    SourceFile { name: "mcp.json".to_owned(), text: text.to_owned() }
}

/// The TOML that an import writes, and the notes beside it.
#[track_caller]
fn check(text: &str, expected: &str, notes: &[&str]) {
    let (found, problems) = import(source(text), FilePath::new("/home/me/work/.vscode")).unwrap();
    let raws = found.into_iter().map(|found| found.raw).collect();
    assert_eq!(raw_upstream::upstreams_to_toml(raws).trim(), expected.trim());
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
call_timeout = "60s"
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
cwd = "/home/me/work/s"
call_timeout = "30s"

[upstream.env]
KEY = "${env:MY_TOKEN}"

[[upstream]]
label = "web"
url = "http://localhost:3000/mcp"
disabled = true
"#,
        &[
            "`mcpServers.py.trust` was left out: approval stays with the client",
            "`mcpServers.web`: is switched off: `mcp.allowed` does not name it",
        ],
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
fn a_file_of_another_client_reads_no_files_and_runs_no_commands() {
    let stays = "stays as it is: only gatelet's own file may";
    check(
        r#"{"mcpServers": {"x": {
            "url": "https://x.example/?q=${file:~/.ssh/id_rsa}",
            "headers": {"A": "Bearer ${file:/etc/passwd}", "B": "{file:~/token}", "C": "$${file:a}",
                "D": "${cmd:id}", "E": "${keyring:k}"}}}}"#,
        r#"
[[upstream]]
label = "x"
url = "https://x.example/?q=$${file:~/.ssh/id_rsa}"

[upstream.headers]
A = "Bearer $${file:/etc/passwd}"
B = "{file:~/token}"
C = "$$${file:a}"
D = "$${cmd:id}"
E = "$${keyring:k}"
"#,
        &[
            &format!("`mcpServers.x.url`: `${{file:~/.ssh/id_rsa}}` {stays} say that"),
            &format!("`mcpServers.x.headers.A`: `${{file:/etc/passwd}}` {stays} say that"),
            &format!(
                "`mcpServers.x.headers.B`: `{{file:~/token}}` {stays} read files, by `${{file:~/token}}`"
            ),
            &format!("`mcpServers.x.headers.C`: `${{file:a}}` {stays} say that"),
            &format!("`mcpServers.x.headers.D`: `${{cmd:id}}` {stays} say that"),
            &format!("`mcpServers.x.headers.E`: `${{keyring:k}}` {stays} say that"),
        ],
    );
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
    let source = SourceFile { name: "config.toml".to_owned(), text: text.to_owned() };
    let (found, problems) = import(source, FilePath::new("")).unwrap();
    assert!(problems.is_empty());
    let raw = &found[0].raw;
    assert_eq!(raw.headers["Authorization"], "Bearer ${env:DOCS_TOKEN}");
    assert_eq!(raw.call_timeout.as_deref(), Some("5s"));
}

#[test]
fn the_variables_that_codex_passes_on_are_passed_on() {
    let text = r#"
[mcp_servers.docs]
command = "docs"
env_vars = ["TOKEN", "MODE", { name = "HOST", source = "local" }, { name = "FAR", source = "remote" }, "no name"]
env = { MODE = "fixed" }
"#;
    let source = SourceFile { name: "config.toml".to_owned(), text: text.to_owned() };
    let (found, problems) = import(source, FilePath::new("")).unwrap();
    let env = &found[0].raw.env;
    assert_eq!(env["TOKEN"], "${env:TOKEN}");
    assert_eq!((env["MODE"].as_str(), env["HOST"].as_str()), ("fixed", "${env:HOST}"));
    assert_eq!((env.len(), problems.iter().count()), (3, 2), "{env:?}");
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
            "`mcpServers.both.url`: was left out: `command` is taken, and a program has none",
            "`mcpServers.dressed.headers`: was left out: `command` is taken, and a program has none",
            "`mcpServers.loaded.args`: was left out: a server at an address has none",
            "`mcpServers.loaded.env`: was left out: a server at an address has none",
            "`mcpServers.loaded.cwd`: was left out: a server at an address has none",
            "`mcpServers.socket.url`: must start with `https://` or `http://`: the server was left out",
            "`mcpServers.number.url`: must start with `https://` or `http://`: the server was left out",
        ],
    );
    let (found, _) = import(source(text), FilePath::new("/")).unwrap();
    let written =
        raw_upstream::upstreams_to_toml(found.into_iter().map(|found| found.raw).collect());
    let written = SourceFile { name: "gatelet.toml".to_owned(), text: written };
    let (_, problems) = parse(written, FilePath::new("/"), &ProcessEnvironment).unwrap();
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn the_gate_itself_is_left_out_however_it_is_reached() {
    let text = r#"{"mcpServers": {
        "a": {"command": "env", "args": ["X=1", "gatelet", "serve", "--stdio"]},
        "b": {"command": "cargo", "args": ["run", "-p", "gatelet", "--", "serve", "--stdio"]},
        "c": {"url": "http://127.0.0.1:4747/mcp"},
        "d": {"url": "http://localhost:4747/mcp/direct"},
        "e": {"command": "npx", "args": ["-y", "mcp-remote", "http://[::1]:4747/mcp"]},
        "f": {"command": "gatelet", "args": ["serve", "--stdio", "--config", "/other.toml"]},
        "site": {"command": "gatelet", "args": ["content", "serve", "--stdio"]},
        "tools": {"command": "gatelet", "args": ["spec", "serve", "x.md"]},
        "far": {"url": "http://127.0.0.1:4848/mcp"}}}"#;
    let (found, problems) = import(source(text), FilePath::new("/home/me/.cursor")).unwrap();
    let labels: Vec<_> = found.iter().filter_map(|found| found.raw.label.as_deref()).collect();
    assert_eq!(labels, ["site", "tools", "far"]);
    let told = problems.iter().filter(|one| one.message.contains("is gatelet itself")).count();
    assert_eq!(told, 6, "{problems}");
    let (config, _) =
        parse(source(text), FilePath::new("/home/me/.cursor"), &ProcessEnvironment).unwrap();
    assert_eq!(config.upstreams.len(), 3);
}

#[test]
fn in_our_own_file_the_gate_itself_is_an_error() {
    let check = |text: &str| {
        let own = SourceFile { name: "/etc/gatelet.toml".to_owned(), text: text.to_owned() };
        parse(own, FilePath::new("/etc"), &ProcessEnvironment).map_err(|stop| stop.to_string())
    };
    let itself = "[[upstream]]\nlabel = \"x\"\nurl = \"http://localhost:4747/mcp\"\n";
    let error = check(itself).unwrap_err();
    assert!(error.contains("is where this gate listens: it would stand behind itself"), "{error}");
    assert!(error.contains("[serve] listen"), "{error}");
    check(&format!("[serve]\nlisten = \"127.0.0.1:4748\"\n{itself}")).unwrap();
    let again =
        "[[upstream]]\nlabel = \"x\"\ncommand = \"gatelet\"\nargs = [\"serve\", \"--stdio\"]";
    let error = check(again).unwrap_err();
    assert!(error.contains("this runs the gate itself"), "{error}");
}

#[test]
fn a_time_without_a_unit_is_read_as_its_client_means_it() {
    let timeout = |file: &str, text: &str| {
        let source = SourceFile { name: file.to_owned(), text: text.to_owned() };
        let (found, problems) = import(source, FilePath::new("/")).unwrap();
        let said = problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>();
        (found[0].raw.call_timeout.clone().unwrap(), said.join("\n"))
    };
    let server = r#"{"mcpServers": {"a": {"command": "x", "timeout": 1800}}}"#;
    let sure = |written: &str| (written.to_owned(), String::new());
    assert_eq!(timeout("/u/cline_mcp_settings.json", server), sure("1800s"));
    assert_eq!(timeout("/u/.gemini/settings.json", server), sure("1800ms"));
    let zed = r#"{"context_servers": {"a": {"command": "x", "timeout": 1800}}}"#;
    assert_eq!(timeout("/u/settings.json", zed), sure("1800s"));
    let (written, said) = timeout("/u/mcp.json", server);
    assert_eq!(written, "1800s");
    assert_eq!(said, "`mcpServers.a.timeout`: 1800 is taken for seconds");
    let (written, said) = timeout("/u/mcp.json", &server.replace("1800", "60000"));
    assert_eq!(written, "60s");
    assert_eq!(said, "`mcpServers.a.timeout`: 60000 is taken for milliseconds");
}

#[test]
fn a_registered_client_is_carried_over() {
    check(
        r#"{"mcpServers": {
            "cursor": {"url": "https://a.example", "auth": {"CLIENT_ID": "c", "CLIENT_SECRET": "${env:S}", "scopes": ["r"]}},
            "claude": {"url": "https://b.example", "oauth": {"clientId": "d", "callbackPort": 8080, "scopes": "read  write"}},
            "opencode": {"url": "https://c.example", "oauth": {"clientId": "e", "scope": "r w", "tokenUrl": "x"}},
            "no": {"url": "https://d.example", "oauth": false}}}"#,
        r#"
[[upstream]]
label = "cursor"
url = "https://a.example"

[upstream.oauth]
client_id = "c"
client_secret = "${env:S}"
scopes = ["r"]

[[upstream]]
label = "claude"
url = "https://b.example"

[upstream.oauth]
client_id = "d"
scopes = ["read", "write"]
redirect_port = 8080

[[upstream]]
label = "opencode"
url = "https://c.example"

[upstream.oauth]
client_id = "e"
scopes = ["r", "w"]

[[upstream]]
label = "no"
url = "https://d.example"
"#,
        &[
            "`mcpServers.opencode.oauth.tokenUrl` was left out: gatelet finds it out, or has no counterpart for it",
        ],
    );
}

#[test]
fn what_is_ambiguous_is_told() {
    check(
        r#"{"inputs": [{"id": "level", "default": "info"}],
           "servers": {
            "a": {"command": "old"},
            "a": {"command": "x", "args": ["${file}", "${input:level}"], "envFile": ".env", "cwd": "~/s"},
            "b": {"url": "https://old.example", "httpUrl": "https://new.example"}}}"#,
        r#"
[[upstream]]
label = "a"
command = "x"
args = ["${file}", "${env:LEVEL:-info}"]
env_file = "/home/me/work/.env"
cwd = "~/s"

[[upstream]]
label = "b"
url = "https://new.example"
"#,
        &[
            "`a` stands here twice; the last one counts",
            "`servers.a.args[0]`: `${file}` has no counterpart: write what it is",
            "`servers.a.args[1]`: `${input:level}` is read from the environment variable `LEVEL`",
            "`servers.b.url`: was left out: `httpUrl` is taken",
        ],
    );
}

#[test]
fn a_file_without_any_server_leaves_room_for_the_first() {
    let (found, _) = import(source(r#"{"mcpServers": {}}"#), FilePath::new("/")).unwrap();
    let written =
        raw_upstream::upstreams_to_toml(found.into_iter().map(|found| found.raw).collect());
    let text = written + "[[upstream]]\nlabel = \"a\"\ncommand = \"x\"\n";
    let source = SourceFile { name: "gatelet.toml".to_owned(), text };
    assert_eq!(
        parse(source, FilePath::new("/"), &ProcessEnvironment).unwrap().0.upstreams.len(),
        1
    );
}
