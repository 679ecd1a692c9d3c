//! One request to a server, before a transport is chosen.

use std::sync::Arc;

use tool::trace::Trace;
use tool::{Ask, Json};

use super::headers::Headers;
use crate::message::{self, Params};
use crate::peer::{RequestId, Timeouts};

/// One question, ready to go.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) request_id: RequestId,
    pub(super) payload: Payload,
    pub(super) timeouts: Timeouts,
    pub(super) mode: RequestMode,
    /// What is told of it, where somebody traces.
    pub(super) trace: Option<Arc<Trace>>,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    /// Somebody's question.
    Forwarded(Ask),
    /// One of our own.
    Internal { method: &'static str, params: Option<Json> },
}

impl Question {
    pub(super) fn method(&self) -> &str {
        self.payload.method()
    }

    /// Appends the message.
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
            Payload::Forwarded(ask) => Params::Of(ask),
            Payload::Internal { params, .. } => params.as_ref().into(),
        }
    }
}

/// How a question is put over HTTP; a pipe knows no difference.
#[derive(Clone, Debug)]
pub(super) enum RequestMode {
    /// On the session, in the older revision that was agreed there.
    InSession,
    /// By itself, in the latest revision, which repeats in headers what
    /// whoever stands between has to know.
    Stateless(Headers),
}
