//! Resources and prompts as tool results: what the gate measures and a model
//! reads, whichever request it came from.

use serde_json::json;
use tool::{Json, Object};

/// A resource as the content of a tool result: text as text, images as
/// images, everything else as embedded resources.
pub(crate) fn read(json: &Json) -> Json {
    let contents: Vec<Json> = json.member_as("contents").unwrap_or_default();
    let block = |content: &Json| -> Json {
        if let Some(text) = content.member_as::<String>("text") {
            return json!({"type": "text", "text": text}).into();
        }
        let media_type = content.member_as::<String>("mimeType").unwrap_or_default();
        let blob = content.member_as::<String>("blob").unwrap_or_default();
        let native = ["image", "audio"].into_iter().find(|kind| media_type.starts_with(kind));
        match native {
            Some(kind) => json!({"type": kind, "data": blob, "mimeType": media_type}).into(),
            None => {
                let mut embedded = Object::new();
                embedded.push("type", Json::encode("resource"));
                embedded.push("resource", content.clone());
                embedded.to_json()
            }
        }
    };
    result_of(&contents.iter().map(block).collect::<Vec<_>>())
}

/// A rendered prompt: every message with its role.
pub(crate) fn prompt(json: &Json) -> Json {
    let messages: Vec<Json> = json.member_as("messages").unwrap_or_default();
    let mut blocks: Vec<Json> = Vec::new();
    for message in &messages {
        let role: String = message.member_as("role").unwrap_or_default();
        let content = message.member("content").unwrap_or_else(Json::null);
        let text = content.member_as::<String>("text").or_else(|| content.parse_as().ok());
        match text {
            Some(text) => {
                blocks.push(json!({"type": "text", "text": format!("[{role}] {text}")}).into())
            }
            None => {
                blocks.push(json!({"type": "text", "text": format!("[{role}]")}).into());
                blocks.push(content);
            }
        }
    }
    result_of(&blocks)
}

fn result_of(content: &[Json]) -> Json {
    let mut result = Object::new();
    result.push("content", Json::encode(content));
    result.to_json()
}
