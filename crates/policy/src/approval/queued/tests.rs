use catalog::{Catalog, Slot, Source};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::listing;
use tool::clock::Fake;
use tool::{Client, ClientHandle, Failure, Identity, Json, Notification, Object, Reply, Tool};

use super::*;
use crate::approval::approvals::{InMemoryQueue, LIFE, QueueStore};
use crate::call::{Callee, Request, Target};
use crate::confirm;
use crate::validate::{self, ValidCall};

/// A gate over one queue; another gate over the same queue is the same one after
/// a restart.
struct Gate {
    stage: QueuedApproval,
    clock: Arc<Fake>,
    queue: Arc<InMemoryQueue>,
}

fn gate(config: Config) -> Gate {
    over(Arc::default(), Arc::default(), config)
}

fn over(queue: Arc<InMemoryQueue>, clock: Arc<Fake>, config: Config) -> Gate {
    let store = Arc::clone(&queue) as Arc<dyn QueueStore>;
    let approvals = Arc::new(Approvals::new(store, Arc::clone(&clock) as _, LIFE));
    let page: PageUrl =
        Arc::new(|number| Some(format!("http://127.0.0.1:1/console/approvals/{number}")));
    Gate { stage: QueuedApproval::new(approvals, config).with_page(page), clock, queue }
}

impl Gate {
    async fn agree(&self, call: &ValidCall, context: &Context) -> Result<(), Refusal> {
        let request = call.approval_request(Some("0123456789ab".to_owned()), String::new());
        let text = "`disk/erase` may delete something".to_owned();
        let question = Question { text, ended_by_trust: true };
        self.stage.agree(&question, &request, context).await
    }

    async fn allow(&self, number: u64) {
        self.stage.approvals.decide(number, Verdict::Allow, "a test").await.unwrap();
    }

    fn restarted(&self) -> Gate {
        over(Arc::clone(&self.queue), Arc::clone(&self.clock), self.stage.config.clone())
    }
}

fn impatient() -> Config {
    Config { wait: Duration::ZERO, ..Config::default() }
}

fn call(arguments: &str, meta: Option<&str>) -> Result<ValidCall, Vec<catalog::Problem>> {
    let raw = json!({
        "name": "erase", "description": "Erases.",
        "inputSchema": {"type": "object", "properties": {
            "path": {"type": "string"}, "n": {}, "deep": {},
        }},
    });
    let tool = Tool::parse(raw.into()).unwrap();
    let catalog = Catalog::build(vec![Source::new("disk", Arc::new(listing(vec![tool])))]).0;
    let callee = Callee::new("disk:erase#12345678", "disk", "erase");
    let target = Target::function(Slot(0), Arc::new(callee));
    let mut request = Request::new(target, Json::parse(arguments.to_owned()).unwrap());
    if let Some(meta) = meta {
        let mut members = Object::new();
        members.push(confirm::META_KEY, Json::encode(meta));
        request.rest.push("_meta", members.to_json());
    }
    validate::check(&catalog, request)
}

fn erase(path: &str) -> ValidCall {
    call(&json!({"path": path}).to_string(), None).unwrap()
}

fn caller(subject: &str, session: &str, client: &str) -> Context {
    let caller = Identity { subject: subject.to_owned(), ..Identity::default() };
    Context {
        caller: Arc::new(caller),
        session: session.into(),
        client: Arc::new(Client::named(client, "")),
        ..Context::anonymous()
    }
}

#[tokio::test(start_paused = true)]
async fn an_agreement_is_for_one_call_of_one_caller_and_survives_a_restart() {
    let gate = gate(impatient());
    let ann = caller("ann", "s1", "claude");
    let refused = gate.agree(&erase("/a"), &ann).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::ApprovalRequired);
    assert!(refused.message.contains("approval request 1"), "{}", refused.message);
    gate.allow(1).await;
    let gate = gate.restarted();
    for other in [
        caller("bob", "s1", "claude"),
        caller("", "s1", "claude"),
        caller("ann", "s2", "claude"),
        caller("ann", "s1", "cursor"),
        caller("ann", "", "s1claude"),
    ] {
        assert!(gate.agree(&erase("/a"), &other).await.is_err(), "{other:?}");
    }
    assert!(gate.agree(&erase("/b"), &ann).await.is_err(), "other arguments");
    assert!(gate.agree(&erase("/a"), &ann).await.is_ok());
    assert!(gate.agree(&erase("/a"), &ann).await.is_err(), "twice");
    assert!(gate.restarted().agree(&erase("/a"), &ann).await.is_err(), "after a restart");
}

