//! The example, as a client meets it: alone over stdio, and behind the gate.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use async_trait::async_trait;
use gateway::{Gateway, GatewayParts, Surface};
use mcp::connect::{self, Program, Target};
use roster::{Connector, Upstream};
use serde_json::{Value, json};
use store::clock::System;
use tool::{Ask, Call, Client, Context, Failure, Provider, Reply};

fn program() -> Target {
    let command = env!("CARGO_BIN_EXE_notes").into();
    Target::Stdio(Program { command, ..Program::default() })
}

async fn call(provider: &dyn Provider, tool: &str, arguments: Value) -> (bool, String) {
    let ask = Ask::Call(Call::new(tool, arguments.into()));
    let reply = provider.ask(ask, &Context::anonymous()).await.unwrap();
    let result = reply.tool_result().unwrap_or_else(|| panic!("{reply:?}"));
    (result.is_error, result.text())
}

#[tokio::test]
async fn the_tools_are_served_alone() {
    let client = Client::named("test", "2025-11-25");
    let upstream =
        connect::connect(&program(), &connect::Options::default(), &client).await.unwrap();
    let listing = upstream.listing();
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["note_delete", "note_list", "note_read", "note_search", "note_write"]);
    assert_eq!(listing.tools[0].annotations.destructive, Some(true));

    let note = json!({"title": "milk", "text": "buy two", "tags": ["shop"]});
    assert!(!call(&*upstream, "note_write", note).await.0);
    let (_, found) = call(&*upstream, "note_search", json!({"query": "BUY shop"})).await;
    assert_eq!(
        found,
        r#"{"notes":[{"title":"milk","text":"buy two","tags":["shop"]}],"searched":1}"#
    );
    let (failed, text) = call(&*upstream, "note_read", json!({"title": "tea"})).await;
    assert!(failed && text.contains("NoteNotFound"), "{text}");
    let (failed, text) = call(&*upstream, "note_search", json!({"query": "x", "limit": 99})).await;
    assert!(failed && text.contains("SchemaError") && text.contains("/limit"), "{text}");
    let (_, text) = call(&*upstream, "note_delete", json!({"title": "milk"})).await;
    assert_eq!(text, "deleted `milk` (7 bytes)");
    upstream.close().await;
}

/// Starts the example as an upstream of the gate.
struct Started;

#[async_trait]
impl Connector for Started {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let upstream = connect::connect(&program(), &connect::Options::default(), client).await;
        match upstream {
            Ok(upstream) => Ok(upstream),
            Err(error) => Err(Failure::Unavailable { reason: error.to_string() }),
        }
    }
}

#[tokio::test]
async fn the_tools_are_served_behind_the_gate() {
    let upstreams = vec![Upstream::new("notes", Arc::new(Started))];
    let gateway = Gateway::new(GatewayParts::new(upstreams, Arc::new(System::start())));
    let client = Arc::new(Client::named("test", "2025-11-25"));
    let surface = gateway.surface(Surface::Cash).provider_for(&client, &Arc::default());
    let write = json!({
        "namespace": "notes", "function": "note_write",
        "kwargs": {"title": "tea", "text": "green"},
    });
    // The first call waits until the upstream has been started and listed.
    let (failed, text) = call(&*surface, "call", write).await;
    assert!(!failed, "{text}");
    let read = json!({"namespace": "notes", "function": "note_read", "kwargs": {"title": "tea"}});
    let ask = Ask::Call(Call::new("call", read.into()));
    let reply = surface.ask(ask, &Context::anonymous()).await.unwrap();
    let Reply::Result(result) = reply else { panic!("{reply:?}") };
    // The text is the JSON of the structured content, and equal data is sent once.
    let result = result.to_value().unwrap();
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["text"], "green");
}
