//! The HTTP edge: who is let in, what anybody may know, and how the whole
//! stands before the CaSH checklist.

use serde_json::{Value, json};

use crate::kit::{Answer, Home, Served, Site, eventually, shell};

/// A request of the revision without sessions, with these headers beside it.
fn list(served: &Served, headers: &[(&str, &str)]) -> Answer {
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/list",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    let fixed = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    served.post(&message, &[&fixed, headers].concat())
}

#[test]
fn a_guarded_gate_lets_key_holders_in_until_the_key_is_revoked() {
    let home = Home::with("[builtin]\ntools = true\n[auth]\nrequired = true\n");
    let served = Served::start(&home);
    let refused = list(&served, &[]);
    assert_eq!(refused.status, 401, "{}", refused.body);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));

    let key = shell(&home, &["key", "create", "ci"]).out.trim().to_owned();
    assert!(key.starts_with("gate_ci_"), "{key}");
    eventually("the key counts", || list(&served, &[("X-Api-Key", &key)]).status == 200);
    assert_eq!(list(&served, &[("Authorization", &format!("Bearer {key}"))]).status, 200);
    let wrong = list(&served, &[("X-Api-Key", "gate_ci_wrong")]);
    assert_eq!(wrong.status, 401);
    assert!(wrong.header("www-authenticate").unwrap().contains("invalid_token"));

    assert_eq!(shell(&home, &["key", "revoke", "ci"]).code, 0);
    eventually("the key is useless", || list(&served, &[("X-Api-Key", &key)]).status == 401);
}

#[test]
fn a_bad_credential_is_refused_even_where_nobody_needs_one() {
    let home = Home::new();
    let served = Served::start(&home);
    assert_eq!(list(&served, &[]).status, 200);
    assert_eq!(list(&served, &[("Authorization", "Bearer nonsense")]).status, 401);
}

#[test]
fn the_manifest_is_where_it_is_looked_for() {
    let home = Home::new();
    let served = Served::start(&home);
    let base = served.url.strip_suffix("/mcp").unwrap();
    let site = Site { url: format!("{base}/.well-known/cash-mcp.yaml") };
    let yaml = site.send("GET", &[("Accept", "*/*")], "");
    assert_eq!((yaml.status, yaml.header("content-type")), (200, Some("application/yaml")));
    let manifest = site.send("GET", &[("Accept", "application/json")], "");
    let manifest: Value = serde_json::from_str(&manifest.body).unwrap();
    assert_eq!(manifest["cash_version"], "0.1.1");
    let labels = manifest["namespaces"].as_array().unwrap().iter();
    let labels: Vec<&str> = labels.filter_map(|entry| entry["suggested"].as_str()).collect();
    assert!(labels.contains(&"time") && labels.contains(&"gatelet"), "{labels:?}");
}

#[test]
fn the_manifest_tells_what_an_anonymous_caller_sees_now() {
    let home = Home::with("[builtin]\ntools = true\n[skills]\ndirectories = [\"skills\"]\n");
    home.write("skills/hello/SKILL.md", "---\nname: hello\ndescription: Greets.\n---\nHello.\n");
    let served = Served::start(&home);
    let site = served.path("/.well-known/cash-mcp.yaml");
    let manifest = || -> Value {
        let page = site.send("GET", &[("Accept", "application/json")], "").body;
        serde_json::from_str(&page).unwrap()
    };
    let names = |list: &str, key: &str| -> Vec<String> {
        let manifest = manifest();
        let all = manifest[list].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    let namespaces = || names("namespaces", "suggested");
    assert!(names("skills", "name").contains(&"hello".to_owned()), "{}", manifest());
    let hide = |rest: &str| home.write("gatelet.toml", &format!("[builtin]\ntools = true\n{rest}"));
    hide(
        "[[visibility.rule]]\nhide = [\"time.*\", \"units\"]\n[[upstream]]\nlabel = \"new\"\ncommand = \"nowhere\"\n",
    );
    eventually("what is hidden is not named, and what is new is", || {
        let all = namespaces();
        let has = |label: &str| all.iter().any(|one| one == label);
        !has("time") && !has("units") && has("new") && has("json")
    });
    let endpoint = manifest()["endpoint"].as_str().unwrap().to_owned();
    assert_eq!(endpoint, served.url, "it is where it was");
    let read = served.asked(None, "resources/read", &json!({"uri": "cash://server"}));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), manifest());
    // One that shows nothing names itself: a manifest names at least one.
    hide("[visibility]\ndefault = \"hide\"\n");
    eventually("nothing else is named", || namespaces() == ["gatelet"]);
    home.write("m.yaml", &site.send("GET", &[], "").body);
    assert_eq!(shell(&home, &["manifest", "lint", "m.yaml"]).code, 0);
}

