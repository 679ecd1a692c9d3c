//! State that all replicas have in common: the store has one copy, the state
//! directory of each replica another.
//!
//! Whoever decides about a call reads the files of its own machine, as it does
//! without a store, so a call waits for nobody, and what was known last holds while
//! the store is away. A change of a file, by this replica or by a command, goes to
//! the store; a change there comes to the file. Changes of two replicas are merged
//! entry by entry, and where both changed one entry the stricter one stays
//! ([`merge`]).

mod keys;
mod ledger;
mod local_copy;
mod merge;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde::{Deserialize, Serialize};
use store::document::{DocumentError, IfDamaged, JsonDocument};
use store::files::Files;
use store::state::{Change, Documents, StateError, change};

use super::seal::{Forged, Seal};
use crate::changed_file::ChangedFile;
use merge::{Entries, merge};

pub(crate) use keys::KeyFile;
pub(crate) use ledger::LedgerEntries;
pub(crate) use local_copy::LocalCopy;

/// How long one look at the store may take.
const WITHIN: Duration = Duration::from_secs(2);
/// How often the file is looked at for changes of this machine.
const LOOK: Duration = Duration::from_millis(200);
/// How often the store is looked at when it tells of nothing: a message may be lost.
const POLL: Duration = Duration::from_secs(5);
/// How long nothing is tried after a failure.
const PAUSE: Duration = Duration::from_millis(500);

/// The entries as they are in the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Note {
    /// Grows with every change. A store that has a smaller one has lost changes.
    revision: u64,
    entries: Entries,
}

/// Why a copy cannot be brought in line now. One variant per remedy.
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

/// Keeps one file and the store in line.
pub(crate) struct Mirror {
    copy: Arc<dyn LocalCopy>,
    documents: Arc<dyn Documents>,
    seal: Seal,
    /// What both were when they were last in line, over restarts.
    base: JsonDocument<Note>,
}

impl Mirror {
    pub(crate) fn new(
        copy: Arc<dyn LocalCopy>,
        documents: Arc<dyn Documents>,
        seal: Seal,
        state: &Path,
    ) -> Mirror {
        let files = Arc::new(Files::at(&state.join("shared")));
        let base = JsonDocument::new(files, copy.name(), IfDamaged::StartOver);
        Mirror { copy, documents, seal, base }
    }

    /// Brings file and store in line once, as far as the store answers.
    pub(crate) async fn begin(&self) {
        if let Err(error) = self.align().await {
            let name = self.copy.name();
            tracing::warn!(name, %error, "what this replica knew last holds");
        }
    }

    /// Keeps them in line until dropped.
    pub(crate) async fn keep(self) {
        let mut told = self.documents.watch(self.copy.name());
        let mut file = ChangedFile::at(self.copy.file());
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
            // Our own change of the file is seen once; there is nothing to do then.
            let changed_here = async {
                while !file.is_due() {
                    tokio::time::sleep(LOOK).await;
                }
            };
            let waited = async {
                tokio::select! {
                    () = changed_here => {}
                    Some(()) = told.next() => {}
                }
            };
            let _ = tokio::time::timeout(POLL, waited).await;
        }
    }

    async fn align(&self) -> Result<(), MirrorError> {
        let base = self.base.read().await?;
        let copy = Arc::clone(&self.copy);
        let ours = aside(move || copy.read()).await?;
        let mut after = Note::default();
        let decide = |before: Option<&[u8]>| -> Result<Change, MirrorError> {
            let theirs = self.parse(before)?;
            after = self.merged(&base, &ours, &theirs);
            if after == theirs {
                return Ok(Change::Keep);
            }
            let note = serde_json::to_vec(&after)?;
            Ok(Change::Replace(self.seal.close(self.copy.name(), &note).into()))
        };
        change(&*self.documents, self.copy.name(), WITHIN, decide).await?;
        if after.entries != ours {
            self.apply(ours, after.entries.clone()).await?;
        }
        if after != base {
            self.base.change(|base| base.clone_from(&after)).await?;
        }
        Ok(())
    }

    fn parse(&self, sealed: Option<&[u8]>) -> Result<Note, MirrorError> {
        let Some(sealed) = sealed else { return Ok(Note::default()) };
        Ok(serde_json::from_slice(self.seal.open(self.copy.name(), sealed)?)?)
    }

    fn merged(&self, base: &Note, ours: &Entries, theirs: &Note) -> Note {
        // A store that lost changes has not taken anything back: nothing is known to
        // have been the same before.
        let is_lost = theirs.revision < base.revision
            || (theirs.revision == base.revision && theirs.entries != base.entries);
        let nothing = Entries::new();
        let before = if is_lost { &nothing } else { &base.entries };
        let entries =
            merge(before, ours, &theirs.entries, |one, other| self.copy.stricter(one, other));
        match entries == theirs.entries && !is_lost {
            true => theirs.clone(),
            false => Note { revision: base.revision.max(theirs.revision) + 1, entries },
        }
    }

    /// Writes what was merged, except where the file changed meanwhile.
    async fn apply(&self, ours: Entries, merged: Entries) -> Result<(), MirrorError> {
        let copy = Arc::clone(&self.copy);
        aside(move || {
            copy.change(&mut |now| {
                *now = merge(&ours, now, &merged, |one, other| copy.stricter(one, other));
            })
        })
        .await
    }
}

/// Does what waits for a disk or a lock where nobody else waits.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, MirrorError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(error.to_string())).map_err(MirrorError::Local)
}

#[cfg(test)]
mod tests;
