use std::sync::Arc;

use serde_json::{Value, json};
use testkit::{Scripted, listing, tool};
use tool::{Ask, Call, Context, Provider, Reply};

use super::*;
use crate::choice::Surface;
use crate::fixture::{Opened, Scripts, open, rows};
use policy::trust::{TrustCheck, TrustLevel, ledger};
use policy::visibility;
use roster::Upstream;

fn named(name: &str, more: &Value) -> Tool {
    let mut raw = json!({"name": name, "description": format!("{name} it."),
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}});
    raw.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Tool::parse(raw.into()).unwrap()
}

/// `files` with tools that read, write, show something and answer too much.
fn files() -> Upstream {
    let reads = json!({"annotations": {"readOnlyHint": true}});
    let shows = json!({"_meta": {"ui": {"resourceUri": "ui://files/tree.html"}}});
    let old = json!({"_meta": {"ui/resourceUri": "ui://files/old.html"}});
    let tools = vec![
        named("read", &reads),
        named("write", &json!({})),
        named("tree", &shows),
        named("old", &old),
        named("all", &json!({})),
    ];
    let provider = Scripted::new(listing(tools), |ask| {
        let Ask::Call(call) = ask else { return Ok(Reply::text("?")) };
        Ok(match call.name.as_str() {
            "all" | "tree" => Reply::text(&rows().to_string()),
            name => Reply::text(&format!("{name} ran")),
        })
    });
    Upstream::new("files", Scripts::of(provider))
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text)).collect()
}

/// A gateway over `files`, with everything listed only where that is asked for.
async fn opened(change: impl FnOnce(&mut Config)) -> Opened {
    let mut config = Config { everything_below: 0, ..Config::default() };
    change(&mut config);
    open(vec![files()], |parts| parts.server.listed = config).await
}

fn surface(opened: &Opened, surface: Surface, capabilities: Value) -> Arc<dyn Provider> {
    let capabilities = capabilities.into();
    let client = Arc::new(Client { capabilities, ..Client::named("test", "") });
    opened.gateway.surface(surface).provider_for(&client, &Arc::default())
}

fn names(surface: &Arc<dyn Provider>) -> Vec<String> {
    surface.listing().tools.iter().map(|tool| tool.name.clone()).collect()
}

