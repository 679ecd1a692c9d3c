//! The way to a server, whichever it is.

use std::sync::Arc;

use tool::{Failure, Json, Reply};

use super::headers::Headers;
use super::http::Http;
use crate::peer::{Patience, Peer, Ticket};

/// One question, ready to go.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) ticket: Ticket,
    pub(super) method: String,
    pub(super) params: Option<Json>,
    pub(super) patience: Patience,
    pub(super) manner: Manner,
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
                let Question { ticket, method, params, patience, .. } = question;
                peer.request(ticket, &method, params.as_ref(), patience).await
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
