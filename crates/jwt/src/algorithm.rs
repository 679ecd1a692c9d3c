//! How tokens are signed and written down.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// The token is malformed, or nobody whom we know signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is not valid")]
pub struct Invalid;

/// How a token says that it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Algorithm {
    HS256,
    RS256,
    PS256,
    ES256,
    ES384,
    EdDSA,
}

/// The bytes of one part of a token.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, Invalid> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Invalid)
}
