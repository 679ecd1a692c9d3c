//! Who sees what, on every surface.

use serde_json::{Value, json};

use crate::kit::{Home, Served, eventually, npm_upstream, shell};

const RULES: &str = r#"
[[visibility.rule]]
callers = ["role:ops"]
show = ["*"]

[[visibility.rule]]
hide = ["units", "time.now", "everything", "skill:secret_ways"]
"#;

fn config(rules: &str) -> String {
    let skills = "[skills]\ndirectories = [\"skills\"]\n";
    let everything = npm_upstream("everything", "server-everything", &[]);
    format!("[builtin]\ntools = true\n{skills}{everything}{rules}")
}

/// A gate with a key for somebody who sees everything.
fn gate() -> (Home, Served, String) {
    let home = Home::with(&config(RULES));
    for name in ["secret_ways", "open_ways"] {
        let text = format!("---\nname: {name}\ndescription: The {name}.\n---\nGo.\n");
        home.write(&format!("skills/{name}/SKILL.md"), &text);
    }
    let key = shell(&home, &["key", "create", "ops", "--role", "ops"]).out.trim().to_owned();
    let served = Served::start(&home);
    eventually("everything is there", || {
        let help = served.told(Some(&key), "help", &json!({"namespace": "everything"}));
        help.contains("echo")
    });
    (home, served, key)
}

#[test]
fn a_key_is_in_the_groups_that_it_was_made_with() {
    let home = Home::with(
        r#"
        [builtin]
        tools = true
        [[visibility.rule]]
        callers = ["group:night"]
        show = ["*"]
        [[visibility.rule]]
        hide = ["units"]
        "#,
    );
    let key = |name: &str, group: &str| {
        shell(&home, &["key", "create", name, "--group", group]).out.trim().to_owned()
    };
    let (ann, bob) = (key("ann", "night"), key("bob", "day"));
    let served = Served::start(&home);
    let help = |key: &str| served.told(Some(key), "help", &json!({}));
    assert!(help(&ann).contains("**units**"));
    assert!(!help(&bob).contains("**units**"));
}

/// What a hidden name gets must be what an unknown one gets.
#[track_caller]
fn alike(hidden: &str, name: &str, unknown: &str, other: &str) {
    assert_eq!(hidden.replace(name, "X"), unknown.replace(other, "X"));
}

#[test]
fn what_a_caller_may_not_see_is_nowhere() {
    testkit::needs!(Tools);
    let (home, served, key) = gate();
    let ops = Some(key.as_str());
    nothing_hidden_is_in_call_help_and_skill(&served, ops);
    nothing_hidden_is_in_resources_prompts_and_completions(&served, ops);
    nothing_hidden_is_on_the_gateway_surface(&served, ops);
    nothing_hidden_is_listed_or_called_as_a_tool(&served, ops);

    // The manifest tells what anybody may know; new rules count at once.
    let manifest = served.path("/.well-known/cash-mcp.yaml").send("GET", &[], "");
    assert!(
        manifest.body.contains("time") && !manifest.body.contains("units"),
        "{}",
        manifest.body
    );
    home.write("gatelet.toml", &config(""));
    eventually("the new rules count", || {
        served.told(None, "help", &json!({})).contains("**units**")
    });
}

fn nothing_hidden_is_in_call_help_and_skill(served: &Served, ops: Option<&str>) {
    let verb = |who, verb: &str, arguments: Value| served.told(who, verb, &arguments);
    let root = verb(None, "help", json!({}));
    let named = |text: &str, name: &str| text.contains(&format!("**{name}**"));
    assert!(named(&root, "time") && !named(&root, "units"), "{root}");
    assert!(!named(&root, "everything"), "{root}");
    assert!(verb(ops, "help", json!({})).contains("**units**"));
    let time = verb(None, "help", json!({"namespace": "time"}));
    assert!(!time.contains("**now**"), "{time}");
    let found = verb(None, "help", json!({"kwargs": {"query": "convert kilometres to miles"}}));
    assert!(!found.contains("units"), "{found}");
    let status = verb(None, "call", json!({"namespace": "gatelet", "function": "status"}));
    assert!(!status.contains("- everything"), "{status}");
    let skills = verb(None, "skill", json!({}));
    assert!(skills.contains("open_ways") && !skills.contains("secret_ways"), "{skills}");
    assert!(verb(ops, "skill", json!({})).contains("secret_ways"));
    alike(
        &verb(None, "help", json!({"namespace": "units"})),
        "units",
        &verb(None, "help", json!({"namespace": "unitz"})),
        "unitz",
    );
    let call = |namespace: &str, function: &str| {
        verb(None, "call", json!({"namespace": namespace, "function": function}))
    };
    alike(&call("units", "convert"), "units", &call("unitz", "convert"), "unitz");
    alike(&call("time", "now"), "now", &call("time", "nov"), "nov");
    alike(&call("everything", "echo"), "everything", &call("everythinx", "echo"), "everythinx");
    let skill = |name: &str| verb(None, "skill", json!({"skillname": name}));
    alike(&skill("secret_ways"), "secret_ways", &skill("sacred_ways"), "sacred_ways");
    assert!(verb(ops, "call", json!({"namespace": "time", "function": "now"})).contains("UTC"));
}

