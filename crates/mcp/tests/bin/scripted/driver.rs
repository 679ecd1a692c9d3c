//! A client for the official conformance suite, made of an upstream.
//!
//! The suite starts it with the address of a server of its own and watches what
//! arrives there: every tool is called, every resource read, every prompt got.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp::connect::{ConnectError, Endpoint, Options, Target, Upstream, connect};
use serde_json::{Map, Value, json};
use tool::{
    Ask, Call, Client, ClientHandle, Context, Failure, GetPrompt, Json, Notification, Object,
    Provider,
};
use tool::{ReadResource, Reply, Tool};

use super::human::Human;

/// How often a call that wants more input is tried again.
const ROUNDS: usize = 8;

pub(crate) fn run() -> ExitCode {
    let Some(url) = std::env::args().next_back() else { return ExitCode::FAILURE };
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    runtime.block_on(async {
        match drive(url).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                eprintln!("{reason}");
                ExitCode::FAILURE
            }
        }
    })
}

async fn drive(url: String) -> Result<(), String> {
    let capabilities =
        json!({"elicitation": {"applyDefaults": true, "form": {}}, "sampling": {}, "roots": {}});
    let raw = json!({"name": "driver", "version": "1"}).into();
    let client = Client { capabilities: capabilities.into(), raw, ..Client::named("driver", "1") };
    let client = Arc::new(client);
    let human = Human::new(&url);
    let options = Options { credential: Some(human.credential()), ..Options::default() };
    let target = Target::Http(Endpoint { url, ..Endpoint::default() });
    let upstream = loop {
        match connect(&target, &options, &client).await {
            Ok(upstream) => break upstream,
            Err(ConnectError::Unauthorized { reason }) => human.log_in(&reason).await?,
            Err(error) => return Err(error.to_string()),
        }
    };
    let context = Context {
        client,
        session: "driver".into(),
        client_handle: Arc::new(Agreeable),
        timeout: Some(Duration::from_secs(20)),
        ..Context::anonymous()
    };
    let listing = upstream.listing();
    for (name, arguments) in calls(&listing.tools) {
        let reply = loop {
            match call(&upstream, &name, arguments.clone(), &context).await {
                Err(Failure::Unauthorized { reason, .. }) => human.log_in(&reason).await?,
                other => break other,
            }
        };
        eprintln!("{name}: {reply:?}");
    }
    for resource in &listing.resources {
        let read = Ask::ReadResource(ReadResource {
            uri: resource.uri.clone(),
            other_params: Object::new(),
        });
        eprintln!("{}: {:?}", resource.uri, upstream.ask(read, &context).await);
    }
    for prompt in &listing.prompts {
        let arguments: Map<String, Value> =
            prompt.arguments.iter().map(|argument| (argument.name.clone(), json!("x"))).collect();
        let arguments = Some(Value::Object(arguments).into());
        let prompt =
            GetPrompt { name: prompt.name.clone(), arguments, other_params: Object::new() };
        eprintln!("{:?}", upstream.ask(Ask::Prompt(prompt), &context).await);
    }
    upstream.close().await;
    Ok(())
}

/// The calls that the suite wants, or one of every tool.
#[expect(clippy::disallowed_methods, reason = "the suite says what it wants by the environment")]
fn calls(tools: &[Tool]) -> Vec<(String, Json)> {
    let wants = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let wants: Value = serde_json::from_str(&wants).unwrap_or_default();
    match wants["toolCalls"].as_array() {
        Some(calls) => calls
            .iter()
            .map(|call| {
                let name = call["name"].as_str().unwrap_or_default().to_owned();
                (name, call["arguments"].clone().into())
            })
            .collect(),
        None => tools.iter().map(|tool| (tool.name.clone(), guess(tool, tools))).collect(),
    }
}

fn guess(tool: &Tool, tools: &[Tool]) -> Json {
    let schema = tool.input_schema.to_value().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let first = tools.first().map(|tool| tool.input_schema.clone());
    let value = |schema: &Value| match schema["type"].as_str() {
        Some("object") => first.as_ref().and_then(|s| s.to_value().ok()).unwrap_or_default(),
        Some("number" | "integer") => json!(5),
        Some("boolean") => json!(true),
        _ => json!("x"),
    };
    let arguments: Map<String, Value> =
        properties.iter().map(|(name, schema)| (name.clone(), value(schema))).collect();
    Value::Object(arguments).into()
}

/// Calls a tool and gives it the input it asks for.
async fn call(
    upstream: &Upstream,
    name: &str,
    arguments: Json,
    context: &Context,
) -> Result<Reply, Failure> {
    let mut rest = Object::new();
    for _ in 0..ROUNDS {
        let call =
            Call { name: name.to_owned(), arguments: Some(arguments.clone()), other_params: rest };
        let reply = upstream.ask(Ask::Call(call), context).await?;
        let Reply::Result(result) = &reply else { return Ok(reply) };
        if result.member_as::<String>("resultType").as_deref() != Some("input_required") {
            return Ok(reply);
        }
        rest = Object::new();
        let asked = result.member("inputRequests").and_then(|asked| Object::parse(&asked).ok());
        if let Some(asked) = asked {
            let answers: Object = asked.keys().map(|key| (key.to_owned(), consent())).collect();
            rest.push("inputResponses", answers.to_json());
        }
        if let Some(state) = result.member("requestState") {
            rest.push("requestState", state);
        }
    }
    Err(Failure::Unusable { reason: "it never has enough".to_owned() })
}

fn consent() -> Json {
    json!({"action": "accept", "content": {"confirmed": true, "name": "x"}}).into()
}

/// Agrees to everything, with the defaults it is offered.
struct Agreeable;

#[async_trait]
impl ClientHandle for Agreeable {
    fn notify(&self, _: Notification) {}

    async fn request(&self, _: &str, params: Json) -> Result<Reply, Failure> {
        let params = params.to_value().unwrap_or_default();
        let properties = params["requestedSchema"]["properties"].as_object().cloned();
        let content: Map<String, Value> = properties
            .unwrap_or_default()
            .into_iter()
            .filter_map(|(name, schema)| Some((name, schema.get("default")?.clone())))
            .collect();
        Ok(Reply::Result(json!({"action": "accept", "content": content}).into()))
    }
}
