//! The pieces that a kept answer consists of.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use tool::reply::ToolResult;
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
    with_pieces(result, |pieces| pieces.into_iter().map(Piece::into_part).collect())
}

/// One of them, by its number in the handle.
pub fn part(result: &Json, at: usize) -> Option<Part> {
    with_pieces(result, |mut pieces| {
        (at < pieces.len()).then(|| pieces.swap_remove(at).into_part())
    })
}

/// Where each part of a result is that is kept under this handle.
pub fn references(handle: &str, result: &Json) -> Vec<Reference> {
    with_pieces(result, |pieces| refer(handle, pieces))
}

/// The same for one that was read already.
pub(crate) fn references_of(
    handle: &str,
    result: &Json,
    read: Option<(&ToolResult, &Reading<'_>)>,
) -> Vec<Reference> {
    refer(handle, pieces(result, read))
}

fn refer(handle: &str, pieces: Vec<Piece<'_>>) -> Vec<Reference> {
    let reference = |(at, piece): (usize, Piece<'_>)| Reference {
        handle: match at {
            0 => handle.to_owned(),
            at => format!("{handle}/{at}"),
        },
        media_type: piece.media_type.into_owned(),
        size_bytes: piece.bytes.len(),
        label: piece.label.into_owned(),
    };
    pieces.into_iter().enumerate().map(reference).collect()
}

/// A part that is not copied yet: a result may have many megabytes.
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
    let reading = read.as_ref().map(Reading::new);
    act(pieces(result, read.as_ref().zip(reading.as_ref())))
}

fn pieces<'a>(result: &'a Json, read: Option<(&'a ToolResult, &'a Reading<'_>)>) -> Vec<Piece<'a>> {
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