async fn call(surface: &Arc<dyn Provider>, name: &str, arguments: Value) -> String {
    let ask = Ask::Call(Call::new(name, arguments.into()));
    match surface.ask(ask, &Context::anonymous()).await.unwrap() {
        Reply::Error(error) => format!("!{}", error.message),
        reply => {
            let result = reply.tool_result().unwrap();
            format!("{}{}", if result.is_error { "!" } else { "" }, result.text())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_listed_beside_the_three_unless_somebody_wants_it() {
    let opened = opened(|_| {}).await;
    assert_eq!(names(&opened.surface), ["call", "help", "skill"]);
    let auto = surface(&opened, Surface::Auto, json!({}));
    assert_eq!(names(&auto), ["call", "help", "skill"]);
}

#[tokio::test(start_paused = true)]
async fn pinned_tools_are_listed_whole_in_a_stable_order_and_called_by_name() {
    let opened = opened(|config| config.pinned = patterns(&["files.write", "files.read"])).await;
    let listing = opened.surface.listing();
    assert_eq!(names(&opened.surface), ["call", "help", "skill", "files_read", "files_write"]);
    let read = &listing.tools[3];
    assert!(read.raw.as_str().contains(r#""path""#), "{}", read.raw);
    let meta = read.raw.member("_meta").unwrap();
    assert_eq!(meta.member_as("anthropic/alwaysLoad"), Some(true));
    assert_eq!(call(&opened.surface, "files_read", json!({"path": "x"})).await, "read ran");
    // What is wrong is told as for `call`.
    let wrong = call(&opened.surface, "files_read", json!({"path": 7, "pth": 1})).await;
    assert!(wrong.starts_with("!**Error:**"), "{wrong}");
    assert!(call(&opened.surface, "files_read", json!([1])).await.starts_with('!'));
    let gateway = surface(&opened, Surface::Gateway, json!({}));
    assert!(names(&gateway).ends_with(&["files_read".to_owned(), "files_write".to_owned()]));
    assert_eq!(call(&gateway, "files_read", json!({"path": "x"})).await, "read ran");
    let unknown = call(&gateway, "files_gone", json!({})).await;
    assert!(unknown.starts_with("!no tool `files_gone`"), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn a_pinned_tool_goes_the_way_of_every_call() {
    let hide = vec![visibility::Rule {
        hide: vec!["files.write".parse().unwrap()],
        ..visibility::Rule::default()
    }];
    let opened = open(vec![files()], |parts| {
        parts.server.listed.pinned = patterns(&["files.write", "files.all"]);
        parts.policies.visibility =
            visibility::Config { rules: hide, ..visibility::Config::default() }.into();
    })
    .await;
    assert_eq!(names(&opened.surface), ["call", "help", "skill", "files_all"]);
    for name in ["files_write", "write"] {
        let hidden = call(&opened.surface, name, json!({})).await;
        assert!(hidden.starts_with("!no tool"), "{hidden}");
    }
    // The gate holds, and a record is left.
    let long = call(&opened.surface, "files_all", json!({})).await;
    assert!(long.len() < 5_000 && long.contains("gatelet"), "{long}");
    assert_eq!(opened.records.records().last().unwrap().callee.tool, "all");
}

#[tokio::test(start_paused = true)]
async fn pins_stay_within_their_tokens_and_those_left_out_are_found() {
    let opened = opened(|config| {
        config.pinned = patterns(&["files.read", "nowhere.x", "files.write"]);
        config.tokens = 50;
    })
    .await;
    assert_eq!(names(&opened.surface), ["call", "help", "skill", "files_read"]);
    let listing = opened.surface.listing();
    let codes: Vec<&str> = listing.findings.iter().map(|found| found.code.as_str()).collect();
    assert_eq!(codes, ["pin-unknown", "pin-left-out"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_small_is_listed_whole_on_auto_and_only_there() {
    let opened = opened(|config| config.everything_below = 2_500).await;
    let auto = surface(&opened, Surface::Auto, json!({}));
    let all = ["all", "old", "read", "tree", "write"].map(|name| format!("files_{name}"));
    let expected: Vec<String> =
        ["call", "help", "skill"].map(str::to_owned).into_iter().chain(all).collect();
    assert_eq!(names(&auto), expected);
    let told = |provider: &dyn Provider| provider.listing().server.instructions.clone().unwrap();
    assert!(told(&*auto).contains("all of them listed directly"), "{}", told(&*auto));
    let cash = surface(&opened, Surface::Cash, json!({}));
    assert!(!told(&*cash).contains("listed directly"), "{}", told(&*cash));
    assert_eq!(names(&opened.surface), ["call", "help", "skill"]);
    let cost: usize = catalog_cost(&opened);
    let exactly = self::opened(|config| config.everything_below = cost).await;
    assert_eq!(names(&surface(&exactly, Surface::Auto, json!({}))).len(), 3);
    let above = self::opened(|config| config.everything_below = cost + 1).await;
    assert_eq!(names(&surface(&above, Surface::Auto, json!({}))).len(), 8);
}

/// What everything costs.
fn catalog_cost(opened: &Opened) -> usize {
    let snapshot = opened.gateway.roster().default_pool().snapshot();
    let catalog = &snapshot.catalog;
    catalog.slots().filter(|slot| !catalog.is_builtin(*slot)).map(|slot| cost(catalog, slot)).sum()
}

#[tokio::test(start_paused = true)]
async fn many_tools_are_not_listed_on_auto() {
    let tools: Vec<Tool> =
        (0..400).map(|n| tool(&format!("t{n}"), &"word ".repeat(20), &json!({}))).collect();
    let provider = Scripted::new(listing(tools), |_| Ok(Reply::text("x")));
    let opened = open(vec![Upstream::new("many", Scripts::of(provider))], |_| {}).await;
    assert_eq!(names(&surface(&opened, Surface::Auto, json!({}))).len(), 3);
}

/// What a client that renders interfaces says of itself.
fn renders() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}})
}

#[tokio::test(start_paused = true)]
async fn tools_with_an_interface_are_listed_for_clients_that_render_it() {
    let opened = opened(|_| {}).await;
    for kind in [Surface::Cash, Surface::Gateway, Surface::Auto] {
        let plain = surface(&opened, kind, json!({}));
        assert!(!names(&plain).contains(&"files_tree".to_owned()), "{kind:?}");
        let rendering = surface(&opened, kind, renders());
        let listed = names(&rendering);
        assert!(listed.ends_with(&["files_old".to_owned(), "files_tree".to_owned()]), "{listed:?}");
        let listing = rendering.listing();
        let tree = listing.tools.iter().find(|tool| tool.name == "files_tree").unwrap();
        let ui = tree.raw.member("_meta").unwrap().member("ui").unwrap();
        assert_eq!(ui.member_as::<String>("resourceUri").unwrap(), "ui://files/tree.html");
        // The interface is made of the whole answer, and may use the tool's own name.
        for name in ["files_tree", "tree"] {
            let whole = call(&rendering, name, json!({})).await;
            assert_eq!(whole, rows().to_string(), "{kind:?} {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_does_not_flood_clients_with_interfaces() {
    let shows = json!({"_meta": {"ui": {"resourceUri": "ui://x"}}});
    let tools = (0..200).map(|n| named(&format!("t{n}"), &shows)).collect();
    let provider = Scripted::new(listing(tools), |_| Ok(Reply::text("x")));
    let opened = open(vec![Upstream::new("many", Scripts::of(provider))], |parts| {
        parts.server.listed.everything_below = 0;
    })
    .await;
    let rendering = surface(&opened, Surface::Cash, renders());
    assert_eq!(names(&rendering).len(), 3 + MAX_INTERFACES);
    let listing = rendering.listing();
    assert!(listing.findings.iter().any(|found| found.code == "interfaces-left-out"));
}

#[tokio::test(start_paused = true)]
async fn reading_apart_runs_what_the_operator_or_a_vouched_for_tool_says_reads() {
    let reading = |function: &str| json!({"namespace": "files", "function": function});
    let without = opened(|_| {}).await;
    let refused = call(&without.surface, "call_read", reading("read")).await;
    assert!(refused.starts_with("!no tool `call_read`"), "{refused}");

    let store = Arc::new(ledger::InMemoryLedger::default());
    let check: Arc<dyn policy::admission::Check> = Arc::new(TrustCheck::new(
        policy::trust::Config::default(),
        Arc::clone(&store) as _,
        Arc::new(tool::clock::Fake::default()),
    ));
    let opened = open(vec![files()], |parts| {
        parts.server.listed = Config { everything_below: 0, read_tool: true, ..Config::default() };
        parts.server.listed.read_only = patterns(&["files.old"]);
        parts.policies.stages.checks = vec![check];
    })
    .await;
    assert_eq!(names(&opened.surface), ["call", "help", "skill", "call_read"]);
    let read_only = opened.surface.listing().tools[3].annotations.read_only;
    assert_eq!(read_only, Some(true));
    // It says itself that it reads; nobody vouched for it yet.
    let refused = call(&opened.surface, "call_read", reading("read")).await;
    assert!(refused.contains("run it with `call`"), "{refused}");
    assert_eq!(call(&opened.surface, "call_read", reading("old")).await, "old ran");
    let snapshot = opened.gateway.roster().default_pool().snapshot();
    let slot = snapshot.catalog.resolve("files", "read").unwrap();
    let write = snapshot.catalog.resolve("files", "write").unwrap();
    policy::trust::LedgerStore::change(&*store, &mut |ledger| {
        ledger.set("files/read", snapshot.catalog.tool(slot), TrustLevel::Trusted, 1);
        ledger.set("files/write", snapshot.catalog.tool(write), TrustLevel::Trusted, 1);
    })
    .unwrap();
    assert_eq!(call(&opened.surface, "call_read", reading("read")).await, "read ran");
    let refused = call(&opened.surface, "call_read", reading("write")).await;
    assert!(refused.contains("run it with `call`"), "{refused}");
    assert_eq!(call(&opened.surface, "call", reading("write")).await, "write ran");
    // What gatelet itself only looks up may be read.
    let status = json!({"namespace": "gatelet", "function": "status"});
    assert!(!call(&opened.surface, "call_read", status).await.contains("run it with `call`"));
}

#[tokio::test(start_paused = true)]
async fn the_most_used_tools_are_listed_where_usage_is_learnt() {
    struct Used(catalog::usage::UsageHistory);
    impl UsageStore for Used {
        fn read(&self) -> Arc<catalog::usage::UsageHistory> {
            Arc::new(self.0.clone())
        }
        fn note(&self, _: &str, _: &str, _: u32) {}
    }
    let mut habits = catalog::usage::UsageHistory::default();
    for (tool, times) in
        [("files/write", 5), ("files/read", 3), ("files/gone", 9), ("files/all", 1)]
    {
        (0..times).for_each(|_| habits.note("handle documents", tool, 20_000));
    }
    let opened = open(vec![files()], |parts| {
        parts.server.listed = Config { everything_below: 0, most_used: 3, ..Config::default() };
        parts.observers.usage = Arc::new(Used(habits));
    })
    .await;
    assert_eq!(names(&opened.surface), ["call", "help", "skill", "files_read", "files_write"]);
}
