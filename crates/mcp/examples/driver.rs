//! A client for the conformance suite, with all of this crate in between.
//!
//! `driver URL` connects to the server at the address, serves that connection
//! over a pipe within the process, and uses it as a client of an older revision
//! would: lists, calls every tool, reads, gets a prompt, answers questions. So
//! what the suite sees is our upstream side, and what it asks of a client goes
//! through the bridge. `MCP_CONFORMANCE_CONTEXT` may name the calls to make.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use mcp::connect::{self, Endpoint, Target};
use mcp::message::{Invalid, Notification, Request, Response};
use mcp::peer::{self, Incoming, Limits, Peer, Timeouts};
use mcp::serve::stdio;
use serde_json::{Map, Value, json};
use tool::{Client, FixedProvider, Json, Reply, RpcError};

type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let url = std::env::args().next_back().ok_or("usage: driver URL")?;
    let capabilities =
        json!({"sampling": {}, "elicitation": {"form": {"applyDefaults": true}}, "roots": {}});
    let info = json!({"name": "driver", "version": "1"});
    let client = Client {
        capabilities: capabilities.clone().into(),
        raw: info.clone().into(),
        ..Client::named("driver", "")
    };
    let target = Target::Http(Endpoint { url, ..Endpoint::default() });
    let upstream = connect::connect(&target, &connect::Options::default(), &client).await?;

    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(theirs);
    let source = Arc::new(FixedProvider(Arc::clone(&upstream) as _));
    tokio::spawn(stdio::serve(source, reader, writer, stdio::Options::default()));
    let (reader, writer) = tokio::io::split(ours);
    let peer = Peer::new(Limits::default());
    tokio::spawn(peer::run(peer.clone(), reader, writer, Arc::new(Answers)));

    let opening =
        json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info});
    let opened = ask(&peer, "initialize", opening).await?;
    peer.notify("notifications/initialized", None)?;
    if !opened["capabilities"]["tools"].is_null() {
        call_tools(&peer).await?;
    }
    if !opened["capabilities"]["resources"].is_null() {
        let listed = ask(&peer, "resources/list", json!({})).await?;
        for resource in listed["resources"].as_array().into_iter().flatten() {
            ask(&peer, "resources/read", json!({"uri": resource["uri"]})).await?;
        }
    }
    if !opened["capabilities"]["prompts"].is_null() {
        let listed = ask(&peer, "prompts/list", json!({})).await?;
        for prompt in listed["prompts"].as_array().into_iter().flatten() {
            ask(&peer, "prompts/get", json!({"name": prompt["name"]})).await?;
        }
    }
    Ok(())
}

async fn call_tools(peer: &Peer) -> Result<(), Failed> {
    let listed = ask(peer, "tools/list", json!({})).await?;
    let tools = listed["tools"].as_array().cloned().unwrap_or_default();
    #[expect(clippy::disallowed_methods, reason = "the suite says here what to call")]
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    if let Some(calls) = context["toolCalls"].as_array() {
        for call in calls {
            ask(peer, "tools/call", call.clone()).await?;
        }
        return Ok(());
    }
    for tool in &tools {
        let arguments = arguments(&tool["inputSchema"], &tools[0]["inputSchema"]);
        let params = json!({"name": tool["name"], "arguments": arguments});
        ask(peer, "tools/call", params).await?;
    }
    Ok(())
}

/// Arguments that fit a schema; an argument called `schema` gets one.
fn arguments(schema: &Value, example: &Value) -> Value {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let value = |key: &str, property: &Value| match (key, property["type"].as_str()) {
        ("schema", _) => example.clone(),
        (_, Some("number" | "integer")) => json!(5),
        (_, Some("boolean")) => json!(true),
        (_, Some("object")) => json!({}),
        (_, Some("array")) => json!([]),
        _ => json!("text"),
    };
    properties
        .iter()
        .map(|(key, property)| (key.clone(), value(key, property)))
        .collect::<Map<_, _>>()
        .into()
}

async fn ask(peer: &Peer, method: &str, params: Value) -> Result<Value, Failed> {
    let timeouts = Timeouts::same(Duration::from_secs(20));
    let reply =
        peer.request(peer.next_request_id(), method, Some(&params.into()), timeouts).await?;
    match reply {
        Reply::Result(result) => Ok(result.to_value()?),
        // What a server refuses is for the suite to judge.
        Reply::Error(_) => Ok(Value::Null),
    }
}

/// Answers what servers ask.
struct Answers;

impl Incoming for Answers {
    fn request(self: Arc<Self>, request: Request) -> BoxFuture<'static, Reply> {
        let params = request.params.and_then(|params| params.to_value().ok()).unwrap_or_default();
        let result = match request.method.as_str() {
            "elicitation/create" => {
                json!({"action": "accept", "content": filled(&params["requestedSchema"])})
            }
            "sampling/createMessage" => json!({"role": "assistant", "model": "none",
                "content": {"type": "text", "text": "sampled"}}),
            "roots/list" => json!({"roots": []}),
            _ => json!({}),
        };
        std::future::ready(Reply::Result(Json::from(result))).boxed()
    }

    fn notification(&self, _: Notification) {}

    fn invalid(&self, _: &Invalid, _: &[u8]) -> Option<RpcError> {
        None
    }

    fn unexpected_response(&self, _: Response) {}
}

/// Content that fits a schema: the defaults where there are some.
fn filled(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let content = properties.iter().map(|(key, property)| {
        let value = match (&property["default"], property["type"].as_str()) {
            (Value::Null, Some("boolean")) => json!(true),
            (Value::Null, Some("number" | "integer")) => json!(5),
            (Value::Null, _) => json!("text"),
            (default, _) => default.clone(),
        };
        (key.clone(), value)
    });
    content.collect::<Map<_, _>>().into()
}
