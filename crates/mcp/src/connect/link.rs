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
    pub(super) what: What,
    pub(super) patience: Patience,
    pub(super) manner: Manner,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Somebody's question.
    Theirs(Ask),
    /// One of our own.
    Ours { method: &'static str, params: Option<Json> },
}

impl Question {
    pub(super) fn method(&self) -> &str {
        self.what.method()
    }

    /// Appends the message.
    pub(super) fn write(&self, out: &mut String) {
        let id = self.ticket.0.to_string();
        message::write_request(out, &id, self.method(), self.what.params());
    }
}

impl What {
    fn method(&self) -> &str {
        match self {
            What::Theirs(ask) => ask.method(),
            What::Ours { method, .. } => method,
        }
    }

    fn params(&self) -> Params<'_> {
        match self {
            What::Theirs(ask) => Params::Of(ask),
            What::Ours { params, .. } => params.as_ref().into(),
        }
    }
}

/// How a question is put over HTTP; a pipe knows no difference.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    /// On the session, in the older revision that was agreed there.
    OnSession,
    /// By itself, in the latest revision, which repeats in headers what
    /// whoever stands between has to know.
    Alone(Headers),
}

pub(super) enum Link {
    /// Over pipes, or what behaves like pipes.
    Pipe(Peer),
    Http(Arc<Http>),
}

impl Link {
    pub(super) fn ticket(&self) -> Ticket {
        match self {
            Link::Pipe(peer) => peer.ticket(),
            Link::Http(http) => http.ticket(),
        }
    }

    pub(super) async fn request(&self, question: Question) -> Result<Reply, Failure> {
        match self {
            Link::Pipe(peer) => {
                let Question { ticket, what, patience, .. } = question;
                peer.request(ticket, what.method(), what.params(), patience).await
            }
            // Much larger than the other way; a pipe's calls need not carry it.
            Link::Http(http) => Box::pin(http.request(question)).await,
        }
    }

    pub(super) fn notify(&self, method: &str, params: Option<&Json>) {
        match self {
            // A server that is gone is told nothing; its end is told elsewhere.
            Link::Pipe(peer) => peer.notify(method, params).unwrap_or_default(),
            Link::Http(http) => http.notify(method, params),
        }
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self, Link::Http(_))
    }

    pub(super) fn close(&self, reason: &str) {
        match self {
            Link::Pipe(peer) => peer.close(reason),
            Link::Http(http) => http.close(reason),
        }
    }
}
