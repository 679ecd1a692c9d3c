use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use catalog::tokens;
use serde_json::{Value, json};
use testkit::{Scripted, tool};
use tool::{
    Ask, Call, Client, Context, Failure, Identity, Json, Listing, Prompt, Provider, Reply,
    Resource, Tool,
};

use super::*;
use crate::fixture::{Scripts, settle};
use crate::gateway::{Gateway as Gate, GatewayParts};
use crate::surface::meta;
use policy::attempt::UpstreamCaller;
use policy::pattern::Pattern;
use policy::visibility;
use policy::{attempt, cache, quota, retry, rules};
use roster::Upstream;
use tool::clock::Fake;

mod approval;
mod away;
mod batches;
mod defects;
mod guess;
mod looking;
mod mistakes;
mod unkept;
mod vectors;

struct Opened {
    surface: Arc<dyn Provider>,
    provider: Arc<Scripted>,
    gate: Gate,
}

fn demo() -> Arc<Scripted> {
    let path = json!({"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}, "required": ["path"]});
    let annotated = |name: &str, hint: &str| {
        let raw = json!({"name": name, "description": format!("{name} does a thing."), "inputSchema": path, "annotations": {hint: true}});
        Tool::parse(raw.into()).unwrap()
    };
    let listing = Listing {
        tools: vec![
            annotated("read_file", "readOnlyHint"),
            annotated("delete_file", "destructiveHint"),
            tool("boom", "Fails.", &json!({})),
            tool("big", "Long answer.", &json!({})),
            tool("leak", "Tells a secret.", &json!({})),
        ],
        templates: vec![tool::Template::parse(json!({"uriTemplate": "log:///{day}", "name": "logs", "description": "A day's log."}).into()).unwrap()],
        resources: vec![Resource::parse(json!({"uri": "file:///readme.md", "name": "README", "description": "Start here."}).into()).unwrap()],
        prompts: vec![Prompt::parse(json!({"name": "greet", "description": "Says hello.", "arguments": [{"name": "who", "required": true}]}).into()).unwrap()],
        ..Listing::default()
    };
    Scripted::new(listing, |ask| {
        match ask {
        Ask::Call(call) if call.name == "boom" => Err(Failure::Unauthorized { reason: "401 with sk-proj-bbbbbbbbbbbbbbbbbbbbbbbb".into(), sent: tool::Sent::No }),
        Ask::Call(call) if call.name == "big" => {
            let rows: Vec<Value> = (0..3000).map(|n| json!({"id": n})).collect();
            Ok(Reply::text(&json!({"total": 3000, "items": rows}).to_string()))
        }
        Ask::Call(call) if call.name == "leak" => Ok(Reply::text("key sk-proj-bbbbbbbbbbbbbbbbbbbbbbbb")),
        Ask::Call(_) => Ok(Reply::text("hello")),
        Ask::ReadResource(_) => Ok(Reply::Result(json!({"contents": [{"uri": "file:///readme.md", "text": "# Hi"}]}).into())),
        Ask::Prompt(_) => Ok(Reply::Result(json!({"description": "D", "messages": [{"role": "user", "content": {"type": "text", "text": "Hi Ann"}}]}).into())),
        Ask::Complete(_) | Ask::Other { .. } => Ok(Reply::text("?")),
    }
    })
}

async fn open_on(surface: Surface, change: impl FnOnce(&mut GatewayParts, &Arc<Fake>)) -> Opened {
    let provider = demo();
    let clock = Arc::new(Fake::default());
    let mut parts = GatewayParts::new(
        vec![Upstream::new("demo", Scripts::of(Arc::clone(&provider)))],
        Arc::clone(&clock) as _,
    );
    change(&mut parts, &clock);
    let gate = Gate::new(parts);
    let surface =
        gate.surface(surface).provider_for(&Arc::new(Client::named("test", "")), &Arc::default());
    settle().await;
    Opened { surface, provider, gate }
}

async fn open() -> Opened {
    open_on(Surface::Gateway, |_, _| {}).await
}

impl Opened {
    async fn ask(&self, tool: &str, arguments: Value) -> Reply {
        self.surface
            .ask(Ask::Call(Call::new(tool, arguments.into())), &Context::anonymous())
            .await
            .unwrap()
    }

    async fn say(&self, tool: &str, arguments: Value) -> String {
        let reply = self.ask(tool, arguments).await;
        let result = reply.tool_result().unwrap_or_else(|| panic!("{reply:?}"));
        format!("{}{}", if result.is_error { "!" } else { "" }, result.text())
    }

    async fn error(&self, tool: &str, arguments: Value) -> Value {
        let said = self.say(tool, arguments).await;
        serde_json::from_str(said.strip_prefix('!').unwrap_or_else(|| panic!("{said}"))).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_definitions_keep_their_budgets() {
    let opened = open().await;
    let listing = opened.surface.listing();
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "tool_browse",
            "tool_execute",
            "tool_view",
            "resource_browse",
            "resource_read",
            "prompt_browse",
            "prompt_get"
        ]
    );
    let cost = crate::fixture::read_by_models;
    assert!(cost(&listing.tools[..3]) <= 200, "{}", cost(&listing.tools[..3]));
    assert!(cost(&listing.tools) <= 420, "{}", cost(&listing.tools));
}

#[tokio::test(start_paused = true)]
async fn browse_says_what_lies_behind_it_in_bounded_words_that_last() {
    let many = |parts: &mut GatewayParts| {
        for n in 0..60 {
            let label = format!("department-{n}");
            parts.upstreams.push(Upstream::new(&label, Scripts::of(demo())));
        }
    };
    let opened = open_on(Surface::Gateway, |parts, _| many(parts)).await;
    let again = open_on(Surface::Gateway, |parts, _| many(parts)).await;
    let listed = |opened: &Opened| Json::encode(&opened.surface.listing().tools[..3]);
    let said = listed(&opened);
    assert!(said.as_str().contains("Namespaces: demo, department"), "{said}");
    assert!(said.as_str().contains(" more."), "{said}");
    let cost = crate::fixture::read_by_models(&opened.surface.listing().tools[..3]);
    assert!(cost <= 200, "{cost}");
    assert_eq!(said, listed(&again));
    let blind = open_on(Surface::Gateway, |parts, _| {
        let default = visibility::DefaultVisibility::Hidden;
        parts.policies.visibility =
            visibility::Config { default, ..visibility::Config::default() }.into();
    });
    assert!(!listed(&blind.await).as_str().contains("demo"));
}

#[tokio::test(start_paused = true)]
async fn a_browse_that_nothing_matches_says_so_for_every_kind() {
    let opened = open().await;
    for kind in ["tool_browse", "resource_browse", "prompt_browse"] {
        let said = opened.say(kind, json!({"query": "photosynthesis of ferns"})).await;
        assert!(said.starts_with("Nothing matches."), "{kind}: {said}");
    }
    let said = opened.say("tool_browse", json!({"query": "read a file"})).await;
    assert!(said.starts_with("demo:read_file"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_browse_of_ten_and_a_small_result_keep_their_budgets() {
    let nouns = ["issue", "invoice", "branch", "message", "ticket", "customer"];
    let verbs = [
        "create", "get", "list", "update", "delete", "search", "close", "archive", "export",
        "assign",
    ];
    let named = |noun: &str, verb: &str| {
        let schema = json!({"type": "object", "properties": {"id": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["id"]});
        let words = format!(
            "{verb} one {noun} record in the workspace. Requires the matching scope and returns the {noun} as JSON."
        );
        tool(&format!("{verb}_{noun}"), &words, &schema)
    };
    let tools: Vec<Tool> =
        nouns.iter().flat_map(|noun| verbs.map(|verb| named(noun, verb))).collect();
    let provider =
        Scripted::new(Listing { tools, ..Listing::default() }, |_| Ok(Reply::text("hello")));
    let clock: Arc<Fake> = Arc::default();
    let gate = Gate::new(GatewayParts::new(
        vec![Upstream::new("work", Scripts::of(Arc::clone(&provider)))],
        clock,
    ));
    let surface = gate
        .surface(Surface::Gateway)
        .provider_for(&Arc::new(Client::named("test", "")), &Arc::default());
    settle().await;
    let opened = Opened { surface, provider, gate };
    for query in ["create an issue", "find invoices of a customer", "archive"] {
        let cards = opened.say("tool_browse", json!({"query": query, "top_k": 10})).await;
        assert!(tokens::count(&cards) <= 600, "{} {cards}", tokens::count(&cards));
    }
    let Reply::Result(small) =
        opened.ask("tool_execute", json!({"tool_id": "work:get_issue", "args": {"id": "1"}})).await
    else {
        panic!("no result")
    };
    let said = Reply::Result(small).tool_result().unwrap();
    assert_eq!(said.content.len(), 2);
    let exact = opened.say("tool_browse", json!({"path": "/work"})).await;
    assert!(exact.lines().count() <= 20);
    assert!(tokens::count(&opened.say("tool_browse", json!({"path": "/"})).await) <= 80);
}

#[tokio::test(start_paused = true)]
async fn a_query_finds_tools_and_says_how_to_call_them() {
    let opened = open().await;
    let found = opened.say("tool_browse", json!({"query": "read file", "top_k": 1})).await;
    assert_eq!(
        found,
        "demo:read_file#1ba6cdc9 read_file does a thing. [read-only]\n  (path: string, n?: integer)"
    );
    let cards = opened
        .say("tool_browse", json!({"query": "read file", "top_k": 1, "format": "json"}))
        .await;
    let cards: Value = serde_json::from_str(&cards).unwrap();
    assert_eq!(cards[0]["safety"], "read_only");
    assert_eq!(cards[0]["signature"], "(path: string, n?: integer)");
}

#[tokio::test(start_paused = true)]
async fn a_path_walks_to_every_tool() {
    let opened = open().await;
    assert_eq!(
        opened.say("tool_browse", json!({"path": "/"})).await,
        "/demo 5: big, boom, delete_file, leak, read_file"
    );
    assert!(opened.say("tool_browse", json!({"path": "/demo"})).await.contains("demo:read_file#"));
    assert!(
        opened
            .say("tool_browse", json!({"path": "/demo/read_file"}))
            .await
            .starts_with("demo:read_file#")
    );
    assert_eq!(opened.error("tool_browse", json!({"path": "demo"})).await["error"], "PATH_INVALID");
    let error = opened.error("tool_browse", json!({"path": "/demo/nope"})).await;
    assert_eq!(
        (error["error"].as_str(), error["details"]["at"].as_str()),
        (Some("PATH_NOT_FOUND"), Some("/demo"))
    );
    assert_eq!(opened.error("tool_browse", json!({})).await["error"], "ARGS_INVALID");
    assert_eq!(
        opened.error("tool_browse", json!({"query": "a", "path": "/"})).await["error"],
        "ARGS_INVALID"
    );
    assert_eq!(
        opened.error("tool_browse", json!({"query": "a", "top_k": 0})).await["error"],
        "ARGS_INVALID"
    );
}

#[tokio::test(start_paused = true)]
async fn a_small_result_passes_without_an_envelope() {
    let opened = open().await;
    let reply = opened
        .ask("tool_execute", json!({"tool_id": "demo:read_file#1ba6cdc9", "args": {"path": "x"}}))
        .await;
    assert_eq!(reply, Reply::text("hello"));
}

#[tokio::test(start_paused = true)]
async fn a_partial_id_is_read_as_the_only_one_it_can_mean() {
    let opened = open().await;
    let said =
        opened.say("tool_execute", json!({"tool_id": "demo:read", "args": {"path": "x"}})).await;
    assert_eq!(said, "hello\n[tool_id read as demo:read_file#1ba6cdc9]");
    let error = opened.error("tool_execute", json!({"tool_id": "demo:", "args": {}})).await;
    assert_eq!(error["error"], "HYDRATE_FAILED");
    assert_eq!(error["details"]["candidates"].as_array().unwrap().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_are_all_told_at_once_and_nothing_is_called() {
    let opened = open().await;
    let error = opened
        .error("tool_execute", json!({"tool_id": "demo:read_file", "args": {"n": "3"}}))
        .await;
    assert_eq!(error["error"], "ARGS_INVALID");
    assert_eq!(error["details"]["problems"].as_array().unwrap().len(), 2, "{error}");
    assert_eq!(error["details"]["signature"], "read_file(path: string, n?: integer)");
    assert!(opened.provider.asked().iter().all(|ask| !matches!(ask, Ask::Call(_))));
}

#[tokio::test(start_paused = true)]
async fn tolerant_arguments_are_repaired_and_it_is_recorded() {
    let opened = open_on(Surface::Gateway, |parts, _| {
        parts.server.meta = meta::Config { tolerant: true, ..meta::Config::default() }
    })
    .await;
    let reply = opened
        .ask(
            "tool_execute",
            json!({"tool_id": "demo:read_file#1ba6cdc9", "args": {"path": "x", "n": "3"}}),
        )
        .await;
    let Reply::Result(json) = reply else { panic!("no result") };
    assert_eq!(
        json.to_value().unwrap()["_meta"]["gatelet/arg_repairs"],
        json!([{"path": "$.n", "rule": "str_to_integer"}])
    );
    let Some(Ask::Call(call)) = opened.provider.asked().into_iter().next_back() else {
        panic!("no call")
    };
    assert_eq!(call.arguments.unwrap().as_str(), r#"{"path":"x","n":3}"#);
}

#[tokio::test(start_paused = true)]
async fn a_long_result_is_summarised_and_can_be_looked_into() {
    let opened = open().await;
    let said = opened.say("tool_execute", json!({"tool_id": "demo:big", "args": {}})).await;
    let envelope: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(envelope["status"], "ok");
    assert_eq!(envelope["facts"], json!(["total: 3000"]));
    let handle = envelope["artifacts"][0]["handle"].clone();
    let jq = json!({"handle": handle, "selector": {"type": "jq", "filter": ".items[2].id"}});
    assert_eq!(opened.say("tool_view", jq).await, "2\n[1 results]");
    let listed = opened.say("tool_view", json!({})).await;
    assert!(listed.starts_with(handle.as_str().unwrap()), "{listed}");
    let uri = format!("artifact://{}", handle.as_str().unwrap());
    let read = opened
        .surface
        .ask(
            Ask::ReadResource(tool::ReadResource {
                uri: uri.clone(),
                other_params: tool::Object::new(),
            }),
            &Context::anonymous(),
        )
        .await
        .unwrap();
    let Reply::Result(json) = read else { panic!("{read:?}") };
    assert_eq!(json.to_value().unwrap()["contents"][0]["mimeType"], "application/json");
    // Another session has nothing of that name.
    let mut other = Context::anonymous();
    other.session = "other".into();
    let ask = Ask::Call(Call::new("tool_view", json!({"handle": handle}).into()));
    let result = opened.surface.ask(ask, &other).await.unwrap().tool_result().unwrap();
    assert!(result.is_error && result.text().contains("VIEW_FAILED"));
}

#[tokio::test(start_paused = true)]
async fn secrets_do_not_come_through() {
    let opened = open().await;
    let said = opened.say("tool_execute", json!({"tool_id": "demo:leak", "args": {}})).await;
    assert!(said.starts_with("key [REDACTED-SECRET]"), "{said}");
    let error = opened.error("tool_execute", json!({"tool_id": "demo:boom", "args": {}})).await;
    assert_eq!(error["error"], "AUTH_FAILED");
    assert!(!error.to_string().contains("sk-proj"));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_reports_every_check_and_calls_nothing() {
    let opened = open_on(Surface::Gateway, |parts, clock| {
        let rules = rules::Config {
            rules: vec![rules::Rule {
                tool: Some(Pattern::new("delete_*")),
                ..rules::Rule::any(rules::Action::Deny)
            }],
            ..rules::Config::default()
        };
        parts.policies.stages.checks.push(Arc::new(rules::Rules::new(rules)));
        let one = quota::Rate { per_minute: None, per_session: Some(1) };
        let limits =
            quota::Config { meta: vec![("tool_execute".into(), one)], ..quota::Config::default() };
        parts.policies.stages.quota = Arc::new(quota::Limiter::new(limits, Arc::clone(clock) as _));
    })
    .await;
    let dry = |id: &str| json!({"tool_id": id, "args": {"path": "x"}, "dry_run": true});
    for _ in 0..3 {
        let report = opened.say("tool_execute", dry("demo:read_file")).await;
        let report: Value = serde_json::from_str(report.lines().next().unwrap()).unwrap();
        assert_eq!(
            report["checks"],
            json!([{"name": "schema_validation", "status": "pass"}, {"name": "rate_limit", "status": "pass"}])
        );
        assert_eq!(report["annotations"], json!({"readOnlyHint": true, "verified": false}));
        assert_eq!(report["upstream_name"], "demo.read_file");
    }
    let report = opened.say("tool_execute", dry("demo:delete_file")).await;
    assert!(report.contains(r#"{"name":"policy","status":"POLICY_DENIED"}"#), "{report}");
    let run = |id: &str| json!({"tool_id": id, "args": {"path": "x"}});
    assert_eq!(
        opened.error("tool_execute", run("demo:delete_file")).await["error"],
        "POLICY_DENIED"
    );
    assert!(opened.say("tool_execute", run("demo:read_file")).await.starts_with("hello"));
    let error = opened.error("tool_execute", run("demo:read_file")).await;
    assert_eq!(
        (error["error"].as_str(), error["retryable"].as_bool()),
        (Some("RATE_LIMITED"), Some(false))
    );
    assert_eq!(error["details"]["scope"], "tool_execute/session");
}

#[tokio::test(start_paused = true)]
async fn a_kept_answer_is_given_again_and_marked() {
    let opened = open_on(Surface::Gateway, |parts, clock| {
        let config = cache::Config { read_only: true, ..cache::Config::default() };
        parts.policies.stages.cache =
            Arc::new(cache::ReplyCache::new(config, Arc::clone(clock) as _));
    })
    .await;
    let calls = || opened.provider.asked().iter().filter(|ask| matches!(ask, Ask::Call(_))).count();
    let call = |path: &str| json!({"tool_id": "demo:read_file#1ba6cdc9", "args": {"path": path}});
    opened.ask("tool_execute", call("x")).await;
    let Reply::Result(again) = opened.ask("tool_execute", call("x")).await else {
        panic!("no result")
    };
    assert_eq!(again.to_value().unwrap()["_meta"]["gatelet/cache_hit"], true);
    assert_eq!(calls(), 1);
    opened.ask("tool_execute", call("y")).await;
    assert_eq!(calls(), 2);
    // A new catalog forgets everything.
    opened
        .provider
        .relist(Listing { tools: opened.provider.listing().tools.clone(), ..Listing::default() });
    settle().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    opened.ask("tool_execute", call("x")).await;
    assert_eq!(calls(), 3);
    let _ = &opened.gate;
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_no_longer_than_its_tool_says() {
    let mut time = None;
    let opened = open_on(Surface::Gateway, |parts, clock| {
        let config = cache::Config { read_only: true, ..cache::Config::default() };
        parts.policies.stages.cache =
            Arc::new(cache::ReplyCache::new(config, Arc::clone(clock) as _));
        time = Some(Arc::clone(clock));
    })
    .await;
    let mut tools = opened.provider.listing().tools.clone();
    for tool in &mut tools {
        let mut raw = tool.raw.to_value().unwrap();
        raw["_meta"] = json!({"gatelet/tool": {"cache_ttl": 0.5}});
        *tool = Tool::parse(raw.into()).unwrap();
    }
    opened.provider.relist(Listing { tools, ..Listing::default() });
    settle().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let calls = || opened.provider.asked().iter().filter(|ask| matches!(ask, Ask::Call(_))).count();
    let call = || json!({"tool_id": "demo:read_file", "args": {"path": "x"}});
    opened.ask("tool_execute", call()).await;
    opened.ask("tool_execute", call()).await;
    assert_eq!(calls(), 1);
    time.unwrap().advance(Duration::from_secs(1));
    opened.ask("tool_execute", call()).await;
    assert_eq!(calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_on_the_live_path_only_where_that_is_safe() {
    let opened = open_on(Surface::Gateway, |parts, clock| {
        let retry = retry::Config { attempts: 3, ..retry::Config::default() };
        let config = attempt::Config { retry, ..attempt::Config::default() };
        parts.policies.stages.retry =
            Arc::new(UpstreamCaller::new(config, Arc::clone(clock) as _, || 0.0));
    })
    .await;
    let error = opened.error("tool_execute", json!({"tool_id": "demo:boom", "args": {}})).await;
    assert_eq!(error["retryable"], false);
    assert_eq!(opened.provider.asked().iter().filter(|ask| matches!(ask, Ask::Call(_))).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn resources_and_prompts_are_browsed_and_read() {
    let opened = open().await;
    let found = opened.say("resource_browse", json!({"query": "readme", "top_k": 1})).await;
    assert_eq!(found, "resource::file:README#4b5415a9 Start here.");
    let template =
        opened.say("resource_browse", json!({"query": "log of a day", "top_k": 1})).await;
    assert!(template.ends_with("(uri: log:///{day})"), "{template}");
    assert_eq!(
        opened.say("resource_browse", json!({"path": "/log/logs"})).await.lines().count(),
        1
    );
    let id = template.split(' ').next().unwrap();
    let error = opened.error("resource_read", json!({"resource_id": id})).await;
    assert_eq!(error["details"]["uri_template"], "log:///{day}");
    assert_eq!(opened.say("resource_read", json!({"uri": "log:///monday"})).await, "# Hi");
    let Some(Ask::ReadResource(read)) = opened.provider.asked().into_iter().next_back() else {
        panic!("no read")
    };
    assert_eq!(read.uri, "log:///monday");
    assert_eq!(opened.say("resource_browse", json!({"path": "/file/readme"})).await, found);
    assert_eq!(
        opened.say("resource_read", json!({"resource_id": "resource::file:README"})).await,
        "# Hi"
    );
    let found = opened.say("prompt_browse", json!({"query": "greet"})).await;
    assert!(
        found.starts_with("prompt::demo:demo.greet#")
            && found.ends_with("Says hello.\n  (who: string)"),
        "{found}"
    );
    assert_eq!(opened.say("prompt_browse", json!({"query": "hello"})).await, found);
    let id = found.split(' ').next().unwrap();
    assert_eq!(
        opened.say("prompt_get", json!({"prompt_id": id, "args": {"who": "Ann"}})).await,
        "[user] Hi Ann"
    );
    assert_eq!(opened.error("prompt_get", json!({"prompt_id": id})).await["error"], "ARGS_INVALID");
    assert_eq!(
        opened.error("prompt_get", json!({"prompt_id": "x"})).await["error"],
        "PROMPT_NOT_FOUND"
    );
    assert_eq!(
        opened.error("resource_read", json!({"resource_id": "x"})).await["error"],
        "RESOURCE_NOT_FOUND"
    );
}

#[tokio::test(start_paused = true)]
async fn stable_browsing_keeps_its_beginning() {
    let opened = open_on(Surface::Gateway, |parts, _| {
        parts.server.meta = meta::Config { cache_stable: true, ..meta::Config::default() }
    })
    .await;
    let first = opened.say("tool_browse", json!({"query": "delete file", "top_k": 1})).await;
    let second = opened.say("tool_browse", json!({"path": "/demo"})).await;
    let lines: Vec<&str> = second.lines().collect();
    assert_eq!(lines[0], first.lines().next().unwrap());
    assert!(lines.contains(&"__cache_breakpoint__"));
    assert!(second.contains("demo:read_file#") && second.contains("demo:boom#"));
}

#[tokio::test(start_paused = true)]
async fn what_was_browsed_is_remembered_beyond_the_request() {
    let opened = open_on(Surface::Gateway, |parts, _| {
        parts.server.meta = meta::Config { cache_stable: true, ..meta::Config::default() }
    })
    .await;
    // Clients without sessions come in by the door with every request.
    let browse = async |subject: &str, arguments: Value| {
        let caller = Identity { subject: subject.to_owned(), ..Identity::default() };
        let (client, caller) = (Arc::new(Client::named("test", "")), Arc::new(caller));
        let context = Context { caller: Arc::clone(&caller), ..Context::anonymous() };
        let surface = opened.gate.surface(Surface::Gateway).provider_for(&client, &caller);
        let ask = Ask::Call(Call::new("tool_browse", arguments.into()));
        surface.ask(ask, &context).await.unwrap().tool_result().unwrap().text()
    };
    let first = browse("ann", json!({"query": "delete file", "top_k": 1})).await;
    let second = browse("ann", json!({"path": "/demo"})).await;
    assert_eq!(second.lines().next(), first.lines().next());
    assert!(second.contains("__cache_breakpoint__"), "{second}");
    let other = browse("bob", json!({"path": "/demo"})).await;
    assert!(!other.contains("__cache_breakpoint__"), "{other}");
}

#[tokio::test(start_paused = true)]
async fn the_proxy_lists_everything_stripped_and_runs_it() {
    let opened = open_on(Surface::Proxy, |_, _| {}).await;
    let listing = opened.surface.listing();
    assert_eq!(listing.tools.len(), 8);
    let stripped = listing.tools.iter().find(|tool| tool.name.contains("read_file")).unwrap();
    assert_eq!(
        stripped.raw.as_str(),
        r#"{"name":"demo-_read_file-h1ba6cdc9","description":"read_file does a thing.","inputSchema":{"type":"object"}}"#
    );
    let all = opened.say("tool_hydrate", json!({"tool_id": "demo:read_file#1ba6cdc9"})).await;
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all["args_schema"]["required"], json!(["path"]));
    assert_eq!(all["annotations"]["readOnlyHint"], true);
    let args = json!({"path": "x"});
    assert_eq!(
        opened
            .say("tool_execute", json!({"tool_id": "demo:read_file#1ba6cdc9", "args": args}))
            .await,
        "hello"
    );
    assert_eq!(opened.say("demo-_read_file-h1ba6cdc9", args).await, "hello");
    assert_eq!(
        opened.error("tool_hydrate", json!({"tool_id": "no:pe#00000000"})).await["error"],
        "HYDRATE_FAILED"
    );
}

#[tokio::test(start_paused = true)]
async fn the_direct_surface_passes_everything_as_it_is() {
    let opened = open_on(Surface::Direct, |_, _| {}).await;
    let listing = opened.surface.listing();
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["demo_read_file", "demo_delete_file", "demo_boom", "demo_big", "demo_leak"]);
    assert_eq!(listing.resources.len(), 1);
    let odd = Json::parse(r#"{"path" : 1e400, "extra":[ ]}"#).unwrap();
    let reply = opened
        .surface
        .ask(Ask::Call(Call::new("demo_read_file", odd.clone())), &Context::anonymous())
        .await;
    assert_eq!(reply.unwrap(), Reply::text("hello"));
    let Some(Ask::Call(call)) = opened.provider.asked().into_iter().next_back() else {
        panic!("no call")
    };
    assert_eq!(call.arguments, Some(odd));
    // Long answers pass whole, and failures as failures.
    let big = opened.ask("demo_big", json!({})).await;
    assert!(30_000 < big.tool_result().unwrap().text().len());
    let boom = opened
        .surface
        .ask(Ask::Call(Call::new("boom", Json::empty_object())), &Context::anonymous())
        .await;
    let Err(Failure::Unauthorized { reason, .. }) = boom else { panic!("{boom:?}") };
    assert_eq!(reason, "401 with [REDACTED-SECRET]");
}

#[test]
fn auto_goes_by_the_client() {
    let surface = |name: &str| Surface::Auto.for_client(&Client::named(name, ""));
    assert_eq!((surface("mcp-inspector"), surface("other")), (Surface::Direct, Surface::Cash));
    assert_eq!("proxy".parse::<Surface>(), Ok(Surface::Proxy));
    assert!("x".parse::<Surface>().is_err());
}