fn nothing_hidden_is_in_resources_prompts_and_completions(served: &Served, ops: Option<&str>) {
    let names = |who, method: &str| served.asked(who, method, &json!({}))["result"].to_string();
    for (method, word) in [("resources/list", "demo://"), ("prompts/list", "simple-prompt")] {
        assert!(names(ops, method).contains(word), "{}", names(ops, method));
        assert!(!names(None, method).contains(word), "{}", names(None, method));
    }
    let templates = names(None, "resources/templates/list");
    assert!(!templates.contains("demo://"), "{templates}");
    let listed = served.asked(ops, "resources/list", &json!({}));
    let uri = listed["result"]["resources"].as_array().unwrap().iter();
    let uri = uri.filter_map(|one| one["uri"].as_str()).find(|uri| uri.starts_with("demo://"));
    let read = |who, uri: &str| served.asked(who, "resources/read", &json!({"uri": uri}));
    assert!(read(ops, uri.unwrap())["result"].is_object());
    alike(
        &read(None, uri.unwrap()).to_string(),
        uri.unwrap(),
        &read(None, "demo://nothing").to_string(),
        "demo://nothing",
    );
    let prompt = |name: &str| served.asked(None, "prompts/get", &json!({"name": name})).to_string();
    alike(&prompt("simple-prompt"), "simple-prompt", &prompt("simple-prompx"), "simple-prompx");
    let complete = |name: &str| {
        let params = json!({"ref": {"type": "ref/prompt", "name": name},
            "argument": {"name": "department", "value": "E"}});
        served.asked(None, "completion/complete", &params).to_string()
    };
    assert_eq!(complete("completable-prompt"), complete("no-such-prompt"));
}

fn nothing_hidden_is_on_the_gateway_surface(served: &Served, ops: Option<&str>) {
    let gateway = served.at("gateway");
    let browse = |who, arguments: Value| gateway.told(who, "tool_browse", &arguments);
    let all = browse(ops, json!({"path": "/"}));
    assert!(all.contains("units") && all.contains("everything"), "{all}");
    let some = browse(None, json!({"path": "/"}));
    assert!(!some.contains("units") && !some.contains("everything"), "{some}");
    let nearest = browse(None, json!({"path": "/everything/x"}));
    assert!(!nearest.contains("echo"), "{nearest}");
    let query = browse(None, json!({"query": "convert units of length"}));
    assert!(!query.contains("units:"), "{query}");
    let id = browse(ops, json!({"query": "convert units of length"}));
    let id = id.split_whitespace().find(|word| word.starts_with("units:")).unwrap().to_owned();
    let execute =
        |id: &str| gateway.told(None, "tool_execute", &json!({"tool_id": id, "args": {}}));
    let other = id.replace("units:", "unitz:");
    alike(&execute(&id), &id, &execute(&other), &other);
    let names = |who| {
        let listed = gateway.asked(who, "tools/list", &json!({}));
        listed["result"]["tools"].to_string()
    };
    let some = names(None);
    assert!(!some.contains("prompt_browse"), "{some}");
    assert!(names(ops).contains("prompt_browse"));
}

fn nothing_hidden_is_listed_or_called_as_a_tool(served: &Served, ops: Option<&str>) {
    let names = |surface: &str, who: Option<&str>| {
        let listed = served.at(surface).asked(who, "tools/list", &json!({}));
        listed["result"]["tools"].to_string()
    };
    for surface in ["direct", "proxy"] {
        let (all, some) = (names(surface, ops), names(surface, None));
        assert!(all.contains("units") && all.contains("everything"), "{surface}: {all}");
        assert!(!some.contains("units") && !some.contains("everything"), "{surface}: {some}");
        assert!(some.contains("time") && !some.contains("time_now"), "{surface}: {some}");
        assert!(
            !served
                .at(surface)
                .asked(None, "prompts/list", &json!({}))
                .to_string()
                .contains("simple-prompt")
        );
    }
    let direct = |name: &str| {
        served.at("direct").asked(None, "tools/call", &json!({"name": name})).to_string()
    };
    alike(&direct("time_now"), "time_now", &direct("time_nov"), "time_nov");
}

#[test]
fn a_rule_that_is_misspelt_is_told_at_its_place() {
    let home = Home::with("[[visibility.rule]]\ncallers = [\"ops\"]\nhide = [\"planet:x\"]\n");
    let checked = shell(&home, &["config", "check"]);
    assert_eq!(checked.code, 2);
    assert!(checked.err.contains("role:…") && checked.err.contains("skill:…"), "{}", checked.err);
}
