//! Keeps API keys, the trust ledger and what searches learned the same at all replicas:
//! each has them in a file of its state directory, and the shared store has one more copy.
//!
//! A decision about a call reads only the local file, so it never waits for the store,
//! and the last state holds while the store is away. A local change, by this replica or
//! by a command, goes to the store; a change in the store comes to the file. Changes of
//! two replicas are merged entry by entry, and where both changed the same entry the
//! stricter version wins ([`merge`]).

mod keys;
mod ledger;
mod local_copy;
mod merge;
mod usage;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use store::document::{DocumentError, IfDamaged, JsonDocument};
use store::files::Files;
use store::state::{Change, Documents, StateError, change};

use super::signer::{Forged, Signer};
use crate::polled_file::PolledFile;
use crate::usage_file::UsageFile;
use keys::KeyFile;
use ledger::LedgerEntries;
use local_copy::LocalCopy;
use merge::{Entries, merge};
use usage::UsageEntries;

/// How long one operation of the store may take.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the local file is checked for changes.
const FILE_POLL: Duration = Duration::from_millis(200);
/// The same for what changes with every search.
const LAZY_POLL: Duration = Duration::from_secs(5);
/// How often the store is read though it announced no change: a message may be lost.
const STORE_POLL: Duration = Duration::from_secs(5);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(500);

/// All entries as they are in the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct StoredEntries {
    /// Grows with every change. A store with a smaller one has lost changes.
    revision: u64,
    entries: Entries,
}

/// Why file and store cannot be aligned now. One variant per remedy.
#[derive(Debug, thiserror::Error)]
enum MirrorError {
    #[error(transparent)]
    Store(#[from] StateError),
    #[error(transparent)]
    Forged(#[from] Forged),
    #[error("it cannot be read: {0}")]
    Damaged(#[from] serde_json::Error),
    #[error("{0}")]
    Local(String),
}

impl From<DocumentError> for MirrorError {
    fn from(error: DocumentError) -> MirrorError {
        MirrorError::Local(error.to_string())
    }
}

/// Keeps one local file and its copy in the store aligned.
pub(super) struct Mirror {
    copy: Arc<dyn LocalCopy>,
    documents: Arc<dyn Documents>,
    signer: Signer,
    /// What both held when they were last aligned, also over restarts.
    base: JsonDocument<StoredEntries>,
}

/// One mirror for each file of the state directory that replicas have in common.
pub(super) fn all(state: &Path, documents: &Arc<dyn Documents>, signer: &Signer) -> [Mirror; 3] {
    let mirror =
        |copy: Arc<dyn LocalCopy>| Mirror::new(copy, Arc::clone(documents), signer.clone(), state);
    let keys = KeyFile(state.to_owned());
    let usage = UsageEntries(UsageFile::at(state));
    [mirror(Arc::new(keys)), mirror(Arc::new(LedgerEntries::at(state))), mirror(Arc::new(usage))]
}

impl Mirror {
    fn new(
        copy: Arc<dyn LocalCopy>,
        documents: Arc<dyn Documents>,
        signer: Signer,
        state: &Path,
    ) -> Mirror {
        let files = Arc::new(Files::at(&state.join("shared")));
        let base = JsonDocument::new(files, copy.name(), IfDamaged::StartOver);
        Mirror { copy, documents, signer, base }
    }

    /// Aligns file and store once. A store that does not answer is logged.
    pub(super) async fn align_once(&self) {
        if let Err(error) = self.align().await {
            let name = self.copy.name();
            tracing::warn!(name, %error, "what this replica knew last holds");
        }
    }

    /// Aligns file and store whenever one of them changes, until dropped.
    pub(super) async fn keep_aligned(self) {
        let mut store_changes = self.documents.watch(self.copy.name());
        let mut file = PolledFile::at(self.copy.file());
        let poll = if self.copy.is_urgent() { FILE_POLL } else { LAZY_POLL };
        let mut was_aligned = true;
        loop {
            match self.align().await {
                Ok(()) => was_aligned = true,
                Err(error) => {
                    if std::mem::take(&mut was_aligned) {
                        let name = self.copy.name();
                        tracing::warn!(name, %error, "what this replica knew last holds");
                    }
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            }
            // Our own change of the file ends the wait once more; that does no harm.
            let file_changed = async {
                while !file.has_changed() {
                    tokio::time::sleep(poll).await;
                }
            };
            let changed = async {
                tokio::select! {
                    () = file_changed => {}
                    Some(()) = store_changes.next() => {}
                }
            };
            let _ = tokio::time::timeout(STORE_POLL.max(poll), changed).await;
            if !self.copy.is_urgent() {
                // Our own changes and those of many others are one.
                tokio::time::sleep(LAZY_POLL).await;
            }
        }
    }

    async fn align(&self) -> Result<(), MirrorError> {
        let base = self.base.read().await?;
        let copy = Arc::clone(&self.copy);
        let ours = run_blocking(move || copy.read()).await?;
        let mut after = StoredEntries::default();
        let decide = |before: Option<&[u8]>| -> Result<Change, MirrorError> {
            let theirs = self.parse(before)?;
            after = self.merged(&base, &ours, &theirs);
            if after == theirs {
                return Ok(Change::Keep);
            }
            let text = serde_json::to_vec(&after)?;
            Ok(Change::Replace(self.signer.sign(self.copy.name(), &text).into()))
        };
        change(&*self.documents, self.copy.name(), STORE_TIMEOUT, decide).await?;
        if after.entries != ours {
            self.write_file(ours, after.entries.clone()).await?;
        }
        if after != base {
            self.base.change(|base| base.clone_from(&after)).await?;
        }
        Ok(())
    }

    fn parse(&self, signed: Option<&[u8]>) -> Result<StoredEntries, MirrorError> {
        let Some(signed) = signed else { return Ok(StoredEntries::default()) };
        Ok(serde_json::from_slice(self.signer.verify(self.copy.name(), signed)?)?)
    }

    fn merged(
        &self,
        base: &StoredEntries,
        ours: &Entries,
        theirs: &StoredEntries,
    ) -> StoredEntries {
        // An entry that is missing from a store that lost changes was not deleted, so
        // the base does not count.
        let is_lost = theirs.revision < base.revision
            || (theirs.revision == base.revision && theirs.entries != base.entries);
        let nothing = Entries::new();
        let before = if is_lost { &nothing } else { &base.entries };
        let entries =
            merge(before, ours, &theirs.entries, |one, other| self.copy.stricter(one, other));
        match entries == theirs.entries && !is_lost {
            true => theirs.clone(),
            false => StoredEntries { revision: base.revision.max(theirs.revision) + 1, entries },
        }
    }

    /// Writes the merged entries into the file. Entries that were changed there since
    /// `ours` was read are merged once more.
    async fn write_file(&self, ours: Entries, merged: Entries) -> Result<(), MirrorError> {
        let copy = Arc::clone(&self.copy);
        run_blocking(move || {
            copy.change(&mut |now| {
                *now = merge(&ours, now, &merged, |one, other| copy.stricter(one, other));
            })
        })
        .await
    }
}

/// Runs work that waits for a disk or a lock on a thread for blocking work.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, MirrorError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(error.to_string())).map_err(MirrorError::Local)
}

#[cfg(test)]
mod tests;
