//! Checks the signatures of tokens (JWT, RFC 7519, in the compact form).
//!
//! [`verify`] gives the claims of a token that was signed with one of our
//! [`Keys`], and nothing else. The algorithm follows from our key, never from
//! the token, and `none` does not exist here. What the claims mean, and whether
//! the token is still good, is for whoever asks.
//!
//! This crate knows no clock, no identity and no network. The arithmetic is
//! `ring`'s.

mod algorithm;
mod jwk;

use std::sync::Arc;

use ring::hmac;
use serde::Deserialize;
use serde_json::{Map, Value};

use algorithm::decode;

pub use algorithm::{Algorithm, Invalid};
pub use jwk::{Jwk, KeySet};

/// Longer tokens are not looked at.
pub const MAX_BYTES: usize = 64 << 10;

/// What signatures are checked with.
#[derive(Clone)]
pub enum Keys {
    /// HS256 with a shared secret.
    Secret(Arc<[u8]>),
    /// RS256, PS256, ES256, ES384 or EdDSA with the keys of a JWKS.
    Public(Arc<KeySet>),
}

/// What stands before the claims.
#[derive(Deserialize)]
struct Header {
    alg: Algorithm,
    kid: Option<String>,
    /// What has to be understood (RFC 7515, 4.1.11).
    crit: Option<Value>,
}

impl Keys {
    /// Nobody's: no token is signed with one of them.
    pub fn none() -> Keys {
        Keys::from_jwks(r#"{"keys":[]}"#).expect("an empty set can be read")
    }

    /// Reads a JWKS document.
    pub fn from_jwks(text: &str) -> Result<Keys, serde_json::Error> {
        serde_json::from_str(text).map(|set| Keys::Public(Arc::new(set)))
    }
}

/// The claims of a token that was signed with one of these keys.
pub fn verify(keys: &Keys, token: &str) -> Result<Map<String, Value>, Invalid> {
    if MAX_BYTES < token.len() {
        return Err(Invalid);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(Invalid)?;
    let (header, claims) = signed.split_once('.').ok_or(Invalid)?;
    let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| Invalid)?;
    // There is nothing of that kind that we know.
    if header.crit.is_some() {
        return Err(Invalid);
    }
    let (message, signature) = (signed.as_bytes(), decode(signature)?);
    match keys {
        Keys::Secret(secret) if header.alg == Algorithm::HS256 => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            hmac::verify(&key, message, &signature).map_err(|_| Invalid)?;
        }
        Keys::Secret(_) => return Err(Invalid),
        Keys::Public(set) => {
            let key = set.find(header.kid.as_deref()).ok_or(Invalid)?;
            key.verify(header.alg, message, &signature)?;
        }
    }
    serde_json::from_slice(&decode(claims)?).map_err(|_| Invalid)
}

#[cfg(test)]
mod tests;
