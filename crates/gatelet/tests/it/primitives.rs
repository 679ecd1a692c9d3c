//! Resources and prompts of a real server, through the meta-tools: the same
//! ids, gate, limits and errors as calls.

use serde_json::{Value, json};

use crate::kit::{Home, Served, Site, eventually, npm_upstream, text};

fn gate(controls: &str) -> (Home, Served) {
    let everything = npm_upstream("everything", "server-everything", &[]);
    let home = Home::with(&format!("{everything}{controls}"));
    let served = Served::start(&home);
    let gateway = served.at("gateway");
    eventually("the server's prompts are there", || {
        text(&gateway.call("prompt_browse", &json!({"path": "/"}))).contains("everything")
    });
    (home, served)
}

/// The ids that a browse answers with.
fn ids(answer: &Value) -> Vec<String> {
    let said = text(answer);
    let lines = said.lines().filter(|line| !line.starts_with(' '));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn error(answer: &Value) -> Value {
    assert_eq!(answer["isError"], true, "{answer}");
    serde_json::from_str(&text(answer)).unwrap_or_else(|_| panic!("no error in {answer}"))
}

/// Everything that can be reached from `/` by walking.
fn walk(site: &Site, tool: &str, prefix: &str) -> Vec<String> {
    let (mut found, mut paths) = (Vec::new(), vec!["/".to_owned()]);
    while let Some(path) = paths.pop() {
        for id in ids(&site.call(tool, &json!({"path": path}))) {
            if id.starts_with(prefix) { found.push(id) } else { paths.push(id) }
        }
    }
    found
}

#[test]
fn what_a_real_server_has_is_found_by_query_and_by_path_and_read() {
    testkit::needs!(Tools);
    let (_home, served) = gate("");
    let site = served.at("gateway");
    let names = site.tools();
    for name in ["resource_browse", "resource_read", "prompt_browse", "prompt_get"] {
        assert!(names.iter().any(|listed| listed == name), "{names:?}");
    }
    let resources = walk(&site, "resource_browse", "resource::");
    let prompts = walk(&site, "prompt_browse", "prompt::");
    assert!(4 <= resources.len() && 3 <= prompts.len(), "{resources:?} {prompts:?}");

    // By query, under the same ids; cut ids are whole again when they are used.
    let query = json!({"query": "architecture document", "top_k": 3});
    let found = ids(&site.call("resource_browse", &query));
    let id = found.iter().find(|id| id.contains("architecture")).unwrap();
    let read = site.call("resource_read", &json!({"resource_id": id}));
    assert_ne!(read["isError"], true, "{read}");
    assert!(text(&read).to_lowercase().contains("architecture"), "{read}");
    let body = id.split('#').next().unwrap();
    let repaired = site.call("resource_read", &json!({"resource_id": body}));
    assert_eq!(text(&repaired), text(&read));

    // A template is filled in by URI.
    let uri = json!({"uri": "demo://resource/dynamic/text/7"});
    assert!(text(&site.call("resource_read", &uri)).contains('7'));

    // A prompt is the prompt, not its description.
    let simple = prompts.iter().find(|id| id.contains("simple")).unwrap();
    let got = text(&site.call("prompt_get", &json!({"prompt_id": simple})));
    assert!(got.contains("simple prompt"), "{got}");
    let city = prompts.iter().find(|id| id.contains("args")).unwrap();
    let got = site.call("prompt_get", &json!({"prompt_id": city, "args": {"city": "Ulm"}}));
    assert!(text(&got).contains("Ulm"), "{got}");
}

#[test]
fn what_is_wrong_with_a_question_about_them_is_said_in_one_shape() {
    testkit::needs!(Tools);
    let (_home, served) = gate("");
    let site = served.at("gateway");
    let code = |tool: &str, arguments: Value| {
        let error = error(&site.call(tool, &arguments));
        assert_eq!(error["retryable"], false, "{error}");
        error["error"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        code("resource_read", json!({"resource_id": "resource::no:such#00000000"})),
        "RESOURCE_NOT_FOUND"
    );
    assert_eq!(code("resource_read", json!({"uri": "nobody://has/this"})), "RESOURCE_NOT_FOUND");
    assert_eq!(code("resource_read", json!({})), "ARGS_INVALID");
    assert_eq!(
        code("prompt_get", json!({"prompt_id": "prompt::no:such#00000000"})),
        "PROMPT_NOT_FOUND"
    );
    assert_eq!(code("prompt_get", json!({"prompt_id": 7})), "ARGS_INVALID");
    for tool in ["resource_browse", "prompt_browse"] {
        assert_eq!(code(tool, json!({})), "ARGS_INVALID");
        assert_eq!(code(tool, json!({"query": "x", "path": "/"})), "ARGS_INVALID");
        assert_eq!(code(tool, json!({"path": "no-slash"})), "PATH_INVALID");
        assert_eq!(code(tool, json!({"path": "/nowhere"})), "PATH_NOT_FOUND");
        assert_eq!(code(tool, json!({"query": "x", "top_k": 500})), "ARGS_INVALID");
    }
    // A prompt whose argument is missing.
    let prompts = walk(&site, "prompt_browse", "prompt::");
    let city = prompts.iter().find(|id| id.contains("args")).unwrap();
    assert_eq!(code("prompt_get", json!({"prompt_id": city})), "ARGS_INVALID");
}

#[test]
fn the_gate_the_rules_and_the_limits_hold_for_them_too() {
    testkit::needs!(Tools);
    let controls = "[gate]\nlimit = 100\n\n\
        [[controls.rule]]\naction = \"deny\"\nmeta_tool = \"prompt_get\"\nreason = \"no prompts\"\n\n\
        [[controls.rate]]\nmeta_tool = \"resource_read\"\nper_session = 2\n";
    let (_home, served) = gate(controls);
    let site = served.at("gateway");
    let prompts = walk(&site, "prompt_browse", "prompt::");
    let simple = prompts.iter().find(|id| id.contains("simple")).unwrap();
    let refused = error(&site.call("prompt_get", &json!({"prompt_id": simple})));
    assert_eq!(refused["error"], "POLICY_DENIED", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("no prompts"), "{refused}");

    let resources = walk(&site, "resource_browse", "resource::");
    let long = resources.iter().find(|id| id.contains("architecture")).unwrap();
    let kept = site.call("resource_read", &json!({"resource_id": long}));
    let envelope: Value = serde_json::from_str(&text(&kept)).unwrap();
    assert_eq!(envelope["status"], "ok", "{envelope}");
    assert!(envelope["artifacts"][0]["handle"].is_string(), "{envelope}");
    let limited = (0..3).find_map(|_| {
        let answer = site.call("resource_read", &json!({"resource_id": long}));
        (answer["isError"] == true).then(|| error(&answer))
    });
    let limited = limited.expect("the limit is kept");
    assert_eq!(limited["error"], "RATE_LIMITED", "{limited}");
}
