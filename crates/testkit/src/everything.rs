//! A provider with everything that MCP's official conformance suite looks for.
//!
//! The names and texts are those that the suite expects, so that it can test this
//! provider directly or through a gateway. [`Style`] says how the provider gets input
//! from the client: by a request to the client during the call, as in older protocol
//! revisions, or by the result `input_required`, as in newer ones. Each tool that needs
//! input supports both, so that every combination can be tested.

mod catalogue;
mod input;
mod style;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tool::{
    Ask, Call, Context, Event, Failure, GetPrompt, Json, Kind, Listing, Notification, Object,
    Provider, ReadResource, Reply, RpcError,
};

use catalogue::{AUDIO, IMAGE};

pub use style::Style;

/// The provider for the conformance suite.
pub struct Everything {
    style: Style,
    /// Whether the extra tool is listed.
    extra_tool: AtomicBool,
    /// Whether the extra prompt is listed.
    extra_prompt: AtomicBool,
    /// The URIs of subscribed resources.
    subscribed: Mutex<BTreeSet<String>>,
    events: broadcast::Sender<Event>,
}

impl Everything {
    pub fn new(style: Style) -> Arc<Everything> {
        Arc::new(Everything {
            style,
            extra_tool: AtomicBool::new(false),
            extra_prompt: AtomicBool::new(false),
            subscribed: Mutex::default(),
            events: broadcast::channel(64).0,
        })
    }

