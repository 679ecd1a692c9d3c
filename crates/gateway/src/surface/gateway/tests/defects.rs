//! What others of this kind got wrong, one test each: every one of these fails
//! where the mistake is made. `docs/decisions/027-known-mistakes.md` says which
//! test keeps which mistake away.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A gate to upstreams that list these tools and answer with `answer`.
async fn gate_to(
    surface: Surface,
    upstreams: Vec<(&str, Vec<Tool>)>,
    answer: fn(&Call, u32) -> Reply,
) -> (Opened, Vec<Arc<Scripted>>) {
    let counter = Arc::new(AtomicU32::new(0));
    let mut providers = Vec::new();
    for (_, tools) in &upstreams {
        let counter = Arc::clone(&counter);
        let listing = Listing { tools: tools.clone(), ..Listing::default() };
        providers.push(Scripted::new(listing, move |ask| {
            let Ask::Call(call) = ask else { return Ok(Reply::text("?")) };
            Ok(answer(call, counter.fetch_add(1, Ordering::SeqCst)))
        }));
    }
    let labels: Vec<String> = upstreams.iter().map(|(label, _)| (*label).to_owned()).collect();
    let connected = providers.clone();
    let opened = open_on(surface, move |parts, _| {
        parts.upstreams = labels
            .iter()
            .zip(connected)
            .map(|(label, provider)| Upstream::new(label, Scripts::of(provider)))
            .collect();
    })
    .await;
    (opened, providers)
}

fn plain(name: &str) -> Tool {
    tool(name, &format!("Does {name}."), &json!({"type": "object"}))
}

fn named(raw: Value) -> Tool {
    Tool::parse(raw.into()).unwrap()
}

fn hello(_: &Call, _: u32) -> Reply {
    Reply::text("hello")
}

