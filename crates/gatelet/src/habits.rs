//! What searches learnt from use, on disk: a file that a person can read.
//!
//! The file is read again whenever it has changed, so that a gate that runs
//! forgets what `gatelet habits forget` erased.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use catalog::habits::Habits;
use gateway::learning::Notebook;

use crate::secret;
use crate::stamp::{Stamp, stamp};

/// The habits of a state directory.
pub(crate) struct File {
    path: PathBuf,
    /// What was read or written last, and when and how long the file was then.
    last: Mutex<(Stamp, Arc<Habits>)>,
}

impl File {
    pub(crate) fn at(state: &Path) -> File {
        File { path: state.join("habits.json"), last: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is known now; nothing when there is no file.
    pub(crate) fn load(&self) -> anyhow::Result<Arc<Habits>> {
        let mut last = self.last.lock().expect("nothing panics while it holds this");
        let stamp = stamp(&self.path);
        if last.0 != stamp {
            let habits = match stamp {
                None => Habits::default(),
                Some(_) => {
                    let text = std::fs::read_to_string(&self.path)
                        .with_context(|| format!("cannot read `{}`", self.path.display()))?;
                    serde_json::from_str(&text).with_context(|| {
                        let path = self.path.display();
                        format!(
                            "`{path}` holds no habits; `gatelet habits forget --all` starts over"
                        )
                    })?
                }
            };
            *last = (stamp, Arc::new(habits));
        }
        Ok(Arc::clone(&last.1))
    }

    pub(crate) fn save(&self, habits: &Habits) -> anyhow::Result<()> {
        secret::write(&self.path, &serde_json::to_string_pretty(habits)?)?;
        let mut last = self.last.lock().expect("nothing panics while it holds this");
        *last = (stamp(&self.path), Arc::new(habits.clone()));
        Ok(())
    }

    /// Forgets everything, whatever is in the file.
    pub(crate) fn erase(&self) -> anyhow::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove `{}`", self.path.display()))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Notebook for File {
    fn read(&self) -> Arc<Habits> {
        self.load().unwrap_or_else(|error| {
            tracing::warn!(error = format!("{error:#}"), "searches have no habits to go by");
            Arc::default()
        })
    }

    /// One small file is written; only who switched learning on pays for it.
    fn note(&self, query: &str, tool: &str, day: u32) {
        let noted = self.load().and_then(|habits| {
            let mut habits = (*habits).clone();
            habits.note(query, tool, day);
            self.save(&habits)
        });
        if let Err(error) = noted {
            tracing::warn!(error = format!("{error:#}"), "a habit was not noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_back_and_can_be_erased_behind_our_back() {
        let state = tempfile::tempdir().unwrap();
        let file = File::at(state.path());
        assert!(file.read().is_empty());
        file.note("save a note", "one/save", 1);
        assert_eq!(File::at(state.path()).read(), file.read());
        assert!(!file.read().is_empty());
        File::at(state.path()).erase().unwrap();
        assert!(file.read().is_empty());
        file.note("save a note", "two/save", 1);
        assert!(!format!("{:?}", file.read()).contains("one/save"));
    }

    #[test]
    fn a_file_that_holds_something_else_is_left_alone() {
        let state = tempfile::tempdir().unwrap();
        let file = File::at(state.path());
        std::fs::write(file.path(), "no habits").unwrap();
        file.note("save a note", "one/save", 1);
        assert!(file.read().is_empty());
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "no habits");
        assert!(format!("{:#}", file.load().unwrap_err()).contains("habits forget --all"));
    }
}
