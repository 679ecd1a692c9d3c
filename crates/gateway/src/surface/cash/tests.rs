use serde_json::json;

use crate::fixture::{open, shop};

#[tokio::test(start_paused = true)]
async fn a_call_reaches_its_function_in_any_spelling() {
    let (upstreams, orders) = shop();
    let opened = open(upstreams, |_| {}).await;
    let told = opened.say("call", json!({"namespace": "Or_ders.RETAIL", "function": "Create", "kwargs": {"customerID": "C", "items": "[]"}})).await;
    assert_eq!(told, r#"retail.create {"customer_id":"C","items":[]}"#);
    assert_eq!(orders.asked().len(), 1);
    assert_eq!(opened.records.records().len(), 1);
}
