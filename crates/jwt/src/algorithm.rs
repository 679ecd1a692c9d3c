//! The signature algorithms that tokens may use, and the encoding of their parts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// The token is malformed, or was not signed with one of the given keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is not valid")]
pub struct InvalidToken;

/// A signature algorithm, as the `alg` of a token's header names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Algorithm {
    HS256,
    RS256,
    PS256,
    ES256,
    ES384,
    EdDSA,
}

/// Decodes one part of a token, or one number of a key.
pub(crate) fn decode_base64url(text: &str) -> Result<Vec<u8>, InvalidToken> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidToken)
}
