//! The errors of the gateway surface, in the JSON form of its specification.
//!
//! Every failure of a call has one [`Code`] that a model can act on.

use std::time::Duration;

use catalog::summary::cut;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tool::{Failure, Json, Reply, RpcError, Sent};

use policy::code::{Code, classify, classify_rpc_error};
use redact::Scrubber;

/// An error as a client of the gateway surface sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatewayError {
    #[serde(rename = "error")]
    pub code: Code,
    pub message: String,
    /// The path, id or handle that the error is about; may be empty.
    pub path: String,
    /// Whether the same call may succeed when it is made again.
    pub retryable: bool,
    /// Further members that help the caller; boxed, because most errors have none.
    #[serde(skip_serializing_if = "is_empty")]
    pub details: Box<Map<String, Value>>,
}

/// The most characters of an error's message, and of its path.
const MAX_MESSAGE: usize = 2_000;
const MAX_PATH: usize = 256;

impl GatewayError {
    /// Makes an error about `path` that is not retryable.
    pub fn new(code: Code, message: impl Into<String>, path: impl Into<String>) -> GatewayError {
        // Both may repeat what a caller wrote, however long that is.
        GatewayError {
            code,
            message: cut(&message.into(), MAX_MESSAGE),
            path: cut(&path.into(), MAX_PATH),
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

    /// Makes the error for an upstream that did not answer.
    pub fn from_failure(failure: &Failure, path: &str, scrubber: &Scrubber) -> GatewayError {
        let code = classify(failure);
        let message =
            format!("upstream call failed: {}", scrubber.scrub_to_line(&failure.to_string()));
        let error = GatewayError::new(code, message, path).retryable(code.is_transient());
        let error = match failure.sent() {
            // Whoever calls again must know that it may happen twice.
            Sent::Perhaps => error.detail("may_have_run", true),
            Sent::No => error,
        };
        match failure.retry_after() {
            Some(after) => error.detail("retry_after", seconds(after)),
            None => error,
        }
    }

    /// Makes the error for a request that the upstream refused with a JSON-RPC error.
    pub fn from_rpc_error(rpc_error: &RpcError, path: &str, scrubber: &Scrubber) -> GatewayError {
        let code = classify_rpc_error(rpc_error);
        let message = format!("upstream refused: {}", scrubber.scrub_to_line(&rpc_error.message));
        GatewayError::new(code, message, path).retryable(code.is_transient())
    }

    pub fn to_json(&self) -> Json {
        Json::encode(self)
    }

    /// Renders the error as a tool result that a model can read.
    pub fn to_reply(&self) -> Reply {
        let block = json!({"type": "text", "text": self.to_json().as_str()});
        Reply::Result(json!({"content": [block], "isError": true}).into())
    }
}

fn is_empty(details: &Map<String, Value>) -> bool {
    details.is_empty()
}

/// Returns a duration as `retry_after` has it: in seconds with three decimals.
pub fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_shape_of_the_specification() {
        let error = GatewayError::new(Code::PathNotFound, "no", "/x");
        assert_eq!(
            error.to_json().as_str(),
            r#"{"error":"PATH_NOT_FOUND","message":"no","path":"/x","retryable":false}"#
        );
        let failure = Failure::RateLimited {
            retry_after: Some(Duration::from_millis(1500)),
            sent: tool::Sent::No,
        };
        let error = GatewayError::from_failure(&failure, "a:b#1", &Scrubber::default());
        assert_eq!(
            error.to_json().as_str(),
            r#"{"error":"RATE_LIMITED","message":"upstream call failed: rate limited","path":"a:b#1","retryable":true,"details":{"retry_after":1.5}}"#
        );
    }

    #[test]
    fn what_upstreams_say_is_collapsed_and_scrubbed() {
        let reason = "401 for\nhttps://u:hunter22@internal/x".to_owned();
        let failure = Failure::Unauthorized { reason, sent: tool::Sent::No };
        let error = GatewayError::from_failure(&failure, "", &Scrubber::default());
        assert_eq!(error.code, Code::AuthFailed);
        assert_eq!(
            error.message,
            "upstream call failed: not authorised: 401 for https://u:[REDACTED-SECRET]@internal/x"
        );
    }
}
