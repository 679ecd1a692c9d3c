//! The result of a request: a reply, or a failure when none came.
//!
//! A [`Reply`] that reports an error is still an answer and is passed on as it
//! stands. A [`Failure`] means that no answer came; only failures are ever
//! retried, and [`Failure::sent`] says whether the call may have run.

use std::time::Duration;

use serde_json::json;

use crate::{Json, Object};

/// An answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The `result` of the request, whole.
    Result(Json),
    /// The provider refused the request as such (a JSON-RPC error).
    Error(RpcError),
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    /// The whole error object, with members that this program does not know.
    pub raw: Json,
}

/// Whether a request may have run before it failed, and so may have had effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It did not run, so that trying again is safe: it was not sent, or the other side
    /// proved that it stopped the request before running it.
    No,
    /// It was sent, and nothing proves that it did not run. An HTTP status that reports an
    /// error is no proof.
    Perhaps,
}

/// Why no answer came. One variant per remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The provider cannot be reached now.
    #[error("unavailable: {reason}")]
    Unavailable { reason: String },
    #[error("no answer within {after:?}")]
    Timeout { after: Duration },
    /// The connection broke while the answer was awaited.
    #[error("connection lost: {reason}")]
    Lost { reason: String, sent: Sent },
    /// The other side wants (other) credentials.
    #[error("not authorised: {reason}")]
    Unauthorized { reason: String, sent: Sent },
    /// The other side knows the caller and refuses.
    #[error("not allowed: {reason}")]
    Forbidden { reason: String, sent: Sent },
    #[error("rate limited")]
    RateLimited { retry_after: Option<Duration>, sent: Sent },
    /// An answer came that cannot be understood or is over a limit.
    #[error("unusable answer: {reason}")]
    Unusable { reason: String },
    /// The caller no longer waits.
    #[error("cancelled")]
    Cancelled,
    /// The other side cannot do this, such as a client without sampling.
    #[error("not supported: {feature}")]
    Unsupported { feature: String },
}

impl Failure {
    /// Returns whether the request may have run, although no answer came.
    pub fn sent(&self) -> Sent {
        match self {
            Failure::Unavailable { .. } | Failure::Unsupported { .. } => Sent::No,
            Failure::Timeout { .. } | Failure::Unusable { .. } | Failure::Cancelled => {
                Sent::Perhaps
            }
            Failure::Lost { sent, .. }
            | Failure::Unauthorized { sent, .. }
            | Failure::Forbidden { sent, .. }
            | Failure::RateLimited { sent, .. } => *sent,
        }
    }

    /// Returns this failure for a request that may have run.
    #[must_use]
    pub fn after_sending(self) -> Failure {
        let sent = Sent::Perhaps;
        match self {
            Failure::Unavailable { reason } | Failure::Lost { reason, .. } => {
                Failure::Lost { reason, sent }
            }
            Failure::Unauthorized { reason, .. } => Failure::Unauthorized { reason, sent },
            Failure::Forbidden { reason, .. } => Failure::Forbidden { reason, sent },
            Failure::RateLimited { retry_after, .. } => Failure::RateLimited { retry_after, sent },
            Failure::Unsupported { feature } => Failure::Unusable { reason: feature },
            Failure::Timeout { .. } | Failure::Unusable { .. } | Failure::Cancelled => self,
        }
    }

    /// Returns how long the other side asks to wait before the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Failure::RateLimited { retry_after, .. } => *retry_after,
            Failure::Unavailable { .. }
            | Failure::Timeout { .. }
            | Failure::Lost { .. }
            | Failure::Unauthorized { .. }
            | Failure::Forbidden { .. }
            | Failure::Unusable { .. }
            | Failure::Cancelled
            | Failure::Unsupported { .. } => None,
        }
    }
}

impl Reply {
    /// Creates a tool result of one text block.
    pub fn text(text: &str) -> Reply {
        Reply::texts([text])
    }

    /// Creates a tool result of several text blocks.
    pub fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Reply {
        let blocks = texts.into_iter().map(|text| json!({"type": "text", "text": text}));
        Reply::Result(json!({"content": blocks.collect::<Vec<_>>()}).into())
    }

    /// Creates a tool result that reports an error in one text block.
    pub fn error_text(text: &str) -> Reply {
        let content = json!({"content": [{"type": "text", "text": text}], "isError": true});
        Reply::Result(content.into())
    }

