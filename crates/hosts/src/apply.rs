//! Writes the planned changes of files: all of them or none.
//!
//! Every file is written whole beside its place first, so that a full disk or a
//! missing right is met before anything has changed; then all are moved. A file
//! that is not as it was in the preview stops it. A link stays a link: what it
//! leads to is replaced. Owner and permissions stay.

use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::change::FileChange;
use crate::history::{History, Record, State};
use crate::machine::Machine;

/// Why nothing was written, or not everything.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("`{0}` has changed since it was read; nothing was written, try again")]
    Changed(String),
    #[error("another gatelet is changing hosts right now; nothing was written, try again")]
    Busy,
    #[error("cannot write `{file}`; nothing was changed")]
    Unwritable { file: String, source: Error },
    #[error("cannot keep a backup in `{directory}`; nothing was changed")]
    NoBackup { directory: String, source: Error },
    /// Even taking it back failed.
    #[error("cannot write `{file}`, and some files could not be put back; they are in `{backup}`")]
    Torn { file: String, backup: String, source: Error },
}

/// Writes changes and returns the record of them; `None` when there is nothing
/// to do.
pub fn apply(
    changes: &[FileChange],
    command: &str,
    history: &History,
    machine: &dyn Machine,
) -> Result<Option<Record>, ApplyError> {
    let changes: Vec<FileChange> =
        changes.iter().filter(|change| !change.is_empty()).cloned().collect();
    if changes.is_empty() {
        return Ok(None);
    }
    let no_backup = |source| ApplyError::NoBackup {
        directory: history.directory().display().to_string(),
        source,
    };
    let _lock = lock(history).map_err(no_backup)?.ok_or(ApplyError::Busy)?;
    for change in &changes {
        is_as_before(change, machine)?;
    }
    let record = history.begin(command, &changes).map_err(no_backup)?;
    let written = write_all(&changes, machine);
    match &written {
        Ok(()) => {
            // Whether it is marked or not, what was written is seen in the files.
            let _ = history.mark(&record, State::Done);
        }
        Err(ApplyError::Torn { .. }) => {}
        Err(_) => history.forget(&record),
    }
    let backup = || history.directory().display().to_string();
    match written {
        Err(ApplyError::Torn { file, source, .. }) => {
            Err(ApplyError::Torn { file, backup: backup(), source })
        }
        Err(error) => Err(error),
        Ok(()) => Ok(Some(Record { state: State::Done, ..record })),
    }
}

/// Held while files are changed; the system lets go of it with the process.
fn lock(history: &History) -> std::io::Result<Option<std::fs::File>> {
    history.make()?;
    let path = history.directory().join("lock");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

fn is_as_before(change: &FileChange, machine: &dyn Machine) -> Result<(), ApplyError> {
    let file = || change.path.display().to_string();
    let now = machine.read(&change.path);
    let now = now.map_err(|source| ApplyError::Unwritable { file: file(), source })?;
    if now == change.before { Ok(()) } else { Err(ApplyError::Changed(file())) }
}

fn write_all(changes: &[FileChange], machine: &dyn Machine) -> Result<(), ApplyError> {
    let mut made = Made::default();
    let mut ready = Vec::new();
    for change in changes {
        let fresh = Fresh::of(change, &mut made).map_err(|source| ApplyError::Unwritable {
            file: change.path.display().to_string(),
            source,
        });
        match fresh {
            Ok(fresh) => ready.push(fresh),
            Err(error) => {
                drop(ready);
                made.remove();
                return Err(error);
            }
        }
    }
    for (at, (fresh, change)) in ready.iter().zip(changes).enumerate() {
        let moved = is_as_before(change, machine).and_then(|()| {
            fresh.move_to_place().map_err(|source| ApplyError::Unwritable {
                file: change.path.display().to_string(),
                source,
            })
        });
        if let Err(error) = moved {
            return Err(take_back(&ready[..at], &changes[..at], &made, error));
        }
    }
    Ok(())
}

/// Puts back what was written before something failed.
fn take_back(
    written: &[Fresh],
    changes: &[FileChange],
    made: &Made,
    error: ApplyError,
) -> ApplyError {
    for (fresh, change) in written.iter().zip(changes).rev() {
        let back = match &change.before {
            Some(before) => Fresh::with(&fresh.place, before, change.private)
                .and_then(|back| back.move_to_place()),
            None => std::fs::remove_file(&fresh.place),
        };
        if let Err(source) = back {
            let file = change.path.display().to_string();
            return ApplyError::Torn { file, backup: String::new(), source };
        }
    }
    made.remove();
    error
}

/// Directories that were made for files.
#[derive(Default)]
struct Made(Vec<PathBuf>);

impl Made {
    fn make(&mut self, directory: &Path) -> std::io::Result<()> {
        if directory.as_os_str().is_empty() || directory.is_dir() {
            return Ok(());
        }
        self.make(directory.parent().unwrap_or(Path::new("")))?;
        std::fs::create_dir(directory)?;
        self.0.push(directory.to_owned());
        Ok(())
    }

    fn remove(&self) {
        for directory in self.0.iter().rev() {
            let _ = std::fs::remove_dir(directory);
        }
    }
}

/// A file beside the place it is meant for; gone when this is.
struct Fresh {
    place: PathBuf,
    /// `None` when the file is to go.
    beside: Option<PathBuf>,
}

impl Fresh {
    fn of(change: &FileChange, made: &mut Made) -> std::io::Result<Fresh> {
        let place = match &change.before {
            // What a link leads to, not the link.
            Some(_) => std::fs::canonicalize(&change.path)?,
            None => {
                made.make(change.path.parent().unwrap_or(Path::new("")))?;
                change.path.clone()
            }
        };
        match &change.after {
            Some(after) => Fresh::with(&place, after, change.private),
            // The link goes, and so would a file.
            None => Ok(Fresh { place: change.path.clone(), beside: None }),
        }
    }

    fn with(place: &Path, bytes: &[u8], private: bool) -> std::io::Result<Fresh> {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (mut file, beside) = create_beside(place, &name)?;
        let fresh = Fresh { place: place.to_owned(), beside: Some(beside.clone()) };
        file.write_all(bytes)?;
        if let Ok(was) = std::fs::metadata(place) {
            keep_owner(&beside, &was)?;
            // Until here only the owner reads it.
            if !private {
                std::fs::set_permissions(&beside, was.permissions())?;
            }
        }
        file.sync_all()?;
        Ok(fresh)
    }

    fn move_to_place(&self) -> std::io::Result<()> {
        match &self.beside {
            Some(beside) => std::fs::rename(beside, &self.place),
            None => std::fs::remove_file(&self.place),
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // Moved to its place, it is gone already.
        if let Some(beside) = &self.beside {
            let _ = std::fs::remove_file(beside);
        }
    }
}

/// A new file of our own in the same directory, whatever names are taken there.
fn create_beside(place: &Path, name: &str) -> std::io::Result<(std::fs::File, PathBuf)> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    for number in 0..100 {
        let path = place.with_file_name(format!(".{name}.{}-{number}.gatelet", std::process::id()));
        match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, path)),
        }
    }
    Err(Error::other("too many files of interrupted changes are beside it"))
}

/// Whoever owned a file owns the new one, also when somebody else writes it.
#[cfg(unix)]
fn keep_owner(path: &Path, was: &std::fs::Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let now = std::fs::metadata(path)?;
    if (now.uid(), now.gid()) == (was.uid(), was.gid()) {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(was.uid()), Some(was.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_path: &Path, _was: &std::fs::Metadata) -> std::io::Result<()> {
    Ok(())
}
