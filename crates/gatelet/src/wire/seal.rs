//! What replicas write into their store, so that others cannot have written it.
//!
//! With a key of the operator's own every note is signed under its name, and one
//! without a good signature is not believed. Without a key whoever can write to
//! the store is believed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tool::hex;

/// What the signature of an unsigned note says.
const UNSIGNED: &str = "-";

/// Signs and checks notes.
#[derive(Clone)]
pub(crate) struct Seal(Option<Vec<u8>>);

/// A note was written by somebody without the key, or for another place.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was not signed with the key of `[state]`")]
pub(crate) struct Forged;

impl Seal {
    pub(crate) fn new(key: Option<&str>) -> Seal {
        Seal(key.map(|key| key.as_bytes().to_vec()))
    }

    /// The note with its signature in front.
    pub(crate) fn close(&self, name: &str, note: &[u8]) -> Vec<u8> {
        let signature = match &self.0 {
            Some(key) => hex::encode(&mac(key, name, note).finalize().into_bytes()),
            None => UNSIGNED.to_owned(),
        };
        [signature.as_bytes(), b"\n", note].concat()
    }

    /// The note, if it is to be believed.
    pub(crate) fn open<'a>(&self, name: &str, sealed: &'a [u8]) -> Result<&'a [u8], Forged> {
        let end = sealed.iter().position(|byte| *byte == b'\n').ok_or(Forged)?;
        let (signature, note) = (&sealed[..end], &sealed[end + 1..]);
        let Some(key) = &self.0 else { return Ok(note) };
        let signature = std::str::from_utf8(signature).ok().and_then(hex::decode).ok_or(Forged)?;
        mac(key, name, note).verify_slice(&signature).map_err(|_| Forged)?;
        Ok(note)
    }
}

fn mac(key: &[u8], name: &str, note: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(b"gatelet shared note 1\n");
    mac.update(name.as_bytes());
    mac.update(b"\n");
    mac.update(note);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_key_is_believed_and_only_in_its_place() {
        let ours = Seal::new(Some("a key of the operator"));
        let sealed = ours.close("keys", b"note\nmore");
        assert_eq!(ours.open("keys", &sealed), Ok(b"note\nmore".as_slice()));
        assert_eq!(ours.open("ledger", &sealed), Err(Forged), "moved from another place");
        let theirs = Seal::new(Some("another key"));
        assert_eq!(ours.open("keys", &theirs.close("keys", b"note")), Err(Forged));
        assert_eq!(ours.open("keys", &Seal::new(None).close("keys", b"note")), Err(Forged));
        assert_eq!(ours.open("keys", b"no line"), Err(Forged));
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(ours.open("keys", &changed), Err(Forged));
        assert_eq!(Seal::new(None).open("keys", &sealed), Ok(b"note\nmore".as_slice()));
    }
}
