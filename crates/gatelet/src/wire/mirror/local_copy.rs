//! A file of this replica whose entries others have as well.

use std::path::PathBuf;

use serde_json::Value;

use super::merge::Entries;

/// A file whose entries replicas have in common.
pub(crate) trait LocalCopy: Send + Sync {
    /// What the entries are called in the store.
    fn name(&self) -> &'static str;

    fn file(&self) -> PathBuf;

    fn read(&self) -> Result<Entries, String>;

    /// Changes the entries while nobody else does.
    fn change(&self, change: &mut (dyn FnMut(&mut Entries) + Send)) -> Result<(), String>;

    /// Which of two states of one entry stays; `None` is one that is not there.
    fn stricter<'a>(&self, one: Option<&'a Value>, other: Option<&'a Value>) -> Option<&'a Value>;
}
