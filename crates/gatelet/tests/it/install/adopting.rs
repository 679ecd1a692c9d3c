//! What `install --adopt` does with servers that are switched off, bound to a place, or
//! called as something of ours; and where they stand when they come back.

use serde_json::{Value, json};

use super::{OWN, entry};
use crate::kit::{Home, shell};

fn upstream(home: &Home, label: &str) -> Value {
    let own: Value = toml::from_str::<toml::Table>(&home.read(OWN)).map(|own| json!(own)).unwrap();
    let all = own["upstream"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|one| one["label"] == label).unwrap_or_default()
}

fn names(home: &Home, file: &str) -> Vec<String> {
    entry(home, file).as_object().unwrap().keys().cloned().collect()
}

#[test]
fn what_is_switched_off_stays_so_and_what_any_host_uses_is_on() {
    let home = Home::new();
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"off": {"command": "off", "disabled": true}, "both": {"command": "both", "disabled": true}}}"#);
    home.write(
        ".kiro/settings/mcp.json",
        r#"{"mcpServers": {"both": {"command": "both"}, "mine": {"command": "mine"}}}"#,
    );
    // Gemini CLI keeps its switches beside its settings.
    home.write(".gemini/settings.json", r#"{"mcpServers": {"Far": {"command": "far"}}}"#);
    home.write(".gemini/mcp-server-enablement.json", r#"{"far": {"enabled": false}}"#);
    home.write(OWN, "[[upstream]]\nlabel = \"mine\"\ncommand = \"mine\"\ndisabled = true\n");
    let adopted = shell(&home, &["install", "cursor", "kiro", "gemini", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    let disabled = |label: &str| upstream(&home, label)["disabled"].clone();
    assert_eq!(disabled("off"), json!(true), "{}", home.read(OWN));
    assert_eq!(disabled("both"), Value::Null);
    assert_eq!(disabled("Far"), json!(true));
    assert_eq!(disabled("mine"), json!(true), "what our own file says stays");
    assert!(adopted.err.contains("gatelet enable mine"), "{adopted:?}");
    assert_eq!(home.read(OWN).matches("[[upstream]]").count(), 4, "{}", home.read(OWN));
    let again = shell(&home, &["install", "cursor", "kiro", "gemini", "--adopt", "--yes"]);
    assert_eq!(again.json()["written"], false, "{again:?}");
}

#[test]
fn servers_do_not_move_behind_a_gatelet_that_the_host_leaves_out() {
    let home = Home::new();
    let text = r#"{"mcpServers": {"gatelet": {"command": "gatelet", "args": ["connect"], "disabled": true}, "a": {"command": "a"}}}"#;
    home.write(".cursor/mcp.json", text);
    let adopted = shell(&home, &["install", "cursor", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    assert_eq!(names(&home, ".cursor/mcp.json"), ["gatelet", "a"]);
    assert!(adopted.err.contains("switched off"), "{adopted:?}");
    assert!(adopted.out.contains("switch it on in Cursor"), "{adopted:?}");
    let findings = shell(&home, &["doctor", "--json"]);
    assert!(findings.out.contains("host-switched-off"), "{findings:?}");
}

#[test]
fn a_server_that_is_started_by_a_relative_path_stays_with_the_host_that_knows_the_place() {
    let home = Home::new();
    let servers = r#"{"mcpServers": {"here": {"command": "npx", "args": ["-y", "files", "."]}, "script": {"command": "node", "args": ["build/index.js"]}, "open": {"command": "x", "args": ["${workspaceFolder}"]}, "fixed": {"command": "./run", "cwd": "/srv/app"}}}"#;
    home.write(".cursor/mcp.json", servers);
    let adopted = shell(&home, &["install", "cursor", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    assert_eq!(names(&home, ".cursor/mcp.json"), ["here", "script", "open", "gatelet"]);
    assert!(adopted.err.contains("`build/index.js`"), "{adopted:?}");
    assert_eq!(upstream(&home, "fixed")["cwd"], "/srv/app");
}

#[test]
fn a_server_of_a_project_runs_in_the_project_behind_gatelet_too() {
    let home = Home::new();
    let tool = json!({"name": "where", "inputSchema": {"type": "object"}});
    let server = format!(
        "import json, os, sys\nfor line in sys.stdin:\n    ask = json.loads(line)\n    if 'id' not in ask: continue\n    \
         info = {{'protocolVersion': '2025-06-18', 'capabilities': {{'tools': {{}}}}, 'serverInfo': {{'name': 's', 'version': '1'}}}}\n    \
         result = {{'initialize': info, 'tools/list': {{'tools': [json.loads({:?})]}}}}.get(ask['method'], {{'content': [{{'type': 'text', 'text': os.getcwd()}}]}})\n    \
         print(json.dumps({{'jsonrpc': '2.0', 'id': ask['id'], 'result': result}}), flush=True)\n",
        tool.to_string()
    );
    home.write("project/server.py", &server);
    home.write(
        "project/.mcp.json",
        r#"{"mcpServers": {"local": {"command": "python3", "args": ["server.py"]}}}"#,
    );
    let project = home.path().join("project");
    let mut command = home.gatelet();
    command.current_dir(&project);
    command.args(["install", "claude-code", "--project", "--adopt", "--yes"]);
    let adopted = command.output().unwrap();
    assert!(adopted.status.success(), "{adopted:?}");
    assert_eq!(upstream(&home, "local")["cwd"], project.to_str().unwrap());
    let called = shell(&home, &["--config", OWN, "call", "local.where", "--text"]);
    assert_eq!(called.out.trim(), project.to_str().unwrap(), "{called:?}");
}

#[test]
fn another_server_that_is_called_gatelet_moves_and_ours_takes_its_place() {
    let home = Home::new();
    let text = "{\n  \"mcpServers\": {\n    \"gatelet\": {\n      \"command\": \"somebody-elses\"\n    }\n  }\n}\n";
    home.write(".cursor/mcp.json", text);
    let adopted = shell(&home, &["install", "cursor", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    assert_eq!(names(&home, ".cursor/mcp.json"), ["gatelet"]);
    assert_eq!(entry(&home, ".cursor/mcp.json")["gatelet"]["args"][0], "connect");
    assert_eq!(upstream(&home, "gatelet-upstream")["command"], "somebody-elses");
    assert_eq!(shell(&home, &["undo", "--yes"]).code, 0);
    assert_eq!(home.read(".cursor/mcp.json"), text);
}

#[test]
fn an_address_of_our_own_is_not_adopted_by_ourselves() {
    let home = Home::new();
    home.write(OWN, "[serve]\nlisten = \"127.0.0.1:4911\"\n");
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"gate": {"url": "http://localhost:4911/mcp"}, "a": {"command": "a"}}}"#,
    );
    let adopted = shell(&home, &["install", "cursor", "--adopt", "--http", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    assert_eq!(names(&home, ".cursor/mcp.json"), ["gate"]);
    assert!(!home.read(OWN).contains("4911/mcp"), "{}", home.read(OWN));
}

#[test]
fn a_server_that_is_called_as_a_built_in_namespace_keeps_its_name_and_it_is_said() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"time": {"command": "clock"}, "Memory": {"command": "mem"}}}"#,
    );
    let adopted = shell(&home, &["install", "cursor", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    assert_eq!(upstream(&home, "time")["command"], "clock");
    let notes = adopted.json()["files"][0]["notes"].to_string();
    assert!(notes.contains("`time_2`") && notes.contains("`memory_2`"), "{notes}");
    assert_eq!(shell(&home, &["--config", OWN, "config", "check"]).code, 0);
    let now = shell(&home, &["--config", OWN, "call", "time_2.now"]);
    assert_eq!(now.code, 0, "{now:?}");
}

#[test]
fn what_comes_back_into_a_changed_file_stands_where_it_stood() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{\n  // mine\n  \"mcpServers\": {\n    \"b\": {\"command\": \"b\"},\n    \"kept\": {\"command\": \"./k\"},\n    \"a\": {\"command\": \"a\"}\n  }\n}\n");
    home.write(".codex/config.toml", "[mcp_servers.b]\ncommand = \"b\"\n\n[mcp_servers.kept]\ncommand = \"./k\"\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[more]\nx = 1\n");
    home.write(".config/goose/config.yaml", "extensions:\n  b:\n    type: stdio\n    cmd: b\n  kept:\n    type: stdio\n    cmd: ./k\n  a:\n    type: stdio\n    cmd: a\nGOOSE_MODE: auto\n");
    let adopted = shell(&home, &["install", "cursor", "codex", "goose", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    assert_eq!(names(&home, ".cursor/mcp.json"), ["kept", "gatelet"]);
    let more = |file: &str, before: &str, after: &str| {
        let text = home.read(file);
        assert!(text.contains(before), "{text}");
        home.write(file, &text.replacen(before, after, 1));
    };
    more(".cursor/mcp.json", "// mine", "// mine, since then");
    more(".codex/config.toml", "x = 1", "x = 2");
    more(".config/goose/config.yaml", "GOOSE_MODE: auto", "GOOSE_MODE: smart");
    let undone = shell(&home, &["undo", "--yes"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(names(&home, ".cursor/mcp.json"), ["b", "kept", "a"]);
    let codex = home.read(".codex/config.toml");
    let headers: Vec<&str> = codex.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(headers, ["[mcp_servers.b]", "[mcp_servers.kept]", "[mcp_servers.a]", "[more]"]);
    let goose = home.read(".config/goose/config.yaml");
    let keys: Vec<&str> = goose
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(str::trim)
        .collect();
    assert_eq!(keys, ["b:", "kept:", "a:"], "{goose}");
}

#[test]
fn a_server_of_which_the_host_lets_models_use_some_tools_only_stays_with_the_host() {
    let home = Home::new();
    home.write(".codex/config.toml", "[mcp_servers.some]\ncommand = \"a\"\nenabled_tools = [\"read\"]\n\n[mcp_servers.all]\ncommand = \"b\"\ndisabled_tools = []\n");
    home.write(
        ".gemini/settings.json",
        r#"{"mcpServers": {"less": {"command": "c", "excludeTools": ["rm"]}, "free": {"command": "d"}}}"#,
    );
    home.write(
        ".config/opencode/opencode.json",
        r#"{"mcp": {"files": {"type": "local", "command": ["e"]}, "web": {"type": "local", "command": ["f"]}}, "tools": {"files_rm*": false}}"#,
    );
    home.write(
        ".claude.json",
        r#"{"mcpServers": {"hub": {"command": "g"}, "open": {"command": "h"}}}"#,
    );
    home.write(".claude/settings.json", r#"{"permissions": {"deny": ["mcp__hub__delete"]}}"#);
    let hosts = ["codex", "gemini", "opencode", "claude-code"];
    let adopted = shell(&home, &[&["install", "--adopt", "--yes"], &hosts[..]].concat());
    assert_eq!(adopted.code, 0, "{adopted:?}");
    for key in ["`enabled_tools`", "`excludeTools`", "`tools` of that file", "`permissions.deny`"] {
        assert!(adopted.err.contains(key), "{key}: {adopted:?}");
    }
    let own = home.read(OWN);
    let labels: Vec<&str> = own.lines().filter_map(|line| line.strip_prefix("label = ")).collect();
    assert_eq!(labels, ["\"all\"", "\"free\"", "\"web\"", "\"open\""]);
    assert!(home.read(".codex/config.toml").contains("enabled_tools = [\"read\"]"));

    // One that stays, and has our name, is in our way.
    let text = r#"{"mcpServers": {"gatelet": {"command": "x", "disabledTools": ["rm"]}}}"#;
    home.write(".cursor/mcp.json", text);
    let refused = shell(&home, &["install", "cursor", "--adopt", "--yes"]);
    assert!(refused.code == 2 && refused.err.contains("another name"), "{refused:?}");
    assert_eq!(home.read(".cursor/mcp.json"), text);
}

#[test]
fn comments_of_adopted_servers_come_back_though_their_file_changed_since() {
    let files = [
        (
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {\n    // Why b is here.\n    \"b\": {\n      \"command\": \"b\", // pinned\n      \"args\": [\n        \"x\",\n      ],\n    },\n    \"a\": {\"command\": \"a\" /* old */}\n  },\n  \"more\": 1\n}\n",
            ("\"more\": 1", "\"more\": 2"),
        ),
        (
            ".codex/config.toml",
            "model = \"x\"\n\n# Why b is here.\n[mcp_servers.b]\ncommand = 'b' # pinned\n  args = [\n    \"x\", # and why\n  ]\n\n[mcp_servers.a]\ncommand = \"a\" # old\n\n[more]\nx = 1\n",
            ("x = 1", "x = 2"),
        ),
        (
            ".config/goose/config.yaml",
            "extensions:\n  # Why b is here.\n  b:\n    type: stdio # pinned\n    cmd: 'b'\n    args: [x]  # and why\n  a:\n    type: stdio\n    cmd: a # old\nGOOSE_MODE: auto\n",
            ("GOOSE_MODE: auto", "GOOSE_MODE: smart"),
        ),
    ];
    let home = Home::new();
    for (file, text, _) in files {
        home.write(file, text);
    }
    let adopted = shell(&home, &["install", "cursor", "codex", "goose", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    for (file, _, (before, after)) in files {
        let text = home.read(file);
        assert!(text.contains("gatelet") && !text.contains("pinned"), "{text}");
        home.write(file, &text.replacen(before, after, 1));
    }
    let undone = shell(&home, &["undo", "--yes"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    for (file, text, (before, after)) in files {
        assert_eq!(home.read(file), text.replacen(before, after, 1), "{file}");
    }
}

#[test]
fn a_server_with_a_secret_inside_of_a_value_is_adopted_once() {
    let home = Home::new();
    let servers = r#"{"mcpServers": {"db": {"url": "https://x.example/mcp", "headers": {"X-Auth": "key s3cr3t-0123456789 end"}}}}"#;
    home.write(".cursor/mcp.json", servers);
    let mut set = home.gatelet();
    set.args(["secret", "set", "db-key"]).stdin(std::process::Stdio::piped());
    let mut set = set.spawn().unwrap();
    std::io::Write::write_all(&mut set.stdin.take().unwrap(), b"s3cr3t-0123456789").unwrap();
    assert!(set.wait().unwrap().success());
    home.write(OWN, "[[upstream]]\nlabel = \"db\"\nurl = \"https://x.example/mcp\"\nheaders = { X-Auth = \"key ${keyring:db-key} end\" }\n");
    let adopted = shell(&home, &["install", "cursor", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    assert_eq!(home.read(OWN).matches("[[upstream]]").count(), 1, "{}", home.read(OWN));
}
