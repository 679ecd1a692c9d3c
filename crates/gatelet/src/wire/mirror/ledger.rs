//! The trust ledger as entries that replicas merge, one per tool. Trust that was revoked
//! at one replica stays revoked until it is granted anew by a replica that has the
//! revocation.

use std::path::PathBuf;

use policy::trust::{Entry, LedgerStore};
use serde::Deserialize;
use serde_json::Value;

use super::local_copy::LocalCopy;
use super::merge::Entries;
use crate::ledger_file::LedgerFile;

/// The entries of the ledger of a state directory. Each replica signs its own file.
pub(crate) struct LedgerEntries {
    store: LedgerFile,
    file: PathBuf,
}

impl LedgerEntries {
    pub(crate) fn at(state: &std::path::Path) -> LedgerEntries {
        LedgerEntries { store: LedgerFile::at(state), file: LedgerFile::file(state) }
    }
}

impl LocalCopy for LedgerEntries {
    fn name(&self) -> &'static str {
        "ledger"
    }

    fn file(&self) -> PathBuf {
        self.file.clone()
    }

    fn read(&self) -> Result<Entries, String> {
        let ledger = self.store.read().map_err(|error| error.to_string())?;
        Ok(entries(&ledger))
    }

    fn change(&self, change: &mut (dyn FnMut(&mut Entries) + Send)) -> Result<(), String> {
        let changed = self.store.change(&mut |ledger| {
            let before = entries(ledger);
            let mut after = before.clone();
            change(&mut after);
            for name in before.keys().filter(|name| !after.contains_key(*name)) {
                ledger.forget(name);
            }
            for (name, entry) in after {
                if before.get(&name) == Some(&entry) {
                    continue;
                }
                // An entry that does not parse is of a later release, and is left out.
                if let Ok(entry) = Entry::deserialize(entry) {
                    ledger.insert(name, entry);
                }
            }
        });
        changed.map(drop).map_err(|error| error.to_string())
    }

    fn stricter<'a>(&self, one: Option<&'a Value>, other: Option<&'a Value>) -> Option<&'a Value> {
        let has = |entry: &Value, level: &str| entry.get("state").is_some_and(|it| it == level);
        let is_revoked = |entry: &Value| has(entry, "untrusted");
        let is_trusted = |entry: &Value| has(entry, "trusted");
        let since = |entry: &Value| entry.get("since").and_then(Value::as_u64).unwrap_or(0);
        match (one, other) {
            (Some(entry), None) | (None, Some(entry)) => {
                Some(entry).filter(|entry| is_revoked(entry))
            }
            (None, None) => None,
            (Some(one), Some(other)) => match (is_revoked(one), is_revoked(other)) {
                (true, false) => Some(one),
                (false, true) => Some(other),
                (true, true) | (false, false) => {
                    // A replica notes a tool by itself when it first lists it, perhaps
                    // while somebody grants just this tool at another one: the grant stays.
                    let is_same = one.get("digest") == other.get("digest");
                    let order = |entry: &Value| {
                        (is_same && is_trusted(entry), since(entry), entry.to_string())
                    };
                    Some(if order(other) <= order(one) { one } else { other })
                }
            },
        }
    }
}

fn entries(ledger: &policy::trust::Ledger) -> Entries {
    let entry = |(name, entry): (&str, &Entry)| {
        (name.to_owned(), serde_json::to_value(entry).unwrap_or_default())
    };
    ledger.iter().map(entry).collect()
}
