//! Listings and revisions, remembered in a directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use roster::ListingStore;
use store::clock::System;
use store::files::{Files, Limits};
use store::state::{Change, Documents, StateError, change, wait};

/// How long a look at a file may take.
const WITHIN: Duration = Duration::from_secs(5);

/// A directory with one file per name.
pub(super) struct ListingDirectory {
    documents: Files,
}

impl ListingDirectory {
    pub(super) fn new(path: &Path) -> ListingDirectory {
        // What is lost is asked for again.
        let documents = Files::unsynced(path, Arc::new(System::start()), Limits::default());
        ListingDirectory { documents }
    }
}

impl ListingStore for ListingDirectory {
    fn load(&self, name: &str) -> Option<Vec<u8>> {
        let found = wait(self.documents.read(name, WITHIN)).ok()??;
        Some(found.bytes.into())
    }

    fn save(&self, name: &str, text: &[u8]) {
        let replace = |before: Option<&[u8]>| -> Result<Change, StateError> {
            Ok(match before == Some(text) {
                true => Change::Keep,
                false => Change::Replace(text.to_vec().into()),
            })
        };
        if let Err(error) = wait(change(&self.documents, name, WITHIN, replace)) {
            let directory = self.documents.path().display();
            tracing::warn!(%directory, %error, "cannot remember a listing");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_there_in_the_next_run() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("listings");
        assert_eq!(ListingDirectory::new(&path).load("a"), None);
        ListingDirectory::new(&path).save("a", b"one");
        ListingDirectory::new(&path).save("a", b"two");
        assert_eq!(ListingDirectory::new(&path).load("a").as_deref(), Some(b"two".as_slice()));
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_cannot_be_written_loses_nothing_else() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let listings = ListingDirectory::new(&file.path().join("below"));
        listings.save("a", b"one");
        assert_eq!(listings.load("a"), None);
    }
}