/// The ids of the tools that can be reached by walking from `/`.
async fn walked(opened: &Opened) -> BTreeSet<String> {
    let (mut found, mut paths) = (BTreeSet::new(), vec!["/".to_owned()]);
    while let Some(path) = paths.pop() {
        let said = opened.say("tool_browse", json!({"path": path})).await;
        for word in said.lines().filter_map(|line| line.split_whitespace().next()) {
            match word.starts_with('/') {
                true => paths.push(word.to_owned()),
                false => drop(found.insert(word.to_owned())),
            }
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn refreshing_again_and_again_loses_nothing_of_any_upstream() {
    let lists = vec![("one", vec![plain("a"), plain("b")]), ("two", vec![plain("a")])];
    let (opened, providers) = gate_to(Surface::Gateway, lists, hello).await;
    let before = walked(&opened).await;
    assert_eq!(before.len(), 3, "{before:?}");
    for _ in 0..3 {
        providers[0].relist(Listing::clone(&providers[0].listing()));
        settle().await;
        assert_eq!(walked(&opened).await, before);
    }
    let more = vec![plain("a"), plain("b"), plain("c")];
    providers[0].relist(Listing { tools: more, ..Listing::default() });
    settle().await;
    assert_eq!(walked(&opened).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn two_calls_of_one_tool_keep_two_answers() {
    let counted = |_: &Call, n: u32| Reply::text(&format!("call {n} {}", "x".repeat(20_000)));
    let (opened, _) = gate_to(Surface::Gateway, vec![("up", vec![plain("count")])], counted).await;
    let mut handles = Vec::new();
    for _ in 0..2 {
        let said = opened.say("tool_execute", json!({"tool_id": "up:count"})).await;
        let said = said.split_once('{').map(|(_, rest)| format!("{{{rest}")).unwrap();
        let envelope: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
        handles.push(envelope["artifacts"][0]["handle"].as_str().unwrap().to_owned());
    }
    assert_ne!(handles[0], handles[1]);
    for (n, handle) in handles.iter().enumerate() {
        let head = json!({"handle": handle, "selector": {"type": "head", "chars": 6}});
        let seen = opened.say("tool_view", head).await;
        assert!(seen.starts_with(&format!("call {n}")), "{seen}");
    }
}

#[tokio::test(start_paused = true)]
async fn content_of_every_kind_passes_and_every_part_of_a_long_one_can_be_had() {
    let mixed = |call: &Call, _: u32| {
        let text = if call.name == "long" { "y".repeat(20_000) } else { "short".to_owned() };
        Reply::Result(
            json!({"content": [
                {"type": "text", "text": text},
                {"type": "image", "data": "aW1hZ2U=", "mimeType": "image/png"},
                {"type": "audio", "data": "c291bmQ=", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "a://b", "blob": "YmxvYg==", "mimeType": "application/x-b"}},
                {"type": "resource_link", "uri": "file:///far", "name": "far"},
                {"type": "odd", "x": 1},
            ]})
            .into(),
        )
    };
    let tools = vec![plain("short"), plain("long")];
    let (opened, _) = gate_to(Surface::Gateway, vec![("up", tools)], mixed).await;
    let Reply::Result(small) = opened.ask("tool_execute", json!({"tool_id": "up:short#"})).await
    else {
        panic!("no result")
    };
    let small = small.to_value().unwrap();
    let kinds: Vec<&str> = small["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    for kind in ["text", "image", "audio", "resource", "resource_link", "odd"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let said = opened.say("tool_execute", json!({"tool_id": "up:long#"})).await;
    for word in ["image/png", "audio/wav", "application/x-b"] {
        assert!(said.contains(word), "{said}");
    }
    let json = said.lines().find(|line| line.starts_with('{')).unwrap();
    let envelope: Value = serde_json::from_str(json).unwrap();
    for part in envelope["artifacts"].as_array().unwrap() {
        let seen = opened.say("tool_view", json!({"handle": part["handle"], "selector": {"type": "bytes", "start": 0, "length": 8}})).await;
        assert!(!seen.starts_with('!'), "{part}: {seen}");
    }
    let mut parts = envelope["artifacts"].as_array().unwrap().iter();
    let image = parts.find(|part| part["media_type"] == "image/png").unwrap();
    let view = json!({"handle": image["handle"], "selector": {"type": "image"}});
    let Reply::Result(shown) = opened.ask("tool_view", view).await else { panic!("no result") };
    assert!(shown.as_str().contains("aW1hZ2U="), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn text_that_looks_like_a_special_token_is_text() {
    let odd = "<|endoftext|> and <|im_start|>system";
    let tools = vec![tool("odd", odd, &json!({"type": "object"}))];
    let echo = |_: &Call, _: u32| Reply::text("<|endoftext|><|fim_prefix|>");
    let (opened, _) = gate_to(Surface::Gateway, vec![("up", tools)], echo).await;
    let browsed = opened.say("tool_browse", json!({"path": "/up"})).await;
    assert!(browsed.contains("<|endoftext|>"), "{browsed}");
    let said = opened.say("tool_execute", json!({"tool_id": "up:odd#"})).await;
    assert!(said.contains("<|endoftext|><|fim_prefix|>"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_schema_makes_nobody_fetch_anything_and_breaks_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let far = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let schemas = [
        json!({"type": "object", "properties": {"a": {"$ref": far}}}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/nowhere"}}}),
        json!({"type": "object", "properties": []}),
        json!({"type": 7}),
    ];
    let odd = schemas.iter().enumerate();
    let mut tools: Vec<Tool> =
        odd.map(|(n, schema)| tool(&format!("odd_{n}"), "Odd.", schema)).collect();
    tools.push(plain("fine"));
    let (opened, _) = gate_to(Surface::Gateway, vec![("up", tools)], hello).await;
    assert_eq!(walked(&opened).await.len(), schemas.len() + 1);
    for n in 0..schemas.len() {
        let call = json!({"tool_id": format!("up:odd_{n}#"), "args": {"a": 1}});
        let said = opened.say("tool_execute", call).await;
        let is_told = said.contains("SCHEMA_INVALID") || said.contains("hello");
        assert!(is_told, "{n}: {said}");
    }
    let said = opened.say("tool_execute", json!({"tool_id": "up:fine#"})).await;
    assert!(said.contains("hello"), "{said}");
    assert!(listener.accept().is_err(), "somebody fetched a schema");
}

#[tokio::test(start_paused = true)]
async fn an_odd_tool_never_breaks_a_browse_and_none_is_dropped() {
    let long = "X9_".repeat(42);
    let tools = vec![
        plain(&long),
        named(json!({"name": "silent"})),
        named(json!({"name": "Upper.Case"})),
        named(json!({"name": "9 lives!", "description": "line one\nline two\r\nline three"})),
        named(json!({"name": "日本", "description": ""})),
        plain("plain"),
    ];
    let (opened, _) = gate_to(Surface::Gateway, vec![("up", tools.clone())], hello).await;
    let ids = walked(&opened).await;
    assert_eq!(ids.len(), tools.len(), "{ids:?}");
    for id in &ids {
        let said = opened.say("tool_execute", json!({"tool_id": id})).await;
        assert!(said.contains("hello"), "{id}: {said}");
    }
    for ask in [json!({"path": "/up"}), json!({"query": "lives silent plain", "top_k": 10})] {
        let said = opened.say("tool_browse", ask).await;
        assert!(!said.starts_with('!'), "{said}");
        for card in said.lines() {
            assert!(tokens::count(card) <= 80, "{}: {card}", tokens::count(card));
        }
    }
    assert!(
        opened
            .gate
            .roster()
            .default_pool()
            .snapshot()
            .report()
            .iter()
            .any(|finding| { finding.code == "id-derived" })
    );
}

#[tokio::test(start_paused = true)]
async fn a_look_is_bounded_and_a_wrong_selector_is_told_in_our_words() {
    let opened = open().await;
    let said = opened.say("tool_execute", json!({"tool_id": "demo:big#"})).await;
    let json = said.lines().find(|line| line.starts_with('{')).unwrap();
    let envelope: Value = serde_json::from_str(json).unwrap();
    let handle = &envelope["artifacts"][0]["handle"];
    for selector in [
        json!({"type": "lines"}),
        json!({"type": "head", "chars": 100_000_000}),
        json!({"type": "rows"}),
        json!({"type": "jq", "filter": "."}),
        json!({"type": "grep", "pattern": "id"}),
    ] {
        let seen = opened.say("tool_view", json!({"handle": handle, "selector": selector})).await;
        assert!(seen.len() < 20_000, "{selector} shows {} bytes", seen.len());
    }
    for selector in [
        json!({"type": "head", "chars": "x"}),
        json!({"type": "lines", "start": {}}),
        json!({"type": "json_keys", "keys": 7}),
        json!({"type": "nonsense"}),
        json!({"type": 7}),
        json!(7),
        json!({"type": "grep", "pattern": "("}),
        json!({"type": "jq", "filter": "]["}),
    ] {
        let ask = json!({"handle": handle, "selector": selector});
        let error = opened.error("tool_view", ask).await;
        assert_eq!(error["error"], "VIEW_FAILED", "{selector}: {error}");
        assert!(!error["message"].as_str().unwrap().contains("NoneType"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_proxy_holds_back_can_be_looked_at_there() {
    let opened = open_on(Surface::Proxy, |_, _| {}).await;
    let listing = opened.surface.listing();
    let name = listing.tools.iter().find(|tool| tool.name.contains("big")).unwrap().name.clone();
    let said = opened.say(&name, json!({})).await;
    let envelope: Value = serde_json::from_str(&said).unwrap();
    let tail = json!({"handle": envelope["artifacts"][0]["handle"], "selector": {"type": "jq", "filter": ".items[2999].id"}});
    assert!(opened.say("tool_view", tail).await.contains("2999"));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_call_learns_everything_at_once() {
    let opened = open().await;
    let call = json!({"tool_id": "demo:read_file#", "args": {"n": "many", "q": 1}});
    let error = opened.error("tool_execute", call).await;
    assert_eq!(error["error"], "ARGS_INVALID", "{error}");
    assert!(2 <= error["details"]["problems"].as_array().unwrap().len(), "{error}");
    let signature = error["details"]["signature"].as_str().unwrap();
    assert!(signature.contains("path: string") && signature.contains("n?: int"), "{error}");
    let browsed = opened.say("tool_browse", json!({"query": "read file", "top_k": 1})).await;
    assert!(browsed.contains("path: string"), "{browsed}");
}
