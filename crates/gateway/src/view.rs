//! Looking into a kept result, a bounded piece at a time.
//!
//! A [`Selector`] says which piece; [`view`] cuts it out of the bytes and says
//! how big the whole is and how to go on. Every answer is bounded, whatever is
//! asked for. A view knows bytes and a media type; where they are kept, who may
//! read them and how the answer travels is for others.

mod grep;
mod jq;
mod json;
mod lines;
mod select;
mod table;

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use tokio::task::JoinError;
use tool::Json;

pub use jq::{Outputs, jq};
pub use select::{Selector, Span, USAGE};
pub(crate) use table::delimiter;

/// How much one answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Characters of text in one answer.
    pub chars: usize,
    /// Bytes of an image that is returned whole.
    pub image_bytes: usize,
    /// Steps that a jq filter may take.
    pub jq_steps: u64,
    /// What the first line is called: 0, as selectors count, or 1, as readers
    /// do.
    pub first_line: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { chars: 8_000, image_bytes: 4 << 20, jq_steps: 20_000_000, first_line: 0 }
    }
}

/// A piece of something kept.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub body: Body,
    /// What this is a piece of, and how big the whole is, in a few words.
    pub note: String,
    /// The selector that continues where this one stopped.
    pub next: Option<Json>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Text(String),
    Image { media_type: String, base64: String },
    Audio { media_type: String, base64: String },
}

/// Why there is nothing to see. Each says what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    #[error("a selector is an object such as {{\"type\":\"head\",\"chars\":500}}")]
    NoObject,
    #[error("`{0}` is no selector; {USAGE}")]
    Unknown(String),
    #[error("`{selector}` takes `{parameter}` as {expected}")]
    Parameter { selector: &'static str, parameter: &'static str, expected: &'static str },
    #[error("`{selector}` needs `{parameter}`, {expected}")]
    Missing { selector: &'static str, parameter: &'static str, expected: &'static str },
    #[error("the artifact is no JSON ({media_type}); use `head`, `lines` or `grep`")]
    NoJson { media_type: String },
    #[error("nothing is at `{0}`; use `jq` with `paths` to see what there is")]
    NoPath(String),
    #[error("`{0}` is no array; use `json_keys` or `jq`")]
    NoArray(String),
    #[error("the pattern is no regular expression: {0}")]
    Pattern(String),
    #[error("this is no jq filter: {0}")]
    Filter(String),
    #[error("the filter failed: {0}")]
    Jq(String),
    #[error("the filter takes too many steps or makes too much; select less first")]
    Steps,
    #[error(
        "the artifact is {media_type}, not an image or audio of at most {limit} bytes; use `bytes`"
    )]
    NoImage { media_type: String, limit: usize },
}

/// The piece of `bytes` that `selector` names.
pub fn view(
    bytes: &[u8],
    media_type: &str,
    selector: &Selector,
    limits: &Limits,
) -> Result<View, ViewError> {
    let text = || String::from_utf8_lossy(bytes);
    match selector {
        Selector::Head { start, chars } => Ok(head(&text(), *start, *chars, limits)),
        Selector::Tail { chars } => Ok(tail(&text(), *chars, limits)),
        Selector::Lines(span) => Ok(lines::lines(&text(), *span, limits)),
        Selector::Rows(span) => Ok(lines::rows(&text(), media_type, *span, limits)),
        Selector::JsonKeys { keys } => Ok(json::keys(&text(), keys, limits)),
        Selector::Slice { path, span } => json::slice(bytes, media_type, path, *span, limits),
        Selector::Grep(grep) => grep::grep(&text(), grep, limits),
        Selector::Jq { filter } => jq::view(bytes, media_type, filter, limits),
        Selector::Bytes { start, length } => Ok(raw(bytes, *start, *length, limits)),
        Selector::Image => media(bytes, media_type, limits),
    }
}

/// Looks on a thread of its own, so that everybody else is answered meanwhile:
/// a filter may take millions of steps, and a result be many megabytes.
pub(crate) async fn aside<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(look).await.map_err(JoinError::try_into_panic) {
        Ok(seen) => seen,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is going down, and takes whoever asked with it.
        Err(Err(_)) => std::future::pending().await,
    }
}

