//! The manner of the command line: what a pipe gets, what a person is asked,
//! and what is trusted.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::kit::{Home, Served, program, shell};

/// An upstream with a tool `act` that says that it destroys, run with an
/// argument of its own. `version` is what the tool says of itself.
fn destructive(home: &Home, root: &str, version: &str) -> String {
    let schema = "\"inputSchema\": {\"type\": \"object\"}";
    let code = program("say(id, {\"content\": [{\"type\": \"text\", \"text\": \"acted\"}]})");
    assert!(code.contains(schema), "{code}");
    let hints = format!("{schema}, \"annotations\": {{\"destructiveHint\": True}}");
    let code = code.replace(schema, &hints).replace("Acts.", &format!("Acts as {version}."));
    home.write("server.py", &code);
    let args = json!([home.path().join("server.py"), root]);
    format!("[[upstream]]\nlabel = \"files\"\ncommand = \"python3\"\nargs = {args}\n\n")
}

#[test]
fn what_destroys_runs_from_the_shell_when_somebody_agrees() {
    let home = Home::new();
    home.write("gatelet.toml", &destructive(&home, "/a", "1"));
    let refused = shell(&home, &["call", "files.act", "--text"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("nothing was done"), "{refused:?}");
    assert!(refused.err.contains("--yes"), "{refused:?}");
    assert!(refused.err.contains("gatelet trust grant files/act"), "{refused:?}");
    let agreed = shell(&home, &["call", "files.act", "--yes", "--text"]);
    assert_eq!((agreed.code, agreed.out.trim()), (0, "acted"), "{agreed:?}");
    assert_eq!(shell(&home, &["trust", "grant", "files/act"]).code, 0);
    assert_eq!(shell(&home, &["call", "files.act"]).code, 0);
    // An upgrade changes what the tool says of itself, and the remedy is named.
    destructive(&home, "/a", "2");
    let unseen = shell(&home, &["call", "files.act", "--text"]);
    assert_ne!(unseen.code, 0, "{unseen:?}");
    assert!(!unseen.out.contains("acted"), "{unseen:?}");
    let code = shell(&home, &["call", "files.act", "--text"]);
    assert_eq!(code.code, 1, "{code:?}");
    assert!(code.err.contains("gatelet trust grant files/act"), "{code:?}");
}

#[test]
fn what_is_granted_in_one_project_is_not_granted_to_its_namesake_in_another() {
    let home = Home::new();
    home.write("one.toml", &destructive(&home, "/a", "1"));
    home.write("two.toml", &destructive(&home, "/b", "1"));
    assert_eq!(shell(&home, &["trust", "grant", "files/act", "--config", "one.toml"]).code, 0);
    assert_eq!(shell(&home, &["call", "files.act", "--config", "one.toml"]).code, 0);
    let other = shell(&home, &["call", "files.act", "--config", "two.toml"]);
    assert_eq!(other.code, 1, "{other:?}");
    let listed = shell(&home, &["trust", "list", "--config", "two.toml"]);
    assert_eq!(
        listed.json().get("files/act").and_then(|one| one["state"].as_str()),
        Some("verified")
    );
    assert!(listed.err.contains("of other upstreams"), "{listed:?}");
}

#[test]
fn a_pipe_gets_plain_json_and_whole_answers() {
    let home = Home::with("[builtin]\ntools = true\n[gate]\nlimit = 1000\n");
    let help = shell(&home, &["help", "time"]).json();
    assert!(help.get("content").is_none(), "it is not JSON in a string: {help}");
    assert_eq!(help, shell(&home, &["help", "time", "--format", "json"]).json());
    let text = format!("text={}", "many words ".repeat(1_000));
    let words = ["call", "text.case", "to=upper", text.as_str()];
    let whole = shell(&home, &words);
    assert_eq!(whole.code, 0, "{whole:?}");
    assert!(10_000 < whole.json()["content"][0]["text"].as_str().unwrap().len());
    home.write("gatelet.toml", "[builtin]\ntools = true\n[gate]\nlimit = 1000\nceiling = 2000\n");
    let cut = shell(&home, &words);
    assert_eq!(cut.code, 1, "{cut:?}");
    assert!(cut.err.contains("longer than the gate lets through"), "{cut:?}");
}

#[test]
fn every_list_takes_the_same_format() {
    let home = Home::with("[builtin]\ntools = true\n");
    for words in [
        &["upstreams"][..],
        &["tools"],
        &["tokens"],
        &["bench"],
        &["mounts"],
        &["trust", "list"],
        &["key", "list"],
        &["habits", "show"],
    ] {
        let read = |flags: &[&str]| shell(&home, &[words, flags].concat());
        let json = read(&["--format", "json"]);
        assert_eq!(json.code, 0, "{words:?}: {json:?}");
        assert!(serde_json::from_str::<Value>(&json.out).is_ok(), "{words:?}: {json:?}");
        assert_eq!(read(&["--json"]).code, 0, "{words:?}");
        let text = read(&["--format", "text"]);
        assert_eq!(text.code, 0, "{words:?}: {text:?}");
        assert_ne!(text.out, json.out, "{words:?}");
    }
}

#[test]
fn an_empty_list_leaves_stdout_to_programs_and_says_so_on_stderr() {
    let home = Home::with("[builtin]\ntools = true\n");
    for words in [
        &["mounts"][..],
        &["trust", "list"],
        &["key", "list"],
        &["secret", "list"],
        &["recipe", "list"],
        &["approvals"],
        &["undo", "--list"],
        &["habits", "show"],
        &["content", "token", "list"],
    ] {
        let text = shell(&home, &[words, &["--format", "text"]].concat());
        assert_eq!((text.code, text.out.as_str()), (0, ""), "{words:?}: {text:?}");
        assert!(!text.err.is_empty(), "{words:?}");
        let json = shell(&home, &[words, &["--json"]].concat()).json();
        let is_empty = json.as_array().is_some_and(Vec::is_empty)
            || json.as_object().is_some_and(|all| {
                all.values().all(|one| one.as_array().is_none_or(Vec::is_empty))
            });
        assert!(is_empty, "{words:?}: {json}");
    }
}

#[test]
fn a_function_is_taken_however_it_was_copied() {
    let home = Home::new();
    home.write("gatelet.toml", &destructive(&home, "/a", "1"));
    for name in ["files.act", "files/act", "files:act"] {
        assert_eq!(shell(&home, &["call", name, "--yes"]).code, 0, "{name}");
        assert_eq!(shell(&home, &["help", name]).code, 0, "{name}");
        let granted = shell(&home, &["trust", "grant", name]);
        assert_eq!(granted.code, 0, "{granted:?}");
        assert_eq!(shell(&home, &["call", name]).code, 0, "{name}");
        assert_eq!(shell(&home, &["trust", "reset", name]).code, 0, "{name}");
    }
    assert_eq!(shell(&home, &["call", "files", "act", "--yes"]).code, 0);
}

#[test]
fn a_pipe_is_told_once_which_servers_are_waited_for() {
    let home = Home::new();
    let go = home.path().join("go");
    let code = format!(
        "import os, time\nwhile not os.path.exists({go:?}): time.sleep(0.01)\n{}",
        program("say(id, {})")
    );
    let upstream = |label: &str| {
        let args = json!(["-c", code]);
        format!(
            "[[upstream]]\nlabel = \"{label}\"\ncommand = \"python3\"\nargs = {args}\nstart_timeout = \"10m\"\n\n"
        )
    };
    let labels = ["a", "b", "c", "d", "e"];
    home.write("gatelet.toml", &labels.map(upstream).concat());
    let mut command = home.gatelet();
    command.arg("tokens").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.find(|line| line.contains("starting upstreams")).unwrap();
    assert!(told.starts_with("starting upstreams: 0 of 5 ready, waiting for "), "{told}");
    assert!(told.ends_with("and 2 more"), "{told}");
    std::fs::write(&go, "").unwrap();
    assert!(!lines.any(|line| line.contains("starting upstreams")), "one line is enough");
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn what_init_writes_has_the_tools_of_the_first_minute() {
    let home = Home::new();
    assert_eq!(shell(&home, &["init"]).code, 0);
    let called = shell(&home, &["call", "time.now", "timezone=Europe/Vienna"]);
    assert_eq!(called.code, 0, "{called:?}");
}

#[test]
fn escapes_of_an_upstream_do_not_reach_the_terminal() {
    let deed = "say(id, {\"content\": [{\"type\": \"text\", \"text\": \"\\x1b]0;owned\\x07\\u202e ok\"}]})";
    let args = json!(["-c", program(deed)]);
    let home = Home::with(&format!(
        "[[upstream]]\nlabel = \"evil\"\ncommand = \"python3\"\nargs = {args}\n"
    ));
    let said = shell(&home, &["call", "evil.act", "--text", "--color", "always"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.out.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{said:?}");
    assert!(said.out.contains("\\u{1b}]0;owned"), "{said:?}");
}

#[test]
fn a_gate_serves_where_nothing_can_be_kept() {
    let home = Home::new();
    let soon = "[approvals]\nwait = \"0s\"\n";
    home.write("gatelet.toml", &format!("{soon}{}", destructive(&home, "/a", "1")));
    // A file stands where the directory would be.
    home.write("nowhere", "");
    let state = home.path().join("nowhere/state");
    let served = Served::start_with(&home, &["--state", state.to_str().unwrap()]);
    let call = json!({"namespace": "files", "function": "act", "kwargs": {}});
    let told = served.told(None, "call", &call);
    assert!(told.contains("Nothing was done"), "it asks, as it would elsewhere: {told}");
    let help = served.told(None, "help", &json!({"namespace": "files"}));
    assert!(help.contains("act"), "{help}");
    assert!(served.terminate().success());
}

#[test]
fn a_recommended_grant_works_as_it_is_printed_whatever_the_label_looks_like() {
    for label in ["sequential-thinking", "My-Big_files"] {
        let home = Home::new();
        let config = destructive(&home, "/a", "1").replace("\"files\"", &format!("{label:?}"));
        home.write("gatelet.toml", &config);
        // Another file of this name is no upstream and is not run.
        home.executable(label, "#!/bin/sh\ntouch ran\n");
        let refused = shell(&home, &["call", &format!("{label}.act"), "--text"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        let (_, behind) = refused.err.split_once("`gatelet trust grant ").unwrap();
        let word = behind.split('`').next().unwrap();
        for word in [word, &format!("{}.act", label.to_lowercase().replace('-', "_"))] {
            assert_eq!(shell(&home, &["trust", "reset"]).code, 0);
            let granted = shell(&home, &["trust", "grant", word]);
            assert_eq!(granted.code, 0, "{word}: {granted:?}");
            let called = shell(&home, &["call", &format!("{label}.act"), "--text"]);
            assert_eq!((called.code, called.out.trim()), (0, "acted"), "{word}: {called:?}");
        }
        let shown = shell(&home, &["trust", "show", word]);
        assert!(shown.out.contains("trusted"), "{word}: {shown:?}");
        assert_eq!(shell(&home, &["trust", "revoke", word]).code, 0, "{word}");
        let revoked = shell(&home, &["call", &format!("{label}.act"), "--yes", "--text"]);
        assert!(revoked.out.contains("is not trusted"), "{word}: {revoked:?}");
        for stranger in ["python3 server.py/act", "https://example.com/act", "elsewhere/act"] {
            let refused = shell(&home, &["trust", "grant", stranger]);
            assert_eq!(refused.code, 2, "{refused:?}");
            assert!(refused.err.contains("no upstream is called"), "{refused:?}");
        }
        assert!(!home.path().join("ran").exists());
    }
}
