//! The trust ledger: what was granted, signed so that only who has the key can
//! change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;
use tool::{Tool, hex};

use crate::trust::digest::{Digest, Seen, TrustLevel};
use crate::trust::drift::{Drift, drift};

/// What is known of every tool, by `upstream/tool`. Cheap to clone, because
/// every call reads it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    entries: Arc<BTreeMap<String, Entry>>,
}

/// What is known of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub digest: Digest,
    pub state: TrustLevel,
    /// The tool as it was then.
    pub seen: Seen,
    /// Milliseconds since 1970.
    pub since: u64,
}

/// Where a tool stands.
#[derive(Clone, Debug, PartialEq)]
pub enum TrustState {
    /// Never seen before.
    New,
    Known(TrustLevel),
    /// It was seen in another shape, with this state.
    Drifted {
        was: TrustLevel,
        drift: Vec<Drift>,
    },
}

/// Why a ledger is not believed. Everything counts as untrusted then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Tampered {
    #[error("the trust ledger cannot be read; `gatelet trust reset` starts a new one")]
    Unreadable,
    #[error("the trust ledger is not signed; `gatelet trust reset` starts a new one")]
    Unsigned,
    #[error(
        "the trust ledger was changed without its key; look who did, then `gatelet trust reset`"
    )]
    Forged,
    /// Whoever could read the key can sign what he likes.
    #[error(
        "other users can read or change the key of the trust ledger (`{0}`); look who did that, \
         then `gatelet trust reset`, or take it from them with `chmod 600`"
    )]
    OpenKey(String),
    /// There is none, and there cannot be one.
    #[error(
        "the trust ledger cannot be kept: {0}; give a state directory that can be written \
         (`--state`), or set `mode = \"off\"` under `[trust]`"
    )]
    Homeless(String),
}

/// Where the ledger is kept.
pub trait LedgerStore: Send + Sync {
    /// The ledger as it stands. Every call asks for it.
    fn read(&self) -> Result<Arc<Ledger>, Tampered>;

    /// Changes the ledger while nobody else does, whoever shares it, and gives
    /// it back as it is then.
    fn change(&self, change: &mut dyn FnMut(&mut Ledger)) -> Result<Arc<Ledger>, Tampered>;
}

/// A store that forgets when the process ends.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Arc<Ledger>>);

impl LedgerStore for Memory {
    fn read(&self) -> Result<Arc<Ledger>, Tampered> {
        Ok(Arc::clone(&self.0.lock()))
    }

    fn change(&self, change: &mut dyn FnMut(&mut Ledger)) -> Result<Arc<Ledger>, Tampered> {
        let mut ledger = self.0.lock();
        change(Arc::make_mut(&mut ledger));
        Ok(Arc::clone(&ledger))
    }
}

impl Ledger {
    /// Reads a signed ledger.
    pub fn read(text: &str, key: &[u8]) -> Result<Ledger, Tampered> {
        let value: Value = serde_json::from_str(text).map_err(|_| Tampered::Unreadable)?;
        let entries = value.get("entries").ok_or(Tampered::Unreadable)?;
        let signature = value.get("signature").and_then(Value::as_str).ok_or(Tampered::Unsigned)?;
        let signature = hex::decode(signature).ok_or(Tampered::Forged)?;
        let mac = mac(key, entries);
        mac.verify_slice(&signature).map_err(|_| Tampered::Forged)?;
        let entries = BTreeMap::deserialize(entries).map_err(|_| Tampered::Unreadable)?;
        Ok(Ledger { entries: Arc::new(entries) })
    }

    /// The signed ledger as text.
    pub fn write(&self, key: &[u8]) -> String {
        let entries = json!(*self.entries);
        let signature = hex::encode(&mac(key, &entries).finalize().into_bytes());
        let whole = json!({"version": 1, "entries": entries, "signature": signature});
        serde_json::to_string_pretty(&whole).unwrap_or_else(|_| whole.to_string())
    }

