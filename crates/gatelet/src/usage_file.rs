//! The usage history, from which searches learn, in a file that a person can read.
//!
//! Several gatelets may share one state directory; each adds to what the others wrote.
//! Calls do not wait for the disk: a thread writes, and searches of this process see new
//! choices at once. The file is read again whenever it has changed, so that a running
//! gatelet forgets what `gatelet history forget` erased.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use catalog::usage::UsageHistory;
use gateway::learning::UsageStore;
use parking_lot::Mutex;
use store::document::{DocumentError, IfDamaged, JsonDocument};
use store::file::{Stamp, stamp};
use store::files::Files;
use store::state::wait;

/// The usage history of a state directory.
pub(crate) struct UsageFile {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What is shared with the thread that writes.
struct Shared {
    path: PathBuf,
    document: JsonDocument<UsageHistory>,
    cached: Mutex<Cached>,
}

/// The history in memory.
#[derive(Default)]
struct Cached {
    /// Time and size of the file when it was last read.
    stamp: Stamp,
    /// The contents of the file then, with the choices that were added since.
    history: Arc<UsageHistory>,
    /// Choices that are not in the file yet, oldest first.
    unwritten: Vec<Choice>,
    /// Whether the writer thread runs.
    is_writing: bool,
}

/// A tool that was called after a search.
struct Choice {
    query: String,
    tool: String,
    day: u32,
}

/// The file's name.
const NAME: &str = "habits.json";

/// How many choices may wait to be written.
const MOST_UNWRITTEN: usize = 10_000;

impl UsageFile {
    pub(crate) fn at(state: &Path) -> UsageFile {
        let document = JsonDocument::new(Arc::new(Files::at(state)), NAME, IfDamaged::Fail);
        let (cached, writer) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { path: state.join(NAME), document, cached });
        UsageFile { shared, writer }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Reads the history; empty when there is no file.
    pub(crate) fn load(&self) -> anyhow::Result<Arc<UsageHistory>> {
        self.shared.load()
    }

    /// Changes the history under a lock.
    pub(crate) fn change(
        &self,
        change: impl FnMut(&mut UsageHistory) + Send,
    ) -> anyhow::Result<()> {
        wait(self.shared.document.change(change)).map(drop).map_err(explain(self.path()))
    }

    /// Erases the file, even one that is damaged.
    pub(crate) fn erase(&self) -> anyhow::Result<()> {
        Ok(wait(self.shared.document.clear())?)
    }

    /// Waits until all choices are in the file.
    pub(crate) fn flush(&self) {
        let writer = self.writer.lock().take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::warn!("habits were not written: their writer stopped");
        }
    }
}

impl Shared {
    fn load(&self) -> anyhow::Result<Arc<UsageHistory>> {
        let mut cached = self.cached.lock();
        let stamp = stamp(&self.path);
        if cached.stamp != stamp {
            let mut history = wait(self.document.read()).map_err(explain(&self.path))?;
            cached.unwritten.iter().for_each(|note| note.add_to(&mut history));
            (cached.stamp, cached.history) = (stamp, Arc::new(history));
        }
        Ok(Arc::clone(&cached.history))
    }

    /// Writes until nothing is left to write.
    fn write_all(&self) {
        loop {
            let choices = {
                let mut cached = self.cached.lock();
                if cached.unwritten.is_empty() {
                    cached.is_writing = false;
                    return;
                }
                std::mem::take(&mut cached.unwritten)
            };
            let add_to =
                |history: &mut UsageHistory| choices.iter().for_each(|note| note.add_to(history));
            let written = wait(self.document.change(add_to)).map_err(explain(&self.path));
            if let Err(error) = written.and_then(|_| self.load()) {
                // The next choice starts the writer again.
                self.cached.lock().is_writing = false;
                let (error, lost) = (format!("{error:#}"), choices.len());
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
        let note = Choice { query: query.to_owned(), tool: tool.to_owned(), day };
        let mut cached = self.shared.cached.lock();
        note.add_to(Arc::make_mut(&mut cached.history));
        if cached.unwritten.len() < MOST_UNWRITTEN {
            cached.unwritten.push(note);
        }
        if cached.is_writing {
            return;
        }
        cached.is_writing = true;
        drop(cached);
        let shared = Arc::clone(&self.shared);
        let writer =
            std::thread::Builder::new().name("habits".to_owned()).spawn(move || shared.write_all());
        match writer {
            Ok(writer) => *self.writer.lock() = Some(writer),
            Err(error) => {
                self.shared.cached.lock().is_writing = false;
                tracing::warn!(%error, "a habit is not written yet");
            }
        }
    }
}

impl Choice {
    fn add_to(&self, history: &mut UsageHistory) {
        history.note(&self.query, &self.tool, self.day);
    }
}

/// Turns an error about the file into one that says what to do.
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
        let history = UsageFile::at(state.path()).load().unwrap();
        let (_, choices) = history.iter().next().unwrap();
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
