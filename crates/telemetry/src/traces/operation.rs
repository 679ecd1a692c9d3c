//! One question as it is exported: as a span, and as one more in a histogram.

use std::time::Duration;

use tool::trace::{SpanContext, TraceEvent};

use super::peer::Peer;
use crate::semantics::{Outcome, Side, Target};

/// One question, from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) side: Side,
    pub(crate) method: &'static str,
    pub(crate) target: Target,
    pub(crate) outcome: Outcome,
    /// The protocol revision, where it is known.
    pub(crate) protocol: String,
    pub(crate) peer: std::sync::Arc<Peer>,
    /// Nanoseconds since 1970.
    pub(crate) start: u64,
    pub(crate) took: Duration,
    /// `None` when the trace is not recorded.
    pub(crate) span: Option<Box<SpanParts>>,
}

/// What only a span has.
#[derive(Debug)]
pub(crate) struct SpanParts {
    pub(crate) context: SpanContext,
    pub(crate) parent: Option<[u8; 8]>,
    /// What the transport says, where the question itself says something else.
    pub(crate) link: Option<SpanContext>,
    pub(crate) request_id: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) notes: Vec<TraceEvent>,
}

/// A session that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    pub(crate) side: Side,
    pub(crate) protocol: String,
    pub(crate) peer: std::sync::Arc<Peer>,
    pub(crate) took: Duration,
}
