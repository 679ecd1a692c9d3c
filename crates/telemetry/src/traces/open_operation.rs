//! An operation (one request) that is not finished yet.

use std::sync::Arc;
use std::time::Duration;

use tool::trace::{SpanContext, TRACEPARENT, TRACESTATE, Trace};
use tool::{Ask, Failure, Json, Object, Reply, RequestObserver};

use super::operation::{Operation, RecordedSpan};
use super::peer::Peer;
use super::tracer::Tracer;
use crate::semantics::{CANCELLED, Outcome, Side, Target, known_method};

/// A request that is not finished yet. It is passed to the tracer once: when it is
/// finished, or as cancelled when it is dropped.
pub(super) struct OpenOperation {
    tracer: Tracer,
    /// When it began, by the tracer's clock.
    since: Duration,
    operation: Option<Operation>,
    trace: Option<Arc<Trace>>,
}

/// Where a request comes from.
pub(super) struct Origin {
    pub(super) parent: Option<SpanContext>,
    /// The span that the transport names, if it is another than the parent.
    pub(super) link: Option<SpanContext>,
    pub(super) session_id: Option<String>,
    pub(super) protocol: String,
    pub(super) request_id: Option<String>,
}

impl OpenOperation {
    pub(super) fn new(
        tracer: &Tracer,
        side: Side,
        ask: &Ask,
        peer: &Arc<Peer>,
        origin: Origin,
    ) -> OpenOperation {
        let since = tracer.elapsed();
        let Origin { parent, link, session_id, protocol, request_id } = origin;
        let context = match (side, &parent) {
            // A client span is recorded only inside a recorded server span.
            (Side::Client, None) => None,
            (Side::Client | Side::Server, parent) => tracer.sample(parent.as_ref()),
        };
        let span = context.map(|context| RecordedSpan {
            context,
            parent: parent.map(|parent| parent.span_id()),
            link,
            request_id,
            session_id,
            events: Vec::new(),
        });
        let trace = span.as_ref().map(|span| Arc::new(Trace::new(Some(span.context.clone()))));
        let operation = Operation {
            side,
            method: known_method(ask),
            target: Target::from_ask(ask),
            outcome: Outcome::default(),
            protocol,
            peer: Arc::clone(peer),
            start: tracer.unix_nanos(since),
            took: Duration::ZERO,
            span: span.map(Box::new),
        };
        OpenOperation { tracer: tracer.clone(), since, operation: Some(operation), trace }
    }

    /// Returns the trace that travels with the request from here on.
    pub(super) fn trace(&self) -> Option<&Arc<Trace>> {
        self.trace.as_ref()
    }

    pub(super) fn finish(mut self, answer: &Result<Reply, Failure>) {
        if let Some(operation) = &mut self.operation {
            operation.outcome = Outcome::from_answer(operation.side, answer);
        }
        self.close();
    }

    fn close(&mut self) {
        let Some(mut operation) = self.operation.take() else { return };
        operation.took = self.tracer.elapsed().saturating_sub(self.since);
        if let (Some(span), Some(trace)) = (&mut operation.span, &self.trace) {
            span.events = trace.take_events();
            if span.request_id.is_none() {
                span.request_id = trace.request_id().map(str::to_owned);
            }
        }
        self.tracer.push(operation);
    }
}

/// A request that is answered from a listing.
impl RequestObserver for OpenOperation {
    fn answered(mut self: Box<Self>, reply: &Reply) {
        if let Some(operation) = &mut self.operation {
            operation.outcome = Outcome::from_reply(operation.side, reply);
        }
        self.close();
    }
}

impl Drop for OpenOperation {
    fn drop(&mut self) {
        if let Some(operation) = &mut self.operation {
            operation.outcome.error_type = Some(CANCELLED.to_owned());
        }
        self.close();
    }
}

/// Returns the span that the `_meta` of a request names.
pub(super) fn span_in_meta(ask: &Ask) -> Option<SpanContext> {
    let meta = ask.other_params().get("_meta").filter(|meta| meta.mentions(TRACEPARENT))?;
    let parent = meta.member(TRACEPARENT).as_ref().and_then(Json::string_value)?;
    let state = meta.member(TRACESTATE).as_ref().and_then(Json::string_value);
    SpanContext::parse(&parent, state.as_deref())
}

/// Writes a span to the `_meta` of a request.
pub(super) fn put_span_in_meta(ask: &mut Ask, span: &SpanContext) {
    let meta = ask.other_params().get("_meta").and_then(|meta| Object::parse(meta).ok());
    let mut meta = meta.unwrap_or_default();
    meta.set(TRACEPARENT, Json::encode(&span.to_string()));
    match span.state() {
        Some(state) => meta.set(TRACESTATE, Json::encode(state)),
        // A `tracestate` of another span means nothing.
        None => drop(meta.remove(TRACESTATE)),
    }
    ask.other_params_mut().set("_meta", meta.to_json());
}