    /// Creates a tool result with structured content and the same as text.
    pub fn structured(value: &serde_json::Value) -> Reply {
        // A result may be large: it is written, never copied.
        let mut result = Object::new();
        result.push("content", json!([{"type": "text", "text": value.to_string()}]).into());
        result.push("structuredContent", Json::encode(value));
        Reply::Result(result.to_json())
    }

    /// Parses the result as a tool result; `None` if it is not an object.
    pub fn tool_result(&self) -> Option<ToolResult> {
        match self {
            Reply::Result(json) => ToolResult::parse(json),
            Reply::Error(_) => None,
        }
    }
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        let message = message.into();
        let raw = json!({"code": code, "message": message}).into();
        RpcError { code, message, raw }
    }

    pub fn with_data(code: i64, message: impl Into<String>, data: &Json) -> RpcError {
        let message = message.into();
        let mut raw = Object::new();
        raw.push("code", Json::encode(&code));
        raw.push("message", Json::encode(&message));
        raw.push("data", data.clone());
        RpcError { code, message, raw: raw.to_json() }
    }

    /// Creates the error for a request that got no answer. Its data says whether
    /// the request may have run: `{"mayHaveRun": true}`.
    pub fn unanswered(code: i64, message: impl Into<String>, sent: Sent) -> RpcError {
        let data = json!({"mayHaveRun": sent == Sent::Perhaps}).into();
        RpcError::with_data(code, message, &data)
    }

    /// Parses an error object leniently: a code that is not an integer becomes 0.
    pub fn parse(raw: Json) -> RpcError {
        let code = raw.member_as("code").unwrap_or(0);
        let message = raw.member_as("message").unwrap_or_default();
        RpcError { code, message, raw }
    }

    pub fn data(&self) -> Option<Json> {
        self.raw.member("data")
    }
}

/// The members of a tool result that gatelet uses.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    pub content: Vec<Json>,
    pub structured: Option<Json>,
    pub is_error: bool,
    /// `complete` when absent; `input_required`, `task`, … in newer revisions.
    pub result_type: Option<String>,
}

impl ToolResult {
    fn parse(json: &Json) -> Option<ToolResult> {
        let object = Object::parse(json).ok()?;
        Some(ToolResult {
            content: object.get("content").and_then(|c| c.parse_as().ok()).unwrap_or_default(),
            structured: object.get("structuredContent").filter(|s| !s.is_null()).cloned(),
            is_error: object.get("isError").and_then(|e| e.parse_as().ok()).unwrap_or(false),
            result_type: object.get("resultType").and_then(|t| t.parse_as().ok()),
        })
    }

    /// Returns the texts of all text blocks, joined by line ends.
    pub fn text(&self) -> String {
        let text = |block: &Json| block.member_as::<String>("text");
        self.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }
}

/// Returns whether only gatelet writes this member of `_meta`. What an upstream says under
/// such a name is removed.
pub fn is_own_meta_key(key: &str) -> bool {
    ["gatelet/", "cash/"].iter().any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reply_is_an_answer_that_can_be_read() {
        let result = Reply::error_text("no").tool_result().unwrap();
        assert_eq!((result.is_error, result.text().as_str()), (true, "no"));
    }

    #[test]
    fn an_odd_result_is_read_as_far_as_it_goes() {
        let odd = Json::parse(r#"{"content":[{"type":"hologram"}],"isError":null}"#).unwrap();
        let result = Reply::Result(odd).tool_result().unwrap();
        assert_eq!((result.content.len(), result.is_error), (1, false));
    }

    #[test]
    fn only_what_never_left_is_safe_to_try_again() {
        assert_eq!(Failure::Unavailable { reason: "x".into() }.sent(), Sent::No);
        assert_eq!(Failure::Timeout { after: Duration::from_secs(1) }.sent(), Sent::Perhaps);
    }

    #[test]
    fn whatever_fails_after_the_request_had_left_may_have_run() {
        let (reason, sent) = (|| "x".to_owned(), Sent::No);
        for failure in [
            Failure::Unavailable { reason: reason() },
            Failure::Timeout { after: Duration::from_secs(1) },
            Failure::Lost { reason: reason(), sent },
            Failure::Unauthorized { reason: reason(), sent },
            Failure::Forbidden { reason: reason(), sent },
            Failure::RateLimited { retry_after: None, sent },
            Failure::Unusable { reason: reason() },
            Failure::Cancelled,
            Failure::Unsupported { feature: reason() },
        ] {
            assert_eq!(failure.clone().after_sending().sent(), Sent::Perhaps, "{failure}");
        }
    }
}
