//! No configuration, no network, no other software: what a newcomer has in the
//! first minute.

use serde_json::{Value, json};

use crate::kit::{Home, Pipe, Served, text};

#[test]
fn over_stdio_three_tools_lead_to_everything() {
    let home = Home::new();
    let mut pipe = Pipe::open(&home);
    assert_eq!(pipe.welcome["protocolVersion"], "2025-11-25");
    assert_eq!(pipe.welcome["serverInfo"]["name"], "gatelet");
    let tools = pipe.request("tools/list", &json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["call", "help", "skill"]);

    let help = text(&pipe.verb("help", &json!({})));
    for namespace in ["json", "memory", "text", "time", "units"] {
        assert!(help.contains(namespace), "no {namespace} in: {help}");
    }
    let found = text(&pipe.verb("help", &json!({"kwargs": {"query": "convert miles to km"}})));
    assert!(found.contains("units"), "{found}");
    let leaf = text(&pipe.verb("help", &json!({"namespace": "time", "function": "convert"})));
    assert!(leaf.contains("Europe/Berlin") || leaf.contains("IANA"), "{leaf}");

    let time = json!({"time": "2026-01-15T09:00", "from": "Europe/Berlin", "to": "Asia/Tokyo"});
    assert!(pipe.call("time.convert", &time).contains("2026-01-15T17:00:00+09:00"));
    let query = json!({"json": {"a": [1, 2, 3]}, "filter": ".a | add"});
    assert_eq!(pipe.call("json.query", &query).trim(), "6");

    let skills = text(&pipe.verb("skill", &json!({})));
    assert!(skills.contains("first_steps"), "{skills}");
    let steps = text(&pipe.verb("skill", &json!({"skillname": "first_steps"})));
    assert!(steps.contains("memory.write"), "{steps}");
    assert!(pipe.close().success());
}

#[test]
fn a_jq_filter_that_never_ends_is_ended() {
    let home = Home::new();
    let mut pipe = Pipe::open(&home);
    let endless = json!({"json": 1, "filter": "def f: f; f"});
    let arguments = json!({"namespace": "json", "function": "query", "kwargs": endless});
    let result = pipe.verb("call", &arguments);
    assert_eq!(result["isError"], true);
    let told = text(&result);
    assert!(told.contains("too many steps") || told.contains("took too long"), "{result}");
    let large = json!({"json": 1, "filter": "[range(1e9)]"});
    let arguments = json!({"namespace": "json", "function": "query", "kwargs": large});
    assert_eq!(pipe.verb("call", &arguments)["isError"], true);
    assert_eq!(pipe.call("json.query", &json!({"json": 1, "filter": "env"})).trim(), "{}");
}

#[test]
fn over_http_old_and_new_clients_are_served_side_by_side() {
    let home = Home::new();
    let served = Served::start(&home);
    for client in ["Claude Code", "Claude Desktop", "Cursor", "VS Code"] {
        assert!(served.greeting.contains(client), "{}", served.greeting);
    }

    let modern = served.call(
        "call",
        &json!({
            "namespace": "units", "function": "convert",
            "kwargs": {"value": 1, "from": "mi", "to": "km"},
        }),
    );
    assert!(text(&modern).contains("1.609344"), "{modern}");

    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                   "clientInfo": {"name": "old", "version": "1"}},
    });
    let opened = served.post(&initialize, &[]);
    assert_eq!(opened.message()["result"]["protocolVersion"], "2025-06-18");
    let session = opened.header("Mcp-Session-Id").expect("a session").to_owned();
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(served.post(&initialized, &headers).status, 202);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let tools = served.post(&list, &headers).message();
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(3), "{tools}");

    let ended = served.send("DELETE", &headers, "");
    assert!(matches!(ended.status, 200 | 204), "{}", ended.status);
    assert_eq!(served.post(&list, &headers).status, 404);
    assert!(served.terminate().success());
}

#[test]
fn every_surface_is_at_its_path() {
    let home = Home::new();
    let served = Served::start(&home);
    let tools = |surface: &str| served.at(surface).tools();
    assert_eq!(tools("cash"), ["call", "help", "skill"]);
    assert!(tools("gateway").iter().any(|name| name == "tool_browse"), "{:?}", tools("gateway"));
    assert!(tools("proxy").iter().any(|name| name == "tool_hydrate"), "{:?}", tools("proxy"));
    assert!(20 <= tools("direct").len(), "{:?}", tools("direct"));
    let lost = served.at("nowhere").send("GET", &[], "");
    assert_eq!(lost.status, 404);
    assert!(lost.body.contains("/mcp/direct"), "{}", lost.body);
}

#[test]
fn a_page_in_a_browser_cannot_talk_to_the_gate() {
    let home = Home::new();
    let served = Served::start(&home);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let rebound = served.post(&list, &[("Host", "evil.example:4747")]);
    assert_eq!(rebound.status, 403, "{}", rebound.body);
    let foreign = served.post(&list, &[("Origin", "https://evil.example")]);
    assert_eq!(foreign.status, 403, "{}", foreign.body);
}

#[test]
fn a_listed_page_and_our_own_address_are_let_in_however_they_are_written() {
    let home = Home::with(
        "[auth]\norigins = [\"https://APP.example:443/\"]\npublic_url = \"https://gate.example\"\n",
    );
    let served = Served::start(&home);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let status = |header: (&str, &str)| served.post(&list, &[header]).status;
    let expected = status(("X-Nothing", "x"));
    assert_eq!(status(("Origin", "https://app.example")), expected);
    assert_eq!(status(("Host", "gate.example")), expected);
    for strange in ["http://app.example", "https://app.example:81", "https://evil.example"] {
        assert_eq!(status(("Origin", strange)), 403, "{strange}");
    }
}

#[test]
fn a_long_answer_is_kept_and_read_in_parts() {
    let home = Home::new();
    let mut pipe = Pipe::open(&home);
    let numbers: Vec<u32> = (0..10_000).collect();
    let call = json!({"namespace": "json", "function": "query",
                      "kwargs": {"json": numbers, "filter": "."}});
    let gated = pipe.verb("call", &call);
    let summary = text(&gated);
    assert_ne!(gated["isError"], true);
    assert!(summary.contains("sizelimit") && summary.len() < 2_000, "{summary}");
    let mut whole = call;
    whole["sizelimit"] = json!(100_000);
    let whole: Vec<u32> = serde_json::from_str(&text(&pipe.verb("call", &whole))).unwrap();
    assert_eq!(whole, numbers);
}

#[test]
fn a_wrong_call_is_put_right_in_one_turn() {
    let home = Home::new();
    let mut pipe = Pipe::open(&home);
    let mut wrong = |arguments: Value| {
        let result = pipe.verb("call", &arguments);
        assert_eq!(result["isError"], true, "{result}");
        text(&result)
    };
    let unknown = wrong(json!({"namespace": "units", "function": "convrt"}));
    assert!(unknown.contains("convert"), "{unknown}");
    let bad = wrong(json!({"namespace": "units", "function": "convert", "kwargs": {"value": "x"}}));
    for argument in ["value", "from", "to"] {
        assert!(bad.contains(argument), "no {argument} in: {bad}");
    }
}
