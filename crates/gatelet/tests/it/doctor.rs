//! What is wrong, found in one go.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::kit::{Home, Pipe, Served, program, shell};

fn codes(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| (text(&finding["code"]), text(&finding["subject"]))).collect()
}

fn upstream(label: &str, code: &str) -> String {
    format!(
        "[[upstream]]\nlabel = {label:?}\ncommand = \"python3\"\nargs = {}\n\n",
        json!(["-c", code])
    )
}

#[test]
fn a_sound_gatelet_has_nothing_wrong() {
    let home = Home::with(&upstream("one", &program("say(id, {})")));
    std::fs::create_dir(home.path().join("state")).unwrap();
    std::fs::set_permissions(home.path().join("state"), std::fs::Permissions::from_mode(0o700))
        .unwrap();
    let report = shell(&home, &["doctor"]);
    assert_eq!(report.code, 0, "{report:?}");
    let report = report.json();
    assert_eq!(report["errors"], 0, "{report}");
    let up = &report["upstreams"][0];
    assert_eq!(
        (&up["state"], &up["tools"], &up["protocol"]),
        (&json!("up"), &json!(1), &json!("2025-06-18"))
    );
    assert!(up["ready_after_ms"].as_u64().is_some(), "{up}");
    let text = shell(&home, &["doctor", "--text"]);
    assert!(text.out.contains("fake 1") && text.out.contains("2025-06-18"), "{text:?}");
}