#[tokio::test(start_paused = true)]
async fn an_agreement_expires() {
    let gate = gate(impatient());
    let ann = caller("ann", "s1", "claude");
    gate.agree(&erase("/a"), &ann).await.unwrap_err();
    gate.allow(1).await;
    gate.clock.advance(LIFE);
    assert!(gate.agree(&erase("/a"), &ann).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_no_longer_than_it_may() {
    let gate = gate(Config { wait: Duration::from_secs(30), ..Config::default() });
    let ann = caller("ann", "s1", "claude");
    let waited = async |gate: &Gate, call: &ValidCall, context: &Context| {
        let begun = tokio::time::Instant::now();
        gate.agree(call, context).await.unwrap_err();
        begun.elapsed().as_secs()
    };
    assert_eq!(waited(&gate, &erase("/a"), &ann).await, 30);
    let hurried = Context { timeout: Some(Duration::from_secs(12)), ..ann.clone() };
    assert_eq!(waited(&gate, &erase("/a"), &hurried).await, 10);
    let later = call(r#"{"path":"/a"}"#, Some(confirm::DO_NOT_WAIT)).unwrap();
    assert_eq!(waited(&gate, &later, &ann).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_asks_nobody() {
    let nothing = Question { text: String::new(), ended_by_trust: false };
    let agreed = Subject {
        arguments: r#"{"path":"/tmp/a/x"}"#.to_owned(),
        digest: Some("0123456789ab".to_owned()),
        ..subject(
            &nothing,
            &erase("/a").approval_request(None, String::new()),
            &Context::anonymous(),
        )
    };
    let remembered = vec![RememberedApproval::from_subject(&agreed).unwrap()];
    let gate = gate(Config { remembered, ..impatient() });
    let ann = caller("ann", "s1", "claude");
    assert!(gate.agree(&erase("/tmp/a/y"), &ann).await.is_ok());
    assert!(gate.agree(&erase("/tmp/a/../y"), &ann).await.is_err());
    assert!(gate.agree(&erase("/tmp/b/y"), &ann).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn long_arguments_show_every_name_and_cannot_be_remembered() {
    let gate = gate(impatient());
    let long = json!({"n": "x".repeat(100_000), "path": "/"}).to_string();
    gate.agree(&call(&long, None).unwrap(), &caller("ann", "", "c")).await.unwrap_err();
    let [waiting] = &gate.stage.approvals.list().await.unwrap()[..] else { panic!("not one") };
    let subject = &waiting.subject;
    assert!(subject.arguments.contains("- path: \"/\"") && subject.arguments.len() < 1000);
    assert_eq!(subject.arguments_cut_from, Some(long.len()));
    assert!(RememberedApproval::from_subject(subject).is_err());
}

/// A client whose user is sent to a page.
struct Browser {
    answer: &'static str,
    asked: Mutex<Vec<Value>>,
    told: Mutex<Vec<String>>,
}

#[async_trait]
impl ClientHandle for Browser {
    fn notify(&self, note: Notification) {
        self.told.lock().push(format!("{} {}", note.method, note.params.to_json()));
    }

    async fn request(&self, _: &str, params: Json) -> Result<Reply, Failure> {
        self.asked.lock().push(params.to_value().unwrap());
        Ok(Reply::Result(Json::parse(self.answer).unwrap()))
    }
}

fn with_browser(answer: &'static str) -> (Context, Arc<Browser>) {
    let browser = Browser { answer, asked: Mutex::default(), told: Mutex::default() };
    let browser = Arc::new(browser);
    let mut client = Client::named("c", "");
    client.capabilities = json!({"elicitation": {"url": {}}}).into();
    let client_handle = Arc::clone(&browser) as Arc<dyn ClientHandle>;
    let context = Context { client: Arc::new(client), client_handle, ..Context::anonymous() };
    (context, browser)
}

#[tokio::test(start_paused = true)]
async fn a_client_that_opens_pages_is_sent_to_the_request_and_told_when_it_is_decided() {
    let gate = gate(Config::default());
    let (context, browser) = with_browser(r#"{"action":"accept"}"#);
    let mut changes = gate.stage.approvals.watch();
    let deciding = async {
        changes.next().await;
        gate.allow(1).await;
    };
    let call = erase("/a");
    let (agreed, ()) = tokio::join!(gate.agree(&call, &context), deciding);
    assert!(agreed.is_ok());
    let asked = browser.asked.lock().clone();
    assert_eq!(asked[0]["mode"], "url");
    assert_eq!(asked[0]["url"], "http://127.0.0.1:1/console/approvals/1");
    assert!(browser.told.lock()[0].contains("elicitation/complete"));
}

#[tokio::test(start_paused = true)]
async fn opening_the_page_is_no_agreement_and_declining_it_is_a_no() {
    let gate = gate(Config { wait: Duration::from_secs(5), ..Config::default() });
    let (opens, _) = with_browser(r#"{"action":"accept","content":{"confirm":true}}"#);
    let refused = gate.agree(&erase("/a"), &opens).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::ApprovalRequired);
    let (declines, _) = with_browser(r#"{"action":"decline"}"#);
    let refused = gate.agree(&erase("/b"), &declines).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::Declined);
}

/// Ways to write arguments that mean something else, or the same.
fn spelling() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#"{"path":"/a","n":1}"#.to_owned()),
        Just(r#"{"n":1,"path":"/a"}"#.to_owned()),
        Just(r#"{ "path" : "/a" , "n" : 1 }"#.to_owned()),
        Just(r#"{"path":"\u002fa","n":1}"#.to_owned()),
        Just(r#"{"path":"/a","n":1.0}"#.to_owned()),
        Just(r#"{"path":"/a","n":"1"}"#.to_owned()),
        Just(r#"{"path":"/a ","n":1}"#.to_owned()),
        Just(r#"{"path":"/A","n":1}"#.to_owned()),
        Just(r#"{"path":"/a"}"#.to_owned()),
        Just(r#"{"path":"/a","n":1,"path":"/etc"}"#.to_owned()),
        Just(r#"{"path":"/a","n":{"b":1,"b":2}}"#.to_owned()),
        Just(r#"{"path":"/a","n":1,"deep":{"x":[1,{"y":2}]}}"#.to_owned()),
        Just(r#"{"path":"/a","n":10000000000000000000000000000001}"#.to_owned()),
        Just(r#"{"path":"/a","n":10000000000000000000000000000002}"#.to_owned()),
        Just(r#"{"path":"/a","n":0.10000000000000000001}"#.to_owned()),
        Just(r#"{"path":"/a","n":0.1}"#.to_owned()),
        "[a-z/.]{1,6}".prop_map(|path| json!({"path": path, "n": 1}).to_string()),
    ]
}

/// The arguments as a server reads them.
fn meaning(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap()
}

proptest! {
    #[test]
    fn no_spelling_order_caller_or_session_gets_a_call_through_that_was_not_agreed_to(
        agreed in spelling(),
        tried in prop::collection::vec(
            (spelling(), 0..3_usize, 0..3_usize, any::<bool>()), 1..12,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outcome: Result<(), TestCaseError> = runtime.block_on(async {
            let mut gate = gate(impatient());
            let asker = caller("ann", "s1", "c");
            // What is written in two ways at once is refused before anybody is asked.
            let Ok(first) = call(&agreed, None) else { return Ok(()) };
            gate.agree(&first, &asker).await.unwrap_err();
            gate.allow(1).await;
            let mut left = 1;
            for (spelled, who, session, restarts) in tried {
                if restarts {
                    gate = gate.restarted();
                }
                let context = caller(["ann", "bob", ""][who], ["s1", "s2", ""][session], "c");
                let Ok(second) = call(&spelled, None) else { continue };
                if gate.agree(&second, &context).await.is_ok() {
                    prop_assert_eq!((who, session), (0, 0), "somebody else got through");
                    prop_assert_eq!(meaning(&spelled), meaning(&agreed));
                    left -= 1;
                    prop_assert!(0 <= left, "it got through twice");
                }
            }
            Ok(())
        });
        outcome?;
    }
}
