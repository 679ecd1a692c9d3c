//! Clients whose roots change.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use mcp::serve::stdio;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tool::{Ask, Context, Event, Failure, FixedProvider, Json, Listing, Provider, Reply};

use crate::site::Site;

/// Asks for the roots when it hears that they changed.
#[derive(Default)]
struct Curious {
    roots: Mutex<Vec<String>>,
}

#[async_trait]
impl Provider for Curious {
    fn listing(&self) -> Arc<Listing> {
        Arc::new(Listing::default())
    }

    fn events(&self) -> BoxStream<'static, Event> {
        Box::pin(futures::stream::pending())
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        assert_eq!(ask.method(), "notifications/roots/list_changed");
        let answer = context.client_handle.request("roots/list", Json::empty_object()).await?;
        let Reply::Result(roots) = &answer else { panic!("{answer:?}") };
        self.roots.lock().unwrap().push(roots.to_string());
        Ok(answer)
    }
}

impl Curious {
    async fn learned(&self) -> Vec<String> {
        while self.roots.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.roots.lock().unwrap().clone()
    }
}

const CHANGED: &str = "notifications/roots/list_changed";

fn answer(question: &Value) -> Value {
    assert_eq!(question["method"], "roots/list");
    json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
}

#[tokio::test(start_paused = true)]
async fn over_http_the_provider_hears_of_it_and_asks_on_the_standing_stream() {
    let curious = Arc::new(Curious::default());
    let site = Site::new(Arc::clone(&curious) as _);
    let session = site.initialize("2025-11-25", json!({"roots": {"listChanged": true}})).await;
    let mut stream = site.listen(&session).await;
    site.post(&session, &json!({"jsonrpc": "2.0", "method": CHANGED})).await;
    let question = stream.next().await;
    site.post(&session, &answer(&question)).await;
    assert_eq!(curious.learned().await, [r#"{"roots":[]}"#]);
}

#[tokio::test]
async fn over_a_pipe_the_provider_hears_of_it_and_asks() {
    let curious = Arc::new(Curious::default());
    let source = Arc::new(FixedProvider(Arc::clone(&curious) as _));
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(stdio::serve(source, read, write, stdio::Options::default()));
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"roots": {}},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let changed = json!({"jsonrpc": "2.0", "method": CHANGED});
    write.write_all(format!("{hello}\n{changed}\n").as_bytes()).await.unwrap();
    let welcome = lines.next_line().await.unwrap().unwrap();
    assert!(welcome.contains("protocolVersion"), "{welcome}");
    let question = lines.next_line().await.unwrap().unwrap();
    let answer = answer(&serde_json::from_str(&question).unwrap());
    write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    assert_eq!(curious.learned().await, [r#"{"roots":[]}"#]);
}
