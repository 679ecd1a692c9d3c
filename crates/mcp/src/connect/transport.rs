//! The transport of a connection: a pipe or HTTP.

use std::sync::Arc;

use tool::{Failure, Json, Reply};

use super::http::Http;
use super::request::OutgoingRequest;
use crate::peer::{Peer, RequestId};

/// A way to send requests and notifications to a server.
pub(super) enum Transport {
    /// A pipe, or a transport that is bridged to one.
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

    pub(super) async fn request(&self, request: OutgoingRequest) -> Result<Reply, Failure> {
        match self {
            Transport::Pipe(peer) => {
                let OutgoingRequest { request_id, payload, timeouts, .. } = request;
                peer.request(request_id, payload.method(), payload.params(), timeouts).await
            }
            // Boxed, because this future is much larger than that of a pipe.
            Transport::Http(http) => Box::pin(http.request(request)).await,
        }
    }

    pub(super) fn notify(&self, method: &str, params: Option<&Json>) {
        match self {
            // The end of a server is reported elsewhere.
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
