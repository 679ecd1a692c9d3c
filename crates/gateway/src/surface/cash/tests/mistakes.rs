//! What a model reads after a mistake.

use std::time::Instant;

use tool::RpcError;

use super::*;

fn meta(reply: &Reply) -> Value {
    let Reply::Result(json) = reply else { panic!("{reply:?}") };
    json.to_value().unwrap()["_meta"]["cash/error"].clone()
}

#[tokio::test(start_paused = true)]
async fn arguments_in_the_wrong_place_are_answered_with_the_right_call() {
    let (opened, orders) = opened().await;
    let create = |more: Value| {
        let mut call = json!({"namespace": "orders", "function": "create"});
        more.as_object().unwrap().iter().for_each(|(k, v)| call[k] = v.clone());
        opened.say("call", call)
    };
    let right = r#"kwargs={"items":[],"customer_id":"C"}"#;
    let said = create(json!({"kwargs": {"items": []}, "customer_id": "C"})).await;
    holds(&said, &["`customer_id` must be inside `kwargs`", right]);
    for wrapper in ["args", "arguments", "params"] {
        let said = create(json!({wrapper: {"items": [], "customer_id": "C"}})).await;
        holds(&said, &[&format!("`{wrapper}` is called `kwargs` here"), right]);
        assert!(!said.contains(&format!("kwargs={{\"{wrapper}\"")), "{said}");
    }
    let whole = json!({"items": [], "customer_id": "C"});
    let said = create(json!({"kwargs": whole, "custmer": "C", "sizelimit": 9})).await;
    holds(&said, &["no such argument: `custmer` (did you mean `customer_id`?)"]);
    holds(&said, &[r#"kwargs={"items":[],"customer_id":"C"}, sizelimit=9)`"#]);
    assert_eq!(orders.asked(), []);
}

#[tokio::test(start_paused = true)]
async fn no_call_is_suggested_that_would_be_refused() {
    let (opened, _) = opened().await;
    let call = json!({"namespace": "orders", "function": "create", "kwargs": {"items": []}, "custmer": "C"});
    let said = opened.say("call", call).await;
    holds(&said, &["no such argument: `custmer`", "- `customer_id` is required", "Signature: "]);
    assert!(!said.contains("Write:"), "{said}");
    let call = json!({"namespace": "orders", "function": "create", "customer_id": 5, "items": []});
    let said = opened.say("call", call).await;
    holds(&said, &["must be inside `kwargs`", "- `customer_id` must be string, not number"]);
    assert!(!said.contains("Write:"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_wrong_is_told_at_once() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"}, "head": {"type": "integer"}, "list": {"type": "array"},
            "user_id": {"type": "string"}, "userId": {"type": "string"}, "p_at": {}, "pAt": {},
            "opt": {"type": "boolean"},
        },
    });
    let opened = open(vec![one("files", "read", "Reads.", &schema)], |_| {}).await;
    let read = |more: Value| {
        let mut call = json!({"namespace": "files", "function": "read"});
        more.as_object().unwrap().iter().for_each(|(k, v)| call[k] = v.clone());
        opened.say("call", call)
    };
    let said =
        read(json!({"kwargs": {"pat": "b", "opt": "x", "zzz": 1, "userid": "q", "list": 5}}));
    holds(
        &said.await,
        &[
            "`pat` could be any of `p_at`, `pAt`",
            "`userid` could be any of `user_id`, `userId`",
            "`opt` must be boolean",
            "`list` must be array",
            "`zzz` is not an argument",
        ],
    );
    let said = read(json!({"kwargs": {"path": "a", "PATH": "b", "head": "x"}})).await;
    holds(&said, &["`path` was given twice", "`head` must be integer"]);
    let said = read(json!({"kwargs": {"path": 5}, "sizelimit": 0})).await;
    holds(&said, &["`sizelimit` must be a positive integer", "`path` must be string"]);
    let said = read(json!({"kwargs": {"path": 5, "size_limit": -1}})).await;
    holds(&said, &["`sizelimit` must be a positive integer", "`path` must be string"]);
    let said = read(json!({"kwargs": {"path": 5, "confirm": true}})).await;
    holds(&said, &["`confirm` takes the token", "`path` must be string"]);
    let said = read(json!({"kwargs": {"pat": 1}, "head": "x", "zzz": 1})).await;
    holds(&said, &["`head` must be inside `kwargs`", "no such argument: `zzz`"]);
    holds(&said, &["`pat` could be any of", "`head` must be integer"]);
    let said = opened.say("call", json!({"namespace": 5, "function": 7, "kwargs": [1]})).await;
    holds(&said, &["`namespace` must be a string", "`function` must be a string"]);
    holds(&said, &["`kwargs` must be an object"]);
    let said =
        opened.say("call", json!({"namespace": "fils", "function": "read", "kwargs": 1})).await;
    holds(&said, &["`kwargs` must be an object", "No namespace `fils`", "files / read("]);
}

#[tokio::test(start_paused = true)]
async fn a_whole_number_is_a_size_however_it_is_written() {
    let (opened, _) = opened().await;
    for size in [json!(100.0), json!("100"), json!(1e3), json!("100.0")] {
        let call = json!({"namespace": "orders", "function": "summary", "sizelimit": size});
        assert_eq!(opened.say("call", call).await, "summary {}", "{size}");
    }
    for size in [json!(0.0), json!(-1), json!(1.5), json!("inf"), json!("NaN"), json!(1e300)] {
        let call = json!({"namespace": "orders", "function": "summary", "sizelimit": size});
        let said = opened.say("call", call).await;
        holds(&said, &["`sizelimit` must be a positive integer"]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_names_no_function_is_led_into_the_namespace() {
    let (opened, _) = opened().await;
    for function in [json!(""), json!(null), json!(7)] {
        let call = json!({"namespace": "Orders.retail", "function": function});
        let said = opened.say("call", call).await;
        holds(&said, &["`function` ", "Use `help(namespace=\"orders.retail\")`"]);
    }
    for namespace in ["", "nowhere"] {
        let said = opened.say("call", json!({"namespace": namespace, "function": ""})).await;
        holds(&said, &["`function` is required. Use `help()` to see what there is."]);
    }
}

#[tokio::test(start_paused = true)]
async fn no_mistake_buys_a_long_answer() {
    let (mut upstreams, _) = shop();
    upstreams.push(one("up", "f", "F.", &json!({"properties": {"p_q": {}, "pQ": {}}})));
    let opened = super::open(upstreams, |_| {}).await;
    let mut alike = json!({});
    (2..5_000).for_each(|n| alike[format!("p{}q", "_".repeat(n % 500 + n / 500))] = json!(n));
    let long = "k".repeat(100_000);
    let mut flat = json!({"namespace": "orders", "function": "get"});
    (0..20_000).for_each(|n| flat[format!("key{n}")] = json!(n));
    let mut open = json!({"namespace": "orders", "function": "summary"});
    (0..20_000).for_each(|n| open[format!("key{n}")] = json!(n));
    let get = |kwargs: Value| json!({"namespace": "orders", "function": "get", "kwargs": kwargs});
    for (tool, arguments) in [
        ("call", flat),
        ("call", open),
        ("call", json!({"namespace": long, "function": long})),
        ("call", json!({"namespace": "orders", "function": "get", long.clone(): 1})),
        ("call", get(json!({long.clone(): 1}))),
        ("call", json!({"namespace": "up", "function": "f", "kwargs": alike})),
        ("help", json!({"namespace": long})),
        ("help", json!({"function": long})),
        ("skill", json!({"skillname": long, "namespace": long})),
        ("call", json!({"namespace": "gatelet", "function": "view", "kwargs": {"handle": long}})),
    ] {
        let said = opened.say(tool, arguments).await;
        assert!(said.starts_with('!') && said.len() < 3_000, "{tool}: {} bytes", said.len());
    }
    let Reply::Error(error) = opened.ask(&long, json!({})).await else { panic!("a result") };
    assert!(error.message.len() < 300);
}

#[tokio::test(start_paused = true)]
async fn no_name_however_deep_keeps_the_gate_busy() {
    let (opened, _) = opened().await;
    // Squared, these would take minutes.
    let deep = "a.".repeat(100_000) + "a";
    let dots = ".".repeat(200_000);
    let mut many = Value::Object(Default::default());
    (0..50_000).for_each(|n| many[format!("key{n}")] = json!(n));
    let mut flat = many.clone();
    flat["namespace"] = json!("orders");
    flat["function"] = json!("summary");
    for (tool, arguments) in [
        ("call", json!({"namespace": deep, "function": "x"})),
        ("call", json!({"namespace": "orders", "function": deep})),
        ("call", json!({"namespace": deep})),
        ("call", flat),
        ("call", json!({"namespace": dots, "function": "x"})),
        ("help", json!({"namespace": deep})),
        ("help", json!({"namespace": deep, "function": deep})),
        ("help", many.clone()),
        ("help", json!({"kwargs": many})),
        ("skill", json!({"namespace": deep})),
        ("skill", json!({"namespace": deep, "skillname": deep})),
        ("skill", json!({"function": deep})),
    ] {
        #[expect(clippy::disallowed_methods, reason = "work is measured, which paused time is not")]
        let began = Instant::now();
        opened.say(tool, arguments).await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{tool}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_refusal_of_an_upstream_is_cut_to_a_line() {
    let told = RpcError::new(-32000, "it\nbroke ".repeat(40_000));
    let provider = Scripted::new(listing(vec![tool("f", "F.", &json!({}))]), move |_| {
        Ok(Reply::Error(told.clone()))
    });
    let opened = open(vec![Upstream::new("up", Scripts::of(provider))], |_| {}).await;
    let reply = opened.ask("call", json!({"namespace": "up", "function": "f"})).await;
    let Reply::Error(error) = reply else { panic!("a result") };
    assert_eq!(error.code, -32000);
    assert!(error.message.starts_with("it broke it broke") && error.raw.as_str().len() < 400);
}

#[tokio::test(start_paused = true)]
async fn every_error_tells_a_program_the_same_things() {
    let (opened, _) = opened().await;
    for (call, code) in [
        (json!({"namespace": "orders", "function": "nothing"}), "PATH_NOT_FOUND"),
        (json!({"namespace": "nowhere", "function": "x"}), "PATH_NOT_FOUND"),
        (json!({"namespace": "a..b", "function": "x"}), "PATH_INVALID"),
        (json!({"namespace": "orders", "function": "get"}), "ARGS_INVALID"),
        (json!({"namespace": "orders", "function": "get", "order_id": "1"}), "ARGS_INVALID"),
        (json!({"namespace": "orders"}), "ARGS_INVALID"),
    ] {
        let told = meta(&opened.ask("call", call.clone()).await);
        let expected = json!({
            "code": code, "retryable": false, "retryAfterMs": null, "upstream": null,
            "mayHaveRun": false,
        });
        assert_eq!(told, expected, "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_required_object_is_shown_with_its_members() {
    let edit = json!({
        "type": "object",
        "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
        "required": ["oldText", "newText"],
    });
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "edits": {"type": "array", "items": edit}},
        "required": ["path", "edits"],
    });
    let opened = open(vec![one("files", "edit", "Edits.", &schema)], |_| {}).await;
    let shape = "{oldText: string, newText: string}[]";
    let call = json!({"namespace": "files", "function": "edit", "kwargs": {"path": "x"}});
    holds(&opened.say("call", call).await, &[&format!("edits: {shape}")]);
    let mut help = json!({"namespace": "files", "function": "edit"});
    holds(&opened.say("help", help.clone()).await, &[&format!("| edits | {shape} | yes |")]);
    help["kwargs"] = json!({"examples": true});
    let example = r#"kwargs={"path":"…","edits":[{"oldText":"…","newText":"…"}]}"#;
    holds(&opened.say("help", help).await, &["## Example", example]);
}

#[tokio::test(start_paused = true)]
async fn an_address_in_one_argument_is_taken_apart_for_the_next_attempt() {
    let (opened, _) = opened().await;
    let said = opened.say("call", json!({"namespace": "orders.retail.create"})).await;
    holds(&said, &[r#"`call(namespace="orders.retail", function="create", kwargs={…})`"#]);
    let said = opened.say("help", json!({"namespace": "orders/get"})).await;
    holds(&said, &["orders / get(order_id: string)"]);
    let said = opened.say("call", json!({"function": "help"})).await;
    holds(&said, &["`help` is a tool of its own"]);
    let list = json!({"namespace": "orders", "function": "get", "kwargs": [1]});
    let said = opened.say("call", list).await;
    holds(&said, &["`kwargs` must be an object", "Signature: get(order_id: string)"]);
    let said = opened.say("help", json!({"namespace": "orders", "page": 9})).await;
    holds(&said, &["Nothing is on page 9: the last is 1."]);
}

#[tokio::test(start_paused = true)]
async fn every_namespace_can_be_listed_however_many_there_are() {
    let up = |n: usize| one(&format!("up{n:03}"), "f", "F.", &json!({}));
    let names = |n: usize| tool(&format!("room{n:03}.f"), "F.", &json!({}));
    let halls = Scripted::new(listing((0..450).map(names).collect()), |_| Ok(Reply::text("")));
    let mut upstreams: Vec<Upstream> = (0..230).map(up).collect();
    upstreams.push(Upstream::new("halls", Scripts::of(halls)));
    let opened = open(upstreams, |_| {}).await;
    let asked = async |namespace: &str, page: usize, format: &str| {
        let kwargs = json!({"page": page, "format": format});
        opened.say("help", json!({"namespace": namespace, "kwargs": kwargs})).await
    };
    let json = async |namespace: &str, page: usize| -> Value {
        serde_json::from_str(&asked(namespace, page, "json").await).unwrap()
    };
    let listed = |told: &Value| told["namespaces"].as_array().map_or(0, Vec::len);
    let first = json("", 1).await;
    assert_eq!((listed(&first), &first["total_namespaces"]), (200, &json!(232)));
    assert_eq!((&first["page"], &first["pages"]), (&json!(1), &json!(2)));
    let second = json("", 2).await;
    assert_eq!(listed(&second), 32);
    holds(&second.to_string(), &[r#""name":"gatelet""#]);
    holds(&asked("", 1, "").await, &["32 more: `page` 2"]);
    holds(&asked("", 2, "").await, &["- **gatelet** — "]);
    holds(&asked("halls", 1, "").await, &["- **room199**", "250 more: `page` 2"]);
    let last = asked("halls", 3, "").await;
    holds(&last, &["## Sub-namespaces\n\n- **room400**", "- **room449**"]);
    assert!(!last.contains("Nothing is on page"), "{last}");
    holds(&asked("halls", 4, "").await, &["Nothing is on page 4: the last is 3."]);
    let over = json("halls", 4).await;
    assert_eq!((listed(&over), &over["total_namespaces"]), (0, &json!(450)));
    holds(&over.to_string(), &["Nothing is on page 4: the last is 3."]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_has_no_such_page_does_not_hide_one_that_has() {
    let many = (0..250).map(|n| tool(&format!("f{n:03}"), "F.", &json!({})));
    let all = many.chain([tool("below.g", "G.", &json!({}))]).collect();
    let wide = Scripted::new(listing(all), |_| Ok(Reply::text("")));
    let opened = open(vec![Upstream::new("wide", Scripts::of(wide))], |_| {}).await;
    let told = opened.say("help", json!({"namespace": "wide", "page": 2})).await;
    holds(&told, &["- **f249**"]);
    assert!(!told.contains("Nothing is on page") && !told.contains("below"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_is_away_is_said_to_be_by_help_as_by_call() {
    let away = Scripts::new(|_, _| Err(Failure::Unavailable { reason: "no such program".into() }));
    let (mut upstreams, _) = shop();
    upstreams.push(Upstream::new("away", away));
    let opened = open(upstreams, |_| {}).await;
    for namespace in ["away", "away.below"] {
        let asked = json!({"namespace": namespace, "function": "x"});
        for tool in ["call", "help"] {
            let reply = opened.ask(tool, asked.clone()).await;
            let told = reply.tool_result().unwrap().text();
            holds(&told, &["**Error:** `away` is unavailable: no such program."]);
            let meta = meta(&reply);
            assert_eq!(meta["upstream"], "away", "{tool}: {meta}");
            assert_eq!(meta["code"], "UPSTREAM_UNAVAILABLE", "{tool}: {meta}");
            assert_eq!(meta["retryable"], true, "{tool}: {meta}");
        }
    }
    let misplaced = json!({"namespace": "away", "function": "x", "path": "a"});
    holds(&opened.say("call", misplaced).await, &["`away` is unavailable: no such program"]);
}

#[tokio::test(start_paused = true)]
async fn some_of_the_namespace_that_was_named_are_always_told() {
    let names =
        ["write_file", "edit_file", "read_file", "list_directory", "move_file", "read_many"];
    let tools = names.iter().map(|name| tool(name, "Does it.", &json!({}))).collect();
    let files = Scripted::new(listing(tools), |_| Ok(Reply::text("")));
    let upstreams = vec![
        Upstream::new("files", Scripts::of(files)),
        one("memory", "reed", "Remembers.", &json!({})),
    ];
    let opened = open(upstreams, |_| {}).await;
    let told = opened.say("call", json!({"namespace": "files", "function": "reed"})).await;
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("- ")).collect();
    assert!(lines[0].starts_with("- files / read_"), "{told}");
    assert!(lines[1].starts_with("- files / read_"), "{told}");
    holds(&told, &["- memory / reed("]);
}

#[tokio::test(start_paused = true)]
async fn names_that_an_upstream_tells_apart_are_told_apart_here() {
    let names = ["Order_New", "orderNew"];
    let tools = names.iter().map(|name| tool(name, "Does it.", &json!({}))).collect();
    let fake = Scripted::new(listing(tools), |ask| {
        let Ask::Call(call) = ask else { return Ok(Reply::text("?")) };
        Ok(Reply::text(&call.name))
    });
    let opened = open(vec![Upstream::new("fake", Scripts::of(Arc::clone(&fake)))], |_| {}).await;
    let call = |function: &str| json!({"namespace": "fake", "function": function});
    for name in names {
        assert_eq!(opened.say("call", call(name)).await, name);
    }
    for tool in ["call", "help"] {
        let told = opened.say(tool, call("ordernew")).await;
        holds(&told, &["!**Error:** `ordernew` could be any of several functions"]);
        holds(&told, &["- fake / Order_New(", "- fake / orderNew_"]);
    }
    assert_eq!(fake.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_open_code_block_in_a_description_swallows_nothing() {
    let opened = open(vec![one("up", "f", "Do:\n```json\n{}", &json!({}))], |_| {}).await;
    let said = opened.say("help", json!({"namespace": "up", "function": "f"})).await;
    holds(&said, &["> ```json\n> {}\n\n"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_look_cannot_do_is_said_with_what_was_asked() {
    let long = json!({"text": "x".repeat(20_000)});
    let text = (0..3_000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
    let content = json!([{"type": "text", "text": text}]);
    let opened = answering(json!({"content": content, "structuredContent": {"all": long}})).await;
    let gated = opened.say("call", json!({"namespace": "up", "function": "f"})).await;
    let handle = gated.split("kept as `").nth(1).unwrap().split('`').next().unwrap().to_owned();
    holds(&gated, &["`jq` (which reads its `structuredContent`)"]);
    let view = async |part: &str, value: Value| {
        let kwargs = json!({"handle": handle, part: value});
        let call = json!({"namespace": "gatelet", "function": "view", "kwargs": kwargs});
        opened.say("call", call).await
    };
    let filter = json!(".all.text.missing");
    holds(&view("jq", filter).await, &["the filter failed", "missing"]);
    let lines = json!("9999-10000");
    holds(&view("lines", lines).await, &["nothing is there: 3000 lines in all"]);
    holds(&view("head", json!(100)).await, &[r#"next: {"selector":{"type":"head","#]);
}
