//! Collects the trace data of a request: its id, and the span in its headers.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use tool::trace::{SpanContext, TRACEPARENT, TRACESTATE, Trace};
use tool::{Ask, Context, Json, Object, Provider, Reply, RequestObserver};

/// Whether trace data is collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    #[default]
    Off,
    On,
}

impl Tracing {
    /// Returns the trace data of a request; `None` if tracing is off.
    pub(crate) fn trace_for(self, id: &Json, headers: Option<&HeaderMap>) -> Option<Arc<Trace>> {
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

/// A request that is answered here, without the provider, and its observer.
pub(crate) struct ObservedRequest(Option<Box<dyn RequestObserver>>);

impl ObservedRequest {
    /// Begins to observe a request, if tracing is on. It costs nothing otherwise.
    pub(crate) fn begin(
        provider: &dyn Provider,
        method: &str,
        params: Option<&Json>,
        context: &Context,
    ) -> ObservedRequest {
        if context.trace.is_none() {
            return ObservedRequest(None);
        }
        let params = params.and_then(|params| Object::parse(params).ok()).unwrap_or_default();
        let ask = Ask::Other { method: method.to_owned(), params };
        ObservedRequest(provider.observe(&ask, context))
    }

    /// Ends the observation with the answer, and returns that.
    pub(crate) fn answered(self, reply: Reply) -> Reply {
        if let Some(observer) = self.0 {
            observer.answered(&reply);
        }
        reply
    }
}
