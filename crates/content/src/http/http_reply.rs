//! The reply to a request, before it becomes an HTTP response.

use ::http::StatusCode;
use bytes::Bytes;

/// A status, headers and a body.
pub(super) struct HttpReply {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
}
