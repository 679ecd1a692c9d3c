//! Parts of results, picked in the call.

use artifacts::pick::Pick;
use policy::pattern::Pattern;

use super::*;
use crate::dispatch::DefaultPicks;

#[expect(clippy::needless_pass_by_value, reason = "so that tables of calls read well")]
fn list(pick: Value) -> Value {
    json!({"namespace": "orders", "function": "list", "pick": pick})
}

fn handle_in(text: &str) -> String {
    text.split("kept as `").nth(1).and_then(|rest| rest.split('`').next()).unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn only_what_the_program_gives_comes_back_and_the_rest_is_kept() {
    let (opened, orders) = opened().await;
    let told = opened.say("call", list(json!("length"))).await;
    assert!(told.starts_with("4821"), "{told}");
    let handle = handle_in(&told);
    let view = json!({"namespace": "gatelet", "function": "view", "kwargs": {"handle": handle, "jq": ".[0].o"}});
    holds(&opened.say("call", view).await, &["1000"]);
    assert_eq!(orders.asked().len(), 1);
    let records = opened.records.records();
    assert_eq!(records[0].ending, Ending::Answered);
    assert!(40_000 < records[0].raw.as_ref().unwrap().as_bytes().len(), "the record has the whole");
}

#[tokio::test(start_paused = true)]
async fn a_short_result_leaves_nothing_behind() {
    let opened =
        answering(json!({"content": [], "structuredContent": {"a": [1, 2], "b": 3}})).await;
    let call = |pick: Value| json!({"namespace": "up", "function": "f", "pick": pick});
    assert_eq!(opened.say("call", call(json!(".b"))).await, "3");
    assert_eq!(opened.say("call", call(json!(["b"]))).await, r#"{"b":3}"#);
    assert_eq!(opened.say("call", call(json!({"count": true}))).await, "2");
    let inside = json!({"namespace": "up", "function": "f", "kwargs": {"pick": ".a[1]"}});
    assert_eq!(opened.say("call", inside).await, "2", "also among the kwargs");
    let view = json!({"namespace": "gatelet", "function": "view"});
    assert_eq!(opened.say("call", view).await, "Nothing is kept for you now.");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_fails_never_makes_the_function_run_twice() {
    let (opened, orders) = opened().await;
    let told = opened.say("call", list(json!(".nosuch | .x"))).await;
    holds(&told, &["!**Not picked:**", "The function ran", "4,821 items at `.`", "each with o"]);
    let handle = handle_in(&told);
    let told = opened.say("call", list(json!(".[2].o"))).await;
    assert!(told.starts_with("1002"), "{told}");
    assert_eq!(handle_in(&told), handle);
    assert_eq!(orders.asked().len(), 1, "the second call was answered from what was kept");
    opened.say("call", list(json!(".[2].o"))).await;
    assert_eq!(orders.asked().len(), 2, "what was answered may be asked again");
}

#[tokio::test(start_paused = true)]
async fn a_gated_result_is_picked_from_without_running_again() {
    let (opened, orders) = opened().await;
    let told = opened.say("call", json!({"namespace": "orders", "function": "list"})).await;
    holds(&told, &["**Gated:**", "`pick`"]);
    assert!(opened.say("call", list(json!("length"))).await.starts_with("4821"));
    assert_eq!(orders.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_picked_passes_the_gate_too() {
    let (opened, orders) = opened().await;
    let told = opened.say("call", list(json!("."))).await;
    holds(&told, &["**Not picked:** what it picks has at least", "10000 may go out"]);
    let mut call = list(json!("map(.o)"));
    call["sizelimit"] = json!(60_000);
    let told = opened.say("call", call).await;
    assert!(told.starts_with("[1000,1001,"), "{}", &told[..40]);
    assert_eq!(orders.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_program_with_a_mistake_is_refused_before_anything_runs() {
    let (opened, orders) = opened().await;
    let told = opened.say("call", list(json!(".items["))).await;
    holds(&told, &["!**Error:** `pick`: this is not a jq filter"]);
    let told = opened.say("call", list(json!(7))).await;
    holds(&told, &["!**Error:** `pick`: must be a jq program"]);
    let deep = "[".repeat(3_900);
    assert!(opened.say("call", list(json!(deep))).await.starts_with("!**Error:**"));
    assert!(orders.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn errors_and_questions_pass_whole() {
    let error = json!({"content": [{"type": "text", "text": "no such order"}], "isError": true});
    let opened = answering(error).await;
    let call = json!({"namespace": "up", "function": "f", "pick": ".items"});
    assert_eq!(opened.say("call", call).await, "!no such order");
    let question = json!({"resultType": "input_required", "inputRequests": {}});
    let opened = answering(question.clone()).await;
    let call = json!({"namespace": "up", "function": "f", "pick": ".items"});
    assert_eq!(opened.ask("call", call).await, Reply::Result(question.into()));
}

#[tokio::test(start_paused = true)]
async fn answers_of_servers_that_say_that_they_are_complete_are_picked_from() {
    let complete = json!({"resultType": "complete",
        "content": [{"type": "text", "text": "{\"n\": 7, \"rest\": \"long\"}"}]});
    let opened = answering(complete).await;
    let call = json!({"namespace": "up", "function": "f", "pick": ".n"});
    assert_eq!(opened.say("call", call).await, "7");
}

#[tokio::test(start_paused = true)]
async fn the_operators_shape_holds_until_the_caller_asks_for_another() {
    let (upstreams, orders) = shop();
    let opened = open(upstreams, |parts| {
        let pick = |text: &str| Pick::parse(&json!(text).into()).unwrap();
        parts.answers.default_picks = DefaultPicks(vec![
            (Pattern::new("orders.list"), pick(".[:2]")),
            (Pattern::new("orders.get"), pick(".x | .y")),
        ]);
    })
    .await;
    let told = opened.say("call", json!({"namespace": "orders", "function": "list"})).await;
    holds(&told, &[r#"[{"o":1000},{"o":1001}]"#, "shaped by the operator", "kept as `"]);
    let told = opened.say("call", list(json!(".[0].o"))).await;
    assert!(told.starts_with("1000") && !told.contains("operator"), "{told}");
    let get = json!({"namespace": "orders", "function": "get", "kwargs": {"order_id": "7"}});
    assert_eq!(
        opened.say("call", get).await,
        r#"get {"order_id":"7"}"#,
        "a shape that fails is left"
    );
    assert_eq!(orders.asked().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn tool_execute_picks_as_call_does() {
    let (opened, orders) = opened().await;
    let surface = opened.gateway.surface(Surface::Gateway);
    let client = Arc::new(Client::named("test", ""));
    let provider = surface.provider_for(&client, &Arc::default());
    let say = async |arguments: Value| {
        let ask = Ask::Call(Call::new("tool_execute", arguments.into()));
        let reply = provider.ask(ask, &Context::anonymous()).await.unwrap();
        reply.tool_result().unwrap().text()
    };
    let told = say(json!({"tool_id": "orders:list", "pick": "length"})).await;
    assert!(told.starts_with("4821") && told.contains("for tool_view"), "{told}");
    let told = say(json!({"tool_id": "orders:list", "pick": ".a.b"})).await;
    holds(&told, &["\"status\":\"error\"", "4,821 items", "handle"]);
    assert!(say(json!({"tool_id": "orders:list", "pick": "length"})).await.starts_with("4821"));
    assert_eq!(orders.asked().len(), 2);
    let told = say(json!({"tool_id": "orders:list", "pick": "["})).await;
    holds(&told, &["`pick`: this is not a jq filter"]);
}

#[tokio::test(start_paused = true)]
async fn help_of_a_function_that_says_what_it_returns_teaches_how_to_pick() {
    let raw = json!({
        "name": "list",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {
            "total": {"type": "integer"},
            "rows": {"type": "array", "items": {"type": "string"}},
        }},
    });
    let described = tool::Tool::parse(raw.into()).unwrap();
    let provider = Scripted::new(listing(vec![described]), |_| Ok(Reply::text("")));
    let opened = open(vec![Upstream::new("up", Scripts::of(provider))], |_| {}).await;
    let told = opened.say("help", json!({"namespace": "up", "function": "list"})).await;
    holds(&told, &["`pick=\".rows\"` in the call"]);
}
