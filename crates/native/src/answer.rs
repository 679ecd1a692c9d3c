//! The values that a tool can return, and how they become a tool result.

use serde::Serialize;
use serde_json::{Value, json};
use tool::{Json, Object, Reply};

use crate::error::Fault;

/// What a tool answers, before it is written as a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A value with a schema.
    Value(Value),
    /// Content blocks as they go out.
    Blocks(Vec<Json>),
}

/// Plain text, without an output schema: for answers that are read, not
/// computed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

/// Content blocks of any kind (images, links), each as MCP writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks(pub Vec<Json>);

impl Answer {
    /// Returns what a tool answers that returns nothing.
    pub fn done() -> Answer {
        Answer::from(Text("done".to_owned()))
    }

    pub fn value<T: Serialize>(value: &T) -> Result<Answer, Fault> {
        let value = serde_json::to_value(value);
        value.map(Answer::Value).map_err(|cause| {
            Fault::new(
                "SerializationError",
                format!("the result cannot be written as JSON: {cause}"),
            )
        })
    }

    /// The reply; `wrap` when the declared schema has the value under `result`.
    pub(crate) fn into_reply(self, wrap: bool) -> Reply {
        match self {
            Answer::Blocks(blocks) => Reply::Result(Json::encode(&json!({"content": blocks}))),
            Answer::Value(value) => {
                let text = match &value {
                    Value::String(text) => text.clone(),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_) => value.to_string(),
                };
                // A result may be large: it is written, never copied.
                let mut structured = Json::encode(&value);
                if wrap {
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

impl From<Text> for Answer {
    fn from(text: Text) -> Answer {
        Answer::Blocks(vec![json!({"type": "text", "text": text.0}).into()])
    }
}

impl From<Blocks> for Answer {
    fn from(blocks: Blocks) -> Answer {
        Answer::Blocks(blocks.0)
    }
}
