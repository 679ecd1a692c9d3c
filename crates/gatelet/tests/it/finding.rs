//! Finding with the real program: measuring it, learning from use, and skills.

use serde_json::{Value, json};

use crate::kit::{Home, Pipe, eventually, shell, text, tool, upstream};

const CORPUS: &str = r#"{"id": "mail/send", "server": "mail", "name": "send_message", "description": "Sends an email"}
{"id": "mail/list", "server": "mail", "name": "list_messages", "description": "Lists the messages of a mailbox"}
{"id": "files/read", "server": "files", "name": "read_file", "description": "Reads a file", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
"#;
const QUERIES: &str = r#"{"qid": "q1", "query": "send an email", "relevant": ["mail/send"]}
{"qid": "q2", "query": "raed a file", "relevant": ["files/read"]}
{"qid": "q3", "query": "photosynthesis of ferns", "relevant": []}
"#;

/// A home with two sets: one in a folder, one with two kinds of queries.
fn sets() -> Home {
    let home = Home::new();
    for folder in ["sets/one", "sets/two"] {
        home.write(&format!("{folder}/corpus.jsonl"), CORPUS);
        home.write(&format!("{folder}/queries.jsonl"), QUERIES);
    }
    home.write("sets/two/queries.short.jsonl", QUERIES);
    home
}

#[test]
fn eval_measures_one_set_or_a_directory_of_them() {
    let home = sets();
    let one = ["eval", "--corpus", "sets/one/corpus.jsonl", "--queries", "sets/one/queries.jsonl"];
    let table = shell(&home, &one);
    assert_eq!(table.code, 0, "{}", table.err);
    for part in ["recall@1", "recall@5", "mrr@10", "ndcg@10", "p99", "one", "1.000"] {
        assert!(table.out.contains(part), "no {part} in {}", table.out);
    }
    let all = shell(&home, &["eval", "--dir", "sets", "--format", "json"]);
    assert_eq!(all.code, 0, "{}", all.err);
    let told = all.json();
    let names: Vec<&str> =
        told["sets"].as_array().unwrap().iter().map(|set| set["set"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two", "two.short"]);
    for key in ["recall@1", "recall@3", "recall@5", "recall@10", "mrr@10", "ndcg@10"] {
        assert_eq!(told["sets"][0][key], json!(1.0), "{key}");
        assert_eq!(told["mean"][key], json!(1.0), "{key} of the mean");
    }
    assert!(told["sets"][0].to_string().contains("p50"), "{}", told["sets"][0]);
    let words = shell(&home, &["eval", "--dir", "sets", "--words-only"]);
    assert_eq!(words.code, 0, "{}", words.err);
}

#[test]
fn eval_shows_the_rank_of_every_relevant_document() {
    let home = sets();
    let shown = shell(&home, &["eval", "--dir", "sets/one", "--per-query"]);
    assert!(shown.out.contains("one\tq1\t1\tsend an email"), "{}", shown.out);
    assert!(shown.out.contains("one\tq3\t\tphotosynthesis of ferns"), "{}", shown.out);
    let told = shell(&home, &["eval", "--dir", "sets/one", "--per-query", "--format", "json"]);
    assert!(told.json()["sets"][0].to_string().contains("raed a file"), "{}", told.out);
}

#[test]
fn eval_says_what_is_wrong_with_its_input_and_where() {
    let home = sets();
    home.write("empty/readme", "");
    home.write("bad/corpus.jsonl", "{\"id\": \"a\"}\n{\"name\":\n");
    home.write("bad/queries.jsonl", QUERIES);
    let fails = |words: &[&str], code: i32, part: &str| {
        let ended = shell(&home, words);
        assert_eq!(ended.code, code, "{words:?}: {ended:?}");
        assert!(ended.err.contains(part), "no {part} in {}", ended.err);
    };
    fails(&["eval"], 2, "--corpus");
    fails(&["eval", "--corpus", "sets/one/corpus.jsonl"], 2, "--queries");
    fails(&["eval", "--dir", "empty"], 2, "no set in `empty`");
    fails(&["eval", "--dir", "sets", "--format", "xml"], 2, "json");
    fails(&["eval", "--dir", "nowhere"], 2, "nowhere");
    fails(&["eval", "--dir", "bad"], 2, "bad/corpus.jsonl");
}

/// Two upstreams that offer the same.
fn twins(learning: &str) -> Home {
    let clock = tool("py/bin/mcp-server-time");
    let upstreams = ["alpha", "beta"].map(|label| upstream(label, &clock, &[])).concat();
    Home::with(&format!("{upstreams}\n{learning}"))
}

/// A client of the twins, once both are there.
fn open(home: &Home) -> Pipe {
    let mut pipe = Pipe::open(home);
    eventually("both are listed", || {
        let mut listed = |label: &str| text(&pipe.verb("help", &json!({"namespace": label})));
        ["alpha", "beta"].iter().all(|label| listed(label).contains("get_current_time"))
    });
    pipe
}

/// Which of the two a search names first. What they offer is the same, so it has one line,
/// which names the other at its end.
fn first(pipe: &mut Pipe) -> &'static str {
    let query = json!({"kwargs": {"query": "current time in a timezone"}});
    let said = text(&pipe.verb("help", &query));
    let leads = |label: &str, other: &str| {
        let begins = format!("{label} / get_current_time");
        let ends = format!("Same in: {other}.");
        said.lines().any(|line| line.starts_with(&begins) && line.ends_with(&ends))
    };
    match (leads("alpha", "beta"), leads("beta", "alpha")) {
        (true, false) => "alpha",
        (false, true) => "beta",
        (_, _) => panic!("{said}"),
    }
}

fn call(pipe: &mut Pipe, namespace: &str) {
    let call = json!({"namespace": namespace, "function": "get_current_time",
        "kwargs": {"timezone": "Europe/Berlin"}});
    let said = pipe.verb("call", &call);
    assert_ne!(said["isError"], Value::Bool(true), "{said}");
}

#[test]
fn searches_learn_from_use_when_asked_to_and_forget_when_told() {
    testkit::needs!(Tools);
    let home = twins("[learning]\nenabled = true\n");
    let mut pipe = open(&home);
    let before = first(&mut pipe);
    let other = if before == "alpha" { "beta" } else { "alpha" };
    call(&mut pipe, other);
    assert_eq!(first(&mut pipe), other);
    let name = format!("{other}/get_current_time");
    // Written beside the call, not by it.
    eventually("the habit is on disk", || {
        let shown = shell(&home, &["habits", "show", "--json"]);
        shown.json()["words"]["timezon"][&name].is_object()
    });
    let wrong = shell(&home, &["habits", "forget", "beta/nothing"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let forgot = shell(&home, &["habits", "forget", &name]);
    assert_eq!(forgot.code, 0, "{}", forgot.err);
    // The program that runs forgets too.
    assert_eq!(first(&mut pipe), before);
    call(&mut pipe, other);
    eventually("the habit is on disk again", || {
        shell(&home, &["habits", "show", "--json"]).json() != json!({"words": {}})
    });
    assert_eq!(shell(&home, &["habits", "forget", "--all"]).code, 0);
    assert_eq!(shell(&home, &["habits", "show", "--json"]).json(), json!({"words": {}}));
}

#[test]
fn nothing_is_learnt_unless_the_operator_wants_it() {
    testkit::needs!(Tools);
    let home = twins("");
    let mut pipe = open(&home);
    let before = first(&mut pipe);
    call(&mut pipe, if before == "alpha" { "beta" } else { "alpha" });
    assert_eq!(first(&mut pipe), before);
    assert_eq!(shell(&home, &["habits", "show", "--json"]).json(), json!({"words": {}}));
}

#[test]
fn skills_are_found_by_what_they_are_for() {
    let home = Home::with("[skills]\ndirectories = [\"skills\"]\n");
    let skill = |name: &str, words: &str| {
        let text = format!("---\nname: {name}\ndescription: {words}\n---\nDo it.\n");
        home.write(&format!("skills/office/{name}/SKILL.md"), &text);
    };
    skill("triage", "How to sort an inbox by urgency");
    skill("invoice", "How to write and send an invoice to a customer");
    let found = shell(&home, &["skill", "--query", "bill a client", "--text"]);
    assert_eq!(found.code, 0, "{}", found.err);
    let line = "gatelet skill office invoice";
    assert!(found.out.contains(line), "{}", found.out);
    let none = shell(&home, &["skill", "--query", "photosynthesis of ferns", "--text"]);
    assert!(none.out.contains("No skill matches"), "{}", none.out);
    let all = ["call", "gatelet.find", "query=sort my inbox by urgency", "kind=all", "--text"];
    let all = shell(&home, &all);
    assert!(all.out.contains("skill office / triage"), "{}", all.out);
    let functions = shell(&home, &["call", "gatelet.find", "query=sort my inbox", "--text"]);
    assert!(!functions.out.contains("triage"), "{}", functions.out);
}

#[test]
fn meanings_can_be_switched_off() {
    let found = |search: &str| {
        let home = Home::with(&format!("[skills]\ndirectories = [\"skills\"]\n{search}"));
        let text = "---\nname: guitar\ndescription: How to play songs on the guitar\n---\nDo it.\n";
        home.write("skills/music/guitar/SKILL.md", text);
        let said = shell(&home, &["skill", "--query", "melody chords", "--text"]);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out.contains("guitar")
    };
    assert!(found("") && found("[search]\nmeaning = true\n"));
    assert!(!found("[search]\nmeaning = false\n"), "words alone do not tell");
    let home = Home::with("[search]\nmeaning = \"no\"\n");
    let wrong = shell(&home, &["help"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains("meaning"), "{}", wrong.err);
}
