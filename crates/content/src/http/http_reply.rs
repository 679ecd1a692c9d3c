//! The HTTP response to a request, before it is sent.

use ::http::StatusCode;
use bytes::Bytes;

/// A status, headers and a body.
pub(super) struct HttpReply {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
}
