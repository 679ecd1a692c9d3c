//! What a transport knows of a request for its trace.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use tool::Json;
use tool::trace::{SpanContext, TRACEPARENT, TRACESTATE, Trace};

/// Whether somebody traces what is asked here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    #[default]
    Off,
    On,
}

impl Tracing {
    /// The id of a request and the span that its headers name, where somebody
    /// wants to know.
    pub(crate) fn of(self, id: &Json, headers: Option<&HeaderMap>) -> Option<Arc<Trace>> {
        if self == Tracing::Off {
            return None;
        }
        let text = |name| headers?.get(name).map(HeaderValue::to_str)?.ok();
        let span = text(TRACEPARENT).and_then(|span| SpanContext::parse(span, text(TRACESTATE)));
        let trace = Trace::new(span);
        trace.set_request_id(|| id.string_value().unwrap_or_else(|| id.to_string()));
        Some(Arc::new(trace))
    }
}
