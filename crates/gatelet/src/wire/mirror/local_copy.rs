//! What a mirror needs to know of a local file whose entries all replicas share.

use std::path::PathBuf;

use serde_json::Value;

use super::merge::Entries;

/// A file of the state directory whose entries are the same at all replicas.
pub(crate) trait LocalCopy: Send + Sync {
    /// The name of the copy in the store.
    fn name(&self) -> &'static str;

    fn file(&self) -> PathBuf;

    /// Whether changes have to be known to all replicas at once.
    fn is_urgent(&self) -> bool {
        true
    }

    fn read(&self) -> Result<Entries, String>;

    /// Changes the entries under a lock.
    fn change(&self, change: &mut (dyn FnMut(&mut Entries) + Send)) -> Result<(), String>;

    /// The version of an entry that wins where two replicas changed it; `None` stands
    /// for a deleted entry.
    fn stricter<'a>(&self, one: Option<&'a Value>, other: Option<&'a Value>) -> Option<&'a Value>;
}
