//! A small server that keeps every rule, and what happens when it breaks one.
//!
//! Every check must be able to fail: for each there is a spoiled copy of the
//! good server that makes it fail (or warn), and the good server itself has
//! neither failures nor warnings.

#![expect(clippy::unwrap_used, reason = "a fixture of the tests below")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a fixture looks at few variants")]

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use conform::survey::Page;
use conform::{Options, Report, Role, Subject, Trial, Verdict, Web, survey};
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use tool::{Ask, Context, Event, Failure, Json, Listing, Provider, Reply, RpcError, Server, Tool};

/// What is spoiled.
#[derive(Clone, Copy)]
enum Spoil {
    Nothing,
    /// The tool definitions.
    Tools(fn(&mut Vec<Value>)),
    /// What a tool answers: name, arguments, result.
    Reply(fn(&str, &Value, &mut Value)),
    /// What the web answers.
    Web(fn(&mut Page)),
    /// One line of the manifest, replaced in its YAML.
    Line(&'static str, &'static str),
    /// The identity resource; `None` makes it unreadable.
    Identity(fn(&Value) -> Option<Value>),
}

struct Shop(Spoil);

const MANIFEST: &str = "\
cash_version: \"0.1.1\"
last_updated: \"2026-11-15\"
publisher: \"Shop\"
copyright: \"2026 Shop\"
endpoint: \"https://shop.example/mcp\"
cache_ttl: 3600
authentication:
  scheme: bearer
  docs_url: \"https://shop.example/auth\"
namespaces:
  - suggested: orders
    description: \"Create and manage customer orders.\"
skills:
  - name: ordercheck
    description: \"Order after a stock check.\"
";

fn definitions() -> Vec<Value> {
    let tool = |name: &str, properties: Value, required: Value| {
        json!({
            "name": name,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
            "annotations": {"readOnlyHint": name != "call"},
        })
    };
    let (text, object) = (json!({"type": "string"}), json!({"type": "object"}));
    vec![
        tool(
            "call",
            json!({
                "namespace": text, "function": text, "kwargs": object,
                "sizelimit": {"type": "integer"},
            }),
            json!(["function"]),
        ),
        tool("help", json!({"namespace": text, "function": text, "kwargs": object}), json!([])),
        tool("skill", json!({"namespace": text, "skillname": text, "kwargs": object}), json!([])),
    ]
}

