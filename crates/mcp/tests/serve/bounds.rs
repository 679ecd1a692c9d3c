//! What one client can make the server keep or do, and where that ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::http::{Method, StatusCode};
use async_trait::async_trait;
use futures::stream::BoxStream;
use mcp::message::BATCH_MEMBERS;
use mcp::serve::http::{AnswerMemory, FairMemory, Options, SessionLimits};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::everything::{Everything, Style};
use tokio::sync::Semaphore;
use tool::{Ask, Client, Context, Event, Failure, Listing, Provider, Reply, Server, Tool};

use crate::site::{Session, Site};

const OLD: &str = "2025-11-25";

/// A provider that notes what reaches it, and answers calls when it may.
struct Watched {
    methods: Mutex<Vec<String>>,
    client: Mutex<Option<Arc<Client>>>,
    n_calls: AtomicUsize,
    n_listings: AtomicUsize,
    may_answer: Semaphore,
}

impl Watched {
    fn new() -> Arc<Watched> {
        Arc::new(Watched {
            methods: Mutex::default(),
            client: Mutex::default(),
            n_calls: AtomicUsize::new(0),
            n_listings: AtomicUsize::new(0),
            may_answer: Semaphore::new(0),
        })
    }
}

#[async_trait]
impl Provider for Watched {
    fn listing(&self) -> Arc<Listing> {
        let capabilities = json!({"resources": {"subscribe": true}, "tools": {}});
        let server = Server::new("watched", "1", capabilities.into());
        self.n_listings.fetch_add(1, Ordering::Relaxed);
        let tool = json!({"name": "t", "description": "x".repeat(1000), "inputSchema": {}});
        let tools = vec![Tool::parse(tool.into()).unwrap()];
        Arc::new(Listing { server, tools, ..Listing::default() })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        Box::pin(futures::stream::pending())
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        self.methods.lock().push(ask.method().to_owned());
        *self.client.lock() = Some(Arc::clone(&context.client));
        match ask {
            Ask::Call(call) if call.name == "wait" => {
                self.n_calls.fetch_add(1, Ordering::Relaxed);
                self.may_answer.acquire().await.unwrap().forget();
                Ok(Reply::text("waited"))
            }
            Ask::Call(_) => Ok(Reply::text(&"x".repeat(1000))),
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Ok(Reply::Result(json!({}).into()))
            }
        }
    }
}

fn hello(info: &Value, capabilities: &Value) -> Value {
    let params = json!({"protocolVersion": OLD, "capabilities": capabilities, "clientInfo": info});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_too_many_messages_is_refused_before_any_of_it_runs() {
    let watched = Watched::new();
    let site = Site::new(watched.clone());
    let session = site.initialize("2025-03-26", json!({})).await;
    let call = |n: usize| json!({"jsonrpc": "2.0", "id": n, "method": "x/y"});
    let batch = Value::Array((0..=BATCH_MEMBERS).map(call).collect());
    let answer = site.post(&session, &batch).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("more than 1000 messages"), "{message}");
    assert!(watched.methods.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_answers_of_a_batch_have_one_limit_together() {
    let options = Options { answer: 3000, ..Options::default() };
    let site = Site::with(Watched::new(), options);
    let session = site.initialize("2025-03-26", json!({})).await;
    let call = |n: usize| json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "x"}});
    let batch = Value::Array((0..10).map(call).collect());
    let answers = site.post(&session, &batch).await.json();
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 10, "every request has an answer");
    let refused: Vec<_> =
        answers.iter().filter_map(|one| one["error"]["message"].as_str()).collect();
    assert_eq!(refused.len(), 8, "{refused:?}");
    assert!(refused.iter().all(|message| message.contains("ask one at a time")), "{refused:?}");
}

/// A batch of so many requests.
fn batch_of(n_requests: usize, method: &str, params: &Value) -> Value {
    let request = |n: usize| json!({"jsonrpc": "2.0", "id": n, "method": method, "params": params});
    Value::Array((0..n_requests).map(request).collect())
}

