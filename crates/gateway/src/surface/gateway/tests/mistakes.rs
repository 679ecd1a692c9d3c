//! What is asked for otherwise than it can be is said, never left out.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_argument_that_a_meta_tool_does_not_take_runs_nothing() {
    let opened = open().await;
    let id = "demo:read_file";
    let cases = [
        (
            "tool_execute",
            json!({"tool_id": id, "args": {"path": "x"}, "dryRun": true}),
            "`dry_run`",
        ),
        ("tool_execute", json!({"tool_id": id, "arguments": {"path": "x"}}), "`args`"),
        ("tool_execute", json!({"tool_id": id, "scope": "tmp"}), "goes into `args`"),
        ("tool_browse", json!({"query": "read", "topk": 3}), "`top_k`"),
        ("tool_browse", json!({"query": "read", "limit": 3}), "`top_k`"),
        ("tool_view", json!({"handle": "h", "select": "head"}), "`selector`"),
        ("resource_read", json!({"resource_id": "r", "resourceid": "r"}), "`resource_id`"),
        ("prompt_get", json!({"prompt_id": "p", "arguments": {}}), "`args`"),
    ];
    for (tool, given, meant) in cases {
        let error = opened.error(tool, given.clone()).await;
        assert_eq!(error["error"], "ARGS_INVALID", "{given}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(meant) && message.contains(tool), "{given}: {message}");
    }
    assert_eq!(opened.provider.asked(), []);
}

#[tokio::test(start_paused = true)]
async fn a_listed_name_of_the_proxy_is_taken_by_its_own_tools() {
    let opened = open_on(Surface::Proxy, |_, _| {}).await;
    let listing = opened.surface.listing();
    let name = listing.tools.iter().find(|tool| tool.name.contains("read_file")).unwrap();
    let name = name.name.as_str();
    assert!(name.starts_with("demo-_read_file-h"), "{name}");
    let id = crate::surface::stripped::decode(name).unwrap();
    for spelt in [name, id.as_str(), "demo-_read_file", "demo:read_file"] {
        let hydrated = opened.say("tool_hydrate", json!({"tool_id": spelt})).await;
        assert!(hydrated.contains(&id) && hydrated.contains("args_schema"), "{spelt}: {hydrated}");
        let call = json!({"tool_id": spelt, "args": {"path": "x"}});
        let said = opened.say("tool_execute", call).await;
        assert!(said.starts_with("hello"), "{spelt}: {said}");
    }
    let error = opened.error("tool_execute", json!({"tool_id": "demo-_red_file"})).await;
    assert!(!error.to_string().contains("tool_browse"), "{error}");
    assert!(error["details"]["candidates"].to_string().contains(name), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_comes_beside_the_arguments_goes_on_with_the_call() {
    for surface in [Surface::Gateway, Surface::Proxy] {
        let opened = open_on(surface, |_, _| {}).await;
        let params = json!({
            "name": "tool_execute",
            "arguments": {"tool_id": "demo:read_file", "args": {"path": "x"}},
            "_meta": {"progressToken": 7},
        });
        let ask = Ask::parse("tools/call", &params.into()).unwrap();
        opened.surface.ask(ask, &Context::anonymous()).await.unwrap();
        let [Ask::Call(sent)] = &opened.provider.asked()[..] else { panic!("not one call") };
        let meta =
            sent.other_params.get("_meta").unwrap_or_else(|| panic!("{surface:?}: no _meta"));
        assert_eq!(meta.as_str(), r#"{"progressToken":7}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn more_kept_results_than_go_into_an_answer_are_counted_and_reached() {
    let opened = open().await;
    for _ in 0..60 {
        opened.say("tool_execute", json!({"tool_id": "demo:big#"})).await;
    }
    let said = opened.say("tool_view", json!({})).await;
    assert!(said.contains(" of 60"), "{said}");
    let rest = opened.say("tool_view", json!({"selector": {"type": "lines", "start": 50}})).await;
    assert_eq!(rest.matches("demo/big").count(), 10, "{rest}");
}

#[tokio::test(start_paused = true)]
async fn stable_browsing_gives_json_when_it_is_asked_for() {
    let opened = open_on(Surface::Gateway, |parts, _| {
        parts.server.meta.cache_stable = true;
    })
    .await;
    opened.say("tool_browse", json!({"query": "read a file"})).await;
    for query in ["read a file", "delete a file"] {
        let said = opened.say("tool_browse", json!({"query": query, "format": "json"})).await;
        let first = said.split("\n").next().unwrap();
        let cards: Vec<Value> = serde_json::from_str(first).unwrap_or_else(|_| panic!("{said}"));
        assert!(cards.iter().all(|card| card["id"].is_string()), "{said}");
    }
}
