//! The HTTP edge: who is let in, what anybody may know, and how the whole
//! stands before the CaSH checklist.

use serde_json::{Value, json};

use crate::kit::{Answer, Home, Served, Site, shell};

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
    assert_eq!(list(&served, &[("X-Api-Key", &key)]).status, 200);
    assert_eq!(list(&served, &[("Authorization", &format!("Bearer {key}"))]).status, 200);
    let wrong = list(&served, &[("X-Api-Key", "gate_ci_wrong")]);
    assert_eq!(wrong.status, 401);
    assert!(wrong.header("www-authenticate").unwrap().contains("invalid_token"));

    assert_eq!(shell(&home, &["key", "revoke", "ci"]).code, 0);
    assert_eq!(list(&served, &[("X-Api-Key", &key)]).status, 401);
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
fn the_gate_has_no_failure_and_no_warning_before_the_checklist() {
    let home = Home::new();
    let served = Served::start(&home);
    let report = shell(&home, &["conform", "--format", "json", &served.url]).json();
    let bad: Vec<&Value> = report["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|outcome| outcome["verdict"] == "FAIL" || outcome["verdict"] == "WARN")
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(90 <= report["summary"]["pass"].as_u64().unwrap(), "{}", report["summary"]);
}
