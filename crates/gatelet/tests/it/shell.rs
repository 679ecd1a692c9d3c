//! The program from the shell: output for people and for programs, and exit
//! codes.

use crate::kit::{Fake, Home, shell, shell_with};

#[test]
fn the_three_verbs_answer_programs_in_json_and_people_in_text() {
    let home = Home::new();
    let help = shell(&home, &["help"]);
    assert_eq!(help.code, 0, "{}", help.err);
    assert!(help.json().to_string().contains("units"), "{}", help.out);
    let human = shell(&home, &["help", "units.convert", "--text"]);
    assert!(human.out.contains("value"), "{}", human.out);
    let found = shell(&home, &["help", "--query", "what time is it", "--text"]);
    assert!(found.out.contains("now"), "{}", found.out);
    let call = shell(&home, &["call", "units.convert", "value=26.2", "from=mi", "to=km", "--text"]);
    assert_eq!(call.code, 0, "{}", call.err);
    assert!(call.out.contains("42.1648128"), "{}", call.out);
    let piped =
        shell_with(&home, &["call", "json.query", "-"], r#"{"json": [1, 2], "filter": "add"}"#);
    assert_eq!(piped.json()["content"][0]["text"], "3\n", "{}", piped.out);
    let skill = shell(&home, &["skill", "first_steps", "--text"]);
    assert!(skill.out.contains("Working through the gate"), "{}", skill.out);
}

#[test]
fn a_gate_without_a_configuration_finds_nothing_wrong_with_itself() {
    let report = shell(&Home::new(), &["upstreams", "--report"]).json();
    assert_eq!(report["findings"], serde_json::json!([]));
    assert_eq!(report["registered"], 22);
}

#[test]
fn what_one_command_remembers_the_next_one_knows() {
    let home = Home::new();
    let written = shell(&home, &["call", "memory.write", "key=plan", "text=buy milk"]);
    assert_eq!(written.code, 0, "{}", written.err);
    let read = shell(&home, &["call", "memory.read", "key=plan", "--text"]);
    assert_eq!(read.out.trim(), "buy milk");
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let home = Home::new();
    let code = |words: &[&str]| shell(&home, words).code;
    assert_eq!(code(&["call", "units.convert", "value=1", "from=kg", "to=m"]), 1);
    assert_eq!(code(&["call", "units.convert", "nonsense"]), 2);
    assert_eq!(code(&["no-such-command"]), 2);
    assert_eq!(code(&["serve", "--config", "nowhere.toml"]), 2);
    assert_eq!(code(&["serve", "--listen", "0.0.0.0:0"]), 2);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_eq!(code(&["serve", "--listen", &address]), 4);
    home.write("gatelet.toml", "[[upstream]]\nlabel = \"gone\"\ncommand = \"/nowhere/at/all\"\n");
    let gone = shell(&home, &["call", "gone.thing", "--text"]);
    assert_eq!(gone.code, 3, "{gone:?}");
    assert!(gone.out.contains("/nowhere/at/all"), "{gone:?}");
}

#[test]
fn every_problem_in_a_configuration_is_shown_with_its_place() {
    let home = Home::with("[[upstream]]\nlable = \"x\"\n\n[gate]\nlimit = 0\n");
    let ended = shell(&home, &["config", "check"]);
    assert_eq!(ended.code, 2);
    for part in ["gatelet.toml:2:1", "did you mean `label`?", "gatelet.toml:5:9", "4 errors"] {
        assert!(ended.err.contains(part), "no {part} in: {}", ended.err);
    }
    let schema = shell(&home, &["config", "schema"]).json();
    assert!(schema["properties"]["upstream"].is_object());
}

#[test]
fn what_serve_refuses_does_not_pass_the_check() {
    for (text, said) in [
        ("[serve]\nlisten = \"0.0.0.0:0\"\n", "can be reached from other machines"),
        ("[[upstream]]\nlabel = \"a\"\ncommand = \"\"\n", "must name a program"),
    ] {
        let home = Home::with(text);
        for command in [["config", "check"].as_slice(), &["serve"]] {
            let ended = shell(&home, command);
            assert_eq!(ended.code, 2, "{ended:?}");
            assert!(ended.err.contains(said), "{ended:?}");
        }
    }
}

#[test]
fn the_files_of_other_clients_are_imported_and_served_as_they_are() {
    testkit::needs!(Tools);
    let home = Home::new();
    let clock = crate::kit::tool("py/bin/mcp-server-time");
    home.write(".vscode/mcp.json", &format!(
        "{{\n  // comments are fine\n  \"servers\": {{\"my clock\": {{\"command\": {clock:?}, \"gallery\": true,}}}},\n}}"
    ));
    let served = shell(&home, &["help", "my-clock", "--config", ".vscode/mcp.json", "--text"]);
    assert_eq!(served.code, 0, "{}", served.err);
    assert!(served.out.contains("get_current_time"), "{}", served.out);
    let imported = shell(&home, &["import", ".vscode/mcp.json", "--output", "gatelet.toml"]);
    assert_eq!(imported.code, 0, "{}", imported.err);
    assert!(imported.err.contains("becomes the namespace `my-clock`"), "{}", imported.err);
    assert_eq!(shell(&home, &["config", "check"]).code, 0);
    let again = shell(&home, &["import", ".vscode/mcp.json", "--output", "gatelet.toml"]);
    assert_eq!(again.code, 2, "a file is not replaced unasked");
}

#[test]
fn init_writes_a_configuration_that_can_be_served() {
    let home = Home::new();
    assert_eq!(shell(&home, &["init"]).code, 0);
    assert_eq!(shell(&home, &["config", "check"]).code, 0);
    assert_eq!(shell(&home, &["init"]).code, 2, "a file is not replaced unasked");
}

#[test]
fn the_version_tells_the_protocol_revisions() {
    let version = shell(&Home::new(), &["--version"]);
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        assert!(version.out.contains(revision), "{}", version.out);
    }
    let short = shell(&Home::new(), &["-V"]);
    assert_eq!(short.out.trim(), format!("gatelet {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn shells_can_complete_our_commands() {
    for name in ["bash", "zsh", "fish"] {
        let script = shell(&Home::new(), &["completions", name]);
        assert!(script.out.contains("upstreams"), "{name}: {}", script.out);
    }
}

#[test]
fn an_upstream_that_hangs_delays_only_what_is_asked_of_it() {
    let fake = Fake::start();
    let stuck = "[[upstream]]\nlabel = \"stuck\"\ncommand = \"sleep\"\nargs = [\"1000\"]\n\
        start_timeout = \"10m\"\n";
    let home = Home::with(&format!("{}{stuck}", fake.upstream("good", "mcp")));
    for words in [&["call", "good.act"][..], &["help", "good"], &["help", "good.act"]] {
        let ended = shell(&home, words);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(!ended.err.contains("still starting"), "{words:?}: {ended:?}");
    }
    // These wait a while, at the same time.
    let lists = [&["help"][..], &["help", "-q", "acts"]].map(|words| {
        let home = Home::with(&format!("{}{stuck}", fake.upstream("good", "mcp")));
        std::thread::spawn(move || (words, shell(&home, words)))
    });
    // Who counts wants to have counted them all.
    let patient = stuck.replace("10m", "6s");
    let home = Home::with(&format!("{}{patient}", fake.upstream("good", "mcp")));
    let tokens = shell(&home, &["tokens", "--text"]);
    assert_eq!(tokens.code, 0, "{tokens:?}");
    assert!(tokens.out.contains("not counted: stuck ("), "{tokens:?}");
    assert!(!tokens.out.contains("still starting"), "{tokens:?}");
    for list in lists {
        let (words, ended) = list.join().unwrap();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(ended.out.contains("good"), "{words:?}: {ended:?}");
        assert!(ended.err.contains("still starting: stuck"), "{words:?}: {ended:?}");
    }
}

#[test]
fn a_call_without_an_answer_is_told_from_one_that_failed() {
    let fake = Fake::start();
    let home = Home::with(&fake.upstream("slow", "slow"));
    let late = shell(&home, &["call", "slow.act", "--text"]);
    assert_eq!(late.code, 3, "{late:?}");
    assert!(late.out.contains("did not answer within"), "{late:?}");
    let gone = "[[upstream]]\nlabel = \"gone\"\ncommand = \"/nowhere/at/all\"\n";
    let home = Home::with(gone);
    let tokens = shell(&home, &["tokens", "--text"]);
    assert_eq!(tokens.code, 3, "{tokens:?}");
    assert!(tokens.out.contains("not counted: gone ("), "{tokens:?}");
    assert!(!tokens.out.contains("so few definitions"), "{tokens:?}");
    let bench = shell(&home, &["bench", "--text"]);
    assert_eq!(bench.code, 3, "{bench:?}");
    assert!(bench.out.contains("not counted: gone ("), "{bench:?}");
    assert!(!bench.out.contains("save nothing"), "{bench:?}");
}

#[test]
fn bench_says_when_the_answer_is_nothing_and_what_calls_returned() {
    let fake = Fake::start();
    let records = "[records]\nfile = \"calls.jsonl\"\n";
    let home = Home::with(&format!("{records}{}", fake.upstream("good", "mcp")));
    let assumed = shell(&home, &["bench", "--text"]);
    assert_eq!(assumed.code, 0, "{assumed:?}");
    assert!(assumed.out.contains("save nothing"), "one tool: {assumed:?}");
    assert!(assumed.out.contains("assumed"), "{assumed:?}");
    assert_eq!(shell(&home, &["call", "good.act"]).code, 0);
    let measured = shell(&home, &["bench"]).json();
    assert_eq!(measured["results"]["calls"], 1, "{measured}");
    assert_eq!(shell(&home, &["bench", "--calls", "0"]).code, 2, "a task has calls");
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure_of_the_machine() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let home = Home::new();
    let mut command = home.gatelet();
    let ended = command.args(["config", "schema"]).stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(4), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("cannot write to standard output"), "{said}");
}

#[test]
fn what_is_measured_must_be_there_and_whole() {
    let home = Home::new();
    let code = |words: &[&str]| shell(&home, words).code;
    assert_eq!(code(&["eval", "--corpus", "no.jsonl", "--queries", "no.jsonl"]), 2);
    assert_eq!(code(&["eval", "--dir", "nowhere"]), 2);
    home.write("sets/bad/corpus.jsonl", "{nonsense\n");
    home.write("sets/bad/queries.jsonl", "{}\n");
    assert_eq!(code(&["eval", "--dir", "sets"]), 2);
    home.write("sets/bad/corpus.jsonl", "\u{feff}{\"id\": \"a\", \"name\": \"x\"}\n");
    home.write("sets/bad/queries.jsonl", "{\"query\": \"x\", \"relevant\": [\"gone\"]}\n");
    let unknown = shell(&home, &["eval", "--dir", "sets"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(unknown.err.contains("1 of the relevant ids are not in the corpus: `gone`"));
    home.write("sets/bad/queries.jsonl", "{\"query\": \"x\", \"relevant\": []}\n");
    let silent = shell(&home, &["eval", "--dir", "sets"]);
    assert!(silent.code == 0 && !silent.out.contains("-0.0"), "{silent:?}");
    home.write("halves/a/corpus.jsonl", "{}\n");
    home.write("halves/b/queries.jsonl", "{}\n");
    let halves = shell(&home, &["eval", "--dir", "halves"]);
    assert_eq!(halves.code, 2, "{halves:?}");
    for part in ["a` has no `queries.jsonl`", "b` has no `corpus.jsonl`"] {
        assert!(halves.err.contains(part), "{halves:?}");
    }
}

#[test]
fn the_verbs_take_from_the_shell_what_the_tools_take() {
    let home = Home::with("[skills]\ndirectories = [\"skills\"]\n\n[builtin]\ntools = true\n");
    home.write(
        "skills/shop/greet/SKILL.md",
        "---\nname: greet\ndescription: Greets somebody.\narguments:\n  - name: who\n---\nGreet them.\n",
    );
    let listed = shell(&home, &["skill", "shop", "--text"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.out.contains("greet") && !listed.out.contains("first_steps"), "{listed:?}");
    let told = shell(&home, &["skill", "shop", "greet", "who=Ann", "--text"]);
    assert_eq!(told.code, 0, "{told:?}");
    let few = shell(&home, &["help", "--query", "text", "--limit", "1", "--text"]);
    let more = shell(&home, &["help", "--query", "text", "--limit", "4", "--text"]);
    assert!(few.out.len() < more.out.len(), "{few:?} {more:?}");
    let page = shell(&home, &["help", "text", "--page", "2", "--text"]);
    assert!(!page.out.contains("replace"), "{page:?}");
    let wrong = shell(&home, &["help", "units.nonsense", "--text"]);
    assert!(wrong.out.contains("gatelet help units"), "{wrong:?}");
    assert!(
        wrong.out.contains("units / convert(") && wrong.out.contains("units / list("),
        "{wrong:?}"
    );
}

#[test]
fn why_an_upstream_does_not_start_is_said_as_it_is() {
    let home = Home::with(
        "[[upstream]]\nlabel = \"words\"\ncommand = \"npx -y server\"\n\n\
         [[upstream]]\nlabel = \"gone\"\ncommand = \"no-such-program-at-all\"\n\n\
         [[upstream]]\nlabel = \"homeless\"\ncommand = \"cat\"\ncwd = \"nowhere\"\n\n\
         [[upstream]]\nlabel = \"closed\"\nurl = \"http://127.0.0.1:1/mcp\"\n",
    );
    let ended = shell(&home, &["upstreams"]);
    let rows = ended.json();
    let reason = |at: usize| rows[at]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(ended.err.contains("arguments belong in `args`"), "{ended:?}");
    assert!(ended.err.contains("there is no directory"), "{ended:?}");
    assert!(reason(1).starts_with("cannot run `no-such-program-at-all`"), "{}", reason(1));
    assert!(reason(2).starts_with("there is no directory"), "{}", reason(2));
    assert!(reason(3).starts_with("cannot be reached:"), "{}", reason(3));
}

#[test]
fn a_file_named_by_a_relative_path_means_the_same() {
    let home = Home::new();
    home.write(
        "work/.vscode/mcp.json",
        r#"{"servers": {"a": {"command": "cat",
        "cwd": "${workspaceFolder}/sub", "envFile": "${workspaceFolder}/.env"}}}"#,
    );
    home.write("work/.env", "A=1\n");
    home.write("work/sub/x", "");
    let check = shell(&home, &["config", "check", "--config", "work/.vscode/mcp.json"]);
    assert_eq!(check.code, 0, "{check:?}");
    assert!(!check.err.contains("warning"), "{check:?}");
    assert!(check.out.contains("1 upstream (1 program)"), "{check:?}");
}

#[test]
fn every_missing_file_is_told_at_its_key() {
    let home = Home::with(
        "[serve.tls]\ncert = \"a.pem\"\nkey = \"b.pem\"\nclient_ca = \"c.pem\"\n\n\
         [manifest]\nkey = \"d.key\"\n",
    );
    let check = shell(&home, &["config", "check"]);
    assert_eq!(check.code, 2, "{check:?}");
    for key in ["serve.tls.cert", "serve.tls.key", "serve.tls.client_ca", "manifest.key"] {
        let line = check.err.lines().find(|line| line.contains(key));
        assert!(line.is_some_and(|line| line.contains("cannot be read")), "{key}: {check:?}");
    }
}
