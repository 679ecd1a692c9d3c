//! What an operator switches on: records, kept results, limits, rules, trust.

use serde_json::{Value, json};

use crate::kit::{Fake, Home, Pipe, npm_upstream, shell, text};

const BUILTIN: &str = "[builtin]\ntools = true\n\n";

#[test]
fn every_call_leaves_one_line_and_the_lines_add_up() {
    let home = Home::with(&format!("{BUILTIN}[records]\nfile = \"log/calls.jsonl\"\n"));
    let mut pipe = Pipe::open(&home);
    let long: Vec<u32> = (0..10_000).collect();
    pipe.call("json.query", &json!({"json": long, "filter": "."}));
    pipe.call("units.convert", &json!({"value": 4711, "from": "mi", "to": "km"}));
    let bad = json!({"value": 1, "from": "kg", "to": "m"});
    let bad = json!({"namespace": "units", "function": "convert", "kwargs": bad});
    assert_eq!(pipe.verb("call", &bad)["isError"], true);
    assert!(pipe.close().success());
    let lines = home.read("log/calls.jsonl");
    let calls = lines.lines().filter(|line| line.contains("\"event\":\"execute."));
    assert_eq!(calls.count(), 3, "{lines}");
    assert!(!lines.contains("4711"), "{lines}");
    // A command that is over soon writes its line too.
    assert_eq!(shell(&home, &["call", "time.now"]).code, 0);

    let stats = shell(&home, &["stats"]).json();
    assert_eq!(stats["total"]["calls"], 4, "{stats}");
    let of = |tool: &str| {
        let tools = stats["tools"].as_object().unwrap();
        let found = tools.iter().find(|(id, _)| id.starts_with(&format!("{tool}#")));
        found.unwrap_or_else(|| panic!("no {tool} in {stats}")).1
    };
    assert_eq!(of("units:convert")["calls"], 2, "{stats}");
    assert_eq!(of("units:convert")["errors"], 1, "{stats}");
    let query = of("json:query");
    assert!(10_000 < query["tokens_saved"].as_u64().unwrap(), "{stats}");
    let table = shell(&home, &["stats", "log/calls.jsonl", "--text"]);
    assert!(table.out.contains("units:convert") && table.out.contains("total"), "{}", table.out);
}

#[test]
fn statistics_without_records_say_how_to_keep_some() {
    let home = Home::with(BUILTIN);
    let none = shell(&home, &["stats"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("[records]"), "{}", none.err);
}

/// The answer of a call to a built-in tool, whatever it is.
fn answer(pipe: &mut Pipe, function: &str, kwargs: &Value) -> Value {
    let (namespace, function) = function.rsplit_once('.').unwrap();
    pipe.verb("call", &json!({"namespace": namespace, "function": function, "kwargs": kwargs}))
}

#[test]
fn a_kept_result_survives_a_restart_unless_memory_is_enough() {
    let kept_after_restart = |section: &str| {
        let home = Home::with(&format!("{BUILTIN}{section}"));
        let mut pipe = Pipe::open(&home);
        let numbers: Vec<u32> = (0..10_000).collect();
        pipe.call("json.query", &json!({"json": numbers, "filter": "."}));
        assert!(text(&answer(&mut pipe, "gatelet.view", &json!({}))).contains("json query"));
        assert!(pipe.close().success());
        let mut again = Pipe::open(&home);
        text(&answer(&mut again, "gatelet.view", &json!({}))).contains("json query")
    };
    assert!(kept_after_restart(""));
    assert!(kept_after_restart("[artifacts]\ndirectory = \"kept\"\nlife = \"5m\"\n"));
    assert!(!kept_after_restart("[artifacts]\nstore = \"memory\"\n"));
}

#[test]
fn a_tool_that_is_denied_is_refused_with_the_reason() {
    let rule = "[[controls.rule]]\naction = \"deny\"\ntool = \"units.*\"\nreason = \"no sums\"\n";
    let home = Home::with(&format!("{BUILTIN}{rule}"));
    let mut pipe = Pipe::open(&home);
    let miles = json!({"value": 1, "from": "mi", "to": "km"});
    let refused = answer(&mut pipe, "units.convert", &miles);
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains("no sums"), "{refused}");
    assert!(pipe.call("time.now", &json!({})).contains("UTC"));
}

