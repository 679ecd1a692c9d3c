//! The reasons why a request is refused, each with its status and message.

use ::http::StatusCode;
use serde_json::json;

use super::http_reply::HttpReply;

/// Why a request is refused. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Unauthenticated,
    InvalidToken,
    /// The site does not permit the call, for the reason in `detail`.
    Forbidden {
        detail: String,
    },
    ScopeDenied,
    ServerDenied,
    ToolDenied,
    StreamingDisabled,
    NoServer,
    NoTask,
    MethodNotAllowed,
    /// The idempotency key was used for another request.
    Conflict,
    PayloadTooLarge,
    ResultTooLarge,
    MediaType,
    RateLimited {
        /// How long to wait.
        seconds: u64,
    },
    InvalidPayload(&'static str),
    AsyncUnavailable,
    Internal,
}

impl Refusal {
    /// Returns the HTTP status, the code and the message, as the contract defines them.
    fn status_code_message(&self) -> (StatusCode, &'static str, &str) {
        use StatusCode as Status;
        match self {
            Refusal::Unauthenticated => {
                (Status::UNAUTHORIZED, "unauthenticated", "Unauthenticated")
            }
            Refusal::InvalidToken => (Status::UNAUTHORIZED, "invalid_token", "Invalid token"),
            Refusal::Forbidden { .. } => (Status::FORBIDDEN, "forbidden", "Forbidden"),
            Refusal::ScopeDenied => (Status::FORBIDDEN, "scope_denied", "Scope denied"),
            Refusal::ServerDenied => {
                (Status::FORBIDDEN, "server_denied", "Server denied by policy")
            }
            Refusal::ToolDenied => (Status::FORBIDDEN, "tool_denied", "Tool denied by policy"),
            Refusal::StreamingDisabled => {
                (Status::FORBIDDEN, "streaming_disabled", "Streaming is disabled")
            }
            Refusal::NoServer => (Status::NOT_FOUND, "server_not_found", "Server not found"),
            Refusal::NoTask => (Status::NOT_FOUND, "task_not_found", "Task not found"),
            Refusal::MethodNotAllowed => {
                (Status::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed")
            }
            Refusal::Conflict => {
                (Status::CONFLICT, "idempotency_conflict", "Idempotency key conflict")
            }
            Refusal::PayloadTooLarge => {
                (Status::PAYLOAD_TOO_LARGE, "payload_too_large", "Payload too large")
            }
            Refusal::ResultTooLarge => {
                (Status::PAYLOAD_TOO_LARGE, "result_too_large", "Result too large")
            }
            Refusal::MediaType => {
                (Status::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "Unsupported media type")
            }
            Refusal::RateLimited { .. } => {
                (Status::TOO_MANY_REQUESTS, "rate_limited", "Too many requests")
            }
            Refusal::InvalidPayload(message) => (Status::BAD_REQUEST, "invalid_payload", message),
            Refusal::AsyncUnavailable => {
                (Status::SERVICE_UNAVAILABLE, "async_unavailable", "Async dispatch unavailable")
            }
            Refusal::Internal => {
                (Status::INTERNAL_SERVER_ERROR, "internal_error", "Internal server error")
            }
        }
    }

    /// The text that is stored as the error of a failed task.
    pub(super) fn message(&self) -> String {
        let (_, code, message) = self.status_code_message();
        if let Refusal::Forbidden { detail } = self {
            return format!("{code}: {detail}");
        }
        format!("{code}: {message}")
    }

    /// Returns whether the same request may succeed later.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Refusal::RateLimited { .. } | Refusal::AsyncUnavailable | Refusal::Internal => true,
            Refusal::Unauthenticated
            | Refusal::InvalidToken
            | Refusal::Forbidden { .. }
            | Refusal::ScopeDenied
            | Refusal::ServerDenied
            | Refusal::ToolDenied
            | Refusal::StreamingDisabled
            | Refusal::NoServer
            | Refusal::NoTask
            | Refusal::MethodNotAllowed
            | Refusal::Conflict
            | Refusal::PayloadTooLarge
            | Refusal::ResultTooLarge
            | Refusal::MediaType
            | Refusal::InvalidPayload(_) => false,
        }
    }

    /// Renders the refusal as an HTTP reply.
    pub(super) fn to_reply(&self, trace_id: &str) -> HttpReply {
        let (status, code, message) = self.status_code_message();
        let mut error = json!({"code": code, "message": message, "trace_id": trace_id});
        let mut headers = vec![("content-type", "application/json".to_owned())];
        match self {
            Refusal::RateLimited { seconds } => headers.push(("retry-after", seconds.to_string())),
            Refusal::MethodNotAllowed => headers.push(("allow", "POST".to_owned())),
            Refusal::Unauthenticated => {
                headers.push(("www-authenticate", "Bearer".to_owned()));
            }
            Refusal::InvalidToken => {
                headers.push(("www-authenticate", r#"Bearer error="invalid_token""#.to_owned()));
            }
            Refusal::Forbidden { detail } => error["detail"] = json!(detail),
            Refusal::ScopeDenied
            | Refusal::ServerDenied
            | Refusal::ToolDenied
            | Refusal::StreamingDisabled
            | Refusal::NoServer
            | Refusal::NoTask
            | Refusal::Conflict
            | Refusal::PayloadTooLarge
            | Refusal::ResultTooLarge
            | Refusal::MediaType
            | Refusal::InvalidPayload(_)
            | Refusal::AsyncUnavailable
            | Refusal::Internal => {}
        }
        HttpReply { status, headers, body: json!({"error": error}).to_string().into() }
    }
}
