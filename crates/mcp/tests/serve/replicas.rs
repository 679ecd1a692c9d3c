//! Several endpoints that share sessions, as replicas behind a load balancer do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, StatusCode};
use async_trait::async_trait;
use futures::stream::{BoxStream, StreamExt};
use mcp::serve::http::{Endpoint, Options, RecordError, ReplicaError, Replicas};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::everything::{Everything, Style};
use tool::{Ask, Context, Event, Failure, Json, Kind, Listing, Provider, Reply};

use crate::site::{Answer, Session, Site};

/// What the replicas share, in place of a store.
#[derive(Default)]
pub(crate) struct Shared {
    records: Mutex<HashMap<String, String>>,
    endpoints: Mutex<HashMap<u32, Endpoint>>,
}

struct Member {
    tag: u32,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Member({})", self.tag)
    }
}

#[async_trait]
impl Replicas for Member {
    fn tag(&self) -> u32 {
        self.tag
    }

    async fn read_session(&self, id: &str) -> Result<Option<String>, RecordError> {
        Ok(self.shared.records.lock().get(id).cloned())
    }

    async fn swap_session(
        &self,
        id: &str,
        expected: Option<String>,
        next: String,
        _: Duration,
    ) -> Result<(), RecordError> {
        let mut records = self.shared.records.lock();
        if records.get(id) != expected.as_ref() {
            return Err(RecordError::Conflict);
        }
        records.insert(id.to_owned(), next);
        Ok(())
    }

    async fn touch_session(&self, _: &str, _: Duration) {}

    async fn ask(&self, replica: u32, message: Json) -> Result<Json, ReplicaError> {
        let endpoint = self.shared.endpoints.lock().get(&replica).cloned();
        Ok(endpoint.ok_or(ReplicaError::Gone)?.answer_replica_message(&message).await)
    }
}

impl Shared {
    /// Adds a replica that serves this provider.
    fn site(self: &Arc<Self>, tag: u32, provider: Arc<dyn Provider>) -> Site {
        let stream_after = Duration::from_millis(10);
        let options = Options { stream_after, ..self.options(tag) };
        let site = Site::with(provider, options);
        self.join(tag, &site.endpoint);
        site
    }

    /// The options of the replica with this tag.
    pub(crate) fn options(self: &Arc<Self>, tag: u32) -> Options {
        let replicas = Member { tag, shared: Arc::clone(self) };
        Options { replicas: Some(Arc::new(replicas)), ..Options::default() }
    }

    pub(crate) fn join(&self, tag: u32, endpoint: &Endpoint) {
        self.endpoints.lock().insert(tag, endpoint.clone());
    }
}

/// Two replicas, each with an upstream of its own.
fn pair() -> (Arc<Shared>, [(Arc<Everything>, Site); 2]) {
    let shared = Arc::<Shared>::default();
    let sites = [1, 2].map(|tag| {
        let everything = Everything::new(Style::Mixed);
        (everything.clone(), shared.site(tag, everything))
    });
    (shared, sites)
}

fn id_of(event: &str) -> String {
    event.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned()
}

async fn resume(site: &Site, session: &Session, last: &str) -> Answer {
    let headers = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", session.id.as_str()),
        ("last-event-id", last),
    ];
    site.send(Method::GET, &headers, &json!(null)).await
}