#[test]
fn an_upstream_keeps_its_label_and_its_rules_beside_a_built_in_of_that_name() {
    let fake = Fake::start();
    let digits = "0".repeat(64);
    let pin = format!("[controls.pins.memory]\nexpected_hash = \"{digits}\"\nmode = \"strict\"\n");
    for rule in [
        "[[controls.rule]]\naction = \"deny\"\ntool = \"memory.*\"\n",
        "[[controls.rule]]\naction = \"ask\"\ntool = \"memory.*\"\n",
        "[[controls.rate]]\ntool = \"memory.*\"\nper_session = 1\n",
        "[[visibility.rule]]\nhide = [\"memory\"]\n",
        "[[trust.rule]]\ntool = \"memory.*\"\ndestructive = true\n",
        &pin,
    ] {
        let soon = "[approvals]\nwait = \"0s\"\n";
        let config = format!("{BUILTIN}{soon}{rule}\n{}", fake.upstream("memory", "mcp"));
        let home = Home::with(&config);
        let mut pipe = Pipe::open(&home);
        for text in ["a", "b"] {
            pipe.call("memory_2.write", &json!({"key": "k", "text": text}));
        }
        answer(&mut pipe, "memory.act", &json!({}));
        let ruled = answer(&mut pipe, "memory.act", &json!({}));
        assert_eq!(ruled["isError"], true, "{rule}: {ruled}");
    }
    let home = Home::with(&format!("{BUILTIN}{}", fake.upstream("Memory", "mcp")));
    assert_eq!(Pipe::open(&home).call("memory.act", &json!({})), "acted");
    let check = shell(&home, &["config", "check"]);
    assert!(check.err.contains("`memory_2` here"), "{}", check.err);
}

#[test]
fn a_limit_on_a_tool_is_kept_and_the_others_go_on() {
    let rate = "[[controls.rate]]\ntool = \"time.now\"\nper_session = 2\n";
    let home = Home::with(&format!("{BUILTIN}{rate}"));
    let mut pipe = Pipe::open(&home);
    let mut is_error =
        |function: &str, kwargs| answer(&mut pipe, function, &kwargs)["isError"] == true;
    assert!(!is_error("time.now", json!({})));
    assert!(!is_error("time.now", json!({})));
    assert!(is_error("time.now", json!({})));
    assert!(!is_error("units.convert", json!({"value": 1, "from": "mi", "to": "km"})));
}

#[test]
fn an_answer_of_a_read_only_tool_is_kept_where_that_is_allowed() {
    let cache = "[controls.cache]\nread_only = true\nallow = [\"units.convert\"]\n";
    let records = "[records]\nfile = \"calls.jsonl\"\n";
    let home = Home::with(&format!("{BUILTIN}{cache}\n{records}"));
    let mut pipe = Pipe::open(&home);
    for _ in 0..2 {
        pipe.call("units.convert", &json!({"value": 1, "from": "mi", "to": "km"}));
        pipe.call("time.now", &json!({}));
    }
    assert!(pipe.close().success());
    let lines = home.read("calls.jsonl");
    let hits: Vec<&str> = lines.lines().filter(|line| line.contains("execute.cache_hit")).collect();
    assert!(matches!(hits[..], [hit] if hit.contains("units:convert")), "{lines}");
}

