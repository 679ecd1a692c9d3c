//! What searches learnt from use, on disk: a file that a person can read.
//!
//! Several gatelets may share one state directory; each adds to what the others
//! wrote, so nothing is overwritten. A call that is noted does not wait for any of this: notes are
//! written by a thread beside the calls, and searches of this process know them
//! at once. The file is read again whenever it has changed, so that a gatelet that
//! runs forgets what `gatelet habits forget` erased.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use catalog::usage::UsageHistory;
use gateway::learning::UsageStore;
use store::document::{DocumentError, IfDamaged, JsonDocument};
use store::file::{Stamp, stamp};
use store::files::Files;
use store::state::wait;

/// The habits of a state directory.
pub(crate) struct UsageFile {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What the file has in common with the thread that writes it.
struct Shared {
    path: PathBuf,
    document: JsonDocument<UsageHistory>,
    known: Mutex<Cached>,
}

/// What this process knows.
#[derive(Default)]
struct Cached {
    /// When and how long the file was when it was last read or written.
    stamp: Stamp,
    /// What it held then, and what was noted since.
    habits: Arc<UsageHistory>,
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

/// The file's name.
const NAME: &str = "habits.json";

/// The most notes that wait for a disk that does not answer.
const MOST_UNWRITTEN: usize = 10_000;

impl UsageFile {
    pub(crate) fn at(state: &Path) -> UsageFile {
        let document = JsonDocument::new(Arc::new(Files::at(state)), NAME, IfDamaged::Fail);
        let (known, writer) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { path: state.join(NAME), document, known });
        UsageFile { shared, writer }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// What is known now; nothing when there is no file.
    pub(crate) fn load(&self) -> anyhow::Result<Arc<UsageHistory>> {
        self.shared.load()
    }

    /// Changes what the file holds, while nobody else does.
    pub(crate) fn change(
        &self,
        change: impl FnMut(&mut UsageHistory) + Send,
    ) -> anyhow::Result<()> {
        wait(self.shared.document.change(change)).map(drop).map_err(explain(self.path()))
    }

    /// Forgets everything, whatever is in the file.
    pub(crate) fn erase(&self) -> anyhow::Result<()> {
        Ok(wait(self.shared.document.clear())?)
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

impl Shared {
    fn load(&self) -> anyhow::Result<Arc<UsageHistory>> {
        let mut known = lock(&self.known);
        let stamp = stamp(&self.path);
        if known.stamp != stamp {
            let mut habits = wait(self.document.read()).map_err(explain(&self.path))?;
            known.unwritten.iter().for_each(|note| note.enter(&mut habits));
            (known.stamp, known.habits) = (stamp, Arc::new(habits));
        }
        Ok(Arc::clone(&known.habits))
    }

    /// Writes until nothing is left to write.
    fn write_all(&self) {
        loop {
            let notes = {
                let mut known = lock(&self.known);
                if known.unwritten.is_empty() {
                    known.is_writing = false;
                    return;
                }
                std::mem::take(&mut known.unwritten)
            };
            let enter =
                |habits: &mut UsageHistory| notes.iter().for_each(|note| note.enter(habits));
            let written = wait(self.document.change(enter)).map_err(explain(&self.path));
            if let Err(error) = written.and_then(|_| self.load()) {
                // Whatever is in the way, it is in the way of the next note too.
                lock(&self.known).is_writing = false;
                let (error, lost) = (format!("{error:#}"), notes.len());
                tracing::warn!(error, lost, "habits were not noted");
                return;
            }
        }
    }
}

impl UsageStore for UsageFile {
    fn read(&self) -> Arc<UsageHistory> {
        self.load().unwrap_or_else(|error| {
            tracing::warn!(error = format!("{error:#}"), "searches have no habits to go by");
            Arc::default()
        })
    }

    fn note(&self, query: &str, tool: &str, day: u32) {
        let note = Note { query: query.to_owned(), tool: tool.to_owned(), day };
        let mut known = lock(&self.shared.known);
        note.enter(Arc::make_mut(&mut known.habits));
        if known.unwritten.len() < MOST_UNWRITTEN {
            known.unwritten.push(note);
        }
        if known.is_writing {
            return;
        }
        known.is_writing = true;
        drop(known);
        let shared = Arc::clone(&self.shared);
        let writer =
            std::thread::Builder::new().name("habits".to_owned()).spawn(move || shared.write_all());
        match writer {
            Ok(writer) => *lock(&self.writer) = Some(writer),
            Err(error) => {
                lock(&self.shared.known).is_writing = false;
                tracing::warn!(%error, "a habit is not written yet");
            }
        }
    }
}

impl Note {
    fn enter(&self, habits: &mut UsageHistory) {
        habits.note(&self.query, &self.tool, self.day);
    }
}

/// Says what can be done about a file that cannot be read.
fn explain(path: &Path) -> impl Fn(DocumentError) -> anyhow::Error {
    move |error| {
        let shown = path.display();
        match error {
            DocumentError::State(error) => anyhow::Error::new(error),
            DocumentError::Damaged(error) => anyhow::Error::new(error).context(format!(
                "`{shown}` holds no habits; `gatelet habits forget --all` starts over"
            )),
        }
    }
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
        let file = UsageFile::at(state.path());
        assert!(file.read().is_empty());
        file.note("save a note", "one/save", 1);
        assert!(!file.read().is_empty());
        file.flush();
        assert_eq!(UsageFile::at(state.path()).read(), file.read());
    }

    #[test]
    fn what_is_erased_behind_our_back_is_forgotten() {
        let state = tempfile::tempdir().unwrap();
        let file = UsageFile::at(state.path());
        file.note("save a note", "one/save", 1);
        file.flush();
        UsageFile::at(state.path()).erase().unwrap();
        assert!(file.read().is_empty());
        file.note("save a note", "two/save", 1);
        file.flush();
        assert!(!format!("{:?}", file.read()).contains("one/save"));
    }

    /// Each is a gatelet of its own: they share nothing but the directory.
    #[test]
    fn nothing_is_lost_when_several_gates_note_at_once() {
        let state = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for gate in 0..4 {
                let file = UsageFile::at(state.path());
                scope.spawn(move || {
                    for _ in 0..10 {
                        file.note("parcel", &format!("gate{gate}/ship"), 1);
                    }
                    file.flush();
                });
            }
        });
        let habits = UsageFile::at(state.path()).load().unwrap();
        let (_, choices) = habits.iter().next().unwrap();
        let times: Vec<f32> = choices.values().map(|choice| choice.times).collect();
        assert_eq!(times, [10.0; 4]);
    }

    #[test]
    fn a_file_that_holds_something_else_is_left_alone() {
        let state = tempfile::tempdir().unwrap();
        let file = UsageFile::at(state.path());
        std::fs::write(file.path(), "no habits").unwrap();
        file.note("save a note", "one/save", 1);
        file.flush();
        assert!(file.read().is_empty());
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "no habits");
        assert!(format!("{:#}", file.load().unwrap_err()).contains("habits forget --all"));
    }
}
