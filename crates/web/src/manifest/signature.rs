//! The member `signature` of a manifest.

use serde::{Deserialize, Serialize};

/// The signature of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The id of the key that signed: see [`PublicKey::id`](super::sign::PublicKey::id).
    pub key: String,
    pub algorithm: String,
    /// The signature itself, in base64.
    pub value: String,
}
