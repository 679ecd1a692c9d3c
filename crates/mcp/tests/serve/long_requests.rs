//! Long requests and many at once: they take neither the thread nor the memory of others.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context as Task, Poll};
use std::time::Duration;

use ::http::{Request, StatusCode};
use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::stream::BoxStream;
use http_body::{Frame, SizeHint};
use mcp::serve::http::{FairMemory, Options};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tool::{Ask, Context, Event, Failure, Identity, Listing, Provider, Reply, Server};

use crate::site::{Session, Site};

/// A provider that blocks its thread in a call until it is released.
struct Blocking {
    released: Mutex<Receiver<()>>,
    n_calls: AtomicUsize,
    /// Told to `block later` that later is now.
    is_later: Notify,
    /// A call has begun to block.
    blocks: Notify,
}

impl Blocking {
    fn new() -> (Arc<Blocking>, Sender<()>) {
        let (release, released) = channel();
        let blocking = Blocking {
            released: Mutex::new(released),
            n_calls: AtomicUsize::new(0),
            is_later: Notify::new(),
            blocks: Notify::new(),
        };
        (Arc::new(blocking), release)
    }

    /// Blocks the thread; says whether it was released by somebody who was served meanwhile.
    fn block(&self) -> Reply {
        self.blocks.notify_one();
        let released = self.released.lock().recv_timeout(Duration::from_secs(5));
        Reply::text(if released.is_ok() { "others were served" } else { "nobody was served" })
    }
}

#[async_trait]
impl Provider for Blocking {
    fn listing(&self) -> Arc<Listing> {
        let server = Server::new("blocking", "1", json!({"tools": {}}).into());
        Arc::new(Listing { server, ..Listing::default() })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        Box::pin(futures::stream::pending())
    }

    async fn ask(&self, ask: Ask, _: &Context) -> Result<Reply, Failure> {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        match ask {
            Ask::Call(call) if call.name == "block" => Ok(self.block()),
            Ask::Call(call) if call.name == "block later" => {
                self.is_later.notified().await;
                Ok(self.block())
            }
            Ask::Call(_)
            | Ask::ReadResource(_)
            | Ask::Prompt(_)
            | Ask::Complete(_)
            | Ask::Other { .. } => Ok(Reply::text("done")),
        }
    }
}

/// Arguments of 200 KB.
fn long() -> Value {
    json!({"text": "x".repeat(200_000)})
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

async fn ping_and_release(site: &Site, session: &Session, release: &Sender<()>) {
    let answer = site.in_session(session, "ping", json!({})).await;
    assert_eq!(answer.json()["result"], json!({}));
    release.send(()).unwrap();
}

#[tokio::test]
async fn others_are_served_while_a_long_request_is_worked_on() {
    let (blocking, release) = Blocking::new();
    let site = Site::new(blocking);
    let (ann, bob) = (site.as_caller("ann"), site.as_caller("bob"));
    let session = ann.initialize("2025-11-25", json!({})).await;
    let other = bob.initialize("2025-11-25", json!({})).await;
    let heavy = ann.call(&session, "block", long());
    let (answer, ()) = tokio::join!(heavy, ping_and_release(&bob, &other, &release));
    assert_eq!(text(&answer.json()), "others were served");
    let params = json!({"name": "block", "arguments": long()});
    let capabilities = json!({});
    let heavy = ann.modern("tools/call", params, &capabilities);
    let (answer, ()) = tokio::join!(heavy, ping_and_release(&bob, &other, &release));
    assert_eq!(text(&answer.json()), "others were served");
}

#[tokio::test]
async fn a_long_request_stays_aside_when_its_answer_becomes_a_stream() {
    let (blocking, release) = Blocking::new();
    let options = Options { stream_after: Duration::from_millis(1), ..Options::default() };
    let site = Site::with(blocking.clone(), options);
    let session = site.initialize("2025-11-25", json!({})).await;
    let stream = site.call(&session, "block later", long()).await;
    assert_eq!(stream.media_type(), "text/event-stream");
    // Only now that its answer is a stream the call is polled again, and blocks.
    blocking.is_later.notify_one();
    let others = async {
        blocking.blocks.notified().await;
        release.send(()).unwrap();
    };
    let (messages, ()) = tokio::join!(stream.all(), others);
    assert_eq!(text(messages.last().unwrap()), "others were served");
}

#[tokio::test]
async fn others_are_served_between_the_members_of_a_batch() {
    let (blocking, _release) = Blocking::new();
    let site = Site::new(blocking.clone());
    let session = site.initialize("2025-03-26", json!({})).await;
    let other = site.initialize("2025-11-25", json!({})).await;
    let call = |n: usize| json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "x"}});
    let batch = Value::Array((0..500).map(call).collect());
    let ping = async {
        site.in_session(&other, "ping", json!({})).await;
        blocking.n_calls.load(Ordering::Relaxed)
    };
    let (answers, n_before) = tokio::join!(site.post(&session, &batch), ping);
    assert_eq!(answers.json().as_array().unwrap().len(), 500);
    assert!(n_before < 20, "{n_before} calls ran before the ping was answered");
}

#[tokio::test]
async fn a_request_of_too_many_values_is_refused() {
    let (blocking, _release) = Blocking::new();
    let site = Site::new(blocking.clone());
    let session = site.initialize("2025-11-25", json!({})).await;
    let list = format!("[{}0]", "0,".repeat(1_000_000));
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{list}}}}}}}"#
    );
    let headers = [("mcp-session-id", session.id.as_str())];
    let answer = site.send_text(::http::Method::POST, &headers, body).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(answer.json()["error"]["message"].to_string().contains("1000000 values"));
    assert_eq!(blocking.n_calls.load(Ordering::Relaxed), 0);
}

/// A body of which nothing comes.
struct Unfinished {
    /// The length that was told, if any.
    told: Option<u64>,
    /// What comes of it.
    first: Option<Bytes>,
}

impl http_body::Body for Unfinished {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Poll::Pending,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.told.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_do_not_end_take_a_share_of_the_memory_and_no_more() {
    let (blocking, _release) = Blocking::new();
    let memory = FairMemory::new(2 << 20);
    let options = Options { request_memory: memory.clone(), ..Options::default() };
    let site = Site::with(blocking, options);
    let (ann, bob) = (site.as_caller("ann"), site.as_caller("bob"));
    let session = ann.initialize("2025-11-25", json!({})).await;
    let other = bob.initialize("2025-11-25", json!({})).await;
    let unfinished = |n: usize| {
        let body = match n % 2 {
            0 => Unfinished { told: Some(300_000), first: None },
            _ => Unfinished { told: None, first: Some(vec![b' '; 300_000].into()) },
        };
        let identity = Identity { subject: "ann".to_owned(), ..Identity::default() };
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .extension(Arc::new(identity))
            .body(body);
        Box::pin(site.endpoint.respond(request.unwrap()))
    };
    let mut bodies: Vec<_> = (0..50).map(unfinished).collect();
    for body in &mut bodies {
        assert!(body.now_or_never().is_none(), "it waits");
    }
    assert!(memory.used() <= 1 << 20, "{} bytes", memory.used());
    assert_eq!(text(&bob.call(&other, "x", long()).await.json()), "done");
    assert_eq!(text(&ann.call(&session, "x", json!({})).await.json()), "done");
    let refused = ann.call(&session, "x", json!({"text": "x".repeat(900_000)})).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.header("retry-after"), "1");
    drop(bodies);
    assert_eq!(text(&ann.call(&session, "x", long()).await.json()), "done");
    assert_eq!(memory.used(), 0);
}