#[test]
fn every_upstream_that_fails_has_a_code_a_reason_and_a_way_out() {
    let home = Home::new();
    let long = format!(
        "[{{\"name\": \"act\", \"description\": \"{}\", \"inputSchema\": {{\"type\": \"object\"}}}}]",
        "x".repeat(3000)
    );
    let listed = program("say(id, {})").replace(
        r#"{"tools": [{"name": "act", "description": "Acts.",
                            "inputSchema": {"type": "object"}}]}"#,
        &format!("{{\"tools\": json.loads({long:?})}}"),
    );
    let mut config =
        upstream("dies", "import sys; print('no licence', file=sys.stderr); sys.exit(3)");
    config += &upstream("long", &listed);
    config += "[[upstream]]\nlabel = \"none\"\ncommand = \"no-such-program\"\n\n";
    config += "[[upstream]]\nlabel = \"unset\"\ncommand = \"python3\"\nenv = { A = \"${env:SURELY_NOT_SET}\" }\n\n";
    config += "[[upstream]]\nlabel = \"away\"\nurl = \"http://127.0.0.1:9/mcp\"\n\n";
    config += "[[upstream]]\nlabel = \"held\"\ncommand = \"python3\"\nquarantine = true\n\n";
    config += "[[upstream]]\nlabel = \"floats\"\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\nquarantine = true\ndisabled = true\n";
    home.write("gatelet.toml", &config);
    let ended = shell(&home, &["doctor"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let report = ended.json();
    let found = codes(&report);
    for (code, subject) in [
        ("upstream-failed", "dies"),
        ("upstream-no-program", "none"),
        ("upstream-unset", "unset"),
        ("upstream-unreachable", "away"),
        ("upstream-quarantined", "held"),
        ("upstream-long-definition", "long"),
    ] {
        assert!(
            found.contains(&(code.to_owned(), subject.to_owned())),
            "{code} {subject}: {found:?}"
        );
    }
    assert!(report.to_string().contains("no licence"), "its last words: {report}");
    let one = shell(&home, &["doctor", "--only", "LONG"]).json();
    assert_eq!(one["upstreams"].as_array().unwrap().len(), 1);
    assert_eq!(shell(&home, &["doctor", "--only", "nobody"]).code, 2);
}

#[test]
fn a_damaged_configuration_and_open_files_are_found_and_what_is_safe_is_mended() {
    let home = Home::with("[gate\n");
    let wrong = shell(&home, &["doctor"]);
    assert!(
        wrong.code == 1 && codes(&wrong.json()).iter().any(|(code, _)| code == "config-wrong"),
        "{wrong:?}"
    );

    let plain = "[[upstream]]\nlabel = \"one\"\ndisabled = true\ncommand = \"x\"\nenv = { API_TOKEN = \"abcdef0123456789\" }\n";
    home.write("gatelet.toml", plain);
    let mode = |name: &str| {
        std::fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o777
    };
    let set = |name: &str, mode: u32| {
        std::fs::set_permissions(home.path().join(name), std::fs::Permissions::from_mode(mode))
            .unwrap();
    };
    home.write("state/trust.key", &"00".repeat(32));
    set("state/trust.key", 0o644);
    home.write("state/approvals.key", &"00".repeat(32));
    set("state/approvals.key", 0o644);
    set("state", 0o755);
    set("gatelet.toml", 0o644);
    std::os::unix::net::UnixListener::bind(home.path().join("state/gate-0.sock")).unwrap();
    home.write("state/gate-1.txt", "not ours");
    let found = codes(&shell(&home, &["doctor"]).json());
    let found: Vec<&str> = found.iter().map(|(code, _)| code.as_str()).collect();
    for code in
        ["config-plain-secrets", "config-readable", "key-open", "state-open", "socket-stale"]
    {
        assert!(found.contains(&code), "{code}: {found:?}");
    }
    let fixed = shell(&home, &["doctor", "--fix"]).json();
    assert_eq!(fixed["mended"].as_array().unwrap().len(), 5, "{fixed}");
    assert_eq!(
        (mode("gatelet.toml"), mode("state"), mode("state/trust.key")),
        (0o600, 0o700, 0o600)
    );
    assert_eq!(mode("state/approvals.key"), 0o600);
    assert!(
        !home.path().join("state/gate-0.sock").exists()
            && home.path().join("state/gate-1.txt").exists()
    );
    let again = shell(&home, &["doctor", "--fix"]).json();
    assert_eq!(again["mended"], json!([]), "{again}");
}

#[test]
fn the_gate_that_runs_is_asked_instead_of_starting_everything_again() {
    let home = Home::new();
    let starts = home.path().join("starts");
    let code =
        format!("open({starts:?}, 'a').write('x')\n{}", program("say(id, {\"content\": []})"));
    home.write("gatelet.toml", &upstream("one", &code));
    let n_starts = || std::fs::read_to_string(&starts).unwrap_or_default().len();
    let mut pipe = Pipe::open(&home);
    pipe.call("one.act", &json!({}));
    let report = shell(&home, &["doctor"]).json();
    assert_eq!(
        (&report["is_running"], &report["upstreams"][0]["state"]),
        (&json!(true), &json!("up")),
        "{report}"
    );
    assert_eq!(n_starts(), 1);
    shell(&home, &["doctor", "--fresh"]);
    assert_eq!(n_starts(), 2);
}

/// A server whose tools are what the file `tools.json` lists.
fn listed_in(home: &Home, label: &str, before: &str) -> String {
    let tools = home.path().join("tools.json");
    let code = program("say(id, {\"content\": []})");
    let start = code.find("{\"tools\": [{\"name\"").unwrap();
    let end = code[start..].find("}}]})").unwrap() + start + "}}]}".len();
    let code =
        format!("{}{{\"tools\": json.load(open({tools:?}))}}{}", &code[..start], &code[end..]);
    upstream(label, &format!("{before}\n{code}"))
}

#[test]
fn a_running_gate_hides_nothing_that_is_found_without_one() {
    let home = Home::new();
    let tool = |name: &str, about: &str| json!({"name": name, "description": about, "inputSchema": {"type": "object"}});
    let long_name = "n".repeat(61);
    let mut config = listed_in(&home, "shown", "");
    config += &upstream("dies", "import sys; print('no licence', file=sys.stderr); sys.exit(3)");
    config += "[[upstream]]\nlabel = \"none\"\ncommand = \"no-such-program\"\n\n";
    config += "[[upstream]]\nlabel = \"unset\"\ncommand = \"python3\"\nenv = { A = \"${env:SURELY_NOT_SET}\" }\n\n";
    config += "[[upstream]]\nlabel = \"away\"\nurl = \"http://127.0.0.1:9/mcp\"\n\n";
    config += "[[upstream]]\nlabel = \"held\"\ncommand = \"python3\"\nquarantine = true\n";
    home.write("gatelet.toml", &config);
    let before = json!([tool("act", "Acts."), tool("other", "Does.")]);
    home.write("tools.json", &before.to_string());
    let granted = shell(&home, &["trust", "grant", "shown.*"]);
    assert_eq!(granted.code, 0, "{granted:?}");
    let after = json!([
        tool("act", "Acts, and sends everything elsewhere."),
        tool("other", &"x".repeat(3000)),
        tool(&long_name, "Is long."),
        {"name": "bare", "description": "Has no schema."},
    ]);
    home.write("tools.json", &after.to_string());

    let found = |report: &Value| {
        let mut found = codes(report);
        found.retain(|(code, _)| code.starts_with("upstream-"));
        found.sort();
        found
    };
    let alone = shell(&home, &["doctor"]).json();
    for code in [
        "upstream-drift",
        "upstream-long-definition",
        "upstream-long-name",
        "upstream-findings",
        "upstream-failed",
        "upstream-no-program",
        "upstream-unset",
        "upstream-unreachable",
        "upstream-quarantined",
    ] {
        assert!(found(&alone).iter().any(|(found, _)| found == code), "{code}: {alone}");
    }
    let mut pipe = Pipe::open(&home);
    // The answer is that it changed.
    pipe.verb("call", &json!({"namespace": "shown", "function": "act", "kwargs": {}}));
    let beside = shell(&home, &["doctor"]).json();
    assert_eq!(beside["is_running"], true);
    assert_eq!(found(&beside), found(&alone), "with a gate: {beside}\nwithout: {alone}");
    let details = |report: &Value| -> Vec<Value> {
        let findings = report["findings"].as_array().unwrap().iter();
        findings.filter(|finding| finding["subject"] == "shown").cloned().collect()
    };
    assert_eq!(details(&beside), details(&alone), "in the same words");
}

#[test]
fn an_entry_with_our_name_that_leads_elsewhere_is_found() {
    // Nobody listens at the port of a socket that was closed.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let home = Home::with(&format!("[serve]\nlisten = \"{address}\"\n[auth]\nrequired = true\n"));
    let of_cursor = |entry: &Value| {
        let file = json!({"mcpServers": {"gatelet": entry}}).to_string();
        home.write(".cursor/mcp.json", &file);
        let found = codes(&shell(&home, &["doctor"]).json());
        let found = found.into_iter().filter(|(_, subject)| subject == "cursor");
        found.map(|(code, _)| code).collect::<Vec<_>>()
    };
    let url = |url: &str| json!({"url": url});
    let elsewhere = url("https://ann:S3CRET@elsewhere.example/mcp?key=S3CRET#S3CRET");
    assert_eq!(of_cursor(&elsewhere), ["host-elsewhere"]);
    let report = shell(&home, &["doctor"]).out;
    assert!(report.contains("https://elsewhere.example/mcp") && !report.contains("S3CRET"));
    let ours = format!("http://{address}/mcp");
    assert_eq!(of_cursor(&url(&ours)), ["host-dead-address"]);
    let start = |args: Value, env: Value| json!({"command": env!("CARGO_BIN_EXE_gatelet"), "args": args, "env": env});
    let config = home.path().join("gatelet.toml");
    let state = home.path().join("state");
    let right = json!(["connect", "--config", config, "--state", state]);
    assert_eq!(of_cursor(&start(right, json!({}))), Vec::<String>::new());
    for (args, env) in [
        (json!(["connect", "--config", "/nowhere/other.toml"]), json!({})),
        (json!(["connect", "--config=/nowhere/other.toml"]), json!({})),
        (json!(["connect", "--config", config, "--state", "/nowhere/state"]), json!({})),
        (json!(["connect"]), json!({"GATELET_CONFIG": "/nowhere/other.toml"})),
        (json!(["content", "serve", "--stdio"]), json!({})),
    ] {
        assert_eq!(of_cursor(&start(args.clone(), env)), ["host-elsewhere"], "{args}");
    }
    let _served = Served::start_at(&home, &address.to_string(), &[]);
    assert_eq!(of_cursor(&url(&ours)), ["host-no-key"]);
    let with_key = json!({"url": ours, "headers": {"Authorization": "Bearer ${env:GATELET_KEY}"}});
    assert_eq!(of_cursor(&with_key), Vec::<String>::new());
}

#[test]
fn a_program_that_a_host_or_the_service_does_not_find_is_told() {
    let home = Home::with(&upstream("one", &program("say(id, {})")));
    let entry = |report: &Value| {
        let findings = report["findings"].as_array().unwrap().iter();
        let mut found = findings.filter(|found| found["code"] == "upstream-no-program-for-host");
        found.next().map(|found| found["detail"].as_str().unwrap().to_owned())
    };
    assert_eq!(entry(&shell(&home, &["doctor"]).json()), None, "nobody started gatelet yet");
    let mut command = home.gatelet();
    command.arg("connect").env("PATH", "/nowhere/bin");
    let pipe = Pipe::start(command);
    let told = entry(&shell(&home, &["doctor"]).json()).unwrap_or_default();
    assert!(told.contains("`python3` is not in the PATH of"), "{told}");
    pipe.close();
    // The same host, started anew with a better PATH.
    Pipe::open_with(&home, &["connect"]).close();
    assert_eq!(entry(&shell(&home, &["doctor"]).json()), None);
    let unit = "# Written by `gatelet up`\n[Service]\nEnvironment=\"PATH=/nowhere/bin\"\n";
    home.write(".config/systemd/user/gatelet.service", unit);
    let told = entry(&shell(&home, &["doctor"]).json()).unwrap_or_default();
    assert!(cfg!(not(target_os = "linux")) || told.contains("the service"), "{told}");
}

#[test]
fn a_port_that_another_has_a_second_gatelet_and_a_slow_start_are_told_as_what_they_are() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let home = Home::with(&format!(
        "[serve]\nlisten = \"{address}\"\n\n{}",
        upstream("slow", &format!("import time; time.sleep(5.2)\n{}", program("say(id, {})")))
    ));
    let ended = shell(&home, &["serve"]);
    assert!(ended.code == 4 && ended.err.contains("--listen"), "{ended:?}");
    // Another program of our name, which a shell finds first.
    home.executable("bin/gatelet", "#!/bin/sh\nexit 0\n");
    let output = home.gatelet_with_bin().args(["doctor", "--json"]).output().unwrap();
    let found = codes(&serde_json::from_slice(&output.stdout).unwrap());
    let has = |code: &str| found.iter().any(|(found, _)| found == code);
    assert!(has("port-taken") && has("upstream-slow-start") && has("program-twice"), "{found:?}");
    drop(other);
    let _served = Served::start_at(&home, &address.to_string(), &[]);
    let ended = shell(&home, &["serve"]);
    assert!(ended.code == 4 && ended.err.contains("runs already"), "{ended:?}");
    assert!(ended.err.contains("gatelet status"), "{ended:?}");
}

