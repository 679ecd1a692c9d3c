//! The pieces that a kept answer consists of.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use tool::{Json, Reply};

use crate::reading::Reading;
use crate::view::delimiter;

/// One piece of a kept answer that can be looked at by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub media_type: String,
    pub label: String,
    pub bytes: Vec<u8>,
}

/// Where a part is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    pub handle: String,
    pub media_type: String,
    pub size_bytes: usize,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// The parts of a kept result. The first is what a reader reads; binary blocks,
/// embedded resources and structured content follow.
pub fn parts(result: &Json) -> Vec<Part> {
    let reply = Reply::Result(result.clone());
    let Some(read) = reply.tool_result() else { return vec![whole(result, "")] };
    let mut parts = Vec::new();
    let reading = Reading::of(&read);
    let text = |text: &str, label: &str| {
        let (media_type, label) = (media_type(text).to_owned(), label.to_owned());
        Part { media_type, label, bytes: text.as_bytes().to_vec() }
    };
    parts.extend(reading.main().map(|main| text(main, "")));
    if let Some(beside) = reading.text.as_deref().filter(|_| reading.is_structured()) {
        parts.push(text(beside, "text"));
    }
    parts.extend(read.content.iter().filter_map(block));
    if let Some(structured) = &read.structured
        && parts.first().is_none_or(|first| first.bytes != structured.as_bytes().as_ref())
    {
        parts.push(whole(structured, "structuredContent"));
    }
    if parts.is_empty() {
        parts.push(whole(result, ""));
    }
    parts
}

fn whole(json: &Json, label: &str) -> Part {
    let (media_type, label) = ("application/json".to_owned(), label.to_owned());
    Part { media_type, label, bytes: json.as_bytes().to_vec() }
}

/// Where each part of a result is that is kept under this handle.
pub fn references(handle: &str, result: &Json) -> Vec<Reference> {
    let reference = |(at, part): (usize, Part)| Reference {
        handle: match at {
            0 => handle.to_owned(),
            at => format!("{handle}/{at}"),
        },
        media_type: part.media_type,
        size_bytes: part.bytes.len(),
        label: part.label,
    };
    parts(result).into_iter().enumerate().map(reference).collect()
}

/// A handle taken apart: the artifact's, and which part.
pub fn split_handle(handle: &str) -> (&str, usize) {
    let handle = handle.strip_prefix("artifact://").unwrap_or(handle);
    match handle.rsplit_once('/').and_then(|(own, at)| Some((own, at.parse().ok()?))) {
        Some((own, at)) => (own, at),
        None => (handle, 0),
    }
}

fn media_type(text: &str) -> &'static str {
    let start = text.trim_start();
    match start.starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
    {
        true => "application/json",
        false => match delimiter(text) {
            Some('\t') => "text/tab-separated-values",
            Some(_) => "text/csv",
            None => "text/plain",
        },
    }
}

/// A block that is a part by itself: binary data, or an embedded resource.
fn block(block: &Json) -> Option<Part> {
    let text = |json: &Json, key: &str| json.member_as::<String>(key);
    let kind = text(block, "type").unwrap_or_default();
    let decoded = |data: String| BASE64.decode(&data).unwrap_or_else(|_| data.into_bytes());
    match kind.as_str() {
        "image" | "audio" => {
            let default = if kind == "image" { "image/png" } else { "audio/wav" };
            let media_type = text(block, "mimeType").unwrap_or_else(|| default.to_owned());
            Some(Part { media_type, label: kind, bytes: decoded(text(block, "data")?) })
        }
        "resource" => {
            let resource = block.member("resource")?;
            let bytes = match (text(&resource, "text"), text(&resource, "blob")) {
                (Some(text), _) => text.into_bytes(),
                (None, Some(blob)) => decoded(blob),
                (None, None) => return None,
            };
            let media_type = text(&resource, "mimeType");
            let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            Some(Part { media_type, label: text(&resource, "uri").unwrap_or_default(), bytes })
        }
        "resource_link" => Some(Part {
            media_type: "text/uri-list".to_owned(),
            label: text(block, "name").unwrap_or_default(),
            bytes: text(block, "uri")?.into_bytes(),
        }),
        _ => None,
    }
}
