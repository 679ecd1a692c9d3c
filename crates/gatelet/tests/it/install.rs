//! `gatelet install`, `uninstall` and `undo` with real files in a home of their own.

mod adopting;
mod own_commands;

use std::process::Stdio;

use serde_json::{Value, json};

use crate::kit::{Home, at_terminal, shell};

const CLAUDE: &str = "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"clock\": {\n      \"command\": \"clock\",\n      \"args\": [\"--zone\", \"S3CRET-ARG\"],\n      \"env\": {\n        \"TOKEN\": \"S3CRET-ENV\"\n      }\n    }\n  }\n}\n";
const CURSOR: &str = "{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"wiki\": {\"url\": \"https://wiki.example/mcp\", \"headers\": {\"Authorization\": \"Bearer S3CRET-HEADER\"}},\n\t},\n}\n";

/// A home with Claude Code and Cursor.
fn home() -> Home {
    let home = Home::new();
    home.write(".claude.json", CLAUDE);
    home.write(".cursor/mcp.json", CURSOR);
    home
}

/// The file that hosts start gatelet with.
const OWN: &str = ".config/gatelet/gatelet.toml";

fn entry(home: &Home, file: &str) -> Value {
    let root = document::parse(&home.read(file), document::Format::Json).unwrap();
    root.to_json()["mcpServers"].clone()
}