fn fold(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.chars().filter(|c| *c != '_').collect::<String>().to_ascii_lowercase()
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

fn error(message: impl Into<String>) -> Value {
    let mut result = text(message);
    result["isError"] = json!(true);
    result
}

fn help(arguments: &Value) -> Value {
    let (namespace, function) = (fold(&arguments["namespace"]), fold(&arguments["function"]));
    if arguments["kwargs"]["format"] == "json" && namespace.is_empty() {
        return text(r#"{"namespaces":[{"name":"orders"},{"name":"stock"}]}"#);
    }
    let full = if arguments["kwargs"]["params"] == "full" {
        "| page | integer | no | Which page. |\n"
    } else {
        "\nMore with `params=\"full\"`.\n"
    };
    match (namespace.as_str(), function.as_str()) {
        ("", "") => text(
            "# Available namespaces\n\n- **orders** — Create and manage customer orders.\n- **stock** — Query stock levels.\n\nArguments: `format` (json|markdown), `params` (full).\n",
        ),
        ("orders", "") => text(
            "# orders\n\n## Sub-namespaces\n\n- **retail** — Retail orders.\n\n## Functions\n\n- **list** — List orders.\n- **get_order** — Show one order.\n",
        ),
        ("orders.retail", "") => {
            text("# orders.retail\n\n## Functions\n\n- **count** — Count them.\n")
        }
        ("stock", "") => text("# stock\n\n## Functions\n\n- **check_level** — Check a level.\n"),
        ("orders", "list") => text(format!(
            "# orders.list\n\nLists orders.\n\n| Name | Type | Required | Description |\n|---|---|---|---|\n| since_day | string | no | From when. |\n{full}"
        )),
        ("orders", "getorder") | ("stock", "checklevel") => text(format!(
            "# page\n\nShows one.\n\n| Name | Type | Required | Description |\n|---|---|---|---|\n| item_id | string | yes | Which. |\n{full}"
        )),
        ("orders.retail", "count") => text("# orders.retail.count\n\nCounts retail orders.\n"),
        _ => error(format!("No `{namespace}` `{function}`. Use `help()`.")),
    }
}

fn call(arguments: &Value) -> Value {
    let (namespace, function) = (fold(&arguments["namespace"]), fold(&arguments["function"]));
    let limit = match &arguments["sizelimit"] {
        Value::Null => 10_000,
        limit => match limit.as_u64() {
            Some(limit) if 0 < limit => usize::try_from(limit).unwrap(),
            _ => return error("`sizelimit` must be a positive integer"),
        },
    };
    let since = arguments["kwargs"].as_object().into_iter().flatten();
    let since = since.map(|(key, value)| (fold(&json!(key)), value.to_string()));
    let since: Vec<String> = since.map(|(key, value)| format!("{key}={value}")).collect();
    let answer = match (namespace.as_str(), function.as_str()) {
        ("orders", "list") => {
            format!("42 orders since {}, the first of them from May", since.join(","))
        }
        ("orders.retail", "count") => "x".repeat(12_000),
        ("orders", "getorder") | ("stock", "checklevel") if since.is_empty() => {
            return error("missing required argument `item_id`");
        }
        ("orders" | "stock" | "orders.retail" | "", _) => {
            return error(format!(
                "No function `{function}` in `{namespace}`. Use `help(namespace=\"{namespace}\")`."
            ));
        }
        _ => return error(format!("No namespace `{namespace}`. Use `help()`.")),
    };
    let n = answer.chars().count();
    if limit < n {
        return text(format!(
            "**Gated:** {n} characters.\n- Narrow it with a filter\n- Pass `sizelimit={}`",
            n + n / 10 + 2
        ));
    }
    text(answer)
}

fn skill(arguments: &Value) -> Value {
    match fold(&arguments["skillname"]).as_str() {
        "" => text("# Skills\n\n## Functions\n\n- **ordercheck** — Order after a stock check.\n"),
        "ordercheck" => text(
            "# ordercheck\n\n1. Use `call(namespace=\"stock\", function=\"check_level\")`.\n2. See `skill(skillname=\"ordercheck\")`.\n",
        ),
        other => error(format!("No skill `{other}`. Use `skill()` to list them.")),
    }
}

#[async_trait]
impl Provider for Shop {
    fn listing(&self) -> Arc<Listing> {
        let mut definitions = definitions();
        if let Spoil::Tools(spoil) = self.0 {
            spoil(&mut definitions);
        }
        let tools = definitions.into_iter().map(|raw| Tool::parse(Json::from(raw)).unwrap());
        let server = Server::new("shop", "1", json!({"tools": {}, "resources": {}}).into());
        Arc::new(Listing { server, tools: tools.collect(), ..Listing::default() })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        futures::stream::pending().boxed()
    }

    async fn ask(&self, ask: Ask, _: &Context) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(question) => {
                let arguments = question.arguments.unwrap().to_value().unwrap();
                let mut result = match question.name.as_str() {
                    "call" => call(&arguments),
                    "help" => help(&arguments),
                    _ => skill(&arguments),
                };
                if let Spoil::Reply(spoil) = self.0 {
                    spoil(&question.name, &arguments, &mut result);
                }
                Ok(Reply::Result(result.into()))
            }
            _ => {
                let manifest: Value = serde_saphyr::from_str(MANIFEST).unwrap();
                let manifest = match self.0 {
                    Spoil::Identity(spoil) => spoil(&manifest),
                    _ => Some(manifest),
                };
                let Some(manifest) = manifest else {
                    return Ok(Reply::Error(RpcError::new(-32002, "no such resource")));
                };
                let contents = json!([{
                    "uri": "cash://server", "mimeType": manifest.get("type").cloned()
                        .unwrap_or(json!("application/json")),
                    "text": manifest.to_string(),
                }]);
                Ok(Reply::Result(json!({"contents": contents}).into()))
            }
        }
    }
}

