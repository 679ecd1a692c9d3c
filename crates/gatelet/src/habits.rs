//! What searches learnt from use, on disk: a file that a person can read.
//!
//! Several gates may share one state directory. Whoever writes holds a lock,
//! reads what the others wrote, adds its own and replaces the file, so nothing
//! is overwritten. A call that is noted does not wait for any of this: notes are
//! written by a thread beside the calls, and searches of this process know them
//! at once. The file is read again whenever it has changed, so that a gate that
//! runs forgets what `gatelet habits forget` erased.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context;
use catalog::habits::Habits;
use gateway::learning::Notebook;
use store::file::Alone;

use crate::secret;
use crate::stamp::{Stamp, stamp};

/// The habits of a state directory.
pub(crate) struct File {
    path: PathBuf,
    known: Arc<Mutex<Known>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What this process knows.
#[derive(Default)]
struct Known {
    /// When and how long the file was when it was last read or written.
    stamp: Stamp,
    /// What it held then, and what was noted since.
    habits: Arc<Habits>,
    /// What is not in the file yet, oldest first.
    unwritten: Vec<Note>,
    is_writing: bool,
}

/// One choice that was made.
struct Note {
    query: String,
    tool: String,
    day: u32,
}

/// The most notes that wait for a disk that does not answer.
const MOST_UNWRITTEN: usize = 10_000;

impl File {
    pub(crate) fn at(state: &Path) -> File {
        File { path: state.join("habits.json"), known: Arc::default(), writer: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is known now; nothing when there is no file.
    pub(crate) fn load(&self) -> anyhow::Result<Arc<Habits>> {
        let mut known = lock(&self.known);
        let stamp = stamp(&self.path);
        if known.stamp != stamp {
            let mut habits = read(&self.path)?;
            known.unwritten.iter().for_each(|note| note.enter(&mut habits));
            (known.stamp, known.habits) = (stamp, Arc::new(habits));
        }
        Ok(Arc::clone(&known.habits))
    }

    /// Changes what the file holds, while nobody else does.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Habits)) -> anyhow::Result<()> {
        rewrite(&self.path, change).map(drop)
    }

    /// Forgets everything, whatever is in the file.
    pub(crate) fn erase(&self) -> anyhow::Result<()> {
        let _alone = Alone::with(&self.path)?;
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove `{}`", self.path.display()))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Waits until everything that was noted is in the file.
    pub(crate) fn flush(&self) {
        let writer = lock(&self.writer).take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::warn!("habits were not written: their writer stopped");
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

    fn note(&self, query: &str, tool: &str, day: u32) {
        let note = Note { query: query.to_owned(), tool: tool.to_owned(), day };
        let mut known = lock(&self.known);
        note.enter(Arc::make_mut(&mut known.habits));
        if known.unwritten.len() < MOST_UNWRITTEN {
            known.unwritten.push(note);
        }
        if known.is_writing {
            return;
        }
        known.is_writing = true;
        drop(known);
        let (path, known) = (self.path.clone(), Arc::clone(&self.known));
        let writer = std::thread::Builder::new()
            .name("habits".to_owned())
            .spawn(move || write_all(&path, &known));
        match writer {
            Ok(writer) => *lock(&self.writer) = Some(writer),
            Err(error) => {
                lock(&self.known).is_writing = false;
                tracing::warn!(%error, "a habit is not written yet");
            }
        }
    }
}

impl Note {
    fn enter(&self, habits: &mut Habits) {
        habits.note(&self.query, &self.tool, self.day);
    }
}

/// Writes until nothing is left to write.
fn write_all(path: &Path, known: &Mutex<Known>) {
    loop {
        let notes = {
            let mut known = lock(known);
            if known.unwritten.is_empty() {
                known.is_writing = false;
                return;
            }
            std::mem::take(&mut known.unwritten)
        };
        let written = rewrite(path, |habits| notes.iter().for_each(|note| note.enter(habits)));
        let mut known = lock(known);
        match written {
            Ok((stamp, mut habits)) => {
                known.unwritten.iter().for_each(|note| note.enter(&mut habits));
                (known.stamp, known.habits) = (stamp, Arc::new(habits));
            }
            Err(error) => {
                // Whatever is in the way, it is in the way of the next note too.
                known.is_writing = false;
                let (error, lost) = (format!("{error:#}"), notes.len());
                tracing::warn!(error, lost, "habits were not noted");
                return;
            }
        }
    }
}

/// Reads, changes and replaces the file as one step.
fn rewrite(path: &Path, change: impl FnOnce(&mut Habits)) -> anyhow::Result<(Stamp, Habits)> {
    let _alone = Alone::with(path)?;
    let mut habits = read(path)?;
    change(&mut habits);
    secret::write(path, &serde_json::to_string_pretty(&habits)?)?;
    Ok((stamp(path), habits))
}

fn read(path: &Path) -> anyhow::Result<Habits> {
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Habits::default());
        }
        text => text.with_context(|| format!("cannot read `{shown}`"))?,
    };
    serde_json::from_str(&text).with_context(|| {
        format!("`{shown}` holds no habits; `gatelet habits forget --all` starts over")
    })
}

/// Nothing that is kept under these locks is half done when somebody panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_known_at_once_and_on_disk_soon() {
        let state = tempfile::tempdir().unwrap();
        let file = File::at(state.path());
        assert!(file.read().is_empty());
        file.note("save a note", "one/save", 1);
        assert!(!file.read().is_empty());
        file.flush();
        assert_eq!(File::at(state.path()).read(), file.read());
    }

    #[test]
    fn what_is_erased_behind_our_back_is_forgotten() {
        let state = tempfile::tempdir().unwrap();
        let file = File::at(state.path());
        file.note("save a note", "one/save", 1);
        file.flush();
        File::at(state.path()).erase().unwrap();
        assert!(file.read().is_empty());
        file.note("save a note", "two/save", 1);
        file.flush();
        assert!(!format!("{:?}", file.read()).contains("one/save"));
    }

    /// Each is a gate of its own: they share nothing but the directory.
    #[test]
    fn nothing_is_lost_when_several_gates_note_at_once() {
        let state = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for gate in 0..4 {
                let file = File::at(state.path());
                scope.spawn(move || {
                    for _ in 0..10 {
                        file.note("parcel", &format!("gate{gate}/ship"), 1);
                    }
                    file.flush();
                });
            }
        });
        let habits = File::at(state.path()).load().unwrap();
        let (_, choices) = habits.iter().next().unwrap();
        let times: Vec<f32> = choices.values().map(|choice| choice.times).collect();
        assert_eq!(times, [10.0; 4]);
    }

    #[test]
    fn a_file_that_holds_something_else_is_left_alone() {
        let state = tempfile::tempdir().unwrap();
        let file = File::at(state.path());
        std::fs::write(file.path(), "no habits").unwrap();
        file.note("save a note", "one/save", 1);
        file.flush();
        assert!(file.read().is_empty());
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "no habits");
        assert!(format!("{:#}", file.load().unwrap_err()).contains("habits forget --all"));
    }
}
