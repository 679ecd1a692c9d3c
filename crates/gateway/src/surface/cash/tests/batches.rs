//! Several calls in one.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "so that tables of calls read well")]
fn orders(function: &str, kwargs: Value) -> Value {
    json!({"namespace": "orders", "function": function, "kwargs": kwargs})
}

fn several(calls: &[Value]) -> Value {
    json!({"function": "calls", "calls": calls})
}

#[tokio::test(start_paused = true)]
async fn several_calls_are_answered_in_order_and_each_leaves_a_record() {
    let (opened, asked) = opened().await;
    let calls = [
        orders("get", json!({"order_id": "1"})),
        orders("gte", json!({})),
        orders("get", json!({"order_id": "2"})),
    ];
    let told = opened.say("call", several(&calls)).await;
    holds(
        &told,
        &[
            "[0] orders.get:\nget {\"order_id\":\"1\"}",
            "[1] orders.gte (error):\n**Error:** No function `gte`",
            "[2] orders.get:\nget {\"order_id\":\"2\"}",
        ],
    );
    assert!(!told.starts_with('!'), "one failing does not hide the others");
    assert_eq!(asked.asked().len(), 2);
    assert_eq!(opened.records.records().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_later_call_takes_values_from_an_earlier_one() {
    let (opened, asked) = opened().await;
    let calls = [
        orders("list", json!({})),
        json!({"namespace": "inventory", "function": "check", "kwargs": {"quantity": {"$ref": "0[1].o"}}}),
        orders("get", json!({"order_id": {"$ref": "0[9999].o"}})),
        orders("get", json!({"order_id": {"$ref": "2.x"}})),
        orders("get", json!({"order_id": {"$ref": "7.x"}})),
        orders("get", json!({"order_id": {"$ref": "x"}})),
    ];
    let told = opened.say("call", several(&calls)).await;
    holds(
        &told,
        &[
            "[0] orders.list:\n**Gated:**",
            "[1] inventory.check:\ncheck {\"quantity\":1001}",
            "[2] orders.get (error):\n**Error:** Not run:",
            "leads to nothing: the data of call 0 is JSON array; 4,821 items",
            "[3] orders.get (error):\n**Error:** Not run: call 2, to which it refers, failed",
            "[4] orders.get (error):\n**Error:** Not run: `{\"$ref\": \"7.x\"}` does not lead",
            "must begin with the number of an earlier call",
        ],
    );
    assert_eq!(asked.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_few_bytes_that_refer_to_a_long_value_do_not_make_a_huge_call() {
    let (opened, asked) = opened().await;
    let often = vec![json!({"$ref": "0[:4000]"}); 5_000];
    let many: Vec<Value> = (0..101).map(|at| json!({"$ref": format!("0[{at}].o")})).collect();
    let calls = [
        orders("list", json!({})),
        orders("get", json!({"order_id": often})),
        orders("get", json!({"order_id": many})),
    ];
    let told = opened.say("call", several(&calls)).await;
    holds(
        &told,
        &["have over 1048576 characters together", "it refers to 101 values, and 100 are allowed"],
    );
    assert_eq!(asked.asked().len(), 1, "only the list ran");
}

#[tokio::test(start_paused = true)]
async fn all_answers_together_keep_to_the_limit_and_share_it() {
    let (opened, asked) = opened().await;
    let mut calls = vec![orders("get", json!({"order_id": "1"})); 3];
    // 4,000 characters: more than a quarter of the limit, and the others need less.
    let mut part = orders("list", json!({}));
    part["pick"] = json!(".[:800] | map(.o)");
    calls.push(part);
    let told = opened.say("call", several(&calls)).await;
    assert!(told.contains("[3] orders.list:\n[1000,1001,"), "{told}");
    let calls = vec![orders("list", json!({})); 2];
    let told = opened.say("call", several(&calls)).await;
    assert!(told.chars().count() < 10_000);
    assert_eq!(told.matches("**Gated:**").count(), 2);
    assert_eq!(asked.asked().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_none_is_refused_before_anything_runs() {
    let (opened, asked) = opened().await;
    for wrong in [json!([]), json!(7), json!([1]), json!({"function": "x"})] {
        let told = opened.say("call", json!({"function": "calls", "calls": wrong})).await;
        assert!(told.starts_with("!**Error:** `calls` must be a list of calls"), "{told}");
    }
    let many = vec![orders("summary", json!({})); 51];
    let told = opened.say("call", several(&many)).await;
    holds(&told, &["!**Error:** `calls` has 51 calls; at most 50"]);
    assert!(asked.asked().is_empty());
    let all = vec![orders("nothing", json!({})); 2];
    assert!(opened.say("call", several(&all)).await.starts_with("!["), "every one failed");
}

#[tokio::test(start_paused = true)]
async fn the_calls_may_stand_where_a_model_puts_them() {
    let (opened, _) = opened().await;
    let one = [orders("get", json!({"order_id": "1"}))];
    for call in [
        json!({"calls": one}),
        json!({"function": "", "calls": one}),
        json!({"function": "calls", "kwargs": {"calls": one}}),
        json!({"function": "calls", "calls": Json::encode(&one).as_str()}),
    ] {
        let told = opened.say("call", call.clone()).await;
        assert_eq!(told, "[0] orders.get:\nget {\"order_id\":\"1\"}", "{call}");
    }
}

/// Answers after a while, and knows how many calls it had at once.
struct Slow {
    inner: Arc<Scripted>,
    running: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait::async_trait]
impl tool::Provider for Slow {
    fn listing(&self) -> Arc<tool::Listing> {
        self.inner.listing()
    }

    fn events(&self) -> futures::stream::BoxStream<'static, tool::Event> {
        self.inner.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let running = 1 + self.running.fetch_add(1, Ordering::SeqCst);
        self.most.fetch_max(running, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.inner.ask(ask, context).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_write_waits_for_those_before_it_and_those_after_wait_for_it() {
    let raw = |name: &str, hints: Value| {
        let raw = json!({"name": name, "inputSchema": {"type": "object"}, "annotations": hints});
        tool::Tool::parse(raw.into()).unwrap()
    };
    let tools = vec![
        raw("look", json!({"readOnlyHint": true})),
        raw("write", json!({"readOnlyHint": false})),
        raw("mute", json!({})),
    ];
    let inner = Scripted::new(listing(tools), |_| Ok(Reply::text("done")));
    let slow = Arc::new(Slow { inner, running: AtomicUsize::new(0), most: AtomicUsize::new(0) });
    let provider = Arc::clone(&slow);
    let scripts = Scripts::new(move |_, _| Ok(Arc::clone(&provider) as _));
    let opened = open(vec![Upstream::new("up", scripts)], |_| {}).await;
    for (functions, most) in [
        (["look", "look", "look", "look"], 4),
        (["write", "look", "look", "write"], 2),
        (["look", "write", "look", "write"], 1),
        (["look", "mute", "look", "mute"], 1),
        (["look", "nothing", "look", "write"], 1),
    ] {
        slow.most.store(0, Ordering::SeqCst);
        let n_before = slow.inner.asked().len();
        let calls = functions.map(|function| json!({"namespace": "up", "function": function}));
        let told = opened.say("call", several(&calls)).await;
        assert!(told.contains("[3] up."), "{told}");
        assert_eq!(slow.most.load(Ordering::SeqCst), most, "{functions:?}");
        let asked = slow.inner.asked().into_iter().skip(n_before).map(|ask| {
            let Ask::Call(call) = ask else { panic!("{ask:?}") };
            call.name
        });
        let known = functions.into_iter().filter(|name| *name != "nothing");
        assert_eq!(asked.collect::<Vec<_>>(), known.collect::<Vec<_>>());
    }
}
