//! Secrets that stand nowhere as plain text, and commands that only the
//! operator's own file runs.

use serde_json::json;

use crate::kit::{Home, program, shell, shell_with};

/// An upstream that tells one variable of its environment.
fn telling(env: &str) -> String {
    let code = program(
        "say(id, {\"content\": [{\"type\": \"text\", \"text\": 'it is ' + os.environ['KEY']}]})",
    );
    let args = json!(["-c", code]);
    format!(
        "[[upstream]]\nlabel = \"one\"\ncommand = \"python3\"\nargs = {args}\nenv = {{ KEY = {env:?} }}\n\n[gate]\n"
    )
}

fn files(home: &Home) -> String {
    fn walk(directory: &std::path::Path, all: &mut String) {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, all);
            } else if let Ok(bytes) = std::fs::read(&path) {
                all.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }
    let mut all = String::new();
    walk(home.path(), &mut all);
    all
}

#[test]
fn a_secret_is_kept_used_listed_and_forgotten() {
    let home = Home::with(&telling("${keyring:one/KEY}"));
    let down = shell(&home, &["call", "one.act"]);
    assert!(down.code != 0 && down.err.contains("gatelet secret set one/KEY"), "{down:?}");
    let kept = shell_with(&home, &["secret", "set", "one/KEY"], "plain-as-day\n");
    assert!(kept.code == 0 && !kept.err.contains("plain-as-day"), "{kept:?}");
    let called = shell(&home, &["call", "one.act", "--text"]);
    assert!(called.out.contains("it is"), "{called:?}");
    let listed = shell(&home, &["secret", "list"]).json();
    assert_eq!(listed, json!([{"name": "one/KEY", "place": "file", "used": true}]));
    assert!(!files(&home).contains("plain-as-day"), "encrypted");
    assert_eq!(shell(&home, &["secret", "rm", "one/KEY"]).code, 1, "it is used");
    assert_eq!(shell(&home, &["secret", "rm", "one/KEY", "--force"]).code, 0);
    assert_eq!(shell(&home, &["secret", "rm", "one/KEY"]).code, 2);
    assert_eq!(shell_with(&home, &["secret", "set", "odd}name"], "x").code, 2);
    assert_eq!(
        shell_with(&home, &["secret", "set", "a", "--in", "keyring"], "x").code,
        2,
        "no session"
    );
}

#[test]
fn a_command_gives_a_value_in_our_own_file_and_is_never_run_for_another() {
    let home = Home::with(&telling("${cmd:printf 'a-%s' word}"));
    let called = shell(&home, &["call", "one.act", "--text"]);
    assert!(called.out.contains("it is a-word"), "{called:?}");
    // What is long enough to be a secret is one.
    let home = Home::with(&telling("${cmd:printf 'from-a-%s' manager}"));
    let called = shell(&home, &["call", "one.act", "--text"]);
    assert!(called.out.contains("it is [REDACTED-SECRET]"), "{called:?}");

    let hostile = home.path().join("ran");
    let line = format!("${{cmd:touch {}}}", hostile.display());
    let entry =
        json!({"command": "python3", "args": ["-c", line], "env": {"KEY": line}, "cwd": line});
    let by_url = json!({"url": format!("http://127.0.0.1:9/{line}"), "headers": {"A": line}});
    let document = json!({"mcpServers": {"a": entry, "b": by_url}});
    home.write("mcp.json", &document.to_string());
    shell(&home, &["--config", "mcp.json", "config", "check"]);
    shell(&home, &["--config", "mcp.json", "upstreams"]);
    let imported = shell(&home, &["import", "mcp.json", "-o", "other.toml", "--keep-secrets"]);
    assert!(imported.err.contains("only gatelet's own file may say that"), "{imported:?}");
    shell(&home, &["--config", "other.toml", "config", "check"]);
    shell(&home, &["--config", "other.toml", "upstreams"]);
    assert!(!hostile.exists(), "nothing of a stranger's ran: {}", home.read("other.toml"));
}

#[test]
fn plain_secrets_of_another_clients_file_are_moved_when_somebody_agrees() {
    let home = Home::new();
    let document = json!({"mcpServers": {"hub": {
        "command": "x", "env": {"HUB_TOKEN": "hub_0123456789abcdef", "MODE": "all"},
    }}});
    home.write("mcp.json", &document.to_string());
    let asked = shell(&home, &["import", "mcp.json"]);
    assert!(
        asked.out.contains("hub_0123456789abcdef") && asked.err.contains("--move-secrets"),
        "{asked:?}"
    );
    let moved = shell(&home, &["import", "mcp.json", "--move-secrets"]);
    assert!(
        moved.out.contains("${keyring:hub/HUB_TOKEN}") && moved.out.contains("MODE = \"all\""),
        "{moved:?}"
    );
    assert!(!moved.out.contains("hub_0123456789abcdef"));
    assert_eq!(shell(&home, &["secret", "list"]).json()[0]["name"], "hub/HUB_TOKEN");
}

#[test]
fn what_is_added_keeps_its_secrets_out_of_the_file() {
    let home = Home::with("");
    let script = program(
        "say(id, {\"content\": [{\"type\": \"text\", \"text\": 'len ' + str(len(os.environ['API_KEY']))}]})",
    );
    home.write("s.py", &script);
    let added = shell(
        &home,
        &["add", "one", "--yes", "--env", "API_KEY=sk-0123456789abcdef", "--", "python3", "s.py"],
    );
    assert_eq!(added.code, 0, "{added:?}");
    let text = home.read("gatelet.toml");
    assert!(text.contains("${keyring:one/API_KEY}") && !text.contains("sk-0123"), "{text}");
    let called = shell(&home, &["call", "one.act", "--text"]);
    assert!(called.out.contains("len 19"), "{called:?}");
}