impl View {
    /// The view as one text: the piece, then a line about the whole.
    pub fn to_text(&self) -> String {
        let body = match &self.body {
            Body::Text(text) => text.as_str(),
            Body::Image { base64, .. } | Body::Audio { base64, .. } => base64,
        };
        format!("{body}\n{}", self.footer())
    }

    /// The line about the whole, and how to go on.
    pub fn footer(&self) -> String {
        match &self.next {
            Some(next) => format!("[{}; next: {next}]", self.note),
            None => format!("[{}]", self.note),
        }
    }

    /// The view as a tool result, images as images.
    pub fn to_result(&self) -> Json {
        let note = json!({"type": "text", "text": self.footer()});
        let native = |kind: &str, media_type: &str, data: &str| {
            let block = json!({"type": kind, "data": data, "mimeType": media_type});
            json!({"content": [block, note]}).into()
        };
        match &self.body {
            Body::Text(_) => json!({"content": [{"type": "text", "text": self.to_text()}]}).into(),
            Body::Image { media_type, base64 } => native("image", media_type, base64),
            Body::Audio { media_type, base64 } => native("audio", media_type, base64),
        }
    }

    fn text(body: impl Into<String>, note: String, next: Option<serde_json::Value>) -> View {
        View { body: Body::Text(body.into()), note, next: next.map(Json::from) }
    }
}

fn head(text: &str, start: usize, chars: i64, limits: &Limits) -> View {
    let total = text.chars().count();
    let wanted = match usize::try_from(chars) {
        Ok(chars) => chars,
        // A negative number means all but that many, as slices do elsewhere.
        Err(_) => total.saturating_sub(usize::try_from(chars.unsigned_abs()).unwrap_or(total)),
    };
    let count = wanted.min(limits.chars);
    let body: String = text.chars().skip(start).take(count).collect();
    let end = start.saturating_add(count).min(total);
    let note = format!("chars {}-{end} of {total}", start.min(total));
    let next = json!({"type": "head", "start": end, "chars": count.max(1)});
    View::text(body, note, (end < total).then_some(next))
}

fn tail(text: &str, chars: usize, limits: &Limits) -> View {
    let total = text.chars().count();
    let start = total - chars.min(limits.chars).min(total);
    let body: String = text.chars().skip(start).collect();
    let note = format!("chars {start}-{total} of {total}");
    let before = start.saturating_sub(chars);
    let next = json!({"type": "head", "start": before, "chars": start - before});
    View::text(body, note, (0 < start && before < start).then_some(next))
}

fn raw(bytes: &[u8], start: usize, length: usize, limits: &Limits) -> View {
    let total = bytes.len();
    let start = start.min(total);
    let end = start + length.min(limits.chars / 4 * 3).min(total - start);
    let note = format!("base64 of bytes {start}-{end} of {total}");
    let next = json!({"type": "bytes", "start": end, "length": length});
    View::text(BASE64.encode(&bytes[start..end]), note, (end < total).then_some(next))
}

fn media(bytes: &[u8], media_type: &str, limits: &Limits) -> Result<View, ViewError> {
    let limit = limits.image_bytes;
    let refused = || ViewError::NoImage { media_type: media_type.to_owned(), limit };
    if limit < bytes.len() {
        return Err(refused());
    }
    let (media_type, base64) = (media_type.to_owned(), BASE64.encode(bytes));
    let note = format!("{media_type}, {} bytes", bytes.len());
    let body = match media_type.split('/').next() {
        Some("image") => Body::Image { media_type, base64 },
        Some("audio") => Body::Audio { media_type, base64 },
        _ => return Err(refused()),
    };
    Ok(View { body, note, next: None })
}

/// The first `limit` characters of a text, and whether that is all of it.
fn clip(text: &str, limit: usize) -> (Cow<'_, str>, bool) {
    match text.char_indices().nth(limit) {
        Some((at, _)) => (Cow::Borrowed(&text[..at]), false),
        None => (Cow::Borrowed(text), true),
    }
}

#[cfg(test)]
mod tests;
