//! Splits a stored result into its parts.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use tool::reply::ToolResult;
use tool::{Json, Reply};

use crate::reading::ResultText;
use crate::view::delimiter;

/// One part of a stored result that can be viewed by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub media_type: String,
    pub label: String,
    pub bytes: Vec<u8>,
}

/// The handle, media type and size of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRef {
    pub handle: String,
    pub media_type: String,
    pub size_bytes: usize,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// Returns the parts of a stored result. The first is its main text; binary
/// blocks, embedded resources and structured content follow.
pub fn parts(result: &Json) -> Vec<Part> {
    with_pieces(result, |pieces| pieces.into_iter().map(Piece::into_part).collect())
}

/// Returns one part, by its index in the handle.
pub fn part(result: &Json, index: usize) -> Option<Part> {
    with_pieces(result, |mut pieces| {
        (index < pieces.len()).then(|| pieces.swap_remove(index).into_part())
    })
}

/// Returns a reference to each part of the result that has this handle.
pub fn references(handle: &str, result: &Json) -> Vec<PartRef> {
    with_pieces(result, |pieces| refer(handle, pieces))
}

/// Does the same for a result that is parsed already.
pub(crate) fn references_parsed(
    handle: &str,
    result: &Json,
    read: Option<(&ToolResult, &ResultText<'_>)>,
) -> Vec<PartRef> {
    refer(handle, pieces(result, read))
}

fn refer(handle: &str, pieces: Vec<Piece<'_>>) -> Vec<PartRef> {
    let reference = |(index, piece): (usize, Piece<'_>)| PartRef {
        handle: match index {
            0 => handle.to_owned(),
            index => format!("{handle}/{index}"),
        },
        media_type: piece.media_type.into_owned(),
        size_bytes: piece.bytes.len(),
        label: piece.label.into_owned(),
    };
    pieces.into_iter().enumerate().map(reference).collect()
}

/// A part that borrows from the result, which may have many megabytes.
struct Piece<'a> {
    media_type: Cow<'a, str>,
    label: Cow<'a, str>,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Piece<'a> {
    fn text(text: &'a str, label: &'a str) -> Piece<'a> {
        let bytes = Cow::Borrowed(text.as_bytes());
        Piece { media_type: media_type(text).into(), label: label.into(), bytes }
    }

    fn json(json: &'a Json, label: &'a str) -> Piece<'a> {
        let bytes = Cow::Borrowed(json.as_bytes().as_ref());
        Piece { media_type: "application/json".into(), label: label.into(), bytes }
    }

    fn into_part(self) -> Part {
        Part {
            media_type: self.media_type.into_owned(),
            label: self.label.into_owned(),
            bytes: self.bytes.into_owned(),
        }
    }
}

fn with_pieces<T>(result: &Json, act: impl FnOnce(Vec<Piece<'_>>) -> T) -> T {
    let read = Reply::Result(result.clone()).tool_result();
    let reading = read.as_ref().map(ResultText::new);
    act(pieces(result, read.as_ref().zip(reading.as_ref())))
}

fn pieces<'a>(
    result: &'a Json,
    read: Option<(&'a ToolResult, &'a ResultText<'_>)>,
) -> Vec<Piece<'a>> {
    let Some((read, reading)) = read else { return vec![Piece::json(result, "")] };
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    pieces.extend(reading.main().map(|main| Piece::text(main, "")));
    if let Some(beside) = reading.text.as_deref().filter(|_| reading.is_structured()) {
        pieces.push(Piece::text(beside, "text"));
    }
    pieces.extend(read.content.iter().filter_map(block));
    if let Some(structured) = &read.structured
        && pieces.first().is_none_or(|first| *first.bytes != **structured.as_bytes())
    {
        pieces.push(Piece::json(structured, "structuredContent"));
    }
    if pieces.is_empty() {
        pieces.push(Piece::json(result, ""));
    }
    pieces
}

/// Splits a handle into the handle of the artifact and the index of the part.
pub fn split_handle(handle: &str) -> (&str, usize) {
    let handle = handle.strip_prefix("artifact://").unwrap_or(handle);
    match handle.rsplit_once('/').and_then(|(own, index)| Some((own, index.parse().ok()?))) {
        Some((own, index)) => (own, index),
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

/// Returns the part that a content block is by itself: binary data, an embedded
/// resource or a link.
fn block(block: &Json) -> Option<Piece<'_>> {
    let text = |json: &Json, key: &str| json.member_as::<String>(key);
    let kind = text(block, "type").unwrap_or_default();
    let decoded = |data: String| BASE64.decode(&data).unwrap_or_else(|_| data.into_bytes());
    match kind.as_str() {
        "image" | "audio" => {
            let default = if kind == "image" { "image/png" } else { "audio/wav" };
            let media_type = text(block, "mimeType").unwrap_or_else(|| default.to_owned());
            let bytes = decoded(text(block, "data")?);
            Some(Piece { media_type: media_type.into(), label: kind.into(), bytes: bytes.into() })
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
            let label = text(&resource, "uri").unwrap_or_default();
            Some(Piece { media_type: media_type.into(), label: label.into(), bytes: bytes.into() })
        }
        "resource_link" => Some(Piece {
            media_type: "text/uri-list".into(),
            label: text(block, "name").unwrap_or_default().into(),
            bytes: text(block, "uri")?.into_bytes().into(),
        }),
        _ => None,
    }
}
