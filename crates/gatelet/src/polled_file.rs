//! Notices whether a file that other processes change has changed since it was last read.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::file::{Stamp, stamp};

/// How long one check of the file is good, so that a burst of calls checks it once.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// A file that is checked for changes whenever it is needed.
pub(crate) struct PolledFile {
    file: PathBuf,
    /// When the file was last checked, and its time stamp and size then.
    last: Option<(Instant, Stamp)>,
}

impl PolledFile {
    pub(crate) fn at(file: PathBuf) -> PolledFile {
        PolledFile { file, last: None }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the file has changed since the last call; true the first time.
    pub(crate) fn has_changed(&mut self) -> bool {
        let now = Instant::now();
        if let Some((checked, _)) = self.last
            && now.duration_since(checked) < CHECK_EVERY
        {
            return false;
        }
        let seen = stamp(&self.file);
        let before = self.last.replace((now, seen));
        before.is_none_or(|(_, before)| before != seen)
    }

    /// Makes the next [`PolledFile::has_changed`] return true.
    pub(crate) fn mark_changed(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_due_once_until_it_changes_or_is_asked_for_again() {
        let home = tempfile::tempdir().unwrap();
        let mut file_state = PolledFile::at(home.path().join("f"));
        assert!(file_state.has_changed(), "it was never read");
        assert!(!file_state.has_changed());
        file_state.mark_changed();
        assert!(file_state.has_changed());
        std::fs::write(file_state.file(), "now it is there").unwrap();
        let looked = file_state.last.as_mut().unwrap();
        looked.0 = looked.0.checked_sub(CHECK_EVERY).unwrap();
        assert!(file_state.has_changed(), "it has changed");
        assert!(!file_state.has_changed());
    }
}