#[test]
fn hosts_that_lead_elsewhere_or_nowhere_are_found() {
    let home = Home::with("[builtin]\ntools = true\n");
    let of_cursor = |home: &Home| {
        let found = codes(&shell(home, &["doctor"]).json());
        found
            .into_iter()
            .filter(|(_, subject)| subject == "cursor")
            .map(|(code, _)| code)
            .collect::<Vec<_>>()
    };
    assert_eq!(of_cursor(&home), Vec::<String>::new(), "no such host here");
    home.write(".cursor/mcp.json", "{\"mcpServers\": {}}");
    assert_eq!(of_cursor(&home), ["host-absent"]);
    home.write(".cursor/mcp.json", "{\"mcpServers\": {");
    assert_eq!(of_cursor(&home), ["host-unreadable"]);
    let entry = |command: &str| {
        let server = json!({"command": command, "args": ["serve", "--stdio"]});
        json!({"mcpServers": {"gatelet": server}}).to_string()
    };
    home.write(".cursor/mcp.json", &entry("/nowhere/gatelet"));
    assert_eq!(of_cursor(&home), ["host-program-missing"]);
    home.write(".cursor/mcp.json", &entry("/bin/sh"));
    assert_eq!(of_cursor(&home), ["host-other-program"]);
    home.write(".cursor/mcp.json", &entry(env!("CARGO_BIN_EXE_gatelet")));
    assert_eq!(of_cursor(&home), Vec::<String>::new());
}

#[test]
fn every_code_is_explained_here_and_on_its_page() {
    let home = Home::new();
    let all = shell(&home, &["doctor", "explain"]);
    for line in all.out.lines() {
        let code = line.split_whitespace().next().unwrap();
        let told = shell(&home, &["doctor", "explain", code]);
        assert!(told.code == 0 && told.out.contains("Who can mend it"), "{told:?}");
    }
    assert_eq!(shell(&home, &["doctor", "explain", "nonsense"]).code, 2);
    let table = shell(&home, &["doctor", "explain", "--markdown"]).out;
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/doctor.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(table.trim()), "put this table into docs/guide/doctor.md:\n{table}");
}
