//! The id and deadline of a request.

use std::fmt;
use std::time::Duration;

use tool::Json;

/// The number under which a question travels. It is also its progress token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// How long to wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Without any sign of life. Progress starts it again.
    pub quiet: Duration,
    /// In all, however much progress there is.
    pub whole: Duration,
}

impl Timeouts {
    /// The same limit with and without progress.
    pub fn same(quiet: Duration) -> Timeouts {
        Timeouts { quiet, whole: quiet }
    }
}

impl RequestId {
    /// The request that an id names. Our ids are numbers; a server that gives them back
    /// as strings is understood.
    pub(super) fn parse(id: &Json) -> Option<RequestId> {
        let id = id.as_str();
        let bare = id.strip_prefix('"').and_then(|id| id.strip_suffix('"')).unwrap_or(id);
        bare.parse().ok().map(RequestId)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
