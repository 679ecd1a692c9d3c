//! An HTTP request with its parsed path and envelope.

use std::net::IpAddr;

use ::http::{HeaderMap, Method};
use bytes::Bytes;

use super::envelope::Envelope;

/// What is known of a request before anything is decided.
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

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Call { server: String },
    Dispatch { server: String },
    Task { server: String, id: i64 },
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
