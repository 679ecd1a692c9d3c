//! Tool documents and the trust ledger from the shell, as an operator and a
//! build server use them.

use std::process::Command;

use serde_json::json;

use crate::kit::{Home, Pipe, eventually, npm_upstream, shell, text};

const DAMAGED: &str = "# MCP Tool Specification\n\n## Tool: `x`\n\nno more\n";

fn memory() -> Home {
    Home::with(&npm_upstream("memory", "server-memory", &[]))
}

#[test]
fn machines_read_findings_in_their_own_formats() {
    let home = Home::new();
    home.write("DOC.md", DAMAGED);
    let lint = |format: &str| {
        let ended = shell(&home, &["spec", "lint", "DOC.md", "--format", format]);
        assert_eq!(ended.code, 1, "{format}: {}", ended.err);
        ended
    };
    let json = lint("json").json();
    let findings = json[0]["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["code"] == "E03"), "{json}");
    let sarif = lint("sarif").json();
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), findings.len(), "{sarif}");
    assert!(results.iter().any(|result| result["ruleId"] == "E03"), "{sarif}");
    let github = lint("github").out;
    assert_eq!(github.lines().count(), findings.len(), "{github}");
    assert!(github.lines().any(|line| line.starts_with("::error file=DOC.md,line=")), "{github}");
}

#[test]
fn a_baseline_is_silent_about_what_was_there_and_not_about_what_is_new() {
    let home = Home::new();
    home.write("DOC.md", DAMAGED);
    let lint = |more: &[&str]| {
        let words = [&["spec", "lint", "DOC.md", "--baseline", "known.json"], more].concat();
        shell(&home, &words).code
    };
    assert_eq!(lint(&["--write-baseline"]), 0);
    assert_eq!(lint(&[]), 0);
    home.write("DOC.md", &format!("{DAMAGED}\n## Tool: `y`\n\nnothing either\n"));
    assert_eq!(lint(&[]), 1);
}

#[test]
fn fixing_changes_a_document_once() {
    let home = Home::new();
    home.write("DOC.md", DAMAGED);
    let check = shell(&home, &["spec", "fix", "DOC.md", "--check"]);
    assert_eq!((check.code, home.read("DOC.md").as_str()), (1, DAMAGED));
    assert_eq!(shell(&home, &["spec", "fix", "DOC.md"]).code, 0);
    let fixed = home.read("DOC.md");
    assert!(fixed.contains("no more") && fixed.contains("### 2. Invocation Name"), "{fixed}");
    assert_eq!(shell(&home, &["spec", "fix", "DOC.md", "--check"]).code, 0);
    assert_eq!(home.read("DOC.md"), fixed);
}

#[test]
fn a_document_is_written_from_a_live_server_and_checked_against_it() {
    testkit::needs!(Tools);
    let home = memory();
    let written = shell(&home, &["spec", "generate", "memory", "-o", "DOC.md"]);
    assert_eq!(written.code, 0, "{}", written.err);
    let check = || shell(&home, &["spec", "check", "DOC.md", "--server", "memory"]);
    assert_eq!(check().code, 0, "{}", check().out);
    home.write("DOC.md", &home.read("DOC.md").replace("create_entities", "make_entities"));
    let apart = check();
    assert_eq!(apart.code, 1);
    for part in ["the server has `create_entities`", "`make_entities` is documented"] {
        assert!(apart.out.contains(part), "no {part} in: {}", apart.out);
    }
}

/// A program that serves the tools of `DOC.md`.
fn program(home: &Home, name: &str) {
    let gatelet = env!("CARGO_BIN_EXE_gatelet");
    home.executable(name, &format!("#!/bin/sh\nexec {gatelet} spec serve DOC.md\n"));
}

#[test]
fn a_program_file_is_a_server_and_no_document() {
    let home = Home::new();
    home.write("DOC.md", toolspec::rules::CLEAN);
    for name in ["./srv.sh", "srv", "my srv.sh"] {
        program(&home, name);
        let written = shell(&home, &["spec", "generate", name, "-o", "OUT.md"]);
        assert_eq!(written.code, 0, "{}", written.err);
        assert!(home.read("OUT.md").contains("## Tool: `files.read_text`"), "{name}");
        let check = shell(&home, &["spec", "check", "DOC.md", "--server", name]);
        assert_eq!(check.code, 0, "{}{}", check.out, check.err);
    }
}

#[test]
fn a_listing_is_served_like_a_document() {
    let home = Home::new();
    let tool = r#"{"tools": [{"name": "a_b", "inputSchema": {"type": "object"}}]}"#;
    home.write("DOC.md", tool);
    program(&home, "srv.sh");
    let written = shell(&home, &["spec", "generate", "./srv.sh"]);
    assert!(written.out.contains("## Tool: `a_b`"), "{}{}", written.out, written.err);
}

