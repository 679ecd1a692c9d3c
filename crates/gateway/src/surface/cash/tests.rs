use std::sync::Arc;
use std::time::Duration;

use catalog::tokens;
use serde_json::{Value, json};
use testkit::{Scripted, listing, tool};
use tool::{Ask, Call, Client, Context, Failure, Identity, Json, Object, Reply};

use crate::choice::Surface;
use crate::fixture::{Hung, Opened, Scripts, one, open, rows, shop};
use crate::record::Ending;
use policy::{Stages, visibility};
use roster::Upstream;
use skills::{File, Library};

mod agreeing;
mod batches;
mod looking;
mod mistakes;
mod names;
mod picking;
mod voices;

async fn opened() -> (Opened, Arc<Scripted>) {
    let (upstreams, orders) = shop();
    (open(upstreams, |_| {}).await, orders)
}

/// One upstream `up` with one function `f` that always answers this.
async fn answering(result: Value) -> Opened {
    let result = Json::from(result);
    let provider = Scripted::new(listing(vec![tool("f", "F.", &json!({}))]), move |_| {
        Ok(Reply::Result(result.clone()))
    });
    open(vec![Upstream::new("up", Scripts::of(provider))], |_| {}).await
}

#[track_caller]
fn holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn the_three_definitions_cost_little() {
    let bare = tokens::count(Json::encode(&super::tools("")).as_str());
    let token = tokens::count(r#","confirm":{"type":"string"}"#);
    let most = bare + super::definitions::MAX_MAP_TOKENS + 5 + token;
    assert!(most <= 350, "{most} tokens, {bare} without namespaces and tokens of approvals");
}

#[tokio::test(start_paused = true)]
async fn the_definition_of_help_names_the_namespaces_and_stays_within_the_budget() {
    let schema = json!({});
    let described = |labels: Vec<String>, function: &'static str| async move {
        let schema = &json!({});
        let upstreams = labels.iter().map(|l| one(l, function, "F.", schema)).collect();
        let listing = open(upstreams, |_| {}).await.surface.listing();
        let cost = crate::fixture::read_by_models(&listing.tools);
        assert!(cost <= 350, "{cost} tokens");
        listing.tools[1].description.clone().unwrap_or_default()
    };
    let few = described(vec!["mail".into(), "files".into()], "f").await;
    assert!(few.ends_with(" Namespaces: files, mail."), "{few}");
    assert_eq!(few, described(vec!["files".into(), "mail".into()], "other").await);
    let many = described((0..90).map(|n| format!("upstream_number_{n}")).collect(), "f").await;
    assert!(many.contains("upstream_number_0, ") && many.ends_with(" more."), "{many}");
    let hidden = open(vec![one("orders", "f", "F.", &schema)], |parts| {
        parts.policies.visibility = orders_for_admin().into();
    })
    .await;
    assert!(!Json::encode(&hidden.surface.listing().tools).as_str().contains("orders"));
}

