//! Whether a file that others may change has changed since it was last read.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::file::{Stamp, stamp};

/// How long a look is good. What an operator changes is felt by the next call
/// of a human, and a burst of calls looks at the file once.
const FRESH: Duration = Duration::from_millis(20);

/// A file that every call depends on.
pub(crate) struct Glance {
    file: PathBuf,
    /// The last look, and what was seen.
    last: Option<(Instant, Stamp)>,
}

impl Glance {
    pub(crate) fn at(file: PathBuf) -> Glance {
        Glance { file, last: None }
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
    pub(crate) fn again(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_due_once_until_it_changes_or_is_asked_for_again() {
        let home = tempfile::tempdir().unwrap();
        let mut glance = Glance::at(home.path().join("f"));
        assert!(glance.is_due(), "it was never read");
        assert!(!glance.is_due());
        glance.again();
        assert!(glance.is_due());
        std::fs::write(glance.file(), "now it is there").unwrap();
        let looked = glance.last.as_mut().unwrap();
        looked.0 = looked.0.checked_sub(FRESH).unwrap();
        assert!(glance.is_due(), "it has changed");
        assert!(!glance.is_due());
    }
}