#[test]
fn git_revisions_are_compared_and_a_breaking_change_owes_a_version() {
    testkit::needs!(Tools);
    let home = memory();
    shell(&home, &["spec", "generate", "memory", "-o", "DOC.md"]);
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(words);
        assert!(command.current_dir(home.path()).output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "DOC.md"]);
    git(&["commit", "-qm", "first"]);
    assert_eq!(shell(&home, &["spec", "diff", "HEAD:DOC.md", "DOC.md"]).code, 0);
    let renamed = home.read("DOC.md").replace("\"query\"", "\"question\"");
    home.write("DOC.md", &renamed.replace("`query`", "`question`"));
    let diff = shell(&home, &["spec", "diff", "HEAD:DOC.md", "DOC.md"]);
    assert_eq!(diff.code, 1, "{}", diff.err);
    for part in ["breaking `search_nodes`: input `query` was removed", "owes at least 1.0.0"] {
        assert!(diff.out.contains(part), "no {part} in: {}", diff.out);
    }
    assert_eq!(shell(&home, &["spec", "lint", "DOC.md", "--since", "HEAD"]).code, 1);

    // A path in a revision may have a blank.
    home.write("my doc.md", &home.read("DOC.md"));
    git(&["add", "my doc.md"]);
    git(&["commit", "-qm", "second"]);
    let same = shell(&home, &["spec", "diff", "HEAD:my doc.md", "my doc.md"]);
    assert_eq!(same.code, 0, "{}{}", same.out, same.err);
}

#[test]
fn trust_is_shown_granted_revoked_and_reset_from_the_shell() {
    testkit::needs!(Tools);
    let config = npm_upstream("memory", "server-memory", &[]);
    let home = Home::with(&format!("{config}\n[trust]\nmode = \"enforce\"\n"));
    let forget = || shell(&home, &["call", "memory.delete_entities", "entityNames=[]", "--text"]);
    assert_eq!(shell(&home, &["call", "memory.read_graph"]).code, 0);
    let asked = forget();
    assert_eq!(asked.code, 1, "{asked:?}");
    assert!(asked.err.contains("nothing was done"), "{asked:?}");
    assert!(asked.err.contains("gatelet trust grant memory/delete_entities"), "{asked:?}");
    assert_eq!(shell(&home, &["trust", "grant", "memory/delete_entities"]).code, 0);
    assert_eq!(forget().code, 0, "{:?}", forget());
    let shown = shell(&home, &["trust", "show", "memory/delete_entities"]);
    assert!(shown.out.contains("trusted"), "{}", shown.out);
    assert_eq!(shell(&home, &["trust", "revoke", "memory/delete_entities"]).code, 0);
    let refused = forget();
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.out.contains("gatelet trust grant memory/delete_entities"), "{refused:?}");
    assert_eq!(shell(&home, &["trust", "reset"]).code, 0);
    assert_eq!(shell(&home, &["trust", "list", "--json"]).out.trim(), "{}");
}

#[test]
fn a_gate_that_runs_takes_up_what_the_operator_revokes_and_resets() {
    testkit::needs!(Tools);
    let home = memory();
    let mut pipe = Pipe::open(&home);
    pipe.call("memory.read_graph", &json!({}));
    // Nobody has called that one yet.
    let revoked = shell(&home, &["trust", "revoke", "memory/search_nodes"]);
    assert_eq!(revoked.code, 0, "{}", revoked.err);
    let search =
        json!({"namespace": "memory", "function": "search_nodes", "kwargs": {"query": "x"}});
    let mut search = || text(&pipe.verb("call", &search));
    eventually("it is refused", || search().contains("is not trusted"));
    assert_eq!(shell(&home, &["trust", "reset"]).code, 0);
    eventually("it is as good as new", || search().contains("entities"));
}

#[test]
fn a_document_that_cannot_be_read_hides_no_other() {
    let home = Home::new();
    home.write("b/MCP_TOOL_SPECIFICATION.md", DAMAGED);
    std::fs::create_dir(home.path().join("a")).unwrap();
    std::fs::write(home.path().join("a/MCP_TOOL_SPECIFICATION.md"), b"# \xff\xfe").unwrap();
    let ended = shell(&home, &["spec", "lint", ".", "--format", "json"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains("a/MCP_TOOL_SPECIFICATION.md"), "{ended:?}");
    let findings = ended.json()[0]["findings"].as_array().unwrap().len();
    assert!(0 < findings, "{ended:?}");
}

#[test]
fn a_new_document_has_nothing_to_be_compared_with() {
    let home = Home::new();
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b.example"];
        let mut git = Command::new("git");
        git.current_dir(home.path()).args(who).args(words);
        assert!(git.output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    home.write("docs/MCP_TOOL_SPECIFICATION.md", DAMAGED);
    let ended = shell(&home, &["spec", "lint", "--since", "HEAD", "docs"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let wrong = shell(&home, &["spec", "lint", "--since", "nowhere", "docs"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn a_listing_owes_the_version_of_its_server() {
    let home = Home::new();
    let listing = |name: &str, version: &str, required: &str| {
        let schema = format!(
            r#"{{"type": "object", "properties": {{"a": {{"type": "string"}}}}, "required": [{required}]}}"#
        );
        let tool = format!(r#"{{"name": "t", "description": "d", "inputSchema": {schema}}}"#);
        let server = format!(r#"{{"name": "s", "version": "{version}"}}"#);
        home.write(name, &format!(r#"{{"serverInfo": {server}, "tools": [{tool}]}}"#));
    };
    listing("old.json", "1.0.0", "");
    for (version, required, code) in
        [("1.0.1", r#""a""#, 1), ("2.0.0", r#""a""#, 0), ("1.0.0", "", 0), ("banana", "", 1)]
    {
        listing("new.json", version, required);
        let ended = shell(&home, &["spec", "diff", "old.json", "new.json"]);
        assert_eq!(ended.code, code, "{version}: {ended:?}");
    }
}
