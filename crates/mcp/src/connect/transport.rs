//! The way to a server, whichever it is.

use std::sync::Arc;

use tool::{Ask, Failure, Json, Reply};

use super::headers::Headers;
use super::http::Http;
use crate::message::{self, Params};
use crate::peer::{Patience, Peer, Ticket};

/// One question, ready to go.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) ticket: Ticket,
    pub(super) payload: Payload,
    pub(super) patience: Patience,
    pub(super) mode: RequestMode,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    /// Somebody's question.
    Forwarded(Ask),
    /// One of our own.
    Own { method: &'static str, params: Option<Json> },
}

impl Question {
    pub(super) fn method(&self) -> &str {
        self.payload.method()
    }

    /// Appends the message.
    pub(super) fn write(&self, out: &mut String) {
        let id = self.ticket.0.to_string();
        message::write_request(out, &id, self.method(), self.payload.params());
    }
}

impl Payload {
    fn method(&self) -> &str {
        match self {
            Payload::Forwarded(ask) => ask.method(),
            Payload::Own { method, .. } => method,
        }
    }

    fn params(&self) -> Params<'_> {
        match self {
            Payload::Forwarded(ask) => Params::Of(ask),
            Payload::Own { params, .. } => params.as_ref().into(),
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

pub(super) enum Transport {
    /// Over pipes, or what behaves like pipes.
    Pipe(Peer),
    Http(Arc<Http>),
}

impl Transport {
    pub(super) fn ticket(&self) -> Ticket {
        match self {
            Transport::Pipe(peer) => peer.ticket(),
            Transport::Http(http) => http.ticket(),
        }
    }

    pub(super) async fn request(&self, question: Question) -> Result<Reply, Failure> {
        match self {
            Transport::Pipe(peer) => {
                let Question { ticket, payload, patience, .. } = question;
                peer.request(ticket, payload.method(), payload.params(), patience).await
            }
            // Much larger than the other way; a pipe's calls need not carry it.
            Transport::Http(http) => Box::pin(http.request(question)).await,
        }
    }

    pub(super) fn notify(&self, method: &str, params: Option<&Json>) {
        match self {
            // A server that is gone is told nothing; its end is told elsewhere.
            Transport::Pipe(peer) => peer.notify(method, params).unwrap_or_default(),
            Transport::Http(http) => http.notify(method, params),
        }
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self, Transport::Http(_))
    }

    pub(super) fn close(&self, reason: &str) {
        match self {
            Transport::Pipe(peer) => peer.close(reason),
            Transport::Http(http) => http.close(reason),
        }
    }
}
