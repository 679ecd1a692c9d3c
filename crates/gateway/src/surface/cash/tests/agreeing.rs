//! Somebody has to agree: what a model reads, and the ways in which it answers.

use super::*;
use policy::approval::TokenApproval;
use policy::pattern::Pattern;
use policy::{quota, rules};
use tool::clock::Fake;

/// A gate over the shop that asks about every order, and counts them.
async fn asking(rate: quota::Rate) -> (Opened, Arc<Scripted>) {
    let (upstreams, orders) = shop();
    let opened = open(upstreams, |parts| {
        let rules = vec![rules::Rule::any(rules::Action::Ask)];
        let config = rules::Config { rules, ..rules::Config::default() };
        let clock = Arc::new(Fake::default());
        let tools = vec![(Pattern::new("orders.*"), rate)];
        let limits = quota::Config { tools, ..quota::Config::default() };
        parts.policies.stages = Stages {
            checks: vec![Arc::new(rules::Rules::new(config))],
            approval: Arc::new(TokenApproval::new(Arc::clone(&clock) as _)),
            quota: Arc::new(quota::Limiter::new(limits, clock)),
            ..Stages::default()
        };
    })
    .await;
    (opened, orders)
}

fn token(said: &str) -> String {
    let at = said.find("confirm-").unwrap_or_else(|| panic!("no token in: {said}"));
    said[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}

fn get(kwargs: &Value) -> Value {
    json!({"namespace": "orders", "function": "get", "kwargs": kwargs})
}

#[tokio::test(start_paused = true)]
async fn a_refusal_tells_where_the_token_goes_and_does_not_repeat_the_arguments() {
    let (opened, _) = asking(quota::Rate::default()).await;
    let said = opened.say("call", get(&json!({"order_id": "7,8,9"}))).await;
    let call = r#"call(namespace="orders", function="get", kwargs=…, confirm="#;
    holds(&said, &[&format!("`{call}\"{}\")`", token(&said))]);
    assert!(!said.contains("7,8,9"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn the_token_is_an_argument_in_the_definition_only_where_tokens_are_given() {
    let definition = |opened: &Opened| {
        let listing = opened.surface.listing();
        let cost = crate::fixture::read_by_models(&listing.tools);
        assert!(cost <= 350, "{cost} tokens");
        listing.tools[0].input_schema.clone()
    };
    let (opened, _) = asking(quota::Rate::default()).await;
    let token = definition(&opened).member("properties").unwrap().member("confirm");
    assert_eq!(token.unwrap().member_as::<String>("type").as_deref(), Some("string"));
    let (upstreams, _) = shop();
    let without = definition(&open(upstreams, |_| {}).await);
    assert!(!without.mentions("confirm"), "{without}");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_understood_beside_kwargs_and_in_them() {
    let (opened, orders) = asking(quota::Rate::default()).await;
    let call = get(&json!({"order_id": "7"}));
    let mut beside = call.clone();
    beside["confirm"] = json!(token(&opened.say("call", call.clone()).await));
    assert_eq!(opened.say("call", beside).await, r#"get {"order_id":"7"}"#);
    let mut inside = call.clone();
    inside["kwargs"]["confirm"] = json!(token(&opened.say("call", call).await));
    assert_eq!(opened.say("call", inside.clone()).await, r#"get {"order_id":"7"}"#);
    let again = opened.say("call", inside).await;
    holds(&again, &["was used, is too old, or is for another call", "confirm=\"confirm-"]);
    assert_eq!(orders.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_yes_is_no_token_and_that_is_said() {
    let (opened, orders) = asking(quota::Rate::default()).await;
    for yes in [json!(true), json!("yes"), json!("YES")] {
        let mut beside = get(&json!({"order_id": "7"}));
        beside["confirm"] = yes.clone();
        let inside = get(&json!({"order_id": "7", "confirm": yes}));
        for call in [beside, inside] {
            let said = opened.say("call", call).await;
            holds(&said, &["`confirm` takes the token that was given for this call"]);
            assert!(!said.contains("inside `kwargs`"), "{said}");
        }
    }
    assert_eq!(orders.asked(), []);
}

#[tokio::test(start_paused = true)]
async fn a_kept_answer_is_neither_asked_about_nor_paid_for_again() {
    let (opened, orders) = asking(quota::Rate { per_minute: None, per_session: Some(1) }).await;
    let mut call = json!({"namespace": "orders", "function": "list"});
    call["confirm"] = json!(token(&opened.say("call", call.clone()).await));
    holds(&opened.say("call", call.clone()).await, &["**Gated:**", "sizelimit="]);
    call["confirm"] = Value::Null;
    call["sizelimit"] = json!(100_000);
    let whole = opened.say("call", call.clone()).await;
    assert_eq!(whole, rows().to_string());
    assert_eq!(orders.asked().len(), 1);
    // It has been given whole, so the next call would run.
    let reply = opened.ask("call", call).await;
    let told = Json::encode(&reply.tool_result().unwrap().text());
    holds(told.as_str(), &["rate limit exceeded", "waiting does not help in this session"]);
}