#[test]
fn keys_that_are_made_at_once_are_all_good() {
    let home = Home::new();
    let names: Vec<String> = (0..8).map(|n| format!("k{n}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let home = &home;
            scope.spawn(move || assert_eq!(shell(home, &["key", "create", name]).code, 0));
        }
    });
    let kept = shell(&home, &["key", "list"]).json();
    let mut kept: Vec<&str> =
        kept.as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
    kept.sort_unstable();
    assert_eq!(kept, names);
}

/// Judges a server, and shows what is not as it should be.
#[track_caller]
pub(crate) fn conforms(home: &Home, url: &str, role: &str) {
    let report = shell(home, &["conform", "--role", role, "--format", "json", url]).json();
    let bad: Vec<&Value> = report["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|outcome| outcome["verdict"] == "FAIL" || outcome["verdict"] == "WARN")
        .collect();
    assert!(bad.is_empty(), "as {role}: {bad:#?}");
    assert!(90 <= report["summary"]["pass"].as_u64().unwrap(), "{}", report["summary"]);
}

#[test]
fn the_gate_has_no_failure_and_no_warning_before_the_checklist() {
    let home = Home::new();
    let served = Served::start(&home);
    conforms(&home, &served.url, "server");
}

#[test]
fn a_gate_to_other_gates_has_none_either() {
    let (shop, clock) = (Home::new(), Home::new());
    let (shop, clock) = (Served::start(&shop), Served::start(&clock));
    let upstream =
        |label: &str, url: &str| format!("[[upstream]]\nlabel = {label:?}\nurl = {url:?}\n\n");
    let home = Home::with(&(upstream("shop", &shop.url) + &upstream("clock", &clock.url)));
    let served = Served::start(&home);
    eventually("both are there", || {
        let help = served.told(None, "help", &json!({"namespace": "shop"}));
        help.contains("time")
            && served.told(None, "help", &json!({"namespace": "clock"})).contains("time")
    });
    conforms(&home, &served.url, "static-aggregator");
}

#[test]
fn manifests_are_checked_signed_and_verified_from_the_shell() {
    let home = Home::new();
    let served = Served::start(&home);
    let manifest = served.path("/.well-known/cash-mcp.yaml").send("GET", &[], "");
    home.write("m.yaml", &manifest.body);
    assert_eq!(shell(&home, &["manifest", "lint", "m.yaml"]).code, 0);
    let shown = shell(&home, &["manifest", "show", "--json", "m.yaml"]).json();
    assert_eq!(shown["endpoint"], served.url.as_str(), "it says where it is");

    let pin = shell(&home, &["manifest", "keygen", "key"]).out.trim().to_owned();
    assert_eq!(shell(&home, &["manifest", "keygen", "key"]).code, 2, "never overwritten");
    home.write("signed.yaml", &shell(&home, &["manifest", "sign", "m.yaml", "--key", "key"]).out);
    assert_eq!(shell(&home, &["manifest", "verify", "signed.yaml", "--pin", &pin]).code, 0);
    let other = shell(&home, &["manifest", "keygen", "other"]).out.trim().to_owned();
    let foreign = shell(&home, &["manifest", "verify", "signed.yaml", "--pin", &other]);
    assert_eq!(foreign.code, 1);
    assert!(foreign.err.contains("not a pinned key"), "{}", foreign.err);
    let both = ["manifest", "verify", "signed.yaml", "--pin", &other, "--pin", &pin];
    assert_eq!(shell(&home, &both).code, 0, "while keys are changed, both are pinned");
    home.write("forged.yaml", &home.read("signed.yaml").replace("gatelet\"", "mallory\""));
    let forged = shell(&home, &["manifest", "verify", "forged.yaml", "--pin", &pin]);
    assert_eq!(forged.code, 1, "{}", forged.err);
    assert_eq!(shell(&home, &["manifest", "verify", "m.yaml", "--pin", &pin]).code, 1, "unsigned");

    home.write("bad.yaml", "cash_version: 1\nendpoint: 'stdio:rm'\nnamespaces: {}\n");
    let bad = shell(&home, &["manifest", "lint", "bad.yaml"]);
    assert_eq!(bad.code, 1);
    for field in ["cash_version", "last_updated", "publisher", "endpoint", "namespaces"] {
        assert!(bad.err.contains(field), "{field}: {}", bad.err);
    }
    home.write("bomb.yaml", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n");
    assert_eq!(shell(&home, &["manifest", "lint", "bomb.yaml"]).code, 1);
}

#[test]
fn a_gate_signs_its_manifest_with_the_key_it_is_given() {
    let home = Home::with("[builtin]\ntools = true\n[manifest]\nkey = \"key\"\n");
    let pin = shell(&home, &["manifest", "keygen", "key"]).out.trim().to_owned();
    let served = Served::start(&home);
    let manifest = served.path("/.well-known/cash-mcp.yaml").send("GET", &[], "");
    home.write("m.yaml", &manifest.body);
    assert_eq!(shell(&home, &["manifest", "verify", "m.yaml", "--pin", &pin]).code, 0);
}
