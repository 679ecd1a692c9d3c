//! The parts of an MCP message that authorization needs: its method and the tool's name.

use bytes::Bytes;
use serde_json::json;
use tool::{Json, Object};

/// A message of which only the outer members are parsed.
#[derive(Clone, Debug, Default)]
pub(super) struct Envelope {
    message: Option<Object>,
    /// Unescaped: some clients write `tools\/call`.
    method: Option<String>,
    params: Option<Object>,
    /// Whether the body is a JSON-RPC batch, which is not supported.
    batch: bool,
    /// Whether a member that matters occurs twice.
    ambiguous: bool,
}

impl Envelope {
    /// Parses a body. One that is not a message gives an envelope without a method.
    pub(super) fn parse(body: &Bytes) -> Envelope {
        let Ok(json) = Json::parse(body.clone()) else { return Envelope::default() };
        if json.as_str().starts_with('[') {
            return Envelope { batch: true, ..Envelope::default() };
        }
        let message = Object::parse(&json).ok();
        let params = message.as_ref().and_then(|it| Object::parse(it.get("params")?).ok());
        let repeats = |object: &Option<Object>, names: &[&str]| {
            object.as_ref().is_some_and(|object| {
                let count = |name: &&str| object.keys().filter(|key| key == name).count();
                names.iter().any(|name| count(name) > 1)
            })
        };
        let ambiguous =
            repeats(&message, &["method", "params", "id"]) || repeats(&params, &["name"]);
        let method = message.as_ref().and_then(|it| it.get("method")?.parse_as().ok());
        Envelope { message, method, params, batch: false, ambiguous }
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The name of the tool, if the message is a call.
    pub(super) fn tool(&self) -> Option<String> {
        if self.method() != Some("tools/call") {
            return None;
        }
        self.params.as_ref()?.get("name")?.parse_as().ok()
    }

    pub(super) fn params(&self) -> Option<&Json> {
        self.message.as_ref()?.get("params")
    }

    pub(super) fn member(&self, name: &str) -> Option<&Json> {
        self.message.as_ref()?.get(name)
    }

    pub(super) fn is_object(&self) -> bool {
        self.message.is_some()
    }

    /// Returns whether two parsers could see different methods, ids or tools in it.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// Returns the JSON-RPC error for a malformed message. A message without a method that
    /// we can parse was not checked against any scope, so it must not be passed on.
    pub(super) fn error_reply(&self) -> Option<Bytes> {
        let (code, message) = if self.batch {
            (-32600, "Invalid Request: batches are not supported.")
        } else if self.message.is_none() {
            (-32700, "Parse error: Invalid JSON was received by the server.")
        } else if self.method().is_none() {
            (-32600, "Invalid Request: The [method] member is required and must be a string.")
        } else {
            return None;
        };
        let error = json!({"code": code, "message": message});
        let mut reply = json!({"jsonrpc": "2.0", "error": error});
        if code == -32600 {
            let id = self.member("id").and_then(|id| id.to_value().ok());
            reply["id"] = id.unwrap_or_default();
        }
        Some(reply.to_string().into())
    }
}
