//! Answers MCP messages one by one, without sessions.
//!
//! Clients of the content contract may leave out `initialize` and the session, on which a
//! full MCP endpoint would insist.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use content::http::{MessageReply, MessageResponder};
use serde_json::{Value, json};
use tool::{Ask, Client, Context, Failure, Identity, Json, Object, Provider, Reply, RpcError};

/// The supported protocol revisions, the newest first.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The revisions without `instructions`.
const WITHOUT_INSTRUCTIONS: [&str; 2] = ["2025-03-26", "2024-11-05"];

/// Tools per page of `tools/list`, by default and at most.
const PAGE: usize = 15;
const MAX_PAGE: usize = 50;

/// Answers messages with a provider, without keeping state between them.
pub(super) struct StatelessEndpoint(pub(super) Arc<dyn Provider>);

#[async_trait]
impl MessageResponder for StatelessEndpoint {
    async fn respond(
        &self,
        message: Bytes,
        caller: &Arc<Identity>,
        session: Option<&str>,
    ) -> MessageReply {
        let Some(message) = Json::parse(message).ok().and_then(|it| Object::parse(&it).ok()) else {
            return response(&Json::null(), &refusal(-32600, "Invalid Request."));
        };
        let id = message.get("id").filter(|id| !id.is_null());
        let version = message.get("jsonrpc").and_then(Json::string_value);
        let odd_id = id.is_some_and(|id| !is_id(id.as_str()));
        if version.as_deref() != Some("2.0") || odd_id {
            let text = "Invalid Request: `jsonrpc` must be \"2.0\" and `id` text or an integer.";
            let id = id.filter(|_| !odd_id).cloned().unwrap_or_else(Json::null);
            return response(&id, &refusal(-32600, text));
        }
        let Some(id) = id else { return MessageReply::default() };
        let method: String =
            message.get("method").and_then(|it| it.parse_as().ok()).unwrap_or_default();
        let params = message.get("params").cloned().unwrap_or_else(Json::empty_object);
        let reply = self.answer(&method, &params, caller, session).await;
        response(id, &reply)
    }
}

impl StatelessEndpoint {
    async fn answer(
        &self,
        method: &str,
        params: &Json,
        caller: &Arc<Identity>,
        session: Option<&str>,
    ) -> Reply {
        match method {
            "initialize" => self.initialize(params),
            "ping" => Reply::Result(Json::empty_object()),
            "tools/list" => self.list(params),
            "tools/call" => self.call(params, caller, session).await,
            "resources/list" => Reply::Result(json!({"resources": []}).into()),
            "resources/templates/list" => Reply::Result(json!({"resourceTemplates": []}).into()),
            "prompts/list" => Reply::Result(json!({"prompts": []}).into()),
            _ => refusal(-32601, &format!("The method [{method}] was not found.")),
        }
    }

    fn initialize(&self, params: &Json) -> Reply {
        let wanted: Option<String> = params.member_as("protocolVersion");
        let wanted = wanted.unwrap_or_else(|| REVISIONS[0].to_owned());
        if !REVISIONS.contains(&wanted.as_str()) {
            let data = json!({"supported": REVISIONS, "requested": wanted}).into();
            return Reply::Error(RpcError::with_data(
                -32602,
                "Unsupported protocol version",
                &data,
            ));
        }
        let server = &self.0.listing().server;
        let mut result = Object::new();
        result.push("protocolVersion", Json::encode(&wanted));
        result.push("capabilities", server.capabilities.clone());
        result.push("serverInfo", server.raw.clone());
        if let Some(text) = server
            .instructions
            .as_ref()
            .filter(|_| !WITHOUT_INSTRUCTIONS.contains(&wanted.as_str()))
        {
            result.push("instructions", Json::encode(text));
        }
        Reply::Result(result.to_json())
    }

    /// A page of tools. The cursor is the base64 of `{"offset":N}`.
    fn list(&self, params: &Json) -> Reply {
        use base64::Engine;
        use base64::engine::general_purpose::STANDARD;
        let per_page: usize = params.member_as("per_page").unwrap_or(PAGE);
        let per_page = per_page.clamp(1, MAX_PAGE);
        let offset = match params.member_as::<String>("cursor") {
            None => 0,
            Some(cursor) => {
                let read = || {
                    let text = STANDARD.decode(&cursor).ok()?;
                    let value: Value = serde_json::from_slice(&text).ok()?;
                    usize::try_from(value["offset"].as_u64()?).ok()
                };
                match read() {
                    Some(offset) => offset,
                    None => return refusal(-32602, "Invalid cursor."),
                }
            }
        };
        let listing = self.0.listing();
        let page: Vec<&Json> =
            listing.tools.iter().skip(offset).take(per_page).map(|tool| &tool.raw).collect();
        let mut result = Object::new();
        let next = offset.saturating_add(page.len());
        result.push("tools", Json::encode(&page));
        if next < listing.tools.len() {
            let cursor = STANDARD.encode(json!({"offset": next}).to_string());
            result.push("nextCursor", Json::encode(&cursor));
        }
        Reply::Result(result.to_json())
    }

    async fn call(&self, params: &Json, caller: &Arc<Identity>, session: Option<&str>) -> Reply {
        let Ok(ask) = Ask::parse("tools/call", params) else {
            return refusal(-32602, "Missing [name] parameter.");
        };
        let context = Context {
            client: Arc::new(Client::named("", REVISIONS[0])),
            caller: Arc::clone(caller),
            session: session.unwrap_or_default().into(),
            ..Context::anonymous()
        };
        match self.0.ask(ask, &context).await {
            Ok(reply) => reply,
            Err(failure) => {
                let text = match &failure {
                    Failure::Unavailable { .. } | Failure::Timeout { .. } => failure.to_string(),
                    Failure::Lost { .. }
                    | Failure::Unauthorized { .. }
                    | Failure::Forbidden { .. }
                    | Failure::RateLimited { .. }
                    | Failure::Unusable { .. }
                    | Failure::Cancelled
                    | Failure::Unsupported { .. } => {
                        "Something went wrong while processing the request.".to_owned()
                    }
                };
                refusal(-32603, &text)
            }
        }
    }
}

/// Whether a JSON text is a legal request id: a string, or an integer without a fraction
/// (`1.0` could come back as `1`).
fn is_id(id: &str) -> bool {
    let digits = id.strip_prefix('-').unwrap_or(id);
    id.starts_with('"') || digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn refusal(code: i64, message: &str) -> Reply {
    Reply::Error(RpcError::new(code, message))
}

fn response(id: &Json, reply: &Reply) -> MessageReply {
    let mut message = String::new();
    mcp::message::write_response(&mut message, id.as_str(), reply);
    MessageReply { body: Some(message.into()), ..MessageReply::default() }
}
