//! Listings and revisions, remembered in a directory.

use std::path::{Path, PathBuf};

use gateway::roster::Shelf;
use store::file::{Safety, replace};

/// A directory with one file per name.
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub(super) fn new(path: &Path) -> Directory {
        Directory { path: path.to_owned() }
    }
}

impl Shelf for Directory {
    fn load(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path.join(name)).ok()
    }

    fn save(&self, name: &str, text: &[u8]) {
        if self.load(name).as_deref() == Some(text) {
            return;
        }
        if let Err(error) = replace(&self.path.join(name), text, Safety::Unsynced) {
            tracing::warn!(directory = %self.path.display(), %error, "cannot remember a listing");
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
        assert_eq!(Directory::new(&path).load("a"), None);
        Directory::new(&path).save("a", b"one");
        Directory::new(&path).save("a", b"two");
        assert_eq!(Directory::new(&path).load("a").as_deref(), Some(b"two".as_slice()));
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_cannot_be_written_loses_nothing_else() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let shelf = Directory::new(&file.path().join("below"));
        shelf.save("a", b"one");
        assert_eq!(shelf.load("a"), None);
    }
}
