//! What is too long to go out and too long to be kept, and what is refused.

use super::*;
use crate::record::{EventKind, GatewayEvent, RecentRecords, Record, Sink};
use artifacts::{self, Memory};
use parking_lot::Mutex;
use policy::approval::TokenApproval;

fn little(parts: &mut GatewayParts, clock: &Arc<Fake>) {
    let bounds = artifacts::Config { owner_bytes: 2_000, ..artifacts::Config::default() };
    parts.answers.artifacts = Arc::new(Memory::new(bounds, Arc::clone(clock) as _));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_kept_is_not_said_to_be_and_its_beginning_is_given() {
    let opened = open_on(Surface::Gateway, little).await;
    let said = opened.say("tool_execute", json!({"tool_id": "demo:big#"})).await;
    let envelope: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!((&envelope["status"], &envelope["artifacts"]), (&json!("partial"), &json!([])));
    let summary = envelope["summary"].as_str().unwrap();
    assert!(summary.contains("not kept") && summary.contains("2000"), "{summary}");
    assert!(summary.contains(r#"{"id":0},{"id":1}"#), "{summary}");
    assert!(!summary.contains("chars, kept"), "{summary}");
    let opened = open_on(Surface::Cash, little).await;
    let said = opened.say("call", json!({"namespace": "demo", "function": "big"})).await;
    assert!(said.contains("could not be kept") && said.contains("runs it again"), "{said}");
    assert!(said.contains(r#"{"id":0},{"id":1}"#), "{said}");
    assert!(!said.contains("kept as"), "{said}");
}

/// Everything that is told, by the name of its code.
#[derive(Default)]
struct Notes(Mutex<Vec<Option<policy::code::Code>>>);

impl Sink for Notes {
    fn put(&self, _: Record) {}

    fn takes_events(&self) -> bool {
        true
    }

    fn event(&self, note: GatewayEvent) {
        if !matches!(note.what, EventKind::Published { .. }) {
            self.0.lock().push(note.error);
        }
    }
}

fn limited(tool: &str, parts: &mut GatewayParts, clock: &Arc<Fake>) {
    let rate = quota::Rate { per_minute: Some(1), per_session: None };
    let config = quota::Config { meta: vec![(tool.to_owned(), rate)], ..quota::Config::default() };
    parts.policies.stages.quota = Arc::new(quota::Limiter::new(config, Arc::clone(clock) as _));
}

#[tokio::test(start_paused = true)]
async fn a_browse_over_its_limit_leaves_an_event() {
    let notes = Arc::new(Notes::default());
    let opened = open_on(Surface::Gateway, |parts, clock| {
        limited("tool_browse", parts, clock);
        parts.observers.records = Arc::clone(&notes) as _;
    })
    .await;
    for _ in 0..2 {
        opened.say("tool_browse", json!({"path": "/"})).await;
    }
    let told = notes.0.lock().clone();
    assert_eq!(told, [None, Some(policy::code::Code::RateLimited)]);
}

#[tokio::test(start_paused = true)]
async fn a_search_meets_the_same_limit_and_leaves_the_same_event_on_every_surface() {
    let query = json!({"query": "read"});
    let find = json!({"namespace": "gatelet", "function": "find", "kwargs": query});
    for (surface, tool, arguments) in [
        (Surface::Gateway, "tool_browse", query.clone()),
        (Surface::Cash, "help", json!({"kwargs": query})),
        (Surface::Cash, "skill", json!({"kwargs": query})),
        (Surface::Cash, "call", find),
    ] {
        let notes = Arc::new(Notes::default());
        let opened = open_on(surface, |parts, clock| {
            limited("tool_browse", parts, clock);
            parts.observers.records = Arc::clone(&notes) as _;
        })
        .await;
        opened.say(tool, arguments.clone()).await;
        let second = opened.say(tool, arguments).await;
        assert!(second.contains("rate limit exceeded (tool_browse/minute)"), "{tool}: {second}");
        let told = notes.0.lock().clone();
        assert_eq!(told, [None, Some(policy::code::Code::RateLimited)], "{tool}");
    }
}

fn asking(meta_tool: &str, parts: &mut GatewayParts, clock: &Arc<Fake>) {
    parts.policies.stages.approval = Arc::new(TokenApproval::new(Arc::clone(clock) as _));
    let rule = rules::Rule {
        meta_tool: Some(meta_tool.to_owned()),
        ..rules::Rule::any(rules::Action::Ask)
    };
    let config = rules::Config { rules: vec![rule], ..rules::Config::default() };
    parts.policies.stages.checks = vec![Arc::new(rules::Rules::new(config))];
}

fn token(error: &Value) -> String {
    let message = error["message"].as_str().unwrap();
    let at = message.find("confirm-").unwrap_or_else(|| panic!("{error}"));
    message[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_over_its_limit_does_not_spend_an_agreement() {
    let time: Arc<std::sync::OnceLock<Arc<Fake>>> = Arc::default();
    let opened = open_on(Surface::Gateway, |parts, clock| {
        limited("tool_execute", parts, clock);
        asking("tool_execute", parts, clock);
        time.set(Arc::clone(clock)).unwrap();
    })
    .await;
    let call = |path: &str| json!({"tool_id": "demo:read_file", "args": {"path": path}});
    let confirmed = |path: &str, token: &str| {
        let mut call = call(path);
        call["confirm"] = json!(token);
        call
    };
    // Refusals cost nothing: both are asked about in the same minute.
    let one = token(&opened.error("tool_execute", call("1")).await);
    let two = token(&opened.error("tool_execute", call("2")).await);
    assert!(opened.say("tool_execute", confirmed("1", &one)).await.starts_with("hello"));
    let error = opened.error("tool_execute", confirmed("2", &two)).await;
    assert_eq!(error["error"], "RATE_LIMITED", "{error}");
    time.get().unwrap().advance(Duration::from_secs(61));
    assert!(opened.say("tool_execute", confirmed("2", &two)).await.starts_with("hello"));
}

#[tokio::test(start_paused = true)]
async fn a_look_that_is_refused_costs_nothing_and_takes_its_token_from_meta_too() {
    let opened = open_on(Surface::Gateway, |parts, clock| {
        limited("tool_view", parts, clock);
        asking("tool_view", parts, clock);
    })
    .await;
    opened.say("tool_execute", json!({"tool_id": "demo:big#"})).await;
    let kept = opened.surface.resources_for(&Context::anonymous()).await;
    let handle = kept[0].uri.strip_prefix("artifact://").unwrap();
    let error = opened.error("tool_view", json!({"handle": handle})).await;
    assert_eq!(error["error"], "AUTH_REQUIRED", "{error}");
    let params = json!({
        "name": "tool_view",
        "arguments": {"handle": handle},
        "_meta": {"gatelet/confirm": token(&error)},
    });
    let ask = Ask::parse("tools/call", &params.into()).unwrap();
    let reply = opened.surface.ask(ask, &Context::anonymous()).await.unwrap();
    assert!(!reply.tool_result().unwrap().is_error, "{reply:?}");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_protocol_is_a_call_that_failed() {
    let records = Arc::new(RecentRecords::new(10));
    let provider = Scripted::new(
        Listing { tools: vec![tool("odd", "Odd.", &json!({}))], ..Listing::default() },
        |_| Ok(Reply::Error(RpcError::new(-32602, "no"))),
    );
    let mut parts = GatewayParts::new(
        vec![Upstream::new("up", Scripts::of(provider))],
        Arc::new(Fake::default()) as _,
    );
    parts.observers.records = Arc::clone(&records) as _;
    let gate = Gate::new(parts);
    let surface = gate
        .surface(Surface::Gateway)
        .provider_for(&Arc::new(Client::named("test", "")), &Arc::default());
    settle().await;
    let call = Ask::Call(Call::new("tool_execute", json!({"tool_id": "up:odd"}).into()));
    surface.ask(call, &Context::anonymous()).await.unwrap();
    let code = records.records()[0].ending.code();
    assert_eq!(code, Some(policy::code::Code::ArgsInvalid));
}

#[tokio::test(start_paused = true)]
async fn reading_a_resource_costs_once_and_only_when_there_is_one() {
    let opened = open_on(Surface::Gateway, |parts, clock| {
        let rate = quota::Rate { per_minute: Some(2), per_session: None };
        let meta = vec![("resource_read".to_owned(), rate)];
        let config = quota::Config { meta, ..quota::Config::default() };
        parts.policies.stages.quota = Arc::new(quota::Limiter::new(config, Arc::clone(clock) as _));
    })
    .await;
    let read = || json!({"uri": "file:///readme.md"});
    let unknown = json!({"uri": "file:///nothing"});
    assert_eq!(opened.error("resource_read", unknown).await["error"], "RESOURCE_NOT_FOUND");
    for _ in 0..2 {
        let said = opened.say("resource_read", read()).await;
        assert!(said.contains("# Hi"), "{said}");
    }
    assert_eq!(opened.error("resource_read", read()).await["error"], "RATE_LIMITED");
}
