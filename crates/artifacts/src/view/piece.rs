//! The result of a view: a bounded part of the text, and one line about the whole.

use std::borrow::Cow;

use serde_json::json;
use tool::Json;

/// The limits of one view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The maximum number of characters of text.
    pub chars: usize,
    /// The maximum size of an image or audio, which is never cut.
    pub image_bytes: usize,
    /// The maximum number of steps of a jq filter.
    pub jq_steps: u64,
    /// The number of the first line in the output: 0, as selectors count, or 1, as
    /// people do.
    pub first_line: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { chars: 8_000, image_bytes: 4 << 20, jq_steps: 20_000_000, first_line: 0 }
    }
}

/// A part of a stored result.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub body: Body,
    /// Which part this is and how large the whole is, in a few words.
    pub note: String,
    /// The selector that continues where this one stopped.
    pub next: Option<Json>,
}

/// The content of a view.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Text(String),
    Image { media_type: String, base64: String },
    Audio { media_type: String, base64: String },
}

impl View {
    /// Renders the view as one text: the body, then the footer.
    pub fn to_text(&self) -> String {
        let body = match &self.body {
            Body::Text(text) => text.as_str(),
            Body::Image { base64, .. } | Body::Audio { base64, .. } => base64,
        };
        format!("{body}\n{}", self.footer())
    }

    /// Renders the line with the note and the next selector.
    pub fn footer(&self) -> String {
        match &self.next {
            Some(next) => format!("[{}; next: {next}]", self.note),
            None => format!("[{}]", self.note),
        }
    }

    /// Makes a tool result of the view, with images as image blocks.
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

    pub(super) fn text(
        body: impl Into<String>,
        note: String,
        next: Option<serde_json::Value>,
    ) -> View {
        View { body: Body::Text(body.into()), note, next: next.map(Json::from) }
    }
}

/// Returns the first `limit` characters of a text, and whether that is all of it.
pub(super) fn clip(text: &str, limit: usize) -> (Cow<'_, str>, bool) {
    match text.char_indices().nth(limit) {
        Some((at, _)) => (Cow::Borrowed(&text[..at]), false),
        None => (Cow::Borrowed(text), true),
    }
}
