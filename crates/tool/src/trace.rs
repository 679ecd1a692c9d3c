//! The position of a request in a distributed trace (W3C Trace Context).
//!
//! A client says in `_meta`, or in headers of the transport, to which span its
//! request belongs; gatelet says the same to its upstreams. This module parses and
//! formats those texts and collects events of a traced request. Without tracing,
//! contexts have no [`Trace`].

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::hex;

/// The field that names a span, in `_meta` and in headers.
pub const TRACEPARENT: &str = "traceparent";

/// The field with the additions of tracing systems, in `_meta` and in headers.
pub const TRACESTATE: &str = "tracestate";

/// The longest `tracestate` that is passed on: the least that W3C asks for.
const MAX_STATE_BYTES: usize = 512;

/// The ids of one span of a trace.
///
/// Invariant: neither id is all zeros, and the state is printable ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanContext {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    is_sampled: bool,
    state: Option<Arc<str>>,
}

impl SpanContext {
    /// Creates a span; `None` if an id is all zeros, which means that there is none.
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], is_sampled: bool) -> Option<SpanContext> {
        let is_some = trace_id != [0; 16] && span_id != [0; 8];
        is_some.then_some(SpanContext { trace_id, span_id, is_sampled, state: None })
    }

    /// Parses the two fields of a client or of headers. A malformed `traceparent`
    /// gives `None`, a malformed `tracestate` is left out.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<SpanContext> {
        let mut parts = traceparent.split('-');
        let version = lower_hex::<1>(parts.next()?)?;
        let trace_id = lower_hex::<16>(parts.next()?)?;
        let span_id = lower_hex::<8>(parts.next()?)?;
        let [flags] = lower_hex::<1>(parts.next()?)?;
        // Later versions may add parts; the first has exactly these.
        if version == [0xff] || (version == [0] && parts.next().is_some()) {
            return None;
        }
        let is_plain = |state: &&str| {
            !state.is_empty()
                && state.len() <= MAX_STATE_BYTES
                && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        let state = tracestate.filter(is_plain).map(Arc::from);
        let span = SpanContext::new(trace_id, span_id, flags & 1 == 1)?;
        Some(SpanContext { state, ..span })
    }

    /// Creates another span of the same trace.
    #[must_use]
    pub fn child(&self, span_id: [u8; 8]) -> Option<SpanContext> {
        (span_id != [0; 8]).then(|| SpanContext { span_id, ..self.clone() })
    }

    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    pub fn span_id(&self) -> [u8; 8] {
        self.span_id
    }

    /// Returns whether the caller records this trace.
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl fmt::Display for SpanContext {
    /// Formats the span as `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (hex::encode(&self.trace_id), hex::encode(&self.span_id));
        write!(f, "00-{trace}-{span}-{:02x}", u8::from(self.is_sampled))
    }
}

/// Decodes exactly `N` bytes from hex digits in lower case.
fn lower_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    hex::decode(text).filter(|_| is_lower)?.try_into().ok()
}

/// The trace of one request: its span, its id on the wire, and events on its way.
#[derive(Debug, Default)]
pub struct Trace {
    /// The span that the request belongs to: the caller's, or the span that
    /// gatelet started below it. `None` if the transport brought none.
    pub span: Option<SpanContext>,
    /// The id of the request on the wire.
    request_id: OnceLock<String>,
    events: Mutex<Vec<TraceEvent>>,
}

/// Something that happened while a traced request was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    pub name: &'static str,
    /// The time since the request came.
    pub offset: Duration,
    pub attributes: Vec<(&'static str, String)>,
}

impl Trace {
    pub fn new(span: Option<SpanContext>) -> Trace {
        Trace { span, ..Trace::default() }
    }

    /// Sets the id of the request on the wire. Only the first call has an effect.
    pub fn set_request_id(&self, id: impl FnOnce() -> String) {
        self.request_id.get_or_init(id);
    }

    pub fn request_id(&self) -> Option<&str> {
        self.request_id.get().map(String::as_str)
    }

    pub fn add_events(&self, events: impl IntoIterator<Item = TraceEvent>) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).extend(events);
    }

    /// Removes and returns all events so far.
    pub fn take_events(&self) -> Vec<TraceEvent> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_span_is_read_and_written_as_it_came() {
        let span = SpanContext::parse(PARENT, Some("rojo=1,congo=t61")).unwrap();
        assert_eq!(span.to_string(), PARENT);
        assert_eq!((span.is_sampled(), span.state()), (true, Some("rojo=1,congo=t61")));
        let child = span.child([1; 8]).unwrap();
        assert_eq!(child.to_string(), PARENT.replace("00f067aa0ba902b7", "0101010101010101"));
        assert_eq!(child.state(), span.state());
    }

    #[test]
    fn what_is_damaged_counts_as_absent() {
        for damaged in [
            "",
            "00",
            "garbage",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473ü-00f067aa0ba902b7-01",
        ] {
            assert_eq!(SpanContext::parse(damaged, None), None, "{damaged}");
        }
    }

    #[test]
    fn a_later_version_may_say_more_and_only_the_sampled_flag_is_known() {
        let later = PARENT.replacen("00", "cc", 1).replace("-01", "-09") + "-what-is-to-come";
        let span = SpanContext::parse(&later, None).unwrap();
        assert!(span.is_sampled());
        assert_eq!(span.to_string(), PARENT);
        let unsampled = SpanContext::parse(&PARENT.replace("-01", "-00"), None).unwrap();
        assert!(!unsampled.is_sampled());
    }

    #[test]
    fn a_state_that_no_header_can_hold_is_not_passed_on() {
        for state in ["a=1\r\nX-Evil: 1", "ü=1", &"x".repeat(513), ""] {
            assert_eq!(SpanContext::parse(PARENT, Some(state)).unwrap().state(), None);
        }
    }

    #[test]
    fn notes_are_taken_once_and_the_first_request_id_counts() {
        let trace = Trace::new(None);
        let note = TraceEvent { name: "quota", offset: Duration::ZERO, attributes: Vec::new() };
        trace.add_events([note.clone()]);
        assert_eq!((trace.take_events(), trace.take_events()), (vec![note], Vec::new()));
        trace.set_request_id(|| "7".to_owned());
        trace.set_request_id(|| "8".to_owned());
        assert_eq!(trace.request_id(), Some("7"));
    }
}
