//! The trust ledger: the trust level of every known tool, signed so that only the owner
//! of the key can change it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use catalog::name;
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
    entries: Arc<Entries>,
}

/// The entries by name, and the names by what callers may write for them.
#[derive(Debug, Default)]
struct Entries {
    by_name: BTreeMap<String, Entry>,
    /// Made when it is first needed after a change.
    by_spelling: OnceLock<HashMap<String, Vec<String>>>,
}

impl Clone for Entries {
    fn clone(&self) -> Entries {
        Entries { by_name: self.by_name.clone(), by_spelling: OnceLock::new() }
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Entries) -> bool {
        self.by_name == other.by_name
    }
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
        let by_name = BTreeMap::deserialize(entries).map_err(|_| LedgerError::Unreadable)?;
        Ok(Ledger { entries: Arc::new(Entries { by_name, by_spelling: OnceLock::new() }) })
    }

    /// Writes the ledger as signed text.
    pub fn to_signed_text(&self, key: &[u8]) -> String {
        let entries = json!(self.entries.by_name);
        let signature = hex::encode(&mac(key, &entries).finalize().into_bytes());
        let whole = json!({"version": 1, "entries": entries, "signature": signature});
        serde_json::to_string_pretty(&whole).unwrap_or_else(|_| whole.to_string())
    }

    /// The trust state of a tool whose present definition has this digest.
    pub fn state(&self, name: &str, tool: &Tool, digest: &Digest) -> TrustState {
        match self.deciding_entry(name) {
            None => TrustState::New,
            Some(entry) if entry.digest == *digest => TrustState::Known(entry.state),
            Some(entry) => TrustState::Drifted {
                was: entry.state,
                drift: drift(&entry.seen, &SeenTool::of(tool)),
            },
        }
    }

    /// The entry that decides about a tool: its own, or that of a tool whose name callers
    /// may spell alike.
    ///
    /// Case, `_` and `-` do not matter to a caller, so a server could list a revoked tool
    /// under another spelling, and the same call would reach it. What was revoked after
    /// the tool's own entry was made counts for every spelling, and a tool without an
    /// entry is a changed one where another spelling has one.
    pub fn deciding_entry(&self, name: &str) -> Option<&Entry> {
        let own = self.get(name);
        if own.is_some_and(|own| own.state == TrustLevel::Untrusted) {
            return own;
        }
        let latest = |only_revoked: bool| {
            let others = self.spellings(name).iter().filter(|other| other.as_str() != name);
            let others = others.filter_map(|other| self.get(other));
            let counts = |entry: &&Entry| !only_revoked || entry.state == TrustLevel::Untrusted;
            others.filter(counts).max_by_key(|entry| entry.since)
        };
        let is_later = |entry: &&Entry| own.is_none_or(|own| own.since <= entry.since);
        latest(true).filter(is_later).or(own).or_else(|| latest(false))
    }

    /// The names of all entries that callers may spell as this one.
    fn spellings(&self, name: &str) -> &[String] {
        let index = self.entries.by_spelling.get_or_init(|| {
            let mut index: HashMap<String, Vec<String>> = HashMap::new();
            for name in self.entries.by_name.keys() {
                index.entry(spelling(name)).or_default().push(name.clone());
            }
            index
        });
        index.get(&spelling(name)).map_or(&[], Vec::as_slice)
    }

    /// Sets the trust level of a tool as it is defined now.
    pub fn set(&mut self, name: &str, tool: &Tool, level: TrustLevel, now: u64) {
        let entry =
            Entry { digest: Digest::of(tool), state: level, seen: SeenTool::of(tool), since: now };
        self.entries_mut().insert(name.to_owned(), entry);
    }

    /// Adds an entry from elsewhere.
    pub fn insert(&mut self, name: String, entry: Entry) {
        self.entries_mut().insert(name, entry);
    }

    /// Makes a tool untrusted, whatever its definition is; `false` if it is not known.
    pub fn revoke(&mut self, name: &str, now: u64) -> bool {
        match self.entries_mut().get_mut(name) {
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
        self.entries_mut().remove(name).is_some()
    }

    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.by_name.get(name)
    }

    fn entries_mut(&mut self) -> &mut BTreeMap<String, Entry> {
        let entries = Arc::make_mut(&mut self.entries);
        entries.by_spelling.take();
        &mut entries.by_name
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.by_name.iter().map(|(name, entry)| (name.as_str(), entry))
    }
}

/// The form of a tool's name (`upstream/tool`) that all its spellings share.
fn spelling(path: &str) -> String {
    let (label, tool) = path.split_once('/').unwrap_or(("", path));
    let (levels, function) = name::place(label, tool);
    let levels = levels.iter().chain([&function]).map(|level| name::canonical(level));
    format!("{}/{}", name::folded_name(label), levels.collect::<Vec<_>>().join("."))
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

    fn pay(name: &str) -> Tool {
        tool(name, "Pays.", &json!({"type": "object"}))
    }

    #[track_caller]
    fn check_spelling(ledger: &Ledger, name: &str, expected: Option<TrustLevel>) {
        let tool = pay(name);
        let state = match ledger.state(&format!("up/{name}"), &tool, &Digest::of(&tool)) {
            TrustState::New => None,
            TrustState::Known(level) => Some(level),
            TrustState::Drifted { was, .. } => Some(was),
        };
        assert_eq!(state, expected, "{name}");
    }

    #[test]
    fn what_was_revoked_is_revoked_under_every_spelling() {
        let mut ledger = Ledger::default();
        ledger.set("up/pay_all", &pay("pay_all"), TrustLevel::Trusted, 7);
        assert!(ledger.revoke("up/pay_all", 8));
        for name in ["pay_all", "Pay_All", "payAll", "PAY-ALL", "up.pay_all", "p_ayall", "pay all"]
        {
            check_spelling(&ledger, name, Some(TrustLevel::Untrusted));
        }
        check_spelling(&ledger, "pay_one", None);
        // Listed and vouched for before the other was revoked, then granted by itself.
        ledger.set("up/payAll", &pay("payAll"), TrustLevel::Verified, 7);
        check_spelling(&ledger, "payAll", Some(TrustLevel::Untrusted));
        ledger.set("up/payAll", &pay("payAll"), TrustLevel::Trusted, 9);
        check_spelling(&ledger, "payAll", Some(TrustLevel::Trusted));
        check_spelling(&ledger, "pay_all", Some(TrustLevel::Untrusted));
    }

    #[test]
    fn another_spelling_of_a_known_tool_is_a_changed_tool() {
        let mut ledger = Ledger::default();
        ledger.set("up/pay", &pay("pay"), TrustLevel::Trusted, 7);
        let other = pay("Pay");
        let state = ledger.state("up/Pay", &other, &Digest::of(&other));
        assert!(matches!(state, TrustState::Drifted { was: TrustLevel::Trusted, .. }), "{state:?}");
        // Two tools of one server whose names differ in that alone, both known.
        ledger.set("up/Pay", &other, TrustLevel::Verified, 8);
        let state = ledger.state("up/Pay", &other, &Digest::of(&other));
        assert_eq!(state, TrustState::Known(TrustLevel::Verified));
        // Another upstream is another matter.
        assert_eq!(ledger.state("down/pay", &other, &Digest::of(&other)), TrustState::New);
    }
}
