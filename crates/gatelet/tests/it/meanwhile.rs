//! Whatever takes long keeps nobody else waiting.

use serde_json::{Value, json};

use crate::kit::{Home, Pipe, eventually, program, text, upstream};

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
