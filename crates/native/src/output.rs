//! The values that a tool can return, and how they become a tool result.

use serde::Serialize;
use serde_json::{Value, json};
use tool::{Json, Object, Reply};

use crate::error::ToolError;

/// The output of a tool that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A value with an output schema, for `structuredContent`.
    Value(Value),
    /// MCP content blocks.
    Blocks(Vec<Json>),
}

/// Plain text, without an output schema: for results that a model or a person
/// reads and no program parses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

/// Content blocks of any kind (images, links), each as MCP writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks(pub Vec<Json>);

impl Output {
    /// The output of a tool whose function returns `()`.
    pub fn done() -> Output {
        Output::from(Text("done".to_owned()))
    }

    /// Converts a Rust value to JSON.
    pub fn value<T: Serialize>(value: &T) -> Result<Output, ToolError> {
        let value = serde_json::to_value(value);
        value.map(Output::Value).map_err(|cause| {
            ToolError::new(
                "SerializationError",
                format!("the result cannot be written as JSON: {cause}"),
            )
        })
    }

    /// Renders the output as a reply. `wrap_result` puts a value into the member
    /// `result` of an object, as the output schema says.
    pub(crate) fn into_reply(self, wrap_result: bool) -> Reply {
        match self {
            Output::Blocks(blocks) => Reply::Result(Json::encode(&json!({"content": blocks}))),
            Output::Value(value) => {
                let text = match &value {
                    Value::String(text) => text.clone(),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_) => value.to_string(),
                };
                // A value may be large, so it is encoded once and never copied.
                let mut structured = Json::encode(&value);
                if wrap_result {
                    let mut wrapped = Object::new();
                    wrapped.push("result", structured);
                    structured = wrapped.to_json();
                }
                let mut result = Object::new();
                result.push("content", json!([{"type": "text", "text": text}]).into());
                result.push("structuredContent", structured);
                Reply::Result(result.to_json())
            }
        }
    }
}

impl From<Text> for Output {
    fn from(text: Text) -> Output {
        Output::Blocks(vec![json!({"type": "text", "text": text.0}).into()])
    }
}

impl From<Blocks> for Output {
    fn from(blocks: Blocks) -> Output {
        Output::Blocks(blocks.0)
    }
}
