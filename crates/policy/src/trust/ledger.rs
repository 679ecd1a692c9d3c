//! The trust ledger: the trust level of every known tool, signed so that only the owner
//! of the key can change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;
use tool::{Tool, hex};

use crate::trust::digest::{Digest, SeenTool, TrustLevel};
use crate::trust::drift::{Drift, drift};

/// The entries of all known tools, by `upstream/tool`. Cheap to clone, because every
/// call reads it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    entries: Arc<BTreeMap<String, Entry>>,
}

/// The entry of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub digest: Digest,
    pub state: TrustLevel,
    /// The definition of the tool at that time.
    pub seen: SeenTool,
    /// Milliseconds since 1970.
    pub since: u64,
}

/// The trust state of a tool as it is now.
#[derive(Clone, Debug, PartialEq)]
pub enum TrustState {
    /// Never seen before.
    New,
    /// It has not changed since it got this level.
    Known(TrustLevel),
    /// It had the level `was` and has changed since.
    Drifted { was: TrustLevel, drift: Vec<Drift> },
}

/// Why a ledger cannot be used. Then every tool counts as untrusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    #[error("the trust ledger cannot be read; `gatelet trust reset` starts a new one")]
    Unreadable,
    #[error("the trust ledger is not signed; `gatelet trust reset` starts a new one")]
    Unsigned,
    #[error(
        "the trust ledger was changed without its key; look who did, then `gatelet trust reset`"
    )]
    Forged,
    /// Whoever can read the key can sign anything.
    #[error(
        "other users can read or change the key of the trust ledger (`{0}`); look who did that, \
         then `gatelet trust reset`, or take it from them with `chmod 600`"
    )]
    OpenKey(String),
    /// There is no ledger, and none can be stored.
    #[error(
        "the trust ledger cannot be kept: {0}; give a state directory that can be written \
         (`--state`), or set `mode = \"off\"` under `[trust]`"
    )]
    NoStorage(String),
}

/// The store of the ledger.
pub trait LedgerStore: Send + Sync {
    /// The present ledger. Every call reads it.
    fn read(&self) -> Result<Arc<Ledger>, LedgerError>;

    /// Changes the ledger under a lock that all who share it respect. Returns the
    /// changed ledger.
    fn change(&self, change: &mut dyn FnMut(&mut Ledger)) -> Result<Arc<Ledger>, LedgerError>;
}

/// A ledger in memory, which is lost when the process ends.
#[derive(Debug, Default)]
pub struct InMemoryLedger(Mutex<Arc<Ledger>>);

impl LedgerStore for InMemoryLedger {
    fn read(&self) -> Result<Arc<Ledger>, LedgerError> {
        Ok(Arc::clone(&self.0.lock()))
    }

    fn change(&self, change: &mut dyn FnMut(&mut Ledger)) -> Result<Arc<Ledger>, LedgerError> {
        let mut ledger = self.0.lock();
        change(Arc::make_mut(&mut ledger));
        Ok(Arc::clone(&ledger))
    }
}

impl Ledger {
    /// Parses a signed ledger and checks its signature.
    pub fn parse_signed(text: &str, key: &[u8]) -> Result<Ledger, LedgerError> {
        let value: Value = serde_json::from_str(text).map_err(|_| LedgerError::Unreadable)?;
        let entries = value.get("entries").ok_or(LedgerError::Unreadable)?;
        let signature =
            value.get("signature").and_then(Value::as_str).ok_or(LedgerError::Unsigned)?;
        let signature = hex::decode(signature).ok_or(LedgerError::Forged)?;
        let mac = mac(key, entries);
        mac.verify_slice(&signature).map_err(|_| LedgerError::Forged)?;
        let entries = BTreeMap::deserialize(entries).map_err(|_| LedgerError::Unreadable)?;
        Ok(Ledger { entries: Arc::new(entries) })
    }

    /// Writes the ledger as signed text.
    pub fn to_signed_text(&self, key: &[u8]) -> String {
        let entries = json!(*self.entries);
        let signature = hex::encode(&mac(key, &entries).finalize().into_bytes());
        let whole = json!({"version": 1, "entries": entries, "signature": signature});
        serde_json::to_string_pretty(&whole).unwrap_or_else(|_| whole.to_string())
    }

    /// The trust state of a tool whose present definition has this digest.
    pub fn state(&self, name: &str, tool: &Tool, digest: &Digest) -> TrustState {
        match self.entries.get(name) {
            None => TrustState::New,
            Some(entry) if entry.digest == *digest => TrustState::Known(entry.state),
            Some(entry) => TrustState::Drifted {
                was: entry.state,
                drift: drift(&entry.seen, &SeenTool::of(tool)),
            },
        }
    }

    /// Sets the trust level of a tool as it is defined now.
    pub fn set(&mut self, name: &str, tool: &Tool, level: TrustLevel, now: u64) {
        let entry =
            Entry { digest: Digest::of(tool), state: level, seen: SeenTool::of(tool), since: now };
        Arc::make_mut(&mut self.entries).insert(name.to_owned(), entry);
    }

    /// Adds an entry from elsewhere.
    pub fn insert(&mut self, name: String, entry: Entry) {
        Arc::make_mut(&mut self.entries).insert(name, entry);
    }

    /// Makes a tool untrusted, whatever its definition is; `false` if it is not known.
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

    /// Removes a tool, so that it is new again; `false` if it is not known.
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
        assert_eq!(Ledger::parse_signed(&ledger().to_signed_text(KEY), KEY), Ok(ledger()));
        assert_eq!(
            Ledger::parse_signed(&Ledger::default().to_signed_text(KEY), KEY),
            Ok(Ledger::default())
        );
    }

    #[test]
    fn tampering_is_detected() {
        let text = ledger().to_signed_text(KEY);
        let promoted = text.replace("verified", "trusted");
        assert_eq!(Ledger::parse_signed(&promoted, KEY), Err(LedgerError::Forged));
        assert_eq!(Ledger::parse_signed(&text, b"another key"), Err(LedgerError::Forged));
        assert_eq!(Ledger::parse_signed("{", KEY), Err(LedgerError::Unreadable));
        assert_eq!(Ledger::parse_signed(r#"{"entries":{}}"#, KEY), Err(LedgerError::Unsigned));
        assert_eq!(
            Ledger::parse_signed(r#"{"entries":{},"signature":"zz"}"#, KEY),
            Err(LedgerError::Forged)
        );
        let other = Ledger::default().to_signed_text(KEY);
        let taken: Value = serde_json::from_str(&other).unwrap();
        let mut swapped: Value = serde_json::from_str(&text).unwrap();
        swapped["signature"] = taken["signature"].clone();
        assert_eq!(Ledger::parse_signed(&swapped.to_string(), KEY), Err(LedgerError::Forged));
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