/// Returns how many of the answers are results, and how many say that nothing was run.
fn run_and_unrun(answers: &Value) -> (usize, usize) {
    let answers = answers.as_array().unwrap();
    let is_unrun = |one: &&Value| one["error"]["message"].to_string().contains("was not run");
    let n_results = answers.iter().filter(|one| one["result"].is_object()).count();
    (n_results, answers.iter().filter(is_unrun).count())
}

#[tokio::test(start_paused = true)]
async fn what_a_full_batch_has_no_room_for_is_not_run() {
    let watched = Watched::new();
    let options = Options { answer: 3000, ..Options::default() };
    let site = Site::with(watched.clone(), options);
    let session = site.initialize("2025-03-26", json!({})).await;
    let calls = batch_of(300, "tools/call", &json!({"name": "x"}));
    let (n_run, n_unrun) = run_and_unrun(&site.post(&session, &calls).await.json());
    assert_eq!(n_run, 2);
    assert!(280 <= n_unrun, "{n_unrun}");
    assert_eq!(watched.methods.lock().len(), 300 - n_unrun);
    let n_before = watched.n_listings.load(Ordering::Relaxed);
    let lists = batch_of(300, "tools/list", &json!({}));
    let (n_run, n_unrun) = run_and_unrun(&site.post(&session, &lists).await.json());
    assert_eq!(n_run, 2);
    assert!(280 <= n_unrun, "{n_unrun}");
    let n_listings = watched.n_listings.load(Ordering::Relaxed) - n_before;
    assert!(n_listings < 50, "{n_listings} lists were looked at");
}

