//! Several calls in one.

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
