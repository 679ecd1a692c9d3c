//! Verifies the signatures of JSON Web Tokens (RFC 7519, compact form).
//!
//! [`verify`] returns the claims of a token that was signed with one of our
//! [`Keys`], and an error for every other token. A key decides which algorithms
//! are accepted with it, so a token cannot choose, and `none` is never accepted.
//! The caller interprets the claims, also those about expiry and audience.
//!
//! This crate has no clock, no identities and no network. The cryptography is
//! `ring`'s.

mod algorithm;
mod jwk;

use std::sync::Arc;

use ring::hmac;
use serde::Deserialize;
use serde_json::{Map, Value};

use algorithm::decode_base64url;

pub use algorithm::{Algorithm, InvalidToken};
pub use jwk::{Jwk, KeySet};

/// The length of the longest token that is accepted.
pub const MAX_BYTES: usize = 64 << 10;

/// The keys that signatures are verified with.
#[derive(Clone)]
pub enum Keys {
    /// HS256 with a shared secret.
    Secret(Arc<[u8]>),
    /// RS256, PS256, ES256, ES384 or EdDSA with the keys of a JWKS.
    Public(Arc<KeySet>),
}

/// The header of a token, which says how it was signed.
#[derive(Deserialize)]
struct Header {
    alg: Algorithm,
    /// The id of the key.
    kid: Option<String>,
    /// Extensions that a recipient must understand (RFC 7515, 4.1.11).
    crit: Option<Value>,
}

impl Keys {
    /// An empty set of keys, with which no token is valid.
    pub fn none() -> Keys {
        Keys::from_jwks(r#"{"keys":[]}"#).expect("an empty set can be read")
    }

    /// Parses a JWKS document.
    pub fn from_jwks(text: &str) -> Result<Keys, serde_json::Error> {
        serde_json::from_str(text).map(|set| Keys::Public(Arc::new(set)))
    }
}

/// Verifies a token with these keys and returns its claims.
pub fn verify(keys: &Keys, token: &str) -> Result<Map<String, Value>, InvalidToken> {
    if MAX_BYTES < token.len() {
        return Err(InvalidToken);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(InvalidToken)?;
    let (header, claims) = signed.split_once('.').ok_or(InvalidToken)?;
    let header: Header =
        serde_json::from_slice(&decode_base64url(header)?).map_err(|_| InvalidToken)?;
    // We understand none of these extensions.
    if header.crit.is_some() {
        return Err(InvalidToken);
    }
    let (message, signature) = (signed.as_bytes(), decode_base64url(signature)?);
    match keys {
        Keys::Secret(secret) if header.alg == Algorithm::HS256 => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            hmac::verify(&key, message, &signature).map_err(|_| InvalidToken)?;
        }
        Keys::Secret(_) => return Err(InvalidToken),
        Keys::Public(set) => {
            let key = set.find(header.kid.as_deref()).ok_or(InvalidToken)?;
            key.verify(header.alg, message, &signature)?;
        }
    }
    serde_json::from_slice(&decode_base64url(claims)?).map_err(|_| InvalidToken)
}

#[cfg(test)]
mod tests;