    /// Returns the URIs of subscribed resources.
    pub fn subscribed(&self) -> BTreeSet<String> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends an event to all subscribers.
    pub fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }

    async fn call(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        if let Some(request) = input::input_request(&call.name) {
            return request.run(self.style, &call, context).await;
        }
        Ok(match call.name.as_str() {
            "test_simple_text" => Reply::text("This is a simple text response for testing."),
            "test_image_content" => content(&json!([image()])),
            "test_audio_content" => {
                content(&json!([{"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}]))
            }
            "test_embedded_resource" => content(&json!([{"type": "resource", "resource": {
                "uri": "test://embedded-resource", "mimeType": "text/plain",
                "text": "This is an embedded resource content."}}])),
            "test_multiple_content_types" => content(&json!([
                {"type": "text", "text": "Multiple content types test:"},
                image(),
                {"type": "resource", "resource": {
                    "uri": "test://mixed-content-resource", "mimeType": "application/json",
                    "text": r#"{"test":"data","value":123}"#}},
            ])),
            "test_error_handling" => {
                Reply::error_text("This tool intentionally returns an error for testing")
            }
            "test_tool_with_logging" | "test_logging_tool" => logging(context).await,
            "test_tool_with_progress" => progress(&call, context).await,
            "test_reconnection" => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Reply::text("The answer came after a while.")
            }
            "test_missing_capability" => missing_capability(context),
            "test_trigger_tool_change" => {
                self.extra_tool.fetch_xor(true, Ordering::Relaxed);
                self.tell(Event::Changed(Kind::Tools));
                Reply::text("The list of tools changed.")
            }
            "test_trigger_prompt_change" => {
                self.extra_prompt.fetch_xor(true, Ordering::Relaxed);
                self.tell(Event::Changed(Kind::Prompts));
                Reply::text("The list of prompts changed.")
            }
            "json_schema_2020_12_tool" | "test_custom_header" | "test_extra_tool" => {
                let arguments = call.arguments.unwrap_or_else(Json::empty_object);
                Reply::text(&format!("Called with {arguments}"))
            }
            other => Reply::Error(RpcError::new(-32602, format!("no tool is called `{other}`"))),
        })
    }

    fn prompt(&self, prompt: &GetPrompt) -> Reply {
        let argument = |key: &str| -> String {
            prompt.arguments.as_ref().and_then(|all| all.member_as(key)).unwrap_or_default()
        };
        let user = |content: Value| json!({"role": "user", "content": content});
        let text = |text: &str| user(json!({"type": "text", "text": text}));
        let messages = match prompt.name.as_str() {
            "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
            "test_prompt_with_arguments" => json!([text(&format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1"),
                argument("arg2")
            ))]),
            "test_prompt_with_embedded_resource" => json!([
                user(json!({"type": "resource", "resource": {
                    "uri": argument("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing."}})),
                text("Please process the embedded resource above."),
            ]),
            "test_prompt_with_image" => {
                json!([user(image()), text("Please analyze the image above.")])
            }
            "test_extra_prompt" => json!([text("This prompt comes and goes.")]),
            other => {
                return Reply::Error(RpcError::new(
                    -32602,
                    format!("no prompt is called `{other}`"),
                ));
            }
        };
        Reply::Result(json!({"messages": messages}).into())
    }

    fn read(&self, read: &ReadResource) -> Reply {
        let template = read.uri.strip_prefix("test://template/");
        let id = template.and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (read.uri.as_str(), id) {
            ("test://static-text", _) => json!({"mimeType": "text/plain",
                "text": "This is the content of the static text resource."}),
            ("test://static-binary", _) => json!({"mimeType": "image/png", "blob": IMAGE}),
            ("test://watched-resource", _) => json!({"mimeType": "text/plain",
                "text": "Watched resource content"}),
            (_, Some(id)) => {
                let text =
                    format!(r#"{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}"#);
                json!({"mimeType": "application/json", "text": text})
            }
            (uri, None) => {
                let data = json!({"uri": uri}).into();
                let code = if self.style == Style::Requiring { -32602 } else { -32002 };
                return Reply::Error(RpcError::with_data(code, "Resource not found", &data));
            }
        };
        let mut contents = contents;
        contents["uri"] = json!(read.uri);
        Reply::Result(json!({"contents": [contents]}).into())
    }

    fn other(&self, method: &str, params: &Object) -> Reply {
        let uri: Option<String> = params.get("uri").and_then(|uri| uri.parse_as().ok());
        let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        match (method, uri) {
            ("resources/subscribe", Some(uri)) => drop(subscribed.insert(uri)),
            ("resources/unsubscribe", Some(uri)) => drop(subscribed.remove(&uri)),
            ("logging/setLevel", _) => {}
            (other, _) => {
                return Reply::Error(RpcError::new(-32601, format!("no method `{other}`")));
            }
        }
        Reply::Result(Json::empty_object())
    }
}

#[async_trait]
impl Provider for Everything {
    fn listing(&self) -> Arc<Listing> {
        let extra = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let protocol = match self.style {
            Style::Asking => "2025-11-25",
            Style::Requiring => "2026-07-28",
            Style::Mixed => "",
        };
        Arc::new(catalogue::listing(extra(&self.extra_tool), extra(&self.extra_prompt), protocol))
    }

    fn events(&self) -> BoxStream<'static, Event> {
        crate::event_stream(&self.events)
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(call) => self.call(call, context).await,
            Ask::Prompt(prompt) => match input::input_request(&prompt.name) {
                Some(request) => {
                    let GetPrompt { name, arguments, other_params } = prompt;
                    request.run(self.style, &Call { name, arguments, other_params }, context).await
                }
                None => Ok(self.prompt(&prompt)),
            },
            Ask::ReadResource(read) => Ok(self.read(&read)),
            Ask::Complete(_) => {
                let completion =
                    json!({"values": ["paris", "park", "party"], "total": 3, "hasMore": false});
                Ok(Reply::Result(json!({"completion": completion}).into()))
            }
            Ask::Other { method, params } => Ok(self.other(&method, &params)),
        }
    }
}

/// Creates a tool result with these content blocks.
fn content(blocks: &Value) -> Reply {
    Reply::Result(json!({"content": blocks}).into())
}

fn image() -> Value {
    json!({"type": "image", "data": IMAGE, "mimeType": "image/png"})
}

async fn logging(context: &Context) -> Reply {
    let lines = ["Tool execution started", "Tool processing data", "Tool execution completed"];
    for (at, line) in lines.into_iter().enumerate() {
        if at != 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let params = json!({"level": "info", "logger": "everything", "data": line});
        tell(context, "notifications/message", &params);
    }
    Reply::text("Tool with logging executed successfully")
}

async fn progress(call: &Call, context: &Context) -> Reply {
    let token = call.other_params.get("_meta").and_then(|about| about.member("progressToken"));
    for (at, progress) in [0, 50, 100].into_iter().enumerate() {
        if at != 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if let Some(token) = &token {
            let params = json!({"progressToken": token, "progress": progress, "total": 100});
            tell(context, "notifications/progress", &params);
        }
    }
    Reply::text("Tool with progress executed successfully")
}

fn missing_capability(context: &Context) -> Reply {
    if context.client.has_capability("sampling") {
        return Reply::text("The client can sample.");
    }
    let data = json!({"requiredCapabilities": {"sampling": {}}}).into();
    Reply::Error(RpcError::with_data(-32021, "this tool needs a client that can sample", &data))
}

fn tell(context: &Context, method: &str, params: &Value) {
    let params = Object::parse(&Json::encode(params)).expect("params are an object");
    context.client_handle.notify(Notification { method: method.to_owned(), params });
}
