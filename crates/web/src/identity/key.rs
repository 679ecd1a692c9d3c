//! API keys of the form `gate_<name>_<secret>`: created, revoked and checked.
//!
//! The secret has 160 random bits, so one round of SHA-256 is enough to store it.
//! Hashes are compared in constant time, and always all of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tool::{Identity, hex};

use super::denied::Denied;

const PREFIX: &str = "gate_";

/// A key as it is stored, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub name: String,
    /// SHA-256 of the whole key, in hexadecimal.
    pub hash: String,
    #[serde(default)]
    pub scopes: BTreeSet<String>,
    #[serde(default)]
    pub roles: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub groups: BTreeSet<String>,
    /// In seconds since 1970, as the other times.
    pub created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
}

/// All keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRing {
    #[serde(default)]
    pub keys: Vec<Key>,
}

/// A key that was just created, with the only copy of its text.
pub struct NewKey {
    pub key: Key,
    /// The whole text of the key, as callers send it.
    pub secret: String,
}

/// Why a key cannot be created or revoked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("a key's name has 1 to 32 of the characters a-z, 0-9 and `-`, not `{0}`")]
    BadName(String),
    #[error("there is a key called `{0}` already: revoke it first, or choose another name")]
    Taken(String),
    #[error("there is no key called `{0}`")]
    Unknown(String),
}

/// Returns whether a credential has the prefix of our keys.
pub fn has_key_prefix(credential: &str) -> bool {
    credential.starts_with(PREFIX)
}

impl KeyRing {
    /// Creates a key from 20 random bytes and adds it.
    pub fn create(&mut self, name: &str, random: [u8; 20], now: u64) -> Result<NewKey, KeyError> {
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.is_empty() || 32 < name.len() || !name.bytes().all(legal) {
            return Err(KeyError::BadName(name.to_owned()));
        }
        if self.keys.iter().any(|key| key.name == name && key.revoked.is_none()) {
            return Err(KeyError::Taken(name.to_owned()));
        }
        let secret = format!("{PREFIX}{name}_{}", hex::encode(&random));
        let key = Key {
            name: name.to_owned(),
            hash: hash(&secret),
            scopes: BTreeSet::new(),
            roles: BTreeSet::new(),
            groups: BTreeSet::new(),
            created: now,
            expires: None,
            revoked: None,
        };
        self.keys.push(key.clone());
        Ok(NewKey { key, secret })
    }

    pub fn revoke(&mut self, name: &str, now: u64) -> Result<(), KeyError> {
        let key = self.keys.iter_mut().find(|key| key.name == name && key.revoked.is_none());
        let key = key.ok_or_else(|| KeyError::Unknown(name.to_owned()))?;
        key.revoked = Some(now);
        Ok(())
    }

    /// Returns the identity of the holder of a key.
    pub fn identify(&self, credential: &str, now: u64) -> Result<Identity, Denied> {
        let given = hash(credential);
        // All keys are compared, so that the time does not reveal which one matches.
        let mut found = None;
        for key in &self.keys {
            if bool::from(key.hash.as_bytes().ct_eq(given.as_bytes())) {
                found = Some(key);
            }
        }
        let key = found.filter(|key| key.revoked.is_none()).ok_or(Denied::Invalid)?;
        if key.expires.is_some_and(|end| end <= now) {
            return Err(Denied::Expired);
        }
        Ok(Identity {
            subject: format!("key:{}", key.name),
            scopes: key.scopes.clone(),
            roles: key.roles.clone(),
            groups: key.groups.clone(),
            ..Identity::default()
        })
    }
}

fn hash(secret: &str) -> String {
    hex::encode(&Sha256::digest(secret.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> (KeyRing, String) {
        let mut ring = KeyRing::default();
        let fresh = ring.create("ci", [7; 20], 100).unwrap();
        (ring, fresh.secret)
    }

    #[test]
    fn a_key_identifies_its_holder_and_is_not_stored() {
        let (ring, secret) = ring();
        assert_eq!(ring.identify(&secret, 200).unwrap().subject, "key:ci");
        assert!(!serde_json::to_string(&ring).unwrap().contains(&secret[10..]));
    }

    #[test]
    fn a_holder_has_what_its_key_says_also_in_a_file_from_before_groups() {
        let (mut ring, secret) = ring();
        let of = |word: &str| BTreeSet::from([word.to_owned()]);
        let before = serde_json::to_string(&ring).unwrap();
        assert!(!before.contains("groups"));
        let read: KeyRing = serde_json::from_str(&before).unwrap();
        assert!(read.identify(&secret, 200).unwrap().groups.is_empty());
        let key = &mut ring.keys[0];
        (key.scopes, key.roles, key.groups) = (of("call"), of("ops"), of("night"));
        let read: KeyRing = serde_json::from_str(&serde_json::to_string(&ring).unwrap()).unwrap();
        let who = read.identify(&secret, 200).unwrap();
        assert_eq!((who.scopes, who.roles, who.groups), (of("call"), of("ops"), of("night")));
    }

    #[test]
    fn a_wrong_an_expired_and_a_revoked_key_are_refused() {
        let (mut ring, secret) = ring();
        assert_eq!(ring.identify("gate_ci_00", 200), Err(Denied::Invalid));
        ring.keys[0].expires = Some(150);
        assert_eq!(ring.identify(&secret, 149).map(|who| who.subject), Ok("key:ci".into()));
        assert_eq!(ring.identify(&secret, 150), Err(Denied::Expired));
        ring.revoke("ci", 160).unwrap();
        assert_eq!(ring.identify(&secret, 10), Err(Denied::Invalid));
    }

    #[test]
    fn names_are_plain_and_taken_once_until_revoked() {
        let (mut ring, _) = ring();
        assert!(matches!(ring.create("C I", [1; 20], 0), Err(KeyError::BadName(_))));
        assert!(matches!(ring.create("ci", [1; 20], 0), Err(KeyError::Taken(_))));
        ring.revoke("ci", 5).unwrap();
        assert!(ring.create("ci", [1; 20], 0).is_ok());
        assert_eq!(ring.revoke("other", 5), Err(KeyError::Unknown("other".into())));
    }
}
