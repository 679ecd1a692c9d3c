//! The errors of connecting to a server.

use std::time::Duration;

use tool::{Failure, RpcError};

/// Why connecting failed. One variant per remedy. A `step` is the MCP method that was
/// called, or `GET`.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The configured target is wrong.
    #[error("{reason}")]
    BadTarget { reason: String },
    #[error("cannot start `{program}`: {source}")]
    Start { program: String, source: std::io::Error },
    /// The server ended or closed the connection before the session was open.
    #[error("it ended before the session was open: {reason}")]
    Ended { reason: String },
    #[error("cannot be reached: {reason}")]
    Unreachable {
        reason: String,
        /// The HTTP status, if there was a response.
        status: Option<u16>,
    },
    /// A step timed out.
    #[error("no answer to `{step}` within {after:?}{}", stderr_suffix(.stderr))]
    Silent {
        step: String,
        after: Duration,
        /// The last lines that a program wrote to its standard error.
        stderr: Vec<String>,
    },
    /// The server answered a step with an error.
    #[error("`{step}` was refused: {} ({})", error.message, error.code)]
    Refused { step: String, error: RpcError },
    #[error("the answer to `{step}` cannot be used: {reason}")]
    Unusable { step: String, reason: String },
    #[error("it speaks {theirs}, which is no revision spoken here")]
    NoCommonRevision { theirs: String },
    #[error("not authorised: {reason}")]
    Unauthorized { reason: String },
    #[error("not allowed: {reason}")]
    Forbidden { reason: String },
    #[error("rate limited")]
    RateLimited { retry_after: Option<Duration> },
}

impl ConnectError {
    /// Converts the failure of a step.
    pub(super) fn at_step(step: &str, failure: Failure) -> ConnectError {
        let step = step.to_owned();
        match failure {
            Failure::Unavailable { reason } => ConnectError::Unreachable { reason, status: None },
            Failure::Timeout { after } => ConnectError::Silent { step, after, stderr: Vec::new() },
            Failure::Lost { reason, .. } => ConnectError::Ended { reason },
            Failure::Unauthorized { reason, .. } => ConnectError::Unauthorized { reason },
            Failure::Forbidden { reason, .. } => ConnectError::Forbidden { reason },
            Failure::RateLimited { retry_after, .. } => ConnectError::RateLimited { retry_after },
            Failure::Unusable { reason } => ConnectError::Unusable { step, reason },
            Failure::Unsupported { feature: what } => ConnectError::Unusable { step, reason: what },
            Failure::Cancelled => ConnectError::Ended { reason: "cancelled".to_owned() },
        }
    }
}

/// Returns the last lines of stderr for an error message, if there are any.
fn stderr_suffix(stderr: &[String]) -> String {
    if stderr.is_empty() {
        return String::new();
    }
    format!("; it said: {}", stderr.join(" | "))
}
