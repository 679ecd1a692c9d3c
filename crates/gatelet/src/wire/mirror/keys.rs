//! The API keys as entries that replicas merge, by the hashes of the keys. A key that was
//! revoked at one replica stays revoked.

use std::path::PathBuf;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use web::identity::key::{Key, KeyRing};

use super::local_copy::LocalCopy;
use super::merge::Entries;
use crate::key_file;

/// The keys of the state directory that it holds.
pub(crate) struct KeyFile(pub(crate) PathBuf);

impl LocalCopy for KeyFile {
    fn name(&self) -> &'static str {
        "keys"
    }

    fn file(&self) -> PathBuf {
        key_file::file(&self.0)
    }

    fn read(&self) -> Result<Entries, String> {
        let ring = key_file::load(&self.file()).map_err(|error| format!("{error:#}"))?;
        Ok(entries(&ring))
    }

    fn change(&self, change: &mut (dyn FnMut(&mut Entries) + Send)) -> Result<(), String> {
        let change = Mutex::new(change);
        let changed = key_file::change(&self.0, |ring| {
            let mut after = entries(ring);
            change.lock()(&mut after);
            ring.keys = after.into_values().filter_map(|key| Key::deserialize(key).ok()).collect();
            // In the order in which they were created, as listings show them.
            ring.keys.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
            Ok(())
        });
        changed.map_err(|error| format!("{error:#}"))
    }

    fn stricter<'a>(&self, one: Option<&'a Value>, other: Option<&'a Value>) -> Option<&'a Value> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        let is_revoked = |key: &Value| key.get("revoked").is_some_and(Value::is_number);
        match (is_revoked(one), is_revoked(other)) {
            (true, false) => Some(one),
            (false, true) => Some(other),
            // Either will do, as long as every replica takes the same.
            (true, true) | (false, false) => {
                [one, other].into_iter().min_by_key(|key| key.to_string())
            }
        }
    }
}

fn entries(ring: &KeyRing) -> Entries {
    let entry = |key: &Key| (key.hash.clone(), serde_json::to_value(key).unwrap_or_default());
    ring.keys.iter().map(entry).collect()
}