fn methods(messages: &[Value]) -> Vec<Option<&str>> {
    messages.iter().map(|message| message["method"].as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_taken_up_at_another_replica() {
    let (_, [(_, one), (_, other)]) = pair();
    let session = one.initialize("2025-11-25", json!({})).await;
    let mut stream = one.call(&session, "test_tool_with_logging", json!({})).await;
    stream.event().await;
    let first = id_of(&stream.event().await);
    drop(stream);
    let text = resume(&other, &session, &first).await.text().await;
    assert_eq!(text.matches("notifications/message").count(), 2, "{text}");
    assert!(text.contains(r#""id":1,"result""#), "{text}");
    // What the client has by then is not sent again.
    let last = id_of(text.rsplit("\n\n").find(|event| event.contains("id: ")).unwrap());
    assert_eq!(resume(&other, &session, &last).await.text().await, "");
    let made_up = last.replacen("1-", "99-", 1);
    assert_eq!(resume(&other, &session, &made_up).await.status, StatusCode::BAD_REQUEST);
}

/// An upstream that answers when it is told to, with so many bytes.
struct Slow {
    go: tokio::sync::Notify,
    n_bytes: usize,
}

#[async_trait]
impl Provider for Slow {
    fn listing(&self) -> Arc<Listing> {
        let schema = json!({"type": "object"});
        Arc::new(testkit::listing(vec![testkit::tool("wait", "Waits.", &schema)]))
    }

    fn events(&self) -> BoxStream<'static, Event> {
        futures::stream::pending().boxed()
    }

    async fn ask(&self, _: Ask, _: &Context) -> Result<Reply, Failure> {
        self.go.notified().await;
        Ok(Reply::text(&"\u{e9}".repeat(self.n_bytes / 2)))
    }
}

fn slow(n_bytes: usize) -> Arc<Slow> {
    Arc::new(Slow { go: tokio::sync::Notify::new(), n_bytes })
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_later_and_is_longer_than_a_message_arrives_whole() {
    let shared = Arc::<Shared>::default();
    let provider = slow(5 << 20);
    let one = shared.site(1, provider.clone());
    let other = shared.site(2, Everything::new(Style::Mixed));
    let session = one.initialize("2025-11-25", json!({})).await;
    let mut stream = one.call(&session, "wait", json!({})).await;
    let last = id_of(&stream.event().await);
    drop(stream);
    let mut rest = resume(&other, &session, &last).await;
    assert_eq!(rest.event().await, ": \n\n", "nothing happened yet");
    provider.go.notify_one();
    let piece = rest.event().await;
    assert!(1000 < piece.len() && piece.len() <= 1 << 20, "{}", piece.len());
    let text = piece + &rest.text().await;
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let answer: Value = serde_json::from_str(data).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), 5 << 20);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_resumes_a_stream_of_a_dead_replica_is_told_what_is_missing() {
    let shared = Arc::<Shared>::default();
    let one = shared.site(1, slow(2));
    let other = shared.site(2, Everything::new(Style::Mixed));
    let session = one.initialize("2025-11-25", json!({})).await;
    let mut stream = one.call(&session, "wait", json!({})).await;
    let last = id_of(&stream.event().await);
    let mut news = one.listen(&session).await;
    let heard = id_of(&news.event().await);
    let mut resumed = resume(&other, &session, &last).await;
    assert_eq!(resumed.event().await, ": \n\n");
    shared.endpoints.lock().remove(&1);
    for answer in [resumed.all().await, resume(&other, &session, &last).await.all().await] {
        assert_eq!(answer[0]["id"], 1, "{answer:?}");
        assert_eq!(answer[0]["error"]["data"], json!({"mayHaveRun": true}));
        assert!(answer[0]["error"]["message"].as_str().unwrap().contains("is gone"), "{answer:?}");
    }
    let mut news = resume(&other, &session, &heard).await;
    let missed = news.next().await;
    assert!(missed["params"]["data"].as_str().unwrap().contains("left out"), "{missed}");
}

#[tokio::test(start_paused = true)]
async fn who_listens_goes_on_at_another_replica_and_hears_what_was_said_meanwhile() {
    let (_, [(first, one), (second, other)]) = pair();
    let session = one.initialize("2025-11-25", json!({})).await;
    let mut news = one.listen(&session).await;
    let last = id_of(&news.event().await);
    drop(news);
    first.tell(Event::Changed(Kind::Tools));
    tokio::task::yield_now().await;
    let mut news = resume(&other, &session, &last).await;
    assert_eq!(news.next().await["method"], "notifications/tools/list_changed");
    second.tell(Event::Changed(Kind::Prompts));
    let event = news.event().await;
    assert!(event.contains("notifications/prompts/list_changed"), "{event}");
    drop(news);
    // And back: the first replica did not keep anything for it in the meantime.
    first.tell(Event::Changed(Kind::Tools));
    let mut news = resume(&one, &session, &id_of(&event)).await;
    first.tell(Event::Changed(Kind::Templates));
    assert_eq!(news.next().await["method"], "notifications/resources/list_changed");
}

#[tokio::test(start_paused = true)]
async fn what_a_client_wants_is_known_to_every_replica_of_its_session() {
    let (_, [(first, one), (second, other)]) = pair();
    let session = one.initialize("2025-06-18", json!({})).await;
    other.in_session(&session, "ping", json!({})).await;
    // Set at one after the other took the session up, and the other way round.
    one.in_session(&session, "logging/setLevel", json!({"level": "error"})).await;
    let quiet = other.call(&session, "test_tool_with_logging", json!({})).await;
    assert_eq!(methods(&quiet.all().await), [None], "no line is that important");
    let uri = json!({"uri": "test://watched-resource"});
    other.in_session(&session, "resources/subscribe", uri.clone()).await;
    assert_eq!((first.subscribed().len(), second.subscribed().len()), (1, 1));
    one.in_session(&session, "resources/unsubscribe", uri).await;
    assert_eq!((first.subscribed().len(), second.subscribed().len()), (0, 0));
    other.in_session(&session, "logging/setLevel", json!({"level": "debug"})).await;
    let loud = one.call(&session, "test_tool_with_logging", json!({})).await;
    assert_eq!(methods(&loud.all().await).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_takes_a_session_up_later_knows_what_the_client_wants() {
    let (shared, [(_, one), _]) = pair();
    let session = one.initialize("2025-06-18", json!({})).await;
    one.in_session(&session, "logging/setLevel", json!({"level": "error"})).await;
    let uri = json!({"uri": "test://watched-resource"});
    one.in_session(&session, "resources/subscribe", uri).await;
    let everything = Everything::new(Style::Mixed);
    let late = shared.site(3, everything.clone());
    let quiet = late.call(&session, "test_tool_with_logging", json!({})).await;
    assert_eq!(methods(&quiet.all().await), [None]);
    assert_eq!(everything.subscribed().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_cancelled_wherever_it_runs() {
    let shared = Arc::<Shared>::default();
    let one = shared.site(1, slow(2));
    let other = shared.site(2, Everything::new(Style::Mixed));
    let session = one.initialize("2025-11-25", json!({})).await;
    let mut stream = one.call(&session, "wait", json!({})).await;
    stream.event().await;
    let cancel = |id: u64| {
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                                  "params": {"requestId": id}})
    };
    assert_eq!(other.post(&session, &cancel(7)).await.status, StatusCode::ACCEPTED);
    assert_eq!(other.post(&session, &cancel(1)).await.status, StatusCode::ACCEPTED);
    assert!(stream.ended().await, "a cancelled request needs no answer");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_at_one_replica_ends_at_all() {
    let (shared, [(first, one), (_, other)]) = pair();
    let session = one.initialize("2025-11-25", json!({})).await;
    other.in_session(&session, "ping", json!({})).await;
    let uri = json!({"uri": "test://watched-resource"});
    one.in_session(&session, "resources/subscribe", uri).await;
    let mut news = one.listen(&session).await;
    news.event().await;
    assert_eq!(other.delete(&session).await.status, StatusCode::NO_CONTENT);
    assert!(news.ended().await);
    let late = shared.site(3, Everything::new(Style::Mixed));
    for site in [&one, &other, &late] {
        let gone = site.in_session(&session, "ping", json!({})).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
        assert_eq!(site.endpoint.n_sessions(), 0);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(first.subscribed().is_empty(), "what a session wanted ends with it");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_was_not_told_of_the_end_finds_it_in_the_record() {
    let (shared, [(_, one), (_, other)]) = pair();
    let session = one.initialize("2025-11-25", json!({})).await;
    other.in_session(&session, "ping", json!({})).await;
    let cut_off = shared.endpoints.lock().remove(&1).unwrap();
    other.delete(&session).await;
    assert_eq!(one.in_session(&session, "ping", json!({})).await.status, StatusCode::OK);
    shared.endpoints.lock().insert(1, cut_off);
    tokio::time::sleep(Duration::from_secs(10 * 60)).await;
    assert_eq!(one.in_session(&session, "ping", json!({})).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_the_store_lost_is_written_again() {
    let (shared, [(_, one), (_, other)]) = pair();
    let session = one.initialize("2025-06-18", json!({})).await;
    one.in_session(&session, "logging/setLevel", json!({"level": "error"})).await;
    shared.records.lock().clear();
    assert_eq!(other.in_session(&session, "ping", json!({})).await.status, StatusCode::NOT_FOUND);
    tokio::time::sleep(Duration::from_secs(10 * 60)).await;
    one.in_session(&session, "ping", json!({})).await;
    let quiet = other.call(&session, "test_tool_with_logging", json!({})).await;
    assert_eq!(methods(&quiet.all().await), [None]);
}

#[tokio::test(start_paused = true)]
async fn a_session_of_a_release_to_come_is_refused_with_the_remedy() {
    let (shared, [(_, one), (_, other)]) = pair();
    let session = one.initialize("2025-06-18", json!({})).await;
    shared.records.lock().insert(session.id.clone(), r#"{"version":99}"#.to_owned());
    let refused = other.in_session(&session, "ping", json!({})).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("newer release") && message.contains("initialize"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_the_release_before_recorded_is_carried_on() {
    let (shared, [(_, one), (_, other)]) = pair();
    let session = one.initialize("2025-06-18", json!({})).await;
    let record = shared.records.lock()[&session.id].clone();
    let mut record: Value = serde_json::from_str(&record).unwrap();
    record.as_object_mut().unwrap().retain(|key, _| ["params", "caller"].contains(&key.as_str()));
    shared.records.lock().insert(session.id.clone(), record.to_string());
    assert_eq!(other.in_session(&session, "ping", json!({})).await.status, StatusCode::OK);
    assert!(shared.records.lock()[&session.id].contains("\"version\":1"), "and recorded anew");
}