    /// Where a tool stands, as it is now.
    pub fn state(&self, name: &str, tool: &Tool, digest: &Digest) -> TrustState {
        match self.entries.get(name) {
            None => TrustState::New,
            Some(entry) if entry.digest == *digest => TrustState::Known(entry.state),
            Some(entry) => {
                TrustState::Drifted { was: entry.state, drift: drift(&entry.seen, &Seen::of(tool)) }
            }
        }
    }

    /// Notes a tool as it is now, with a state.
    pub fn set(&mut self, name: &str, tool: &Tool, state: TrustLevel, now: u64) {
        let entry = Entry { digest: Digest::of(tool), state, seen: Seen::of(tool), since: now };
        Arc::make_mut(&mut self.entries).insert(name.to_owned(), entry);
    }

    /// Takes over what is known of a tool.
    pub fn insert(&mut self, name: String, entry: Entry) {
        Arc::make_mut(&mut self.entries).insert(name, entry);
    }

    /// Takes trust away from a tool, whatever shape it has.
    pub fn revoke(&mut self, name: &str, now: u64) -> bool {
        match Arc::make_mut(&mut self.entries).get_mut(name) {
            Some(entry) => {
                entry.state = TrustLevel::Untrusted;
                entry.since = now;
                true
            }
            None => false,
        }
    }

    /// Forgets a tool; it is new again.
    pub fn forget(&mut self, name: &str) -> bool {
        Arc::make_mut(&mut self.entries).remove(name).is_some()
    }

    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }
}

fn mac(key: &[u8], entries: &Value) -> Hmac<Sha256> {
    let mut sorted = entries.clone();
    sorted.sort_all_objects();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(b"gatelet trust ledger 1\n");
    mac.update(sorted.to_string().as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use testkit::tool;

    use super::*;

    const KEY: &[u8] = b"thirty-two bytes of secret key!!";

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.set("up/t", &tool("t", "d", &json!({"type": "object"})), TrustLevel::Verified, 7);
        ledger
    }

    #[test]
    fn a_signed_ledger_is_read_back() {
        assert_eq!(Ledger::read(&ledger().write(KEY), KEY), Ok(ledger()));
        assert_eq!(Ledger::read(&Ledger::default().write(KEY), KEY), Ok(Ledger::default()));
    }

    #[test]
    fn tampering_is_detected() {
        let text = ledger().write(KEY);
        let promoted = text.replace("verified", "trusted");
        assert_eq!(Ledger::read(&promoted, KEY), Err(Tampered::Forged));
        assert_eq!(Ledger::read(&text, b"another key"), Err(Tampered::Forged));
        assert_eq!(Ledger::read("{", KEY), Err(Tampered::Unreadable));
        assert_eq!(Ledger::read(r#"{"entries":{}}"#, KEY), Err(Tampered::Unsigned));
        assert_eq!(Ledger::read(r#"{"entries":{},"signature":"zz"}"#, KEY), Err(Tampered::Forged));
        let other = Ledger::default().write(KEY);
        let taken: Value = serde_json::from_str(&other).unwrap();
        let mut swapped: Value = serde_json::from_str(&text).unwrap();
        swapped["signature"] = taken["signature"].clone();
        assert_eq!(Ledger::read(&swapped.to_string(), KEY), Err(Tampered::Forged));
    }

    #[test]
    fn a_tool_that_changes_drifts_and_one_that_is_accepted_is_known() {
        let mut ledger = ledger();
        let changed = tool("t", "D", &json!({"type": "object"}));
        let state = ledger.state("up/t", &changed, &Digest::of(&changed));
        assert!(matches!(state, TrustState::Drifted { was: TrustLevel::Verified, .. }));
        ledger.set("up/t", &changed, TrustLevel::Trusted, 8);
        let state = ledger.state("up/t", &changed, &Digest::of(&changed));
        assert_eq!(state, TrustState::Known(TrustLevel::Trusted));
        assert!(ledger.revoke("up/t", 9) && !ledger.revoke("up/other", 9));
        let state = ledger.state("up/t", &changed, &Digest::of(&changed));
        assert_eq!(state, TrustState::Known(TrustLevel::Untrusted));
        assert!(ledger.forget("up/t"));
        assert_eq!(ledger.state("up/t", &changed, &Digest::of(&changed)), TrustState::New);
    }
}
