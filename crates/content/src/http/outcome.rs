//! What a request comes to.

use ::http::StatusCode;
use bytes::Bytes;

/// What a request comes to: a status, and a body.
pub(super) struct Outcome {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
}