#[async_trait]
impl Web for Shop {
    async fn get(&self, _: &str, accept: &str) -> Result<Page, String> {
        let manifest = match self.0 {
            Spoil::Line(line, other) => MANIFEST.replace(line, other),
            _ => MANIFEST.to_owned(),
        };
        let json = accept.contains("json");
        let body = if json {
            serde_saphyr::from_str::<Value>(&manifest).unwrap_or_default().to_string()
        } else {
            manifest
        };
        let mut page = Page {
            status: 200,
            content_type: if json { "application/json" } else { "application/yaml" }.into(),
            vary: "Accept".into(),
            body,
        };
        if let Spoil::Web(spoil) = self.0 {
            spoil(&mut page);
        }
        Ok(page)
    }
}

async fn report(spoil: Spoil) -> Report {
    let subject = Subject { provider: Arc::new(Shop(spoil)), web: Some(Arc::new(Shop(spoil))) };
    let trial = |namespace: &str, function: &str, kwargs: Value| {
        Some(Trial { namespace: namespace.into(), function: function.into(), kwargs })
    };
    let mut options = Options { role: Role::StaticAggregator, ..Options::default() };
    options.trial = trial("orders", "list", json!({"since_day": "2026-05-01"}));
    options.large = trial("orders.retail", "count", json!({}));
    Report::new(&survey(&subject, &options).await)
}

fn bad(report: &Report) -> BTreeSet<&str> {
    let bad = |verdict| matches!(verdict, Verdict::Fail | Verdict::Warn);
    report.outcomes.iter().filter(|o| bad(o.verdict)).map(|o| o.id.as_str()).collect()
}

#[tokio::test]
async fn a_server_that_keeps_every_rule_has_no_failure_and_no_warning() {
    let report = report(Spoil::Nothing).await;
    assert!(bad(&report).is_empty(), "{}", report.text());
    assert!(report.conforms());
    assert!(80 <= report.count(Verdict::Pass), "{}", report.summary());
}

#[tokio::test]
async fn a_server_without_the_three_tools_has_no_merit_of_their_rules() {
    let report = report(Spoil::Tools(Vec::clear)).await;
    for id in ["C022", "C031", "C034", "C039", "C106"] {
        let outcome = report.outcomes.iter().find(|outcome| outcome.id == id).unwrap();
        assert_ne!(outcome.verdict, Verdict::Pass, "{id}: {}", outcome.evidence);
    }
}

#[tokio::test]
async fn without_a_named_trial_one_is_found() {
    let subject = Subject { provider: Arc::new(Shop(Spoil::Nothing)), web: None };
    let transcript = survey(&subject, &Options::default()).await;
    assert_eq!(transcript.tried.unwrap().name, "orders.list");
}

#[tokio::test]
async fn a_named_call_that_shows_nothing_is_not_blamed_on_the_server() {
    let subject = Subject { provider: Arc::new(Shop(Spoil::Nothing)), web: None };
    let named = |function: &str| {
        Some(Trial { namespace: "orders".into(), function: function.into(), kwargs: json!({}) })
    };
    let options = Options { trial: named("nope"), large: named("list"), ..Options::default() };
    let transcript = survey(&subject, &options).await;
    let [trial, large] = &transcript.unusable[..] else { panic!("{:?}", transcript.unusable) };
    assert!(trial.starts_with("--trial orders.nope: `help` knows no such function"), "{trial}");
    assert!(large.starts_with("--large orders.list: the answer has only"), "{large}");
    assert_eq!(transcript.tried.as_ref().unwrap().name, "orders.list", "another is found");
    let lacking = Options { trial: named("get_order"), ..Options::default() };
    assert_eq!(
        survey(&subject, &lacking).await.unusable,
        ["--trial orders.get_order: it needs `item_id`"]
    );
    let report = Report::new(&transcript);
    assert_eq!(report.count(Verdict::Fail), 0, "{}", report.text());
}

/// Replaces in the first text block.
fn replace(result: &mut Value, from: &str, to: &str) {
    let text = result["content"][0]["text"].as_str().unwrap_or_default().replace(from, to);
    result["content"][0]["text"] = json!(text);
}

fn is_help(name: &str, arguments: &Value, namespace: &str) -> bool {
    name == "help" && fold(&arguments["namespace"]) == namespace && arguments["function"].is_null()
}