#[tokio::test(start_paused = true)]
async fn a_call_reaches_its_function_in_any_spelling() {
    let (opened, orders) = opened().await;
    let call = json!({"namespace": "Or_ders.RETAIL", "function": "Create", "kwargs": {"customerID": "C", "items": "[]"}});
    assert_eq!(opened.say("call", call).await, r#"retail.create {"customer_id":"C","items":[]}"#);
    assert_eq!(orders.asked().len(), 1);
    let records = opened.records.records();
    assert_eq!(records.len(), 1);
    assert_eq!(
        (records[0].callee.upstream.as_str(), &records[0].ending),
        ("orders", &Ending::Answered)
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_function_is_answered_with_what_its_namespace_has() {
    let schema = json!({"type": "object", "properties": {"expression": {"type": "string"}}});
    let upstreams = vec![
        one("calc", "evaluate", "Computes an expression.", &schema),
        one("time", "add", "Adds a span to a moment.", &json!({})),
    ];
    let opened = open(upstreams, |_| {}).await;
    let told = opened.say("call", json!({"namespace": "calc", "function": "add"})).await;
    holds(&told, &["!**Error:** No function `add` in namespace `calc`", "calc / evaluate("]);
    let own = told.find("calc / evaluate(").unwrap();
    assert!(told.find("time / add").is_none_or(|other| own < other), "{told}");
}

#[tokio::test(start_paused = true)]
async fn results_under_the_gate_pass_byte_for_byte() {
    for result in [
        r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"}],"structuredContent":{"n":1e400},"isError":true,"_meta":{"x": 1},"odd":[ ]}"#,
        r#"{}"#,
        r#"{"content":[{"type":"hologram"}],"isError":null}"#,
        r#"{"content":[],"content":[]}"#,
    ] {
        let json = Json::parse(result.to_owned()).unwrap();
        let kept = json.clone();
        let provider = Scripted::new(listing(vec![tool("f", "F.", &json!({}))]), move |_| {
            Ok(Reply::Result(kept.clone()))
        });
        let opened = open(vec![Upstream::new("up", Scripts::of(provider))], |_| {}).await;
        let reply = opened.ask("call", json!({"namespace": "up", "function": "f"})).await;
        assert_eq!(reply, Reply::Result(json));
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_with_a_call_goes_on_with_it() {
    let (opened, orders) = opened().await;
    let rest = Object::parse(
        &json!({"_meta": {"x": 1}, "requestState": "s", "inputResponses": {}}).into(),
    );
    let call = Call {
        other_params: rest.unwrap(),
        ..Call::new("call", json!({"namespace": "orders", "function": "summary"}).into())
    };
    opened.surface.ask(Ask::Call(call), &Context::anonymous()).await.unwrap();
    let Ask::Call(asked) = &orders.asked()[0] else { panic!() };
    assert_eq!(
        asked.other_params.to_json().as_str(),
        r#"{"_meta":{"x":1},"requestState":"s","inputResponses":{}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn an_unknown_name_is_answered_with_the_nearest_and_their_signatures() {
    let (opened, orders) = opened().await;
    let told = opened.say("call", json!({"namespace": "orders", "function": "creat"})).await;
    holds(
        &told,
        &[
            "!**Error:** No function `creat` in namespace `orders`",
            "orders / create(customer_id: string, items: object[], notes?: string)",
            "help(namespace=\"orders\")",
        ],
    );
    let told = opened.say("call", json!({"namespace": "ordrs", "function": "create"})).await;
    holds(&told, &["!**Error:** No namespace `ordrs`", "orders / create(", "help()"]);
    let told = opened.say("call", json!({"function": "orders.retail.create"})).await;
    holds(&told, &["!**Error:** No function `orders.retail.create`", "orders.retail / create("]);
    let told = opened.say("help", json!({"namespace": "inventry"})).await;
    holds(&told, &["!**Error:** No namespace `inventry`", "`inventory`"]);
    let told = opened.say("help", json!({"function": "check"})).await;
    holds(&told, &["!", "help(namespace=\"inventory\", function=\"check\")"]);
    let told = opened.say("call", json!({"namespace": "orders", "function": "make_order"})).await;
    holds(
        &told,
        &["!**Error:** No function `make_order` in namespace `orders`", "orders / create("],
    );
    let told = opened.say("call", json!({"namespace": "a..b", "function": "x"})).await;
    holds(&told, &["!**Error:** `a..b` is no namespace"]);
    assert!(orders.asked().is_empty());
    let records = opened.records.records();
    let refused = |r: &crate::record::Record| {
        r.ending == Ending::Refused(policy::refusal::RefusalCode::UnknownFunction)
    };
    assert_eq!(records.iter().filter(|record| refused(record)).count(), 5, "one record per call");
}

#[tokio::test(start_paused = true)]
async fn bad_arguments_are_told_all_at_once_with_the_signature() {
    let (opened, orders) = opened().await;
    let call =
        json!({"namespace": "orders", "function": "create", "kwargs": {"items": 5, "notes": []}});
    let told = opened.say("call", call).await;
    holds(
        &told,
        &[
            "!",
            "`customer_id` is required",
            "`items` must be array",
            "`notes` must be string",
            "Signature: create(customer_id: string",
        ],
    );
    let call = json!({"namespace": "orders", "function": "get", "order_id": "7"});
    let told = opened.say("call", call).await;
    holds(&told, &["!", "`order_id` must be inside `kwargs`", r#"kwargs={"order_id":"7"}"#]);
    for (call, words) in [
        (json!({"namespace": "orders"}), "`function` is required"),
        (json!({"namespace": "orders", "function": ""}), "`function` is required"),
        (json!({"namespace": 5, "function": "x"}), "`namespace` must be a string"),
        (
            json!({"namespace": "orders", "function": "get", "kwargs": 5}),
            "`kwargs` must be an object",
        ),
        (
            json!({"namespace": "orders", "function": "summary", "sizelimit": 0}),
            "`sizelimit` must be a positive integer",
        ),
        (
            json!({"namespace": "orders", "function": "summary", "sizelimit": "x"}),
            "`sizelimit` must be a positive integer",
        ),
    ] {
        holds(&opened.say("call", call).await, &["!**Error:**", words]);
    }
    let mut many = json!({"namespace": "orders", "function": "get"});
    for n in 0..2_000 {
        many[format!("k{n}")] = json!(n);
    }
    let told = opened.say("call", many).await;
    holds(&told, &["!**Error:**", "more than 1000 members", "go into `kwargs`"]);
    assert!(told.len() < 500, "{told}");
    assert!(orders.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn kwargs_may_be_missing_null_or_text() {
    let (opened, _) = opened().await;
    for kwargs in [json!(null), json!({}), json!("{}"), json!("")] {
        let call = json!({"namespace": "orders", "function": "summary", "kwargs": kwargs});
        assert_eq!(opened.say("call", call).await, "summary {}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_is_kept_and_given_whole_without_running_again() {
    let (opened, orders) = opened().await;
    let reply = opened.ask("call", json!({"namespace": "orders", "function": "list"})).await;
    let result = reply.tool_result().unwrap();
    let text = result.text();
    let chars = rows().to_string().len();
    holds(&text, &["**Gated:**", "4,821 items", "status", "since", "gatelet", "sizelimit="]);
    assert!(!result.is_error);
    assert!(text.chars().count() < 1_000, "{text}");
    let Reply::Result(json) = &reply else { panic!() };
    let meta = json.to_value().unwrap()["_meta"]["cash/gated"].clone();
    assert_eq!(meta["chars"], chars);
    let suggested = meta["suggested"].as_u64().unwrap();
    assert!(chars as f64 * 1.02 <= suggested as f64);
    let again =
        json!({"namespace": "orders", "function": "list", "kwargs": {}, "sizelimit": suggested});
    assert_eq!(opened.say("call", again.clone()).await, rows().to_string());
    assert_eq!(orders.asked().len(), 1, "the function ran twice");
    let endings: Vec<Ending> = opened.records.records().into_iter().map(|r| r.ending).collect();
    assert_eq!(endings, [Ending::Gated, Ending::Replayed]);
    let gated = &opened.records.records()[0];
    assert!(gated.tokens_sent() * 20 < gated.tokens_raw(), "the record knows what was saved");
    opened.say("call", again).await;
    assert_eq!(orders.asked().len(), 2, "an answer given whole is spent");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_still_too_small_does_not_run_the_function_again() {
    let (opened, orders) = opened().await;
    opened.say("call", json!({"namespace": "orders", "function": "list"})).await;
    let told = opened
        .say("call", json!({"namespace": "orders", "function": "list", "sizelimit": "20000"}))
        .await;
    holds(&told, &["**Gated:**", "limit 20,000"]);
    assert_eq!(orders.asked().len(), 1);
    opened.say("call", json!({"namespace": "orders", "function": "list", "kwargs": {"status": "x"}, "sizelimit": 20000})).await;
    assert_eq!(orders.asked().len(), 2, "another call is another call");
}

#[tokio::test(start_paused = true)]
async fn a_kept_answer_can_be_read_in_parts_by_its_owner_only() {
    let (opened, _) = opened().await;
    let reply = opened.ask("call", json!({"namespace": "orders", "function": "list"})).await;
    let Reply::Result(json) = &reply else { panic!() };
    let handle = json.to_value().unwrap()["_meta"]["cash/gated"]["handle"].clone();
    let view = |more: Value| {
        let mut kwargs = json!({"handle": handle});
        for (key, value) in more.as_object().unwrap() {
            kwargs[key] = value.clone();
        }
        json!({"namespace": "gatelet", "function": "view", "kwargs": kwargs})
    };
    holds(&opened.say("call", view(json!({"jq": ".[3].o"}))).await, &["1003"]);
    holds(&opened.say("call", view(json!({"head": 20}))).await, &[r#"[{"o":1000},{"o":100"#]);
    holds(&opened.say("call", view(json!({"tail": 10}))).await, &[r#""o":5820}]"#]);
    holds(&opened.say("call", view(json!({"grep": "\"o\":1000"}))).await, &["1000"]);
    let kept = opened.say("call", json!({"namespace": "gatelet", "function": "view"})).await;
    holds(&kept, &["Kept:", "orders list"]);
    let call = Call::new("call", view(json!({"head": 20})).into());
    let stranger = Context { session: "other".into(), ..Context::anonymous() };
    let reply = opened.surface.ask(Ask::Call(call), &stranger).await.unwrap();
    holds(&reply.tool_result().unwrap().text(), &["Nothing is kept as"]);
}

#[tokio::test(start_paused = true)]
async fn the_gate_is_as_strict_as_it_is_told_to_be() {
    let (upstreams, _) = shop();
    let opened = open(upstreams, |parts| {
        parts.answers.gate = artifacts::gate::Config {
            limit: 500,
            ceiling: Some(20_000),
            gated_is_error: true,
            ..Default::default()
        };
    })
    .await;
    let told = opened
        .say("call", json!({"namespace": "orders", "function": "list", "sizelimit": 90_000}))
        .await;
    holds(&told, &["!**Gated:**", "at most 20000"]);
    holds(&opened.say("help", json!({})).await, &["500", "20000"]);
    let small = json!({"namespace": "orders", "function": "summary", "kwargs": {"sizelimit": 3}});
    holds(&opened.say("call", small).await, &["!**Gated:**"]);
}

#[tokio::test(start_paused = true)]
async fn a_functions_own_sizelimit_is_its_own() {
    let schema = json!({"properties": {"size_limit": {"type": "integer"}}});
    let opened = open(vec![one("up", "f", "F.", &schema)], |_| {}).await;
    let call = json!({"namespace": "up", "function": "f", "kwargs": {"sizelimit": 3}});
    assert_eq!(opened.say("call", call).await, r#"f {"size_limit":3}"#);
}

#[tokio::test(start_paused = true)]
async fn help_comes_in_strict_layers() {
    let (opened, _) = opened().await;
    let root = opened.say("help", json!({})).await;
    holds(
        &root,
        &[
            "# Available Namespaces\n\n- **orders** — Place and follow customer purchases.\n",
            "- **gatelet** — ",
            "`params`",
            "`query`",
            "`format`",
            "`examples`",
        ],
    );
    assert!(!root.contains("summary") && !root.contains("customer_id"), "{root}");
    let room = opened.say("help", json!({"namespace": "orders"})).await;
    holds(
        &room,
        &[
            "# orders\n",
            "## Sub-namespaces\n\n- **retail** — Create a retail order\n",
            "## Functions\n\nIn brackets: kwargs, with `?` the optional ones.\n\n",
            "- **create** — Create a new order. [customer_id, ",
        ],
    );
    // Names, and nothing else of the arguments.
    assert!(
        !room.contains("Who orders") && !room.contains("string") && !room.contains(['(', '|']),
        "{room}"
    );
    let leaf = opened.say("help", json!({"namespace": "orders", "function": "create"})).await;
    holds(
        &leaf,
        &[
            "# orders.create\n\nCreate a new order.",
            "| customer_id | string | yes | Who orders. |",
            "| notes | string | no |",
            "## Returns",
            "params=\"full\"",
        ],
    );
    let full = opened.say("help", json!({"namespace": "orders", "function": "create", "params": "full", "kwargs": {"examples": true}})).await;
    holds(
        &full,
        &[
            "```json",
            r#"call(namespace="orders", function="create", kwargs={"customer_id":"…","items":[{}]})"#,
        ],
    );
    for extra in [
        json!({"kwargs": {"zzz": 1}}),
        json!({"zzz": 1}),
        json!({"kwargs": "odd"}),
        json!({"namespace": ""}),
    ] {
        assert_eq!(opened.say("help", extra).await, root);
    }
}

#[tokio::test(start_paused = true)]
async fn help_can_be_json() {
    let (opened, _) = opened().await;
    let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let root = read(opened.say("help", json!({"kwargs": {"format": "json"}})).await);
    assert_eq!(root["namespaces"][0]["name"], "orders");
    let room = read(
        opened.say("help", json!({"namespace": "orders", "kwargs": {"format": "json"}})).await,
    );
    assert_eq!(
        (&room["namespaces"][0]["kind"], &room["functions"][0]["kind"]),
        (&json!("namespace"), &json!("function"))
    );
    let leaf = read(
        opened
            .say(
                "help",
                json!({"namespace": "orders", "function": "create", "kwargs": {"format": "json"}}),
            )
            .await,
    );
    assert_eq!(leaf["parameters"][0]["name"], "customer_id");
    let found =
        read(opened.say("help", json!({"kwargs": {"format": "json", "query": "stock"}})).await);
    assert_eq!(found["functions"][0]["function"], "check");
}

#[tokio::test(start_paused = true)]
async fn a_query_finds_functions_in_all_namespaces_with_their_signatures() {
    let (opened, _) = opened().await;
    let found = opened.say("help", json!({"kwargs": {"query": "is the product in stock"}})).await;
    holds(&found, &["\ninventory / check(product_id?: string, quantity?: integer) — Check stock."]);
    let found = opened.say("call", json!({"namespace": "gatelet", "function": "find", "kwargs": {"query": "update a contact", "limit": 1}})).await;
    holds(&found, &["\ncrm / contact_update("]);
    let within =
        opened.say("help", json!({"namespace": "orders", "kwargs": {"query": "stock"}})).await;
    assert!(!within.contains("inventory"), "{within}");
}

#[tokio::test(start_paused = true)]
async fn a_query_that_nothing_matches_is_told_so_in_few_words() {
    let (opened, _) = opened().await;
    for query in ["photosynthesis of tropical ferns", "zzzz qqqq", &"x".repeat(4_000)] {
        let found = opened.say("help", json!({"kwargs": {"query": query}})).await;
        assert!(found.starts_with("Nothing matches."), "{found}");
        assert!(catalog::tokens::count(&found) <= 100, "{found}");
    }
}

#[tokio::test(start_paused = true)]
async fn five_hits_take_at_most_400_tokens_and_more_come_when_asked_for() {
    let long = "Sends the monthly report to everybody who wants it ".repeat(20);
    let properties: serde_json::Map<String, Value> =
        (0..30).map(|n| (format!("report_field_{n}"), json!({"type": "string"}))).collect();
    let schema = json!({"properties": properties});
    let names: Vec<String> = (0..12).map(|n| format!("send_report_{n}")).collect();
    let upstreams = names.iter().map(|name| one(name, name, &long, &schema)).collect();
    let opened = open(upstreams, |_| {}).await;
    let found = opened.say("help", json!({"kwargs": {"query": "send a report"}})).await;
    assert!(catalog::tokens::count(&found) <= 400, "{found}");
    assert_eq!(found.matches(" / send_report").count(), 5, "{found}");
    let found = opened.say("help", json!({"kwargs": {"query": "send a report", "limit": 9}})).await;
    assert_eq!(found.matches(" / send_report").count(), 9, "{found}");
}

#[tokio::test(start_paused = true)]
async fn odd_argument_names_are_shown_under_legal_ones_and_both_are_understood() {
    let schema =
        json!({"properties": {"per-page": {"type": "integer"}, "$filter": {"type": "string"}}});
    let opened = open(vec![one("up", "f", "F.", &schema)], |_| {}).await;
    let leaf = opened.say("help", json!({"namespace": "up", "function": "f"})).await;
    holds(&leaf, &["| per_page | integer | no | Upstream: `per-page`. |", "| filter | string |"]);
    let call =
        json!({"namespace": "up", "function": "f", "kwargs": {"per_page": 3, "$filter": "x"}});
    assert_eq!(opened.say("call", call).await, r#"f {"per-page":3,"$filter":"x"}"#);
}

#[tokio::test(start_paused = true)]
async fn long_lists_come_in_pages() {
    let tools = (0..450).map(|n| tool(&format!("f{n}"), "F.", &json!({}))).collect();
    let provider = Scripted::new(listing(tools), |_| Ok(Reply::text("")));
    let opened = open(vec![Upstream::new("up", Scripts::of(provider))], |_| {}).await;
    let first = opened.say("help", json!({"namespace": "up"})).await;
    holds(&first, &["**f0**", "**f199**", "250 more: `page` 2"]);
    assert!(!first.contains("**f200**"));
    let last = opened.say("help", json!({"namespace": "up", "kwargs": {"page": 3}})).await;
    holds(&last, &["**f449**"]);
    assert!(!last.contains("more:"));
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_is_away_keeps_its_place_and_says_why() {
    let away = Scripts::new(|_, _| Err(Failure::Unavailable { reason: "no such\nprogram".into() }));
    let (mut upstreams, _) = shop();
    upstreams.push(Upstream::new("away", away));
    let opened = open(upstreams, |_| {}).await;
    holds(
        &opened.say("help", json!({})).await,
        &["- **away** (available: false — unavailable: no such program)"],
    );
    holds(
        &opened.say("help", json!({"namespace": "away"})).await,
        &["unavailable: no such program"],
    );
    let status = opened.say("call", json!({"namespace": "gatelet", "function": "status"})).await;
    holds(&status, &["1 of 4 upstreams is unavailable.\n\n- away: UNAVAILABLE: no such program"]);
    for namespace in ["away", "away.below"] {
        let told = opened.say("call", json!({"namespace": namespace, "function": "x"})).await;
        holds(&told, &["!**Error:**", "`away` is unavailable: no such program"]);
    }
    assert_eq!(
        opened.say("call", json!({"namespace": "orders", "function": "summary"})).await,
        "summary {}"
    );
}

#[tokio::test(start_paused = true)]
async fn failures_say_whether_the_function_may_have_run() {
    for (failure, words) in [
        (Failure::Unavailable { reason: "gone".into() }, "is unavailable: gone."),
        (Failure::Lost { reason: "reset".into(), sent: tool::Sent::Perhaps }, "may have run"),
        (Failure::RateLimited { retry_after: None, sent: tool::Sent::No }, "try again later"),
        (Failure::Unauthorized { reason: "who?".into(), sent: tool::Sent::No }, "who?"),
        (
            Failure::Unauthorized { reason: "who?".into(), sent: tool::Sent::Perhaps },
            "may have run",
        ),
        (Failure::Forbidden { reason: "no".into(), sent: tool::Sent::Perhaps }, "may have run"),
        (Failure::Unusable { reason: "odd".into() }, "may have run"),
        (Failure::Timeout { after: Duration::from_secs(1) }, "may have run"),
    ] {
        let cause = failure.clone();
        let provider =
            Scripted::new(listing(vec![tool("f", "F.", &json!({}))]), move |_| Err(cause.clone()));
        let opened = open(vec![Upstream::new("up", Scripts::of(provider))], |_| {}).await;
        let told = opened.say("call", json!({"namespace": "up", "function": "f"})).await;
        holds(&told, &["!**Error:**", words]);
        let answer = opened.ask("call", json!({"namespace": "up", "function": "f"})).await;
        let Reply::Result(answer) = answer else { panic!("{answer:?}") };
        let answer = answer.to_value().unwrap();
        let may_have_run = failure.sent() == tool::Sent::Perhaps;
        assert_eq!(answer["_meta"]["cash/error"]["mayHaveRun"], may_have_run, "{answer}");
        assert_eq!(told.contains("may have run"), may_have_run, "{told}");
        assert_eq!(opened.records.records()[0].ending, Ending::Failed(failure));
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_that_memory_does_not_know_is_looked_for_at_its_upstream() {
    let shelf = Arc::new(roster::listing_store::InMemory::default());
    let upstream = |names: &[&str]| {
        let tools = names.iter().map(|name| tool(name, "It.", &json!({}))).collect();
        let provider = Scripted::new(listing(tools), |_| Ok(Reply::text("done")));
        let start = roster::Start::OnDemand;
        Upstream { start, ..Upstream::new("up", Scripts::of(provider)) }
    };
    let keep = Arc::clone(&shelf);
    drop(open(vec![upstream(&["old"])], |parts| parts.roster.listing_store = keep).await);
    let opened =
        open(vec![upstream(&["old", "new"])], |parts| parts.roster.listing_store = shelf).await;
    holds(&opened.say("help", json!({})).await, &["- **up** — It\n"]);
    let as_json = json!({"kwargs": {"format": "json"}});
    holds(&opened.say("help", as_json).await, &["\"remembered\":true"]);
    let call = |name: &str| json!({"namespace": "up", "function": name});
    assert_eq!(opened.say("call", call("new")).await, "done");
    holds(
        &opened.say("call", call("newer")).await,
        &["!**Error:** No function `newer`", "up / new()"],
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_upstream_is_passed_on_as_it_is() {
    let error = tool::RpcError::new(-32602, "no");
    let told = error.clone();
    let provider = Scripted::new(listing(vec![tool("f", "F.", &json!({}))]), move |_| {
        Ok(Reply::Error(told.clone()))
    });
    let opened = open(vec![Upstream::new("up", Scripts::of(provider))], |_| {}).await;
    let reply = opened.ask("call", json!({"namespace": "up", "function": "f"})).await;
    assert_eq!(reply, Reply::Error(error));
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_hangs_up_leaves_one_record_too() {
    let provider =
        Scripted::new(listing(vec![tool("f", "F.", &json!({}))]), |_| Ok(Reply::text("")));
    let scripts = Scripts::new(move |_, _| Ok(Arc::new(Hung(Arc::clone(&provider))) as _));
    let hung = open(vec![Upstream::new("up", scripts)], |_| {}).await;
    let asking = hung.ask("call", json!({"namespace": "up", "function": "f"}));
    assert!(tokio::time::timeout(Duration::from_secs(1), asking).await.is_err());
    let records = hung.records.records();
    assert_eq!((records.len(), &records[0].ending), (1, &Ending::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn resources_and_prompts_of_all_upstreams_are_there() {
    let listed = tool::Listing {
        resources: vec![tool::Resource::parse(json!({"uri": "shop://1", "x": 1}).into()).unwrap()],
        prompts: vec![tool::Prompt::parse(json!({"name": "greet"}).into()).unwrap()],
        ..listing(vec![])
    };
    let provider = Scripted::new(listed, |ask| Ok(Reply::text(&ask.params().to_string())));
    let opened = open(vec![Upstream::new("up", Scripts::of(provider))], |_| {}).await;
    let listing = opened.surface.listing();
    assert_eq!(listing.resources[0].raw.as_str(), r#"{"uri":"shop://1","x":1}"#);
    assert_eq!(listing.tools.len(), 3);
    for (method, params) in [
        ("resources/read", r#"{"uri":"shop://1"}"#),
        ("prompts/get", r#"{"name":"greet"}"#),
        ("resources/subscribe", r#"{"uri":"shop://1"}"#),
        ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"greet"}}"#),
    ] {
        let ask = Ask::parse(method, &Json::parse(params).unwrap()).unwrap();
        let reply = opened.surface.ask(ask, &Context::anonymous()).await.unwrap();
        assert_eq!(reply.tool_result().unwrap().text(), params);
    }
    let ask = Ask::parse("resources/read", &Json::parse(r#"{"uri":"x://"}"#).unwrap()).unwrap();
    let reply = opened.surface.ask(ask, &Context::anonymous()).await.unwrap();
    assert!(matches!(reply, Reply::Error(error) if error.code == -32002));
}

/// Lets nobody but `admin` see the orders.
fn orders_for_admin() -> visibility::Config {
    let orders = || vec!["orders".parse().unwrap()];
    let admin = vec!["subject:admin".parse().unwrap()];
    let rules = vec![
        visibility::Rule { callers: admin, show: orders(), ..visibility::Rule::default() },
        visibility::Rule { hide: orders(), ..visibility::Rule::default() },
    ];
    visibility::Config { rules, ..visibility::Config::default() }
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_may_not_see_does_not_exist() {
    let (upstreams, orders) = shop();
    let opened =
        open(upstreams, |parts| parts.policies.visibility = orders_for_admin().into()).await;
    assert!(!opened.say("help", json!({})).await.contains("orders"));
    for hidden in [
        opened.say("call", json!({"namespace": "orders", "function": "create"})).await,
        opened.say("help", json!({"namespace": "orders"})).await,
        opened.say("help", json!({"namespace": "orders", "function": "create"})).await,
    ] {
        assert!(hidden.starts_with("!**Error:** No namespace `orders`."), "{hidden}");
        assert!(!hidden.contains("orders /"), "{hidden}");
    }
    assert!(!opened.say("help", json!({"kwargs": {"query": "order"}})).await.contains("orders /"));
    assert!(orders.asked().is_empty());
    let admin = Identity { subject: "admin".into(), ..Identity::default() };
    let context = Context { caller: Arc::new(admin), ..Context::anonymous() };
    let call = Call::new("call", json!({"namespace": "orders", "function": "summary"}).into());
    let reply = opened.surface.ask(Ask::Call(call), &context).await.unwrap();
    assert_eq!(reply.tool_result().unwrap().text(), "summary {}");
}

#[tokio::test(start_paused = true)]
async fn skills_are_listed_then_told() {
    let text = "---\nname: createorderwithcheck\ndescription: Create an order after a stock check. More.\n---\n\n1. Ask for {{customer_id}}.\n";
    let file = File { path: "orders/createorderwithcheck/SKILL.md".into(), text: text.into() };
    let (upstreams, orders) = shop();
    let opened = open(upstreams, |parts| parts.skills = Library::parse(&[file]).0).await;
    holds(
        &opened.say("skill", json!({})).await,
        &[
            "## namespace orders",
            "- **createorderwithcheck** — Create an order after a stock check.",
        ],
    );
    for asked in [
        json!({"namespace": "Orders", "skillname": "Create_Order_With_Check", "kwargs": {"customerID": "C-1"}}),
        json!({"namespace": "orders", "name": "createorderwithcheck", "customer_id": "C-1"}),
        json!({"skillname": "createorderwithcheck", "kwargs": {"customer_id": "C-1", "zzz": 1}}),
    ] {
        assert_eq!(opened.say("skill", asked).await, "# createorderwithcheck\n\n1. Ask for C-1.");
    }
    holds(
        &opened.say("skill", json!({"skillname": "createorder"})).await,
        &["!**Error:** No skill `createorder`", "createorderwithcheck", "skill()"],
    );
    holds(
        &opened.say("skill", json!({"name": "x", "path": "scripts/a.py"})).await,
        &["!**Error:** Skills are text only"],
    );
    assert!(orders.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_beside_the_three_is_refused_with_advice() {
    let (opened, _) = opened().await;
    let reply = opened.ask("create", json!({})).await;
    assert!(matches!(reply, Reply::Error(error) if error.message.contains("`call`")));
}

#[tokio::test(start_paused = true)]
async fn a_question_back_to_the_client_passes_whatever_its_size() {
    let pad = "x".repeat(20_000);
    let result = json!({"resultType": "input_required", "inputRequests": {"a": pad}});
    let opened = answering(result.clone()).await;
    let reply = opened.ask("call", json!({"namespace": "up", "function": "f"})).await;
    assert_eq!(reply, Reply::Result(result.into()));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_asked_about_where_it_runs() {
    let provider = Scripted::new(listing(vec![tool("f", "F.", &json!({}))]), |ask| {
        Ok(match ask {
            Ask::Call(_) => Reply::Result(json!({"task": {"taskId": "t1"}}).into()),
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Reply::text(ask.method())
            }
        })
    });
    let (mut upstreams, _) = shop();
    upstreams.push(Upstream::new("up", Scripts::of(provider)));
    let opened = open(upstreams, |_| {}).await;
    opened.ask("call", json!({"namespace": "up", "function": "f"})).await;
    let get = |id: &str| Ask::parse("tasks/get", &json!({"taskId": id}).into()).unwrap();
    let reply = opened.surface.ask(get("t1"), &Context::anonymous()).await.unwrap();
    assert_eq!(reply.tool_result().unwrap().text(), "tasks/get");
    let reply = opened.surface.ask(get("t2"), &Context::anonymous()).await.unwrap();
    assert!(matches!(reply, Reply::Error(_)));
}

#[tokio::test(start_paused = true)]
async fn the_door_gives_clients_that_are_alike_the_same_hall() {
    let (opened, _) = opened().await;
    let source = opened.gateway.surface(Surface::Cash);
    let client = |capabilities: Value| {
        Arc::new(Client { capabilities: capabilities.into(), ..Client::named("c", "") })
    };
    source.provider_for(&client(json!({"sampling": {}})), &Arc::default());
    source.provider_for(&client(json!({"sampling": {}, "x": 1})), &Arc::default());
    source.provider_for(&client(json!({})), &Arc::default());
    assert_eq!(opened.gateway.roster().pools().len(), 2);
}

/// A gate whose one function answers with this, and what it says to that.
async fn gated(result: Value) -> (Opened, String, String) {
    let provider = testkit::Scripted::new(
        testkit::listing(vec![testkit::tool("long", "Long.", &json!({}))]),
        move |_| Ok(Reply::Result(result.clone().into())),
    );
    let upstream = roster::Upstream::new("up", crate::fixture::Scripts::of(provider));
    let opened = open(vec![upstream], |_| {}).await;
    let said = opened.say("call", json!({"namespace": "up", "function": "long"})).await;
    let at = said.find("kept as `").unwrap() + 9;
    let handle = said[at..].split('`').next().unwrap().to_owned();
    (opened, said, handle)
}

fn look(handle: &str, part: Value) -> Value {
    let mut kwargs = part;
    kwargs["handle"] = json!(handle);
    json!({"namespace": "gatelet", "function": "view", "kwargs": kwargs})
}

#[tokio::test(start_paused = true)]
async fn lines_are_counted_as_readers_count_them() {
    let text = (1..=2000).map(|n| format!("L{n}")).collect::<Vec<_>>().join("\n");
    let long = text.clone() + &" ".repeat(10_000);
    let (opened, _, handle) = gated(json!({"content": [{"type": "text", "text": long}]})).await;
    let said = opened.say("call", look(&handle, json!({"lines": "1-3"}))).await;
    assert!(said.starts_with("L1\nL2\nL3\n[lines 1-3 of 2000"), "{said}");
    let said = opened.say("call", look(&handle, json!({"lines": "7"}))).await;
    assert!(said.starts_with("L7\n[lines 7-7"), "{said}");
    let found = opened.say("call", look(&handle, json!({"grep": "^L12$"}))).await;
    assert!(found.starts_with("12:L12\n"), "{found}");
    let said = opened.say("call", look(&handle, json!({"lines": "12"}))).await;
    assert!(said.starts_with("L12\n"), "what grep counts, lines understands: {said}");
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_asked_for_wrongly_is_an_error_that_says_how() {
    let text = "x".repeat(20_000);
    let (opened, _, handle) = gated(json!({"content": [{"type": "text", "text": text}]})).await;
    for (part, told) in [
        (json!({"lines": "abc"}), "10-40"),
        (json!({"lines": "0-3"}), "the first line is 1"),
        (json!({"lines": "9-3"}), "10-40"),
        (json!({"head": -1}), "head"),
        (json!({"head": 5, "tail": 5}), "one of `head`, `tail`"),
        (json!({"heads": 5}), "heads"),
    ] {
        let said = opened.say("call", look(&handle, part.clone())).await;
        assert!(said.starts_with('!') && said.contains(told), "{part}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_structured_content_beside_a_short_text_is_what_is_told_and_looked_at() {
    let rows: Vec<Value> = (0..4000).map(|n| json!({"id": n})).collect();
    let result = json!({
        "content": [{"type": "text", "text": "Found 4000 rows."}],
        "structuredContent": {"rows": rows},
    });
    let (opened, said, handle) = gated(result).await;
    assert!(said.contains("4,000 items in `.rows`") && said.contains("JSON object"), "{said}");
    assert!(said.contains("Its text: Found 4000 rows."), "{said}");
    assert!(!said.contains("~1 tokens") && !said.contains("~5 tokens"), "{said}");
    let head = opened.say("call", look(&handle, json!({"head": 20}))).await;
    assert!(head.starts_with(r#"{"rows":[{"id":0},{"#), "{head}");
    let text = opened.say("call", look(&format!("{handle}/1"), json!({"head": 20}))).await;
    assert!(text.starts_with("Found 4000 rows."), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_no_list_has_is_empty() {
    let (opened, _) = opened().await;
    for page in ["2", "18446744073709551615", "0"] {
        let asked = json!({"namespace": "orders", "kwargs": {"page": page}});
        assert!(!opened.say("help", asked).await.starts_with('!'));
    }
}

#[tokio::test(start_paused = true)]
async fn the_whole_page_of_a_function_keeps_within_the_size_limit() {
    let parameter = |n: u32| (format!("p{n}"), json!({"type": "object", "description": "Long."}));
    let properties: serde_json::Map<String, Value> = (0..3_000).map(parameter).collect();
    let schema = json!({"type": "object", "properties": properties});
    let opened = open(vec![one("wide", "act", "Acts.", &schema)], |_| {}).await;
    let help = |kwargs: Value| json!({"namespace": "wide", "function": "act", "kwargs": kwargs});
    for format in ["markdown", "json"] {
        let page = opened.say("help", help(json!({"params": "full", "format": format}))).await;
        assert!(page.chars().count() < 10_000, "{} characters", page.chars().count());
        assert!(page.contains("exceeds the size limit"), "{page}");
        let size = page.split_once("sizelimit=").unwrap().1;
        let size = size.split('`').next().unwrap();
        let asked = json!({"params": "full", "format": format, "sizelimit": size});
        let whole = opened.say("help", help(asked)).await;
        assert!(whole.contains("p2999") && !whole.contains("exceeds"), "{format}");
    }
    let required: Vec<String> = (0..3_000).map(|n| format!("p{n}")).collect();
    let schema =
        json!({"type": "object", "properties": schema["properties"], "required": required});
    let opened = open(vec![one("wide", "act", "Acts.", &schema)], |_| {}).await;
    let page = opened.say("help", help(json!({}))).await;
    assert!(page.chars().count() < 1_000 && page.contains("**Gated:**"), "{page}");
}
