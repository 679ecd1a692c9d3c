//! Converts resources and prompts into tool results, the only form that the gate
//! measures and models read.

use serde_json::json;
use tool::{Json, Object};

/// Converts the result of `resources/read`: text becomes text, images become
/// images, everything else becomes embedded resources.
pub(crate) fn resource_to_tool_result(read_result: &Json) -> Json {
    let contents: Vec<Json> = read_result.member_as("contents").unwrap_or_default();
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
    tool_result(&contents.iter().map(block).collect::<Vec<_>>())
}

/// Converts the result of `prompts/get`: every message with its role.
pub(crate) fn prompt_to_tool_result(prompt_result: &Json) -> Json {
    let messages: Vec<Json> = prompt_result.member_as("messages").unwrap_or_default();
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
    tool_result(&blocks)
}

fn tool_result(content: &[Json]) -> Json {
    let mut result = Object::new();
    result.push("content", Json::encode(content));
    result.to_json()
}
