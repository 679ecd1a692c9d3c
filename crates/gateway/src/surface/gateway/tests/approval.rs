//! Somebody has to agree: the one way, on every surface.

use tool::{ClientHandle, Notification};

use super::*;
use crate::record::{EventKind, GatewayEvent, Record, Sink};
use policy::approval::{RequestState, TokenApproval, Verdict};
use policy::trust;
use policy::trust::TrustCheck;
use policy::trust::ledger::InMemoryLedger;

/// A gate that asks about everything, and trusts nothing that destroys; it hands
/// out tokens.
async fn asking(surface: Surface) -> Opened {
    asking_by(surface, |parts, clock| {
        parts.policies.stages.approval = Arc::new(TokenApproval::new(Arc::clone(clock) as _));
    })
    .await
}

async fn asking_by(surface: Surface, change: impl FnOnce(&mut GatewayParts, &Arc<Fake>)) -> Opened {
    open_on(surface, |parts, clock| {
        change(parts, clock);
        let book = Arc::new(InMemoryLedger::default());
        let keeper = TrustCheck::new(trust::Config::default(), book, Arc::clone(clock) as _);
        let rules = vec![rules::Rule::any(rules::Action::Ask)];
        let config = rules::Config { rules, ..rules::Config::default() };
        parts.policies.stages.checks = vec![Arc::new(keeper), Arc::new(rules::Rules::new(config))];
    })
    .await
}

fn token(said: &str) -> String {
    let at = said.find("confirm-").unwrap_or_else(|| panic!("no token in: {said}"));
    said[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}

fn calls(opened: &Opened) -> Vec<Ask> {
    opened.provider.asked()
}

#[tokio::test(start_paused = true)]
async fn a_token_lets_one_call_through_once_although_two_wanted_it() {
    let opened = asking(Surface::Gateway).await;
    let call = json!({"tool_id": "demo:delete_file", "args": {"path": "x"}});
    let error = opened.error("tool_execute", call.clone()).await;
    assert_eq!(error["error"], "AUTH_REQUIRED", "{error}");
    assert_eq!(error["details"]["approval"], "required");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("requires approval") && message.contains("may delete"), "{message}");
    assert_eq!(calls(&opened), []);
    let mut again = call.clone();
    again["confirm"] = json!(token(message));
    let said = opened.say("tool_execute", again.clone()).await;
    assert!(said.starts_with("hello"), "{said}");
    let [Ask::Call(sent)] = &calls(&opened)[..] else { panic!("not one call") };
    assert!(sent.other_params.is_empty(), "the token went on: {:?}", sent.other_params);
    assert_eq!(opened.error("tool_execute", again).await["error"], "AUTH_REQUIRED");
}

