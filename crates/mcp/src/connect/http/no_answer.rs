//! The reasons why a request over HTTP got no answer.

use tool::{Failure, Sent};

use super::client::unreachable;
use crate::http_client::deepest;

/// Why there is no answer.
pub(super) enum NoAnswer {
    /// The server says that it no longer knows the session.
    NoSession,
    /// What answers there now speaks another revision.
    Another(String),
    /// The connection was closed before the question was written.
    NeverWritten(Failure),
    /// No connection can be made; the question never left.
    NobodyThere(String),
    /// The connection ended without a word of an answer; the question may have
    /// run.
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
            NoAnswer::Another(reason) => Failure::Lost { reason, sent: Sent::Perhaps },
            NoAnswer::NobodyThere(reason) => Failure::Unavailable { reason },
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
            return NoAnswer::NobodyThere(deepest(&error));
        }
        let failure = unreachable(&error);
        if failure.sent() == Sent::No {
            return NoAnswer::NeverWritten(failure);
        }
        let is_cut_off = error.is_request() && !error.is_timeout();
        if is_cut_off { NoAnswer::CutOff(failure) } else { NoAnswer::Failed(failure) }
    }
}
