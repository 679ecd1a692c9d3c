//! Whatever takes long keeps nobody else waiting.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::kit::{Home, Pipe, Served, eventually, program, signal, text, upstream};

/// What is kept of a call that answers too much to go out.
fn keep(pipe: &mut Pipe, filter: &str) -> String {
    let kwargs = json!({"json": null, "filter": filter});
    let long = pipe.call("json.query", &kwargs);
    let (_, handle) = long.split_once("kept as `").unwrap_or_else(|| panic!("{long}"));
    handle.split('`').next().unwrap().to_owned()
}

fn view(handle: &str, selector: Value) -> Value {
    let mut kwargs = selector;
    kwargs["handle"] = json!(handle);
    let arguments = json!({"namespace": "gatelet", "function": "view", "kwargs": kwargs});
    json!({"name": "call", "arguments": arguments})
}

#[test]
fn a_ping_overtakes_a_filter_and_a_pattern_that_take_long() {
    let mut pipe = Pipe::open(&Home::with("[builtin]\ntools = true\n"));
    let rows = keep(&mut pipe, "[range(20000)]");
    let words = keep(&mut pipe, "\"ab\" * 20000");
    for slow in [
        view(&rows, json!({"jq": "[range(300000)] | map(. + 1) | length"})),
        view(&words, json!({"grep": "[ab]*a[ab]{500}c"})),
    ] {
        pipe.overtaken("tools/call", &slow, || {});
    }
}

#[test]
fn a_ping_overtakes_the_first_call_of_a_tool_with_an_enormous_schema() {
    let schema = r#"{"type": "object", "properties": {f"p{n}": {"type": "string", "pattern": f"^{n}"} for n in range(10000)}}"#;
    let server = program(r#"say(id, {"content": [{"type": "text", "text": "acted"}]})"#)
        .replace(r#""inputSchema": {"type": "object"}"#, &format!("\"inputSchema\": {schema}"));
    let home = Home::new();
    home.write("server.py", &server);
    let script = home.path().join("server.py");
    let config = upstream("wide", "python3".as_ref(), &[script.to_str().unwrap()]);
    home.write("gatelet.toml", &config);
    let mut pipe = Pipe::open(&home);
    let arguments = json!({"namespace": "wide", "function": "act", "kwargs": {"p1": "1"}});
    let call = json!({"name": "call", "arguments": arguments});
    let answer = pipe.overtaken("tools/call", &call, || {});
    assert_eq!(text(&answer["result"]), "acted");
}

#[test]
fn a_ping_overtakes_a_long_answer_that_is_looked_through_for_secrets() {
    let home = Home::new();
    let (script, mark) = (home.path().join("server.py"), home.path().join("written"));
    let deed = format!(
        "say(id, {{\"content\": [{{\"type\": \"text\", \"text\": \"-----BEGIN PRIVATE KEY-----\\\\\\\" \" * 60000}}]}}); \
         open({:?}, \"w\")",
        mark.to_str().unwrap()
    );
    home.write("server.py", &program(&deed));
    let config = upstream("long", "python3".as_ref(), &[script.to_str().unwrap()]);
    home.write("gatelet.toml", &config);
    let mut pipe = Pipe::open(&home);
    let arguments = json!({"namespace": "long", "function": "act"});
    let call = json!({"name": "call", "arguments": arguments});
    let written = || eventually("the answer is written", || mark.exists());
    let answer = pipe.overtaken("tools/call", &call, written);
    let told = text(&answer["result"]);
    assert!(told.contains("**Gated:**") && !told.contains("PRIVATE"), "{told}");
}

/// An upstream `long` that does something when it is called, and makes a file when that is done.
fn marking(home: &Home, deed: &str) -> PathBuf {
    let mark = home.path().join("written");
    home.write("server.py", &program(&format!("{deed}; open({:?}, \"w\")", mark.display())));
    let script = home.path().join("server.py");
    let config = upstream("long", "python3".as_ref(), &[script.to_str().unwrap()]);
    home.write("gatelet.toml", &config);
    mark
}

/// An answer of 60 MB.
const ENORMOUS: &str =
    "say(id, {\"content\": [{\"type\": \"text\", \"text\": \"words of it \" * 5000000}]})";

#[test]
fn a_ping_overtakes_an_answer_of_sixty_megabytes() {
    let home = Home::new();
    let mark = marking(&home, ENORMOUS);
    let mut pipe = Pipe::open(&home);
    let call = json!({"name": "call", "arguments": {"namespace": "long", "function": "act"}});
    let written = || eventually("the answer is written", || mark.exists());
    let answer = pipe.overtaken("tools/call", &call, written);
    assert!(text(&answer["result"]).contains("kept as `"), "{answer}");
}

#[test]
fn other_callers_overtake_an_answer_of_sixty_megabytes_over_http() {
    let home = Home::new();
    let mark = marking(&home, ENORMOUS);
    let served = Served::start(&home);
    // Its tools are known, so that help waits for nothing else.
    served.told(None, "help", &json!({"namespace": "long"}));
    let (site, has_come) = (served.path("/mcp"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let told = site.told(None, "call", &json!({"namespace": "long", "function": "act"}));
            has_come.store(true, Ordering::SeqCst);
            told
        });
        eventually("the answer is written", || mark.exists());
        let health = served.path("/health").send("GET", &[], "");
        let help = served.told(None, "help", &json!({"namespace": "long"}));
        let was_first = !has_come.load(Ordering::SeqCst);
        assert!(was_first, "it came before health and help");
        assert!(health.status == 200 && help.contains("act"), "{help}");
        let told = slow.join().unwrap();
        assert!(told.contains("kept as `"), "{}", &told[..told.len().min(2_000)]);
    });
}

#[test]
fn a_call_that_shutdown_cuts_off_gets_an_error_on_a_pipe() {
    let home = Home::new();
    let mark = marking(&home, "open(os.environ[\"PWD\"] + \"/began\", \"w\"); time.sleep(600)");
    let began = home.path().join("began");
    let config = home.read("gatelet.toml");
    home.write(
        "gatelet.toml",
        &format!("{config}\ncwd = {:?}\nenv = {{ PWD = {0:?} }}\n", home.path()),
    );
    let mut pipe = Pipe::open(&home);
    let call = json!({"name": "call", "arguments": {"namespace": "long", "function": "act"}});
    pipe.send(&json!({"jsonrpc": "2.0", "id": "cut", "method": "tools/call", "params": call}));
    eventually("the call is under way", || began.exists());
    signal(pipe.id(), "TERM");
    let answers = pipe.rest();
    let answer = answers.iter().find(|message| message["id"] == "cut");
    let answer = answer.unwrap_or_else(|| panic!("it ended without an answer: {answers:?}"));
    let is_error = answer["error"].is_object() || answer["result"]["isError"] == true;
    assert!(is_error && answer.to_string().contains("may have run"), "{answer}");
    assert!(pipe.wait().success() && !mark.exists());
}