#[tokio::test(start_paused = true)]
async fn the_proxy_and_direct_surfaces_take_the_token_beside_the_arguments() {
    for surface in [Surface::Proxy, Surface::Direct] {
        let opened = asking(surface).await;
        let listing = opened.surface.listing();
        let named = listing.tools.iter().find(|tool| tool.name.contains("delete_file"));
        let name = named.unwrap().name.as_str();
        let refused = opened.say(name, json!({"path": "x"})).await;
        let confirmed = json!({"path": "x", "confirm": token(&refused)});
        assert_eq!(opened.say(name, confirmed).await, "hello", "{surface:?}");
        let [Ask::Call(sent)] = &calls(&opened)[..] else { panic!("not one call") };
        assert_eq!(sent.arguments.as_ref().unwrap().as_str(), r#"{"path":"x"}"#);
        assert!(sent.other_params.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_is_given_a_number_and_only_somebody_else_lets_the_call_through_once() {
    for (surface, tool, call) in [
        (
            Surface::Gateway,
            "tool_execute",
            json!({"tool_id": "demo:delete_file", "args": {"path": "x"}}),
        ),
        (
            Surface::Cash,
            "call",
            json!({"namespace": "demo", "function": "delete_file", "kwargs": {"path": "x"}}),
        ),
    ] {
        let opened = asking_by(surface, |_, _| {}).await;
        let approvals = opened.gate.approvals();
        let said = opened.say(tool, call.clone()).await;
        assert!(said.contains("approval request 1"), "{said}");
        assert!(!said.contains("confirm"), "{said}");
        // Whatever it sends under `confirm`, and however often, it does not run.
        for guess in ["confirm-1", "later", "1"] {
            let mut guessed = call.clone();
            guessed["confirm"] = json!(guess);
            opened.say(tool, guessed).await;
        }
        assert_eq!(calls(&opened), []);
        let [waiting] = &approvals.list().await.unwrap()[..] else { panic!("not one request") };
        assert_eq!(waiting.subject.tool, "delete_file");
        approvals.decide(1, Verdict::Allow, "a test").await.unwrap();
        let said = opened.say(tool, call.clone()).await;
        assert!(said.starts_with("hello"), "{said}");
        assert_eq!(calls(&opened).len(), 1);
        let said = opened.say(tool, call).await;
        assert!(said.contains("approval request 2"), "{said}");
        assert_eq!(calls(&opened).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_goes_through_as_soon_as_it_is_allowed() {
    let opened = asking_by(Surface::Gateway, |_, _| {}).await;
    let call = json!({"tool_id": "demo:delete_file", "args": {"path": "x"}});
    let approvals = Arc::clone(opened.gate.approvals());
    let mut changes = approvals.watch();
    let deciding = async {
        futures::StreamExt::next(&mut changes).await;
        approvals.decide(1, Verdict::Allow, "a test").await.unwrap();
    };
    let (said, ()) = tokio::join!(opened.say("tool_execute", call.clone()), deciding);
    assert!(said.starts_with("hello"), "{said}");
    let [used] = &approvals.list().await.unwrap()[..] else { panic!("not one request") };
    assert!(matches!(used.state, RequestState::Used { .. }), "{used:?}");
    // Of two that wait for the same, one goes through.
    let mut changes = approvals.watch();
    let deciding = async {
        futures::StreamExt::next(&mut changes).await;
        approvals.decide(2, Verdict::Allow, "a test").await.unwrap();
    };
    let (one, two, ()) = tokio::join!(
        opened.say("tool_execute", call.clone()),
        opened.say("tool_execute", call.clone()),
        deciding
    );
    let n_through = [&one, &two].iter().filter(|said| said.starts_with("hello")).count();
    assert_eq!(n_through, 1, "{one} {two}");
    assert_eq!(calls(&opened).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_is_refused_and_stays_refused() {
    let opened = asking_by(Surface::Gateway, |_, _| {}).await;
    let call = json!({"tool_id": "demo:delete_file", "args": {"path": "x"}});
    opened.say("tool_execute", call.clone()).await;
    opened.gate.approvals().decide(1, Verdict::Deny, "a test").await.unwrap();
    for _ in 0..2 {
        let error = opened.error("tool_execute", call.clone()).await;
        assert_eq!(error["error"], "POLICY_DENIED", "{error}");
    }
    assert_eq!(calls(&opened), []);
}

struct User(&'static str);

#[async_trait]
impl ClientHandle for User {
    fn notify(&self, _: Notification) {}

    async fn request(&self, _: &str, _: Json) -> Result<Reply, Failure> {
        Ok(Reply::Result(Json::parse(self.0).unwrap()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_can_ask_its_user_is_asked_about_resources_too() {
    let opened = asking(Surface::Gateway).await;
    for (answer, expected) in [
        (r#"{"action":"accept","content":{"confirm":true}}"#, "# Hi"),
        (r#"{"action":"accept"}"#, "POLICY_DENIED"),
        (r#"{"action":"accept","content":null}"#, "POLICY_DENIED"),
        (r#"{"action":"accept","content":{}}"#, "POLICY_DENIED"),
        (r#"{"action":"accept","content":{"confirm":"true"}}"#, "POLICY_DENIED"),
        (r#"{"action":"accept","content":{"confirm":1}}"#, "POLICY_DENIED"),
        (r#"{"action":"accept","content":[true]}"#, "POLICY_DENIED"),
        (r#"{"content":{"confirm":true}}"#, "POLICY_DENIED"),
        (r#"{"action":"decline","content":{"confirm":true}}"#, "POLICY_DENIED"),
        (r#"{"action":"decline"}"#, "POLICY_DENIED"),
        (r#"{}"#, "POLICY_DENIED"),
    ] {
        let mut client = Client::named("c", "");
        client.capabilities = json!({"elicitation": {}}).into();
        let (client, client_handle) = (Arc::new(client), Arc::new(User(answer)));
        let context = Context { client, client_handle, ..Context::anonymous() };
        let call =
            Call::new("resource_read", json!({"resource_id": "resource::file:README"}).into());
        let reply = opened.surface.ask(Ask::Call(call), &context).await.unwrap();
        let said = reply.tool_result().unwrap().text();
        assert!(said.contains(expected), "{said}");
    }
    // A native read meets the same rule.
    let read = tool::ReadResource {
        uri: "file:///readme.md".to_owned(),
        other_params: tool::Object::new(),
    };
    let reply = opened.surface.ask(Ask::ReadResource(read), &Context::anonymous()).await.unwrap();
    assert!(matches!(reply, Reply::Error(error) if error.message.contains("resource_read")));
}

#[derive(Default)]
struct Heard(parking_lot::Mutex<Vec<String>>);

impl Sink for Heard {
    fn put(&self, record: Record) {
        self.0.lock().push(format!("{} {:?}", record.callee.id, record.ending.code()));
    }

    fn takes_events(&self) -> bool {
        true
    }

    fn event(&self, note: GatewayEvent) {
        let what = match note.what {
            EventKind::Browsed { ids, query_chars, .. } => {
                format!("browsed {} {query_chars}", ids.len())
            }
            EventKind::Hydrated { .. } => "hydrated".to_owned(),
            EventKind::Viewed { selector, .. } => format!("viewed {selector}"),
            EventKind::Published { definitions, .. } => format!("published {}", definitions.len()),
        };
        self.0.lock().push(format!("{what} {:?}", note.error));
    }
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_done_is_told_once() {
    let heard = Arc::new(Heard::default());
    let sink = Arc::clone(&heard);
    let opened = open_on(Surface::Gateway, |parts, _| parts.observers.records = sink).await;
    opened.say("tool_browse", json!({"query": "read", "top_k": 1})).await;
    opened.say("tool_browse", json!({"path": "x"})).await;
    opened.say("tool_view", json!({"handle": "no", "selector": {"type": "head"}})).await;
    opened.say("tool_execute", json!({"tool_id": "demo:boom", "args": {}})).await;
    opened.say("prompt_get", json!({"prompt_id": "prompt::demo", "args": {"who": "A"}})).await;
    let heard = heard.0.lock().clone();
    let told = |wanted: &str| heard.iter().filter(|line| line.starts_with(wanted)).count();
    assert_eq!(told("browsed 1 4 None"), 1, "{heard:?}");
    assert_eq!(told("browsed 0 0 Some(PathInvalid)"), 1, "{heard:?}");
    assert_eq!(told("viewed head Some(ViewFailed)"), 1, "{heard:?}");
    assert_eq!(told("published 5"), 1, "{heard:?}");
    assert!(
        heard
            .iter()
            .any(|line| line.starts_with("demo:boom#") && line.ends_with("Some(AuthFailed)"))
    );
    assert_eq!(told("prompt::demo:demo.greet#"), 1, "{heard:?}");
}
