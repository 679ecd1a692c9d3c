//! A request to a server, independent of the transport.

use std::sync::Arc;

use tool::trace::Trace;
use tool::{Ask, Json};

use super::headers::Headers;
use crate::message::{self, Params};
use crate::peer::{RequestId, Timeouts};

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct OutgoingRequest {
    pub(super) request_id: RequestId,
    pub(super) payload: Payload,
    pub(super) timeouts: Timeouts,
    pub(super) mode: RequestMode,
    /// The trace to record it in, if tracing is on.
    pub(super) trace: Option<Arc<Trace>>,
}

/// The content of a request.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    /// A client's request.
    Forwarded(Ask),
    /// Our own request.
    Internal { method: &'static str, params: Option<Json> },
}

impl OutgoingRequest {
    pub(super) fn method(&self) -> &str {
        self.payload.method()
    }

    /// Appends the JSON-RPC message to `out`.
    pub(super) fn write(&self, out: &mut String) {
        let id = self.request_id.0.to_string();
        message::write_request(out, &id, self.method(), self.payload.params());
    }
}

impl Payload {
    pub(super) fn method(&self) -> &str {
        match self {
            Payload::Forwarded(ask) => ask.method(),
            Payload::Internal { method, .. } => method,
        }
    }

    pub(super) fn params(&self) -> Params<'_> {
        match self {
            Payload::Forwarded(ask) => Params::FromAsk(ask),
            Payload::Internal { params, .. } => params.as_ref().into(),
        }
    }
}

/// How a request is sent over HTTP; on a pipe there is no difference.
#[derive(Clone, Debug)]
pub(super) enum RequestMode {
    /// In the session, with its legacy revision.
    InSession,
    /// Without a session, in the modern revision, with these additional headers.
    Stateless(Headers),
}
