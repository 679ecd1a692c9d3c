//! The reasons why a request over HTTP got no answer.

use tool::{Failure, Sent};

use super::client::failure_without_response;
use crate::http_client::root_cause;

/// Why a request got no reply. Some cases can be recovered from.
pub(super) enum NoAnswer {
    /// The server forgot the session.
    NoSession,
    /// The server was replaced by one of another revision; the text says which.
    OtherRevision(String),
    /// The connection was closed before the request was written.
    NeverWritten(Failure),
    /// No connection could be made; nothing was sent.
    NoConnection(String),
    /// The connection ended without a response; the request may have run.
    CutOff(Failure),
    Failed(Failure),
}

impl NoAnswer {
    pub(super) fn into_failure(self) -> Failure {
        match self {
            NoAnswer::NoSession => Failure::Lost {
                reason: "the server forgot the session".to_owned(),
                sent: Sent::Perhaps,
            },
            NoAnswer::OtherRevision(reason) => Failure::Lost { reason, sent: Sent::Perhaps },
            NoAnswer::NoConnection(reason) => Failure::Unavailable { reason },
            NoAnswer::CutOff(failure)
            | NoAnswer::Failed(failure)
            | NoAnswer::NeverWritten(failure) => failure,
        }
    }
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> NoAnswer {
        NoAnswer::Failed(failure)
    }
}

impl From<reqwest::Error> for NoAnswer {
    fn from(error: reqwest::Error) -> NoAnswer {
        if error.is_connect() {
            return NoAnswer::NoConnection(root_cause(&error));
        }
        let failure = failure_without_response(&error);
        if failure.sent() == Sent::No {
            return NoAnswer::NeverWritten(failure);
        }
        let is_cut_off = error.is_request() && !error.is_timeout();
        if is_cut_off { NoAnswer::CutOff(failure) } else { NoAnswer::Failed(failure) }
    }
}
