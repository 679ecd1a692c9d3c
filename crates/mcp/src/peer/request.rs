//! The id and the timeouts of a sent request.

use std::fmt;
use std::time::Duration;

use tool::Json;

/// The JSON-RPC id of a request that we send. It is also its progress token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// How long to wait for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The limit without progress; every progress notification starts it again.
    pub quiet: Duration,
    /// The limit in total, however much progress there is.
    pub whole: Duration,
}

impl Timeouts {
    /// Uses one limit for both.
    pub fn same(quiet: Duration) -> Timeouts {
        Timeouts { quiet, whole: quiet }
    }
}

impl RequestId {
    /// Parses the id of a response. Accepts our number also as a string, which some
    /// servers send.
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