#[test]
fn what_is_wrong_with_the_controls_is_said_with_a_suggestion() {
    let home = Home::with(
        "[controls]\ndefalt = \"deny\"\ntop_k = 500\n[controls.retry]\njitter = 2.0\n\
         [[controls.rate]]\ntool = \"x\"\n\
         [[controls.rate]]\nmeta_tool = \"tool_exekute\"\nper_minute = 1\n[controls.upstreams.files]\nat_once = 1\n\
         [artifacts]\nlife = \"soon\"\n[records]\nfil = \"x\"\n",
    );
    let check = shell(&home, &["config", "check"]);
    assert_eq!(check.code, 2, "{}", check.err);
    let said = check.out + &check.err;
    for part in ["did you mean `default`", "from 0 to 1", "limits nothing", "no upstream `files`"] {
        assert!(said.contains(part), "no {part} in: {said}");
    }
    assert!(said.contains("must be at most 50"), "{said}");
    assert!(said.contains("did you mean `tool_execute`"), "{said}");
    assert!(said.contains("not a duration") && said.contains("did you mean `file`"), "{said}");
    let schema = shell(&home, &["config", "schema"]).json();
    for section in ["records", "artifacts", "controls", "trust"] {
        assert!(schema["properties"][section].is_object(), "no {section}");
    }
}

/// A home with the official file server behind the gate.
fn with_files(section: &str) -> Home {
    let home = Home::new();
    let files = home.path().join("files");
    std::fs::create_dir_all(&files).unwrap();
    let upstream = npm_upstream("files", "server-filesystem", &[files.to_str().unwrap()]);
    home.write("gatelet.toml", &format!("{BUILTIN}{section}\n{upstream}"));
    home
}

fn writing(home: &Home) -> Value {
    json!({"path": home.path().join("files/note.txt"), "content": "hello"})
}

#[test]
fn a_tool_that_destroys_asks_first_and_only_the_operator_can_change_that() {
    testkit::needs!(Tools);
    let home = with_files("[approvals]\nwait = \"0s\"\n");
    let mut pipe = Pipe::open(&home);
    let refused = answer(&mut pipe, "files.write_file", &writing(&home));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(!home.path().join("files/note.txt").exists());

    let allowed = shell(&home, &["approvals", "allow", "1", "--yes"]);
    assert_eq!(allowed.code, 0, "{}", allowed.err);
    pipe.call("files.write_file", &writing(&home));
    assert_eq!(home.read("files/note.txt"), "hello");
    // An agreement is good once.
    assert_eq!(answer(&mut pipe, "files.write_file", &writing(&home))["isError"], true);
    // What only reads is not asked about, and neither are our own tools.
    pipe.call("files.list_allowed_directories", &json!({}));
    pipe.call("memory.write", &json!({"key": "a", "text": "b"}));
    pipe.call("memory.delete", &json!({"key": "a"}));

    let granted = shell(&home, &["trust", "grant", "files/write_file"]);
    assert_eq!(granted.code, 0, "{}", granted.err);
    pipe.call("files.write_file", &writing(&home));
}

#[test]
fn an_operator_may_switch_trust_off_or_say_what_a_tool_does() {
    testkit::needs!(Tools);
    let home = with_files("[trust]\nmode = \"off\"\n");
    let mut pipe = Pipe::open(&home);
    pipe.call("files.write_file", &writing(&home));
    assert!(!home.path().join("state/trust.json").exists());

    let rule = "[[trust.rule]]\ntool = \"files.write_file\"\ndestructive = false\n";
    let home = with_files(rule);
    let mut pipe = Pipe::open(&home);
    pipe.call("files.write_file", &writing(&home));
}

#[test]
fn a_strict_pin_keeps_out_what_lists_something_else() {
    testkit::needs!(Tools);
    let home = with_files("");
    let report = shell(&home, &["upstreams", "--report"]).json();
    let hash = report["hashes"]["files"].as_str().unwrap().to_owned();
    let config = home.read("gatelet.toml");
    let pinned = |hash: &str| {
        let pin = format!("[controls.pins.files]\nexpected_hash = \"{hash}\"\nmode = \"strict\"\n");
        home.write("gatelet.toml", &format!("{BUILTIN}{pin}{}", &config[BUILTIN.len()..]));
        shell(&home, &["upstreams"]).code
    };
    assert_eq!(pinned(&hash), 0);
    assert_eq!(pinned(&"0".repeat(64)), 1);
    assert_eq!(pinned("0"), 2);
}
