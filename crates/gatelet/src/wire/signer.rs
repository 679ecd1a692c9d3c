//! Signs what replicas write into their shared store, so that nobody else can forge it.
//!
//! With a key in `[state]`, every value is signed together with its name, and a value
//! without a valid signature is rejected. Without a key, whoever can write to the store
//! is trusted.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tool::hex;

/// Stands in the place of the signature where there is no key.
const UNSIGNED: &str = "-";

/// Signs and verifies values with the key of the replicas, if there is one.
#[derive(Clone)]
pub(crate) struct Signer(Option<Vec<u8>>);

/// A value was signed without the key, or under another name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was not signed with the key of `[state]`")]
pub(crate) struct Forged;

impl Signer {
    pub(crate) fn new(key: Option<&str>) -> Signer {
        Signer(key.map(|key| key.as_bytes().to_vec()))
    }

    /// The key, for values that are signed in another format; empty where there is none.
    pub(crate) fn key(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The value with its signature in front.
    pub(crate) fn sign(&self, name: &str, value: &[u8]) -> Vec<u8> {
        let signature = match &self.0 {
            Some(key) => hex::encode(&mac(key, name, value).finalize().into_bytes()),
            None => UNSIGNED.to_owned(),
        };
        [signature.as_bytes(), b"\n", value].concat()
    }

    /// The value without its signature, if that is valid.
    pub(crate) fn verify<'a>(&self, name: &str, signed: &'a [u8]) -> Result<&'a [u8], Forged> {
        let end = signed.iter().position(|byte| *byte == b'\n').ok_or(Forged)?;
        let (signature, value) = (&signed[..end], &signed[end + 1..]);
        let Some(key) = &self.0 else { return Ok(value) };
        let signature = std::str::from_utf8(signature).ok().and_then(hex::decode).ok_or(Forged)?;
        mac(key, name, value).verify_slice(&signature).map_err(|_| Forged)?;
        Ok(value)
    }
}

fn mac(key: &[u8], name: &str, value: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(b"gatelet shared note 1\n");
    mac.update(name.as_bytes());
    mac.update(b"\n");
    mac.update(value);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_key_is_believed_and_only_in_its_place() {
        let ours = Signer::new(Some("a key of the operator"));
        let signed = ours.sign("keys", b"note\nmore");
        assert_eq!(ours.verify("keys", &signed), Ok(b"note\nmore".as_slice()));
        assert_eq!(ours.verify("ledger", &signed), Err(Forged), "moved from another place");
        let theirs = Signer::new(Some("another key"));
        assert_eq!(ours.verify("keys", &theirs.sign("keys", b"note")), Err(Forged));
        assert_eq!(ours.verify("keys", &Signer::new(None).sign("keys", b"note")), Err(Forged));
        assert_eq!(ours.verify("keys", b"no line"), Err(Forged));
        let mut changed = signed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(ours.verify("keys", &changed), Err(Forged));
        assert_eq!(Signer::new(None).verify("keys", &signed), Ok(b"note\nmore".as_slice()));
    }
}