/// Each breach, and the items that must notice it.
const BREACHES: &[(&[&str], Spoil)] = &[
    (
        &["C001", "C003", "C074"],
        Spoil::Tools(|tools| {
            tools.push(json!({"name": "admin", "inputSchema": {"type": "object"}}));
        }),
    ),
    (&["C002", "C067", "C040"], Spoil::Tools(|tools| drop(tools.pop()))),
    (&["C004"], Spoil::Tools(|tools| tools[0]["inputSchema"]["required"] = json!([]))),
    (
        &["C007"],
        Spoil::Tools(|tools| {
            tools.push(json!({"name": "get_order", "inputSchema": {"type": "object"}}));
        }),
    ),
    (
        &["C016"],
        Spoil::Tools(|tools| {
            tools[1]["inputSchema"]["additionalProperties"] = json!(false);
        }),
    ),
    (&["C048"], Spoil::Tools(|tools| tools[2]["annotations"] = json!({}))),
    (
        &["C005"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["namespace"] == "" {
                *result = error("no namespace");
            }
        }),
    ),
    (
        &["C006"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["kwargs"].is_null() {
                *result = error("kwargs missing");
            }
        }),
    ),
    (
        &["C009", "C055"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["namespace"] == "zzznope" {
                *result = text("hm");
            }
        }),
    ),
    (
        &["C010"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["function"] == "zzznope" {
                *result = error("no");
            }
        }),
    ),
    (
        &["C011"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["function"] == "list" {
                *result = error("down");
            }
        }),
    ),
    (
        &["C012"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["function"] == "" {
                *result = text("guessed");
            }
        }),
    ),
    (
        &["C013"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["function"] == "get_order" {
                *result = error("bad arguments");
            }
        }),
    ),
    (
        &["C014", "C064"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["function"] == "L_I_S_T" {
                *result = error("unknown");
            }
        }),
    ),
    (
        &["C062"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["function"] == "orders.list" {
                *result = text("42 orders");
            }
        }),
    ),
    (
        &["C065"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && !arguments["kwargs"]["S_I_N_C_E_D_A_Y"].is_null() {
                *result = error("unknown argument");
            }
        }),
    ),
    (
        &["C017", "C069", "C103"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "") {
                *result = text("# Nothing\n");
            }
        }),
    ),
    (
        &["C018"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "stock") {
                *result = text("# stock\n");
            }
        }),
    ),
    (
        &["C019", "C127"],
        Spoil::Reply(|name, arguments, result| {
            if name == "help" && arguments["function"] == "list" {
                *result = error("no page");
            }
        }),
    ),
    (
        &["C020", "C106"],
        Spoil::Reply(|name, arguments, result| {
            if name == "help" && arguments["kwargs"]["params"] == "full" {
                *result = text("less");
            }
        }),
    ),
    (
        &["C021"],
        Spoil::Reply(|name, _, result| {
            if name == "help" {
                replace(result, "More with `params=\"full\"`.", "");
            }
        }),
    ),
    (
        &["C022", "C105", "C107"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "orders") {
                replace(result, "List orders.", "List orders. since_day: string");
            }
        }),
    ),
    (
        &["C023"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "orders") {
                replace(result, "Retail orders.", &"very long ".repeat(40));
            }
        }),
    ),
    (
        &["C024"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "stock") {
                replace(result, " — Check a level.", "");
            }
        }),
    ),
    (
        &["C025"],
        Spoil::Reply(|name, arguments, result| {
            if name == "help" && arguments["namespace"] == "" {
                *result = error("empty");
            }
        }),
    ),
    (
        &["C026"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "") {
                replace(result, "\nArguments", "\n## Functions\n\n- **ping** — Ping.\n\nArguments");
            }
        }),
    ),
    (
        &["C028"],
        Spoil::Reply(|name, arguments, result| {
            if name == "help" && fold(&arguments["namespace"]).starts_with("orders.retail") {
                *result = text("# deep\n\n## Sub-namespaces\n\n- **deeper** — Deeper.\n");
            }
        }),
    ),
    (
        &["C030"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "") {
                replace(result, "`format`", "`f`");
            }
        }),
    ),
    (
        &["C031", "C032"],
        Spoil::Reply(|name, arguments, result| {
            if name == "help" && !arguments["kwargs"]["zzz"].is_null() {
                *result = error("what?");
            }
        }),
    ),
    (
        &["C034", "C036"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "") {
                *result = text("{\"namespaces\": []}");
            }
        }),
    ),
    (
        &["C035"],
        Spoil::Reply(|name, arguments, result| {
            if name == "help" && arguments["kwargs"]["format"] == "json" {
                *result = text("{\"namespaces\": []}");
            }
        }),
    ),
    (
        &["C037"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "orders") {
                replace(result, "## Sub-namespaces\n\n", "");
                replace(result, "## Functions\n\n", "");
            }
        }),
    ),
    (
        &["C039"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "stock") {
                replace(result, "Check a level.", "Check a level, or use skill(skillname=\"x\").");
            }
        }),
    ),
    (
        &["C104"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "") {
                replace(result, "customer orders.", "customer orders (`get_order`).");
            }
        }),
    ),
    (
        &["C041"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["namespace"] == "" && arguments["skillname"].is_null() {
                *result = error("none");
            }
        }),
    ),
    (
        &["C042"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["skillname"] == "ordercheck" {
                *result = text("");
            }
        }),
    ),
    (
        &["C043", "C054"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["skillname"] == "ordercheck" {
                replace(result, "1. ", "```bash\nrm -r x\n```\n1. ");
            }
        }),
    ),
    (
        &["C044"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["skillname"] == "ordercheck" {
                replace(result, "1. ", "1. As in the previous message, ");
            }
        }),
    ),
    (
        &["C045"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["skillname"] == "ordercheck" {
                replace(result, "skillname=\"ordercheck\"", "skillname=\"gone\"");
            }
        }),
    ),
    (
        &["C046"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["skillname"] == "ordercheck" {
                replace(result, "namespace=\"stock\"", "namespace=\"gone\"");
            }
        }),
    ),
    (
        &["C047", "C055"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["skillname"] == "zzznope" {
                *result = text("none");
            }
        }),
    ),
    (
        &["C050"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["skillname"].as_str().is_some_and(|n| n.contains('/')) {
                *result = text("#!/bin/sh");
            }
        }),
    ),
    (
        &["C053"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["skillname"] == "ordercheck" {
                *result = text("Just order.");
            }
        }),
    ),
    (
        &["C125"],
        Spoil::Reply(|name, arguments, result| {
            if name == "skill" && arguments["skillname"].is_null() {
                *result = error("skillname is required");
            }
        }),
    ),
    (
        &["C056"],
        Spoil::Reply(|name, _, result| {
            if name == "help" {
                replace(result, "**stock**", "**stock-level**");
            }
        }),
    ),
    (
        &["C063"],
        Spoil::Reply(|name, _, result| {
            if name == "help" {
                replace(result, "**check_level**", "**check-level**");
            }
        }),
    ),
    (
        &["C057"],
        Spoil::Reply(|name, arguments, result| {
            if name == "help" && arguments["namespace"] == "S_T_O_C_K" {
                *result = error("unknown");
            }
        }),
    ),
    (
        &["C058", "C073"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "") {
                replace(result, "\nArguments", "- **Sto_ck** — Again.\n\nArguments");
            }
        }),
    ),
    (
        &["C060"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "orders") {
                replace(result, "**retail**", "**orders.retail**");
            }
        }),
    ),
    (
        &["C061"],
        Spoil::Reply(|name, arguments, result| {
            if name == "help" && arguments["namespace"] == "orders." {
                *result = text("# orders\n");
            }
        }),
    ),
    (
        &["C066"],
        Spoil::Reply(|name, arguments, result| {
            if is_help(name, arguments, "stock") {
                replace(result, "**check_level**", "**run**");
            }
        }),
    ),
    (
        &["C015", "C108", "C111", "C112", "C121"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["sizelimit"] == 1 {
                let mut same = arguments.clone();
                same["sizelimit"] = Value::Null;
                *result = call(&same);
            }
        }),
    ),
    (
        &["C113"],
        Spoil::Reply(|name, _, result| {
            if name == "call" {
                replace(result, " characters.", "0000 characters.");
            }
        }),
    ),
    (
        &["C114", "C115", "C116", "C117", "C118"],
        Spoil::Reply(|name, _, result| {
            if name == "call" {
                replace(result, "sizelimit=", "limit ");
            }
        }),
    ),
    (
        &["C115", "C116", "C118"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["sizelimit"] == 1 {
                *result = text("**Gated:** 50 characters. Narrow it, or pass `sizelimit=5`");
            }
        }),
    ),
    (
        &["C119", "C122"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["function"] == "count" {
                *result = text("x".repeat(12_000));
            }
        }),
    ),
    (
        &["C120"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["sizelimit"] == 0 {
                *result = text("fine");
            }
        }),
    ),
    (
        &["C126"],
        Spoil::Reply(|name, arguments, result| {
            if name == "call" && arguments["sizelimit"] == 1 {
                *result = text("**Gated:** pass `sizelimit=90` or narrow it");
            }
        }),
    ),
    (&["C082"], Spoil::Web(|page| page.status = 404)),
    (&["C083"], Spoil::Web(|page| page.content_type = "text/plain".into())),
    (&["C084"], Spoil::Web(|page| page.vary = String::new())),
    (&["C085"], Spoil::Line("cash_version: \"0.1.1\"", "x: 1")),
    (&["C086"], Spoil::Line("2026-11-15", "yesterday")),
    (&["C087"], Spoil::Line("publisher: \"Shop\"", "publisher: \"\"")),
    (&["C088"], Spoil::Line("copyright: \"2026 Shop\"", "copyright: [1]")),
    (&["C089"], Spoil::Line("https://shop.example/mcp", "here")),
    (&["C090"], Spoil::Line("cache_ttl: 3600", "cache_ttl: soon")),
    (
        &["C091", "C092"],
        Spoil::Line(
            "authentication:\n  scheme: bearer\n  docs_url: \"https://shop.example/auth\"",
            "authentication: yes please",
        ),
    ),
    (&["C092"], Spoil::Line("scheme: bearer", "scheme: magic")),
    (&["C093"], Spoil::Line("https://shop.example/auth", "nowhere")),
    (
        &["C094"],
        Spoil::Line(
            "  - suggested: orders\n    description: \"Create and manage customer orders.\"",
            "  []",
        ),
    ),
    (&["C095"], Spoil::Line("suggested: orders", "suggested: \"a b\"")),
    (&["C096"], Spoil::Line("\"Create and manage customer orders.\"", "\"a\\nb\"")),
    (
        &["C097"],
        Spoil::Line(
            "skills:\n  - name: ordercheck\n    description: \"Order after a stock check.\"",
            "skills: none",
        ),
    ),
    (&["C098"], Spoil::Line("name: ordercheck", "name: 5")),
    (&["C099"], Spoil::Line("description: \"Order after a stock check.\"", "description: []")),
    (&["C100"], Spoil::Identity(|_| None)),
    (&["C101"], Spoil::Identity(|_| Some(json!({"publisher": "Other"})))),
];

#[tokio::test]
async fn every_breach_is_noticed_by_the_items_it_concerns() {
    let mut missed = Vec::new();
    for (at, (ids, spoil)) in BREACHES.iter().enumerate() {
        let report = report(*spoil).await;
        let bad = bad(&report);
        for id in ids.iter().filter(|id| !bad.contains(*id)) {
            let outcome = report.outcomes.iter().find(|outcome| outcome.id == **id).unwrap();
            missed.push(format!("breach {at}: {id} {:?} {}", outcome.verdict, outcome.evidence));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test]
async fn every_check_that_can_pass_can_also_fail() {
    let good = report(Spoil::Nothing).await;
    // Items that only inform: whatever a server does, they hold.
    let informs = ["C027", "C029", "C033", "C059", "C071"];
    let broken: BTreeSet<&str> = BREACHES.iter().flat_map(|(ids, _)| ids.iter().copied()).collect();
    let passing = good.outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Pass);
    let never: Vec<&str> = passing
        .map(|outcome| outcome.id.as_str())
        .filter(|id| !broken.contains(id) && !informs.contains(id))
        .collect();
    assert!(never.is_empty(), "nothing breaks {never:?}");
}
