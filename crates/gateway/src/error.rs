//! The errors of the gateway surface, in the shape its specification gives.
//!
//! Every failure on the way of a call has one [`Code`] that a model can act
//! on. Failures are classified by what they are; only where all there is is
//! text does text decide, and then by whole words.

use std::time::Duration;

use catalog::summary::cut;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tool::{Failure, Json, Reply, RpcError, Sent};

use crate::redact::Scrubber;

/// What went wrong, one code per remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    PathInvalid,
    PathNotFound,
    ArgsInvalid,
    SchemaInvalid,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnavailable,
    AuthFailed,
    PermissionDenied,
    RateLimited,
    PolicyDenied,
    AuthRequired,
    HydrateFailed,
    ViewFailed,
    ResourceNotFound,
    PromptNotFound,
}

/// An error as a client of the gateway surface sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatewayError {
    #[serde(rename = "error")]
    pub code: Code,
    pub message: String,
    /// What it is about: a path, an id, a handle; may be empty.
    pub path: String,
    /// Whether the same call may succeed when it is made again.
    pub retryable: bool,
    /// What helps to do better; boxed, because most errors have none.
    #[serde(skip_serializing_if = "is_empty")]
    pub details: Box<Map<String, Value>>,
}

/// How long the message of an error may be, and what it is about.
const MESSAGE: usize = 2_000;
const PATH: usize = 256;

impl Code {
    pub const ALL: [Code; 16] = [
        Code::PathInvalid,
        Code::PathNotFound,
        Code::ArgsInvalid,
        Code::SchemaInvalid,
        Code::UpstreamError,
        Code::UpstreamTimeout,
        Code::UpstreamUnavailable,
        Code::AuthFailed,
        Code::PermissionDenied,
        Code::RateLimited,
        Code::PolicyDenied,
        Code::AuthRequired,
        Code::HydrateFailed,
        Code::ViewFailed,
        Code::ResourceNotFound,
        Code::PromptNotFound,
    ];

    /// The code as it is written.
    pub fn as_str(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Whether failures of this kind pass by themselves.
    pub fn passes(self) -> bool {
        matches!(self, Code::UpstreamTimeout | Code::UpstreamUnavailable | Code::RateLimited)
    }
}

impl GatewayError {
    /// An error about `path` that making the same call again does not cure.
    pub fn new(code: Code, message: impl Into<String>, path: impl Into<String>) -> GatewayError {
        // Both may repeat what a caller wrote, however long that is.
        GatewayError {
            code,
            message: cut(&message.into(), MESSAGE),
            path: cut(&path.into(), PATH),
            retryable: false,
            details: Box::default(),
        }
    }

    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> GatewayError {
        self.retryable = retryable;
        self
    }

    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> GatewayError {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// No answer came from an upstream.
    pub fn of_failure(failure: &Failure, path: &str, scrubber: &Scrubber) -> GatewayError {
        let code = classify(failure);
        let message = format!("upstream call failed: {}", scrubber.collapse(&failure.to_string()));
        let error = GatewayError::new(code, message, path).retryable(code.passes());
        let error = match failure.sent() {
            // Whoever calls again must know that it may happen twice.
            Sent::Perhaps if code.passes() => error.detail("may_have_run", true),
            Sent::Perhaps | Sent::No => error,
        };
        match failure.retry_after() {
            Some(after) => error.detail("retry_after", seconds(after)),
            None => error,
        }
    }

    /// The upstream refused the request as such.
    pub fn of_refusal(refusal: &RpcError, path: &str, scrubber: &Scrubber) -> GatewayError {
        let code = code_of(refusal);
        let message = format!("upstream refused: {}", scrubber.collapse(&refusal.message));
        GatewayError::new(code, message, path).retryable(code.passes())
    }

    pub fn to_json(&self) -> Json {
        Json::encode(self)
    }

    /// The error as a tool result that a model can read.
    pub fn to_reply(&self) -> Reply {
        let block = json!({"type": "text", "text": self.to_json().as_str()});
        Reply::Result(json!({"content": [block], "isError": true}).into())
    }
}

/// The code of an error that an upstream answered with.
pub fn code_of(refusal: &RpcError) -> Code {
    match refusal.code {
        -32602 => Code::ArgsInvalid,
        -32002 => Code::ResourceNotFound,
        _ => classify_text(&refusal.message),
    }
}

/// The code of a failure, by what it is.
pub fn classify(failure: &Failure) -> Code {
    match failure {
        Failure::Timeout { .. } => Code::UpstreamTimeout,
        Failure::Unavailable { .. } | Failure::Lost { .. } => Code::UpstreamUnavailable,
        Failure::RateLimited { .. } => Code::RateLimited,
        Failure::Unauthorized { .. } => Code::AuthFailed,
        Failure::Forbidden { .. } => Code::PermissionDenied,
        Failure::Unusable { .. } | Failure::Cancelled | Failure::Unsupported { .. } => {
            Code::UpstreamError
        }
    }
}

/// The code that an upstream's words suggest.
pub fn classify_text(text: &str) -> Code {
    let folded = text.to_lowercase();
    let word = |wanted: &str| {
        folded.match_indices(wanted).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            edge(folded[..at].chars().next_back())
                && edge(folded[at + wanted.len()..].chars().next())
        })
    };
    let any = |words: &[&str]| words.iter().any(|wanted| word(wanted));
    if any(&["unauthorized", "unauthorised", "401", "authentication", "invalid api key"]) {
        Code::AuthFailed
    } else if any(&["forbidden", "403", "permission denied", "access denied"]) {
        Code::PermissionDenied
    } else if any(&["rate limit", "rate limited", "429", "too many requests"]) {
        Code::RateLimited
    } else if any(&["timed out", "timeout"]) {
        Code::UpstreamTimeout
    } else {
        Code::UpstreamError
    }
}

