//! What hosts themselves say: after `install` their own commands list gatelet,
//! and those that connect do connect; after `undo` it is gone.

use std::process::Command;

use crate::kit::{Home, Served, shell, tool};

/// A host's command at this home, with nobody to reach but this machine.
fn ask(home: &Home, program: &std::path::Path, words: &[&str]) -> String {
    ask_with(home, program, words, &[])
}

fn ask_with(
    home: &Home,
    program: &std::path::Path,
    words: &[&str],
    variables: &[(&str, &str)],
) -> String {
    let mut command = Command::new(program);
    home.settle(&mut command);
    let path = format!("{}:/usr/bin:/bin", tool("node/bin").display());
    command.env("PATH", path).args(words).stdin(std::process::Stdio::null());
    for (name, value) in [
        ("HTTPS_PROXY", "http://127.0.0.1:9"),
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("NO_PROXY", "127.0.0.1,localhost"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("COPILOT_AUTO_UPDATE", "false"),
    ] {
        command.env(name, value);
    }
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Installs, asks, undoes and asks again. `seen` is how the host says that it
/// knows gatelet.
#[track_caller]
fn check(host: &str, program: &str, prepare: impl Fn(&Home), seen: &str) {
    let home = Home::new();
    prepare(&home);
    check_at(&home, host, program, &[], seen);
}

/// As [`check`], with a gatelet that runs and is reached over HTTP.
#[track_caller]
fn check_http(host: &str, program: &str, prepare: impl Fn(&Home), seen: &str) {
    let home = Home::new();
    prepare(&home);
    let served = Served::start(&home);
    let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp");
    home.write("gatelet.toml", &format!("[serve]\nlisten = {address:?}\n"));
    check_at(&home, host, program, &["--http"], seen);
}

/// As [`check_http`], with a gatelet that asks every caller for a key.
#[track_caller]
fn check_with_key(host: &str, program: &str, prepare: impl Fn(&Home), seen: &str) {
    let home = Home::new();
    prepare(&home);
    home.write("guarded.toml", "[auth]\nrequired = true\n");
    let served = Served::start_with(&home, &["--config", "guarded.toml"]);
    let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp");
    home.write(
        "gatelet.toml",
        &format!("[serve]\nlisten = {address:?}\n[auth]\nrequired = true\n"),
    );
    let key = shell(&home, &["key", "create", "hosts"]).out.trim().to_owned();
    let installed = shell(&home, &["install", host, "--yes", "--http"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    let program = tool(&format!("hosts/node_modules/{program}"));
    let has = |text: &str| text.lines().any(|line| line.contains("gatelet") && line.contains(seen));
    let without = ask_with(&home, &program, &["mcp", "list"], &[]);
    assert!(!has(&without), "{without}");
    let with = ask_with(&home, &program, &["mcp", "list"], &[("GATELET_KEY", &key)]);
    assert!(has(&with), "{with}");
}

#[track_caller]
fn check_at(home: &Home, host: &str, program: &str, flags: &[&str], seen: &str) {
    let program = tool(&format!("hosts/node_modules/{program}"));
    let before = ask(home, &program, &["mcp", "list"]);
    assert!(!before.contains("gatelet"), "{before}");
    let installed = shell(home, &[&["install", host, "--yes"], flags].concat());
    assert_eq!(installed.code, 0, "{installed:?}");
    let after = ask(home, &program, &["mcp", "list"]);
    let is_seen = after.lines().any(|line| line.contains("gatelet") && line.contains(seen));
    assert!(is_seen, "{after}");
    let undone = shell(home, &["undo", "--yes"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    let gone = ask(home, &program, &["mcp", "list"]);
    assert!(!gone.contains("gatelet"), "{gone}");
}

#[test]
fn claude_code_connects() {
    testkit::needs!(Tools);
    let program = "@anthropic-ai/claude-code-linux-x64/claude";
    let prepare = |home: &Home| home.write(".claude/settings.json", "{}");
    check("claude-code", program, prepare, "Connected");
    check_http("claude-code", program, prepare, "Connected");
    check_with_key("claude-code", program, prepare, "Connected");
}

#[test]
fn opencode_connects() {
    testkit::needs!(Tools);
    let schema = "{\"$schema\": \"https://opencode.ai/config.json\"}";
    let prepare = |home: &Home| home.write(".config/opencode/opencode.json", schema);
    check("opencode", "opencode-linux-x64/bin/opencode", prepare, "connected");
    check_http("opencode", "opencode-linux-x64/bin/opencode", prepare, "connected");
    check_with_key("opencode", "opencode-linux-x64/bin/opencode", prepare, "connected");
}

#[test]
fn codex_lists_it() {
    testkit::needs!(Tools);
    let prepare = |home: &Home| home.write(".codex/config.toml", "# mine\nmodel = \"x\"\n");
    check("codex", ".bin/codex", prepare, "enabled");
}

#[test]
fn gemini_lists_it() {
    testkit::needs!(Tools);
    check("gemini", ".bin/gemini", |home| home.write(".gemini/settings.json", "{}"), "stdio");
}

#[test]
fn copilot_lists_it() {
    testkit::needs!(Tools);
    check("copilot", ".bin/copilot", |home| home.write(".copilot/config.json", "{}"), "");
}
