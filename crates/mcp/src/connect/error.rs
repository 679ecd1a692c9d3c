//! The reasons why a connection to a server cannot be used.

use std::time::Duration;

use tool::{Failure, RpcError};

/// Why there is no upstream. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{reason}")]
    BadTarget { reason: String },
    #[error("cannot start `{program}`: {source}")]
    Start { program: String, source: std::io::Error },
    /// It went away before the session was open.
    #[error("it ended before the session was open: {reason}")]
    Ended { reason: String },
    #[error("cannot be reached: {reason}")]
    Unreachable {
        reason: String,
        /// What it answered, where it did over HTTP.
        status: Option<u16>,
    },
    #[error("no answer to `{step}` within {after:?}{}", last_words(.stderr))]
    Silent {
        step: String,
        after: Duration,
        /// The last lines that a program wrote to its standard error.
        stderr: Vec<String>,
    },
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

/// Returns what a program said before it fell silent, if anything.
fn last_words(stderr: &[String]) -> String {
    if stderr.is_empty() {
        return String::new();
    }
    format!("; it said: {}", stderr.join(" | "))
}
