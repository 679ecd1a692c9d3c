//! The transport of a connection, whichever it is.

use std::sync::Arc;

use tool::{Failure, Json, Reply};

use super::http::Http;
use super::request::Question;
use crate::peer::{Peer, RequestId};

pub(super) enum Transport {
    /// Over pipes, or what behaves like pipes.
    Pipe(Peer),
    Http(Arc<Http>),
}

impl Transport {
    pub(super) fn next_request_id(&self) -> RequestId {
        match self {
            Transport::Pipe(peer) => peer.next_request_id(),
            Transport::Http(http) => http.next_request_id(),
        }
    }

    pub(super) async fn request(&self, question: Question) -> Result<Reply, Failure> {
        match self {
            Transport::Pipe(peer) => {
                let Question { request_id, payload, timeouts, .. } = question;
                peer.request(request_id, payload.method(), payload.params(), timeouts).await
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