fn is_empty(details: &Map<String, Value>) -> bool {
    details.is_empty()
}

/// Seconds with three decimals, as `retry_after` is given.
pub fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../tests/vectors/contextweaver_errors.json")).unwrap()
    }

    #[test]
    fn there_are_exactly_the_codes_of_the_taxonomy() {
        let codes: Vec<String> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(json!(codes), vectors()["codes"]);
    }

    #[test]
    fn failures_are_classified_as_in_the_vectors() {
        for case in vectors()["classify"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap().to_owned();
            let code = match case["type"].as_str().unwrap() {
                "TimeoutError" => classify(&Failure::Timeout { after: Duration::from_secs(1) }),
                "Boom" => classify_text(&text),
                _ => classify(&Failure::Lost { reason: text.clone(), sent: Sent::Perhaps }),
            };
            // A port number is no status code; the reference thinks it is.
            let expected = match text.as_str() {
                "port 4290" => json!("UPSTREAM_ERROR"),
                _ => case["code"].clone(),
            };
            assert_eq!(json!(code), expected, "{case}");
        }
    }

    #[test]
    fn errors_have_the_shape_of_the_specification() {
        let error = GatewayError::new(Code::PathNotFound, "no", "/x");
        assert_eq!(
            error.to_json().as_str(),
            r#"{"error":"PATH_NOT_FOUND","message":"no","path":"/x","retryable":false}"#
        );
        let failure = Failure::RateLimited { retry_after: Some(Duration::from_millis(1500)) };
        let error = GatewayError::of_failure(&failure, "a:b#1", &Scrubber::default());
        assert_eq!(
            error.to_json().as_str(),
            r#"{"error":"RATE_LIMITED","message":"upstream call failed: rate limited","path":"a:b#1","retryable":true,"details":{"retry_after":1.5}}"#
        );
    }

    #[test]
    fn who_may_not_is_told_apart_from_who_is_not_known_whatever_the_words() {
        let reason = "forbidden, like all that is not logged in".to_owned();
        assert_eq!(classify(&Failure::Unauthorized { reason }), Code::AuthFailed);
        let reason = "unauthorized, though logged in".to_owned();
        assert_eq!(classify(&Failure::Forbidden { reason }), Code::PermissionDenied);
    }

    #[test]
    fn what_upstreams_say_is_collapsed_and_scrubbed() {
        let reason = "401 for\nhttps://u:hunter22@internal/x".to_owned();
        let failure = Failure::Unauthorized { reason };
        let error = GatewayError::of_failure(&failure, "", &Scrubber::default());
        assert_eq!(error.code, Code::AuthFailed);
        assert_eq!(
            error.message,
            "upstream call failed: not authorised: 401 for https://u:[REDACTED-SECRET]@internal/x"
        );
    }
}
