//! Whether a file that others may change has changed since it was last read.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::file::{Stamp, stamp};

/// How long a look is good. What an operator changes is felt by the next call
/// of a human, and a burst of calls looks at the file once.
const FRESH: Duration = Duration::from_millis(20);

/// A file that every call depends on.
pub(crate) struct ChangedFile {
    file: PathBuf,
    /// The last look, and what was seen.
    last: Option<(Instant, Stamp)>,
}

impl ChangedFile {
    pub(crate) fn at(file: PathBuf) -> ChangedFile {
        ChangedFile { file, last: None }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the file has to be read: it has changed, or never was.
    pub(crate) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        if let Some((looked, _)) = self.last
            && now.duration_since(looked) < FRESH
        {
            return false;
        }
        let seen = stamp(&self.file);
        let before = self.last.replace((now, seen));
        before.is_none_or(|(_, before)| before != seen)
    }

    /// Has the next look find the file due, whatever it looks like.
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
        let mut file_state = ChangedFile::at(home.path().join("f"));
        assert!(file_state.is_due(), "it was never read");
        assert!(!file_state.is_due());
        file_state.mark_changed();
        assert!(file_state.is_due());
        std::fs::write(file_state.file(), "now it is there").unwrap();
        let looked = file_state.last.as_mut().unwrap();
        looked.0 = looked.0.checked_sub(FRESH).unwrap();
        assert!(file_state.is_due(), "it has changed");
        assert!(!file_state.is_due());
    }
}
