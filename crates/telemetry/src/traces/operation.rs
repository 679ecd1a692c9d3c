//! A finished operation (one request) as it is exported: as a span and in a histogram.

use std::time::Duration;

use tool::trace::{SpanContext, TraceEvent};

use super::peer::Peer;
use crate::semantics::{Outcome, Side, Target};

/// One finished request.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) side: Side,
    pub(crate) method: &'static str,
    pub(crate) target: Target,
    pub(crate) outcome: Outcome,
    /// The protocol revision; empty when unknown.
    pub(crate) protocol: String,
    pub(crate) peer: std::sync::Arc<Peer>,
    /// Nanoseconds since 1970.
    pub(crate) start: u64,
    pub(crate) took: Duration,
    /// `None` when the trace is not recorded.
    pub(crate) span: Option<Box<RecordedSpan>>,
}

/// What is exported of a request only when its trace is recorded.
#[derive(Debug)]
pub(crate) struct RecordedSpan {
    pub(crate) context: SpanContext,
    /// The id of the parent span.
    pub(crate) parent: Option<[u8; 8]>,
    /// The span that the transport names, if it is another than the parent.
    pub(crate) link: Option<SpanContext>,
    pub(crate) request_id: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) events: Vec<TraceEvent>,
}

/// A session that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    pub(crate) side: Side,
    pub(crate) protocol: String,
    pub(crate) peer: std::sync::Arc<Peer>,
    pub(crate) took: Duration,
}