#[test]
fn what_is_installed_is_read_by_hosts_and_undone_to_the_byte() {
    let home = home();
    let installed = shell(&home, &["install", "claude-code", "cursor", "--yes"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    let told = installed.json();
    assert_eq!((&told["written"], &told["record"]), (&json!(true), &json!(1)), "{told}");
    let gatelet = &entry(&home, ".claude.json")["gatelet"];
    let program = gatelet["command"].as_str().unwrap();
    assert!(
        std::path::Path::new(program).is_absolute() && program.ends_with("gatelet"),
        "{gatelet}"
    );
    let own = home.path().join(OWN);
    assert_eq!(gatelet["args"][0], "connect");
    assert_eq!(gatelet["args"][2], own.to_str().unwrap());
    assert_eq!(gatelet["alwaysLoad"], true);
    assert!(home.read(".cursor/mcp.json").contains("// mine"));
    assert!(own.is_file(), "hosts start gatelet with a file of its own");

    let again = shell(&home, &["install", "claude-code", "cursor", "--yes"]);
    assert_eq!(again.json()["written"], false, "{again:?}");

    let undone = shell(&home, &["undo", "--yes"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(
        (home.read(".claude.json"), home.read(".cursor/mcp.json")),
        (CLAUDE.into(), CURSOR.into())
    );
    assert!(!own.exists());
    let nothing = shell(&home, &["undo", "--yes"]);
    assert_eq!(
        (nothing.code, nothing.err.contains("nothing to take back")),
        (2, true),
        "{nothing:?}"
    );
}

#[test]
fn an_installed_entry_starts_a_gatelet_that_ignores_the_project_it_is_started_in() {
    let home = home();
    assert_eq!(shell(&home, &["install", "claude-code", "--yes"]).code, 0);
    let gatelet = entry(&home, ".claude.json")["gatelet"].clone();
    home.write(
        "project/gatelet.toml",
        "[[upstream]]\nlabel = \"evil\"\ncommand = \"touch\"\nargs = [\"started\"]\n",
    );
    let mut command = std::process::Command::new(gatelet["command"].as_str().unwrap());
    home.settle(&mut command);
    command.current_dir(home.path().join("project"));
    command.args(gatelet["args"].as_array().unwrap().iter().filter_map(Value::as_str));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(!home.path().join("project/started").exists());
}

#[test]
fn without_consent_nothing_is_written() {
    let home = home();
    for (words, code) in [(&["install", "cursor"][..], 1), (&["install", "cursor", "--dry-run"], 0)]
    {
        let ended = shell(&home, words);
        assert_eq!(ended.code, code, "{ended:?}");
        assert_eq!(ended.json()["written"], false);
        assert!(ended.out.contains("+ mcpServers.gatelet"), "{ended:?}");
        assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
        assert!(!home.path().join(OWN).exists());
    }
    let all = shell(&home, &["install", "--yes"]);
    assert_eq!((all.code, all.err.contains("--all")), (2, true), "{all:?}");
}

#[test]
fn no_preview_shows_a_secret() {
    let home = home();
    for words in [
        &["install", "claude-code", "cursor", "--adopt", "--dry-run"][..],
        &["install", "claude-code", "cursor", "--adopt", "--dry-run", "--format", "text"],
        &["install", "claude-code", "cursor", "--adopt", "--yes"],
        &["undo", "--dry-run", "--format", "text"],
        &["uninstall", "claude-code", "cursor", "--yes"],
    ] {
        let ended = shell(&home, words);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(!ended.out.contains("S3CRET") && !ended.err.contains("S3CRET"), "{ended:?}");
    }
}

#[test]
fn hosts_that_are_found_are_installed_together_and_a_damaged_one_is_left_out() {
    let home = home();
    home.write(".kiro/settings/mcp.json", "{\"mcpServers\": {");
    let mut command = home.gatelet();
    command.env("PATH", "/nowhere").args(["install", "--all", "--yes"]);
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "one could have it and did not get it: {ended:?}");
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(told["left_out"][0]["host"], "kiro");
    assert!(told["left_out"][0]["why"].as_str().unwrap().contains("line 1"), "{told}");
    assert_eq!(home.read(".kiro/settings/mcp.json"), "{\"mcpServers\": {");
    let hosts: Vec<&str> =
        told["files"].as_array().unwrap().iter().filter_map(|file| file["host"].as_str()).collect();
    assert_eq!(hosts, ["claude-code", "cursor"]);

    let named = shell(&home, &["install", "kiro", "--yes"]);
    assert_eq!((named.code, named.err.contains("line 1")), (2, true), "{named:?}");
    let absent = shell(&home, &["install", "windsurf", "--yes"]);
    assert_eq!((absent.code, absent.err.contains("not on this machine")), (2, true), "{absent:?}");
    assert!(!home.path().join(".codeium").exists());
    let unknown = shell(&home, &["install", "notepad"]);
    assert_eq!((unknown.code, unknown.err.contains("claude-code")), (2, true), "{unknown:?}");
}

#[test]
fn adopted_servers_stand_behind_gatelet_and_come_back() {
    let home = home();
    home.write(OWN, "# mine\n[[upstream]]\nlabel = \"clock\"\ncommand = \"another\"\n");
    let before = home.read(OWN);
    let adopted = shell(&home, &["install", "claude-code", "cursor", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    for file in [".claude.json", ".cursor/mcp.json"] {
        let servers = entry(&home, file);
        let names: Vec<&String> = servers.as_object().unwrap().keys().collect();
        assert_eq!(names, ["gatelet"], "{file}");
    }
    let own = home.read(OWN);
    assert!(own.starts_with(&before), "{own}");
    for part in
        ["clock-2", "wiki", "${keyring:clock-2/TOKEN}", "Bearer ${keyring:wiki/Authorization}"]
    {
        assert!(own.contains(part), "{part}: {own}");
    }
    assert!(!own.contains("S3CRET-ENV") && !own.contains("S3CRET-HEADER"), "{own}");
    let kept = shell(&home, &["secret", "list"]);
    assert!(
        kept.out.contains("clock-2/TOKEN") && kept.out.contains("wiki/Authorization"),
        "{kept:?}"
    );
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(home.path().join(OWN)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(shell(&home, &["config", "check"]).code, 0);

    let again = shell(&home, &["install", "claude-code", "cursor", "--adopt", "--yes"]);
    assert_eq!(again.json()["written"], false, "{again:?}");

    assert_eq!(shell(&home, &["undo", "--yes"]).code, 0);
    assert_eq!(
        (home.read(".claude.json"), home.read(".cursor/mcp.json")),
        (CLAUDE.into(), CURSOR.into())
    );
    assert_eq!(home.read(OWN), before);
}

#[test]
fn what_needs_its_host_is_not_adopted() {
    let home = Home::new();
    home.write(".config/Code/User/mcp.json", "{\"servers\": {\"a\": {\"command\": \"a\", \"env\": {\"K\": \"${input:key}\"}}, \"b\": {\"command\": \"b\"}}, \"inputs\": [{\"id\": \"key\"}]}");
    let adopted = shell(&home, &["install", "vscode", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    let file = home.read(".config/Code/User/mcp.json");
    let left: Value = serde_json::from_str(&file).unwrap();
    let names: Vec<&String> = left["servers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["a", "gatelet"]);
    assert!(adopted.err.contains("`a` stays"), "{adopted:?}");
}

#[test]
fn goose_keeps_its_comments_and_gives_its_servers() {
    let home = Home::new();
    let before = "# goose\nextensions:\n  developer:\n    type: builtin\n    enabled: true # shell\n  clock:\n    type: stdio\n    cmd: clock\n    args: [--utc]\n    envs: {A: b}\n    timeout: 20\nGOOSE_MODE: auto\n";
    home.write(".config/goose/config.yaml", before);
    let adopted = shell(&home, &["install", "goose", "--adopt", "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    let file = home.read(".config/goose/config.yaml");
    assert!(
        file.contains("enabled: true # shell")
            && file.contains("cmd: /")
            && !file.contains("cmd: clock"),
        "{file}"
    );
    let own = home.read(OWN);
    assert!(
        own.contains("command = \"clock\"") && own.contains("--utc") && own.contains("20s"),
        "{own}"
    );
    assert_eq!(shell(&home, &["undo", "--yes"]).code, 0);
    assert_eq!(home.read(".config/goose/config.yaml"), before);
}

#[test]
fn what_changed_since_is_undone_by_structure() {
    let home = home();
    assert_eq!(shell(&home, &["install", "claude-code", "--adopt", "--yes"]).code, 0);
    home.write(
        ".claude.json",
        &home.read(".claude.json").replace("\"numStartups\": 3", "\"numStartups\": 4"),
    );
    let undone = shell(&home, &["undo", "--yes"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    let now: Value = serde_json::from_str(&home.read(".claude.json")).unwrap();
    let mut before: Value = serde_json::from_str(CLAUDE).unwrap();
    before["numStartups"] = json!(4);
    assert_eq!(now, before);
}

#[test]
fn uninstall_takes_out_what_install_put_in_and_what_somebody_else_did() {
    let home = home();
    assert_eq!(shell(&home, &["install", "claude-code", "--adopt", "--yes"]).code, 0);
    let gone = shell(&home, &["uninstall", "claude-code", "--yes"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    assert_eq!(home.read(".claude.json"), CLAUDE, "its servers are back, too");
    home.write(".cursor/mcp.json", "{\"mcpServers\": {\"old\": {\"url\": \"http://localhost:4747/mcp\"}, \"x\": {\"command\": \"x\"}}}");
    assert_eq!(shell(&home, &["uninstall", "cursor", "--yes"]).code, 0);
    assert_eq!(home.read(".cursor/mcp.json"), "{\"mcpServers\": {\"x\": {\"command\": \"x\"}}}");
    let nothing = shell(&home, &["uninstall", "cursor", "--yes"]);
    assert_eq!(nothing.json()["written"], false);
}

#[test]
fn a_project_and_an_address_are_written_when_asked_for() {
    let home = home();
    let written = shell(&home, &["install", "cursor", "vscode", "--project", "--http", "--yes"]);
    assert_eq!(written.code, 0, "{written:?}");
    assert_eq!(entry(&home, ".cursor/mcp.json")["gatelet"]["url"], "http://127.0.0.1:4747/mcp");
    let code: Value = serde_json::from_str(&home.read(".vscode/mcp.json")).unwrap();
    assert_eq!(
        code["servers"]["gatelet"],
        json!({"type": "http", "url": "http://127.0.0.1:4747/mcp"})
    );
    assert_eq!(shell(&home, &["undo", "--yes"]).code, 0);
    assert!(!home.path().join(".vscode/mcp.json").exists());

    home.write("guarded.toml", "[auth]\nrequired = true\n");
    let guarded =
        shell(&home, &["install", "cursor", "--http", "--yes", "--config", "guarded.toml"]);
    assert!(guarded.code == 0 && guarded.err.contains("gatelet key create"), "{guarded:?}");
    let written = entry(&home, ".cursor/mcp.json")["gatelet"].clone();
    assert_eq!(written["headers"], json!({"Authorization": "Bearer ${env:GATELET_KEY}"}));
    // A host whose files cannot name a variable starts gatelet itself.
    let words = ["install", "zed", "--http", "--yes", "--config", "guarded.toml"];
    home.write(".config/zed/settings.json", "{}");
    let program = shell(&home, &words);
    assert!(program.out.contains("cannot take a key from the variable"), "{program:?}");
    assert!(home.read(".config/zed/settings.json").contains("connect"));
    let odd = [&words[..], &["--key-variable", "A}B"]].concat();
    assert_eq!(shell(&home, &odd).code, 2);
}

#[test]
fn two_hosts_that_share_a_file_by_a_link_are_written_once() {
    let home = home();
    home.write(".kiro/settings/unused", "");
    let link = home.path().join(".kiro/settings/mcp.json");
    std::os::unix::fs::symlink("../../.cursor/mcp.json", &link).unwrap();
    let installed = shell(&home, &["install", "cursor", "kiro", "--yes"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    assert!(link.is_symlink());
    assert_eq!(home.read(".cursor/mcp.json").matches("\"gatelet\"").count(), 1);
    assert_eq!(shell(&home, &["undo", "--yes"]).code, 0);
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
}

#[test]
fn a_damaged_configuration_of_ours_stops_install_and_not_the_way_out() {
    let home = home();
    assert_eq!(shell(&home, &["install", "cursor", "--yes"]).code, 0);
    home.write(OWN, "[[upstream]\n");
    assert_eq!(shell(&home, &["install", "cursor", "--yes"]).code, 2);
    assert_eq!(shell(&home, &["uninstall", "cursor", "--yes"]).code, 0);
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
    assert_eq!(shell(&home, &["undo", "--yes"]).code, 0);
    assert!(home.read(".cursor/mcp.json").contains("gatelet"), "the uninstall is undone");
    assert_eq!(shell(&home, &["undo", "--yes"]).code, 0);
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
}

#[test]
fn a_disk_that_takes_no_more_leaves_everything_as_it_was() {
    let home = home();
    let long = format!("{{\"history\": \"{}\", \"mcpServers\": {{}}}}", "x".repeat(300_000));
    home.write(".claude.json", &long);
    let gatelet = env!("CARGO_BIN_EXE_gatelet");
    let mut command = std::process::Command::new("sh");
    home.settle(&mut command);
    // No file may become longer than this; to go on is an error, not the end.
    command.args([
        "-c",
        "trap '' XFSZ; ulimit -f 200; exec \"$0\" install cursor claude-code --yes",
        gatelet,
    ]);
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("nothing was changed"), "{ended:?}");
    assert_eq!((home.read(".claude.json"), home.read(".cursor/mcp.json")), (long, CURSOR.into()));
    let left: Vec<_> = std::fs::read_dir(home.path().join(".cursor")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!home.path().join(OWN).exists());
}

#[test]
fn whoever_is_asked_at_a_terminal_decides_whether_files_are_written() {
    let home = home();
    let question = "Write these 3 files? [y/N]";
    for no in ["n", "", "nonsense"] {
        let refused = at_terminal(&home, &["install"], &[(question, no)]);
        assert!(refused.code == 1 && refused.out.contains("nothing was written"), "{refused:?}");
        assert!(!refused.out.contains("S3CRET"), "{refused:?}");
        assert_eq!(home.read(".claude.json"), CLAUDE);
        assert!(!home.path().join(OWN).exists());
    }
    let agreed = at_terminal(&home, &["install"], &[(question, "yes")]);
    assert!(agreed.code == 0 && agreed.out.contains("wrote 3 files"), "{agreed:?}");
    assert!(entry(&home, ".claude.json")["gatelet"].is_object());
    let kept = at_terminal(&home, &["undo"], &[("[y/N]", "n")]);
    assert!(kept.code == 1 && entry(&home, ".claude.json")["gatelet"].is_object(), "{kept:?}");
    let undone = at_terminal(&home, &["undo"], &[("[y/N]", "y")]);
    assert_eq!((undone.code, home.read(".claude.json")), (0, CLAUDE.to_owned()), "{undone:?}");
}