#[tokio::test(start_paused = true)]
async fn few_requests_of_a_batch_are_answered_at_a_time() {
    let watched = Watched::new();
    let site = Site::new(watched.clone());
    let session = site.initialize("2025-03-26", json!({})).await;
    let calls = batch_of(100, "tools/call", &json!({"name": "wait"}));
    let count = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        watched.may_answer.add_permits(100);
        watched.n_calls.load(Ordering::Relaxed)
    };
    let (answers, n_at_once) = tokio::join!(site.post(&session, &calls), count);
    assert_eq!(n_at_once, 16);
    assert_eq!(run_and_unrun(&answers.json()), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn the_answers_of_a_batch_take_their_memory_one_by_one() {
    let watched = Watched::new();
    let memory = AnswerMemory::new(FairMemory::new(100 << 10));
    let site = Site::with(watched.clone(), Options { memory, ..Options::default() });
    let session = site.initialize("2025-03-26", json!({})).await;
    let calls = batch_of(300, "tools/call", &json!({"name": "x"}));
    let answers = site.post(&session, &calls).await.json();
    assert_eq!(answers.as_array().unwrap().len(), 300, "every request has an answer");
    let (n_run, n_unrun) = run_and_unrun(&answers);
    assert!((60..100).contains(&n_run), "{n_run}");
    assert!(180 < n_unrun, "{n_unrun}");
    let again = batch_of(60, "tools/call", &json!({"name": "x"}));
    let answers = site.post(&session, &again).await.json();
    assert_eq!(run_and_unrun(&answers), (60, 0), "the memory was given back");
}

#[tokio::test(start_paused = true)]
async fn of_a_long_client_info_only_the_names_are_kept() {
    let watched = Watched::new();
    let site = Site::new(watched.clone());
    let icon = "y".repeat(1 << 20);
    let info = json!({"name": "n", "version": "1", "title": "T", "icons": [{"src": icon}]});
    let answer = site.send(Method::POST, &[], &hello(&info, &json!({}))).await;
    let id = answer.header("mcp-session-id");
    let session = Session { id, result: json!({}) };
    site.in_session(&session, "x/y", json!({})).await;
    let client = watched.client.lock().clone().unwrap();
    let kept: Value = serde_json::from_str(client.raw.as_str()).unwrap();
    assert_eq!(kept, json!({"name": "n", "title": "T", "version": "1"}));
}

#[tokio::test(start_paused = true)]
async fn names_and_capabilities_that_are_too_long_are_refused() {
    let site = Site::new(Watched::new());
    let long = "y".repeat(100 << 10);
    let plain = json!({"name": "n", "version": "1"});
    for (info, capabilities, what) in [
        (json!({"name": long, "version": "1"}), json!({}), "`name`"),
        (json!({"name": "n", "version": long}), json!({}), "`version`"),
        (plain, json!({"experimental": {"pad": long}}), "`capabilities`"),
    ] {
        let answer = site.send(Method::POST, &[], &hello(&info, &capabilities)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains(what) && message.contains("at most"), "{message}");
    }
    assert_eq!(site.endpoint.n_sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_watches_so_many_resources_and_its_caller_not_many_more() {
    let site = Site::new(Watched::new()).as_caller("ann");
    let watch = async |session: &Session, n: usize| {
        let params = json!({"uri": format!("test://{n}")});
        site.in_session(session, "resources/subscribe", params).await.json()
    };
    let mut n_refused = 0;
    for _ in 0..3 {
        let session = site.initialize(OLD, json!({})).await;
        for n in 0..1001 {
            let answer = watch(&session, n).await;
            n_refused += usize::from(answer["error"]["message"].is_string());
        }
    }
    assert_eq!(n_refused, 1003, "2,000 for the caller, 1,000 for each session");
    let other = site.as_caller("bob");
    let session = other.initialize(OLD, json!({})).await;
    let params = json!({"uri": "test://0"});
    let answer = other.in_session(&session, "resources/subscribe", params).await.json();
    assert_eq!(answer["result"], json!({}), "others are not touched by it");
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_no_longer_watches_counts_no_longer() {
    let site = Site::new(Watched::new()).as_caller("ann");
    for _ in 0..5 {
        let session = site.initialize(OLD, json!({})).await;
        for n in 0..1000 {
            let params = json!({"uri": format!("test://{n}")});
            let answer = site.in_session(&session, "resources/subscribe", params).await.json();
            assert_eq!(answer["result"], json!({}), "{n}");
        }
        site.delete(&session).await;
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_wants_to_watch_too_much_is_refused() {
    let site = Site::new(Watched::new());
    let uris: Vec<String> = (0..1001).map(|n| format!("test://{n}")).collect();
    let params = json!({"notifications": {"resourceSubscriptions": uris}});
    let answer = site.modern("subscriptions/listen", params, &json!({})).await;
    let message = answer.json()["error"]["message"].to_string();
    assert!(message.contains("no more than 1000 resources"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn one_caller_opens_sessions_without_end_and_nobody_else_notices() {
    let watched = Watched::new();
    let sessions = SessionLimits { sessions: 20, per_caller: 10, ..SessionLimits::default() };
    let site = Site::with(watched.clone(), Options { sessions, ..Options::default() });
    let (ann, eve) = (site.as_caller("ann"), site.as_caller("eve"));
    let idle = ann.initialize(OLD, json!({})).await;
    let busy = ann.initialize(OLD, json!({})).await;
    let answer = ann.call(&busy, "wait", json!({}));
    let flood = async {
        for _ in 0..500 {
            eve.initialize(OLD, json!({})).await;
        }
        watched.may_answer.add_permits(1);
    };
    let (answer, ()) = tokio::join!(answer, flood);
    let text = answer.all_or_json().await["result"]["content"][0]["text"].clone();
    assert_eq!(text, "waited");
    assert_eq!(ann.in_session(&idle, "ping", json!({})).await.status, StatusCode::OK);
    assert_eq!(site.endpoint.n_sessions(), 12);
}

#[tokio::test(start_paused = true)]
async fn many_callers_from_one_address_share_a_limit() {
    let sessions = SessionLimits { per_address: 5, ..SessionLimits::default() };
    let site = Site::with(Watched::new(), Options { sessions, ..Options::default() });
    let elsewhere = site.as_caller("ann").at_address("10.0.0.2");
    let kept = elsewhere.initialize(OLD, json!({})).await;
    for n in 0..50 {
        let caller = site.as_caller(&format!("caller {n}")).at_address("10.0.0.1");
        caller.initialize(OLD, json!({})).await;
    }
    assert_eq!(site.endpoint.n_sessions(), 6);
    assert_eq!(elsewhere.in_session(&kept, "ping", json!({})).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_session_in_use_never_gives_way_and_the_new_one_is_refused() {
    let sessions = SessionLimits { sessions: 2, ..SessionLimits::default() };
    let site =
        Site::with(Everything::new(Style::Mixed), Options { sessions, ..Options::default() });
    let (first, second) =
        (site.initialize(OLD, json!({})).await, site.initialize(OLD, json!({})).await);
    let streams = (site.listen(&first).await, site.listen(&second).await);
    let info = json!({"name": "n", "version": "1"});
    let refused = site.as_caller("eve").send(Method::POST, &[], &hello(&info, &json!({}))).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.json()["error"]["message"].to_string().contains("are in use here"));
    for session in [&first, &second] {
        assert_eq!(site.in_session(session, "ping", json!({})).await.status, StatusCode::OK);
    }
    drop(streams);
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_when_its_session_ends_is_answered_with_that() {
    let watched = Watched::new();
    let options = Options { stream_after: Duration::from_millis(10), ..Options::default() };
    let site = Site::with(watched.clone(), options);
    let session = site.initialize(OLD, json!({})).await;
    let stream = site.call(&session, "wait", json!({})).await;
    assert_eq!(stream.media_type(), "text/event-stream");
    site.delete(&session).await;
    let messages = stream.all().await;
    let last = messages.last().unwrap();
    assert_eq!(last["id"], 1);
    assert!(last["error"]["message"].to_string().contains("the session ended"), "{last}");
}

/// Names of notifications, known and invented.
fn notification() -> impl Strategy<Value = String> {
    let known = ["cancelled", "initialized", "roots/list_changed", "tools/list_changed", "message"];
    prop_oneof![
        prop::sample::select(known.to_vec()).prop_map(|name| format!("notifications/{name}")),
        "[a-zA-Z/_.%]{0,30}".prop_map(|rest| format!("notifications/{rest}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_request_named_like_a_notification_reaches_no_provider(name in notification()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let watched = Watched::new();
            let site = Site::new(watched.clone());
            let session = site.initialize(OLD, json!({})).await;
            let params = json!({"requestId": 1});
            let old = site.in_session(&session, &name, params.clone()).await.json();
            let modern = site.modern(&name, params, &json!({})).await.json();
            for answer in [old, modern] {
                assert_eq!(answer["error"]["code"], -32601, "{name}: {answer}");
            }
            assert!(watched.methods.lock().is_empty(), "{name} was passed on");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_notification_that_nobody_knows_goes_no_further() {
    let watched = Watched::new();
    let site = Site::new(watched.clone());
    let session = site.initialize(OLD, json!({"roots": {}})).await;
    for method in ["notifications/x", "notifications/cancelled", "x/y"] {
        let note = json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 9}});
        assert_eq!(site.post(&session, &note).await.status, StatusCode::ACCEPTED);
    }
    tokio::task::yield_now().await;
    assert!(watched.methods.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn streams_on_which_clients_only_listen_end_when_the_server_stops() {
    let watched = Watched::new();
    let options = Options { stream_after: Duration::from_millis(10), ..Options::default() };
    let site = Site::with(watched.clone(), options);
    let session = site.initialize(OLD, json!({})).await;
    let mut standing = site.listen(&session).await;
    let call = site.call(&session, "wait", json!({})).await;
    let mut listener =
        site.modern("subscriptions/listen", json!({"notifications": {}}), &json!({})).await;
    assert_eq!(listener.next().await["method"], "notifications/subscriptions/acknowledged");
    site.endpoint.stop_listening();
    standing.event().await;
    assert!(standing.ended().await);
    assert_eq!(listener.next().await["result"]["resultType"], "complete");
    assert!(listener.ended().await);
    watched.may_answer.add_permits(1);
    let messages = call.all().await;
    assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "waited");
}
