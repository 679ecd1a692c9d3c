//! Splits a stored result into parts: its main text, binary blocks, embedded
//! resources, links and structured content.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use tool::reply::ToolResult;
use tool::{Json, Reply};

use crate::result_text::ResultText;
use crate::view::delimiter;

/// One part of a stored result that can be viewed by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub media_type: String,
    /// What kind of part it is, or the name or URI that the result gives it; empty
    /// for the main text.
    pub label: String,
    pub bytes: Vec<u8>,
}

/// The handle, media type and size of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRef {
    /// The handle of the artifact, followed by `/` and the index for all parts but
    /// the first.
    pub handle: String,
    pub media_type: String,
    pub size_bytes: usize,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// Returns the parts of a stored result. The first is its main text; binary
/// blocks, embedded resources and structured content follow.
pub fn parts(result: &Json) -> Vec<Part> {
    with_borrowed_parts(result, |parts| parts.into_iter().map(BorrowedPart::into_part).collect())
}

/// Returns one part, by its index in the handle.
pub fn part(result: &Json, index: usize) -> Option<Part> {
    with_borrowed_parts(result, |mut parts| {
        (index < parts.len()).then(|| parts.swap_remove(index).into_part())
    })
}

/// Returns references to the parts of the result that is stored as `handle`.
pub fn references(handle: &str, result: &Json) -> Vec<PartRef> {
    with_borrowed_parts(result, |parts| references_to(handle, parts))
}

/// Does what [`references`] does for a result that is parsed already.
pub(crate) fn references_parsed(
    handle: &str,
    result: &Json,
    parsed: Option<(&ToolResult, &ResultText<'_>)>,
) -> Vec<PartRef> {
    references_to(handle, borrowed_parts(result, parsed))
}

fn references_to(handle: &str, parts: Vec<BorrowedPart<'_>>) -> Vec<PartRef> {
    let reference = |(index, part): (usize, BorrowedPart<'_>)| PartRef {
        handle: match index {
            0 => handle.to_owned(),
            index => format!("{handle}/{index}"),
        },
        media_type: part.media_type.into_owned(),
        size_bytes: part.bytes.len(),
        label: part.label.into_owned(),
    };
    parts.into_iter().enumerate().map(reference).collect()
}

/// A [`Part`] that borrows from the result, which may have many megabytes.
struct BorrowedPart<'a> {
    media_type: Cow<'a, str>,
    label: Cow<'a, str>,
    bytes: Cow<'a, [u8]>,
}

impl<'a> BorrowedPart<'a> {
    fn text(text: &'a str, label: &'a str) -> BorrowedPart<'a> {
        let bytes = Cow::Borrowed(text.as_bytes());
        BorrowedPart { media_type: media_type(text).into(), label: label.into(), bytes }
    }

    fn json(json: &'a Json, label: &'a str) -> BorrowedPart<'a> {
        let bytes = Cow::Borrowed(json.as_bytes().as_ref());
        BorrowedPart { media_type: "application/json".into(), label: label.into(), bytes }
    }

    fn into_part(self) -> Part {
        Part {
            media_type: self.media_type.into_owned(),
            label: self.label.into_owned(),
            bytes: self.bytes.into_owned(),
        }
    }
}

fn with_borrowed_parts<T>(result: &Json, act: impl FnOnce(Vec<BorrowedPart<'_>>) -> T) -> T {
    let parsed = Reply::Result(result.clone()).tool_result();
    let text = parsed.as_ref().map(ResultText::new);
    act(borrowed_parts(result, parsed.as_ref().zip(text.as_ref())))
}

fn borrowed_parts<'a>(
    result: &'a Json,
    parsed: Option<(&'a ToolResult, &'a ResultText<'_>)>,
) -> Vec<BorrowedPart<'a>> {
    let Some((parsed, text)) = parsed else { return vec![BorrowedPart::json(result, "")] };
    let mut parts: Vec<BorrowedPart<'_>> = Vec::new();
    parts.extend(text.main().map(|main| BorrowedPart::text(main, "")));
    if let Some(side_text) = text.text.as_deref().filter(|_| text.is_structured()) {
        parts.push(BorrowedPart::text(side_text, "text"));
    }
    parts.extend(parsed.content.iter().filter_map(block_part));
    if let Some(structured) = &parsed.structured
        && parts.first().is_none_or(|first| *first.bytes != **structured.as_bytes())
    {
        parts.push(BorrowedPart::json(structured, "structuredContent"));
    }
    if parts.is_empty() {
        parts.push(BorrowedPart::json(result, ""));
    }
    parts
}

/// Splits the handle of a part into the handle of the artifact and the index of
/// the part.
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
fn block_part(block: &Json) -> Option<BorrowedPart<'_>> {
    let text = |json: &Json, key: &str| json.member_as::<String>(key);
    let kind = text(block, "type").unwrap_or_default();
    let decoded = |data: String| BASE64.decode(&data).unwrap_or_else(|_| data.into_bytes());
    match kind.as_str() {
        "image" | "audio" => {
            let default = if kind == "image" { "image/png" } else { "audio/wav" };
            let media_type = text(block, "mimeType").unwrap_or_else(|| default.to_owned());
            let bytes = decoded(text(block, "data")?);
            Some(BorrowedPart {
                media_type: media_type.into(),
                label: kind.into(),
                bytes: bytes.into(),
            })
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
            Some(BorrowedPart {
                media_type: media_type.into(),
                label: label.into(),
                bytes: bytes.into(),
            })
        }
        "resource_link" => Some(BorrowedPart {
            media_type: "text/uri-list".into(),
            label: text(block, "name").unwrap_or_default().into(),
            bytes: text(block, "uri")?.into_bytes().into(),
        }),
        _ => None,
    }
}
