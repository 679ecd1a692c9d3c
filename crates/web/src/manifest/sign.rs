//! Signs manifests, and verifies their signatures.
//!
//! A signature is Ed25519 over the canonical JSON form of the whole document, also of
//! members that this program does not know. It names its key, so that aggregators can
//! pin keys. To change a key: pin the new one beside the old one, sign with the new one,
//! remove the old pin.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tool::hex;

use super::Manifest;

pub use super::signature::Signature;

/// A key that signs. Its text form is the base64 of 32 secret bytes.
pub struct SecretKey {
    seed: [u8; 32],
    pair: Ed25519KeyPair,
}

/// A key that verifies. Its text form is the base64 of 32 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

/// The text is not a key.
#[derive(Debug, thiserror::Error)]
#[error("not a key: expected 32 bytes in base64")]
pub struct InvalidKey;

/// Why a manifest is not trusted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the manifest is not signed")]
    Unsigned,
    #[error("the manifest is signed by `{0}`, which is not a pinned key")]
    UnknownKey(String),
    #[error("the manifest is signed with `{0}`, only ed25519 is known")]
    UnknownAlgorithm(String),
    #[error("the signature does not fit the manifest: it was changed after signing")]
    Forged,
}

impl SecretKey {
    /// A key from 32 random bytes.
    pub fn from_seed(seed: [u8; 32]) -> SecretKey {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("32 bytes make a key");
        SecretKey { seed, pair }
    }

    pub fn parse(text: &str) -> Result<SecretKey, InvalidKey> {
        decode(text).map(SecretKey::from_seed)
    }

    pub fn to_text(&self) -> String {
        STANDARD.encode(self.seed)
    }

    pub fn public(&self) -> PublicKey {
        let bytes = self.pair.public_key().as_ref();
        PublicKey(bytes.try_into().expect("a public key has 32 bytes"))
    }

    /// Returns the manifest with a signature by this key.
    pub fn sign(&self, manifest: &Manifest) -> Manifest {
        let value = STANDARD.encode(self.pair.sign(manifest.canonical().as_bytes()));
        let signature =
            Signature { key: self.public().id(), algorithm: "ed25519".to_owned(), value };
        let mut signed = manifest.clone();
        if let Some(members) = signed.whole.as_mut().and_then(Value::as_object_mut) {
            members.insert("signature".to_owned(), json!(signature));
        }
        signed.signature = Some(signature);
        signed
    }
}

impl PublicKey {
    pub fn parse(text: &str) -> Result<PublicKey, InvalidKey> {
        decode(text).map(PublicKey)
    }

    pub fn to_text(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// A short name: the first 16 hexadecimal digits of the key's SHA-256.
    pub fn id(&self) -> String {
        let digest = Sha256::digest(self.0);
        hex::encode(&digest[..8])
    }
}

/// Checks that one of the pinned keys signed the manifest.
pub fn verify(manifest: &Manifest, pinned: &[PublicKey]) -> Result<(), SignatureError> {
    let signature = manifest.signature.as_ref().ok_or(SignatureError::Unsigned)?;
    if signature.algorithm != "ed25519" {
        return Err(SignatureError::UnknownAlgorithm(signature.algorithm.clone()));
    }
    let key = pinned
        .iter()
        .find(|key| key.id() == signature.key)
        .ok_or_else(|| SignatureError::UnknownKey(signature.key.clone()))?;
    let bytes = STANDARD.decode(&signature.value).map_err(|_| SignatureError::Forged)?;
    let key = UnparsedPublicKey::new(&ED25519, key.0);
    key.verify(manifest.canonical().as_bytes(), &bytes).map_err(|_| SignatureError::Forged)
}

fn decode(text: &str) -> Result<[u8; 32], InvalidKey> {
    let bytes = STANDARD.decode(text.trim()).map_err(|_| InvalidKey)?;
    bytes.try_into().map_err(|_| InvalidKey)
}
