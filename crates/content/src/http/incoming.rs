//! An HTTP request with its parsed path and envelope.

use std::net::IpAddr;

use ::http::{HeaderMap, Method};
use bytes::Bytes;

use super::envelope::Envelope;

/// A request before the caller is authenticated.
pub(super) struct Incoming {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) route: Route,
    pub(super) envelope: Envelope,
    pub(super) trace_id: String,
    pub(super) request_id: String,
    pub(super) peer: Option<IpAddr>,
}

/// The meaning of a path; `server` is the handle in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// A message to be answered now.
    Call {
        server: String,
    },
    /// A message to be answered later, as a task.
    Dispatch {
        server: String,
    },
    /// The status of a task.
    Task {
        server: String,
        id: i64,
    },
    Unknown,
}

impl Route {
    pub(super) fn server(&self) -> &str {
        match self {
            Route::Call { server } | Route::Dispatch { server } | Route::Task { server, .. } => {
                server
            }
            Route::Unknown => "",
        }
    }
}
