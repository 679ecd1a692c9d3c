//! Writes planned changes to files: all of them or none.
//!
//! Every file is first written to a temporary file in the same directory, so that a full
//! disk or a missing permission is noticed before anything has changed; then all are
//! moved. A file that has changed since it was planned stops everything. The target of
//! a link is replaced, not the link. Owner and permissions stay.

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
    /// Some files were written, and restoring them failed.
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
        check_unchanged(change, machine)?;
    }
    let record = history.begin(command, &changes).map_err(no_backup)?;
    let written = write_all(&changes, machine);
    match &written {
        Ok(()) => {
            // If this fails, the files themselves still show that they were written.
            let _ = history.mark(&record, State::Done);
        }
        Err(ApplyError::Torn { .. }) => {}
        Err(_) => history.discard(&record),
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

/// Locks the history while files are changed; `None` when another process holds the lock.
/// The system releases it when the process ends.
fn lock(history: &History) -> std::io::Result<Option<std::fs::File>> {
    history.create_directory()?;
    let path = history.directory().join("lock");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Checks that a file is as it was when its change was planned.
fn check_unchanged(change: &FileChange, machine: &dyn Machine) -> Result<(), ApplyError> {
    let file = || change.path.display().to_string();
    let now = machine.read(&change.path);
    let now = now.map_err(|source| ApplyError::Unwritable { file: file(), source })?;
    if now == change.before { Ok(()) } else { Err(ApplyError::Changed(file())) }
}

fn write_all(changes: &[FileChange], machine: &dyn Machine) -> Result<(), ApplyError> {
    let mut created = CreatedDirectories::default();
    let mut ready = Vec::new();
    for change in changes {
        let staged = StagedFile::for_change(change, &mut created).map_err(|source| {
            ApplyError::Unwritable { file: change.path.display().to_string(), source }
        });
        match staged {
            Ok(staged) => ready.push(staged),
            Err(error) => {
                drop(ready);
                created.remove();
                return Err(error);
            }
        }
    }
    for (at, (staged, change)) in ready.iter().zip(changes).enumerate() {
        let moved = check_unchanged(change, machine).and_then(|()| {
            staged.move_to_target().map_err(|source| ApplyError::Unwritable {
                file: change.path.display().to_string(),
                source,
            })
        });
        if let Err(error) = moved {
            return Err(roll_back(&ready[..at], &changes[..at], &created, error));
        }
    }
    Ok(())
}

/// Restores the files that were written before something failed, and returns the error.
fn roll_back(
    written: &[StagedFile],
    changes: &[FileChange],
    created: &CreatedDirectories,
    error: ApplyError,
) -> ApplyError {
    for (staged, change) in written.iter().zip(changes).rev() {
        let back = match &change.before {
            Some(before) => StagedFile::write(&staged.target, before, change.private)
                .and_then(|back| back.move_to_target()),
            None => std::fs::remove_file(&staged.target),
        };
        if let Err(source) = back {
            let file = change.path.display().to_string();
            return ApplyError::Torn { file, backup: String::new(), source };
        }
    }
    created.remove();
    error
}

/// The directories that were created for new files.
#[derive(Default)]
struct CreatedDirectories(Vec<PathBuf>);

impl CreatedDirectories {
    fn create(&mut self, directory: &Path) -> std::io::Result<()> {
        if directory.as_os_str().is_empty() || directory.is_dir() {
            return Ok(());
        }
        self.create(directory.parent().unwrap_or(Path::new("")))?;
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

/// A change that is ready to be moved to its target. Dropping it deletes the temporary file.
struct StagedFile {
    target: PathBuf,
    /// The new contents; `None` when the target is to be removed.
    temporary: Option<PathBuf>,
}

impl StagedFile {
    fn for_change(
        change: &FileChange,
        created: &mut CreatedDirectories,
    ) -> std::io::Result<StagedFile> {
        let target = match &change.before {
            // Replace the target of a link, not the link.
            Some(_) => std::fs::canonicalize(&change.path)?,
            None => {
                created.create(change.path.parent().unwrap_or(Path::new("")))?;
                change.path.clone()
            }
        };
        match &change.after {
            Some(after) => StagedFile::write(&target, after, change.private),
            // Remove the link itself, or the file.
            None => Ok(StagedFile { target: change.path.clone(), temporary: None }),
        }
    }

    fn write(target: &Path, bytes: &[u8], private: bool) -> std::io::Result<StagedFile> {
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (mut file, temporary) = create_temporary(target, &name)?;
        let staged = StagedFile { target: target.to_owned(), temporary: Some(temporary.clone()) };
        file.write_all(bytes)?;
        if let Ok(was) = std::fs::metadata(target) {
            keep_owner(&temporary, &was)?;
            // Until now only the owner can read it.
            if !private {
                std::fs::set_permissions(&temporary, was.permissions())?;
            }
        }
        file.sync_all()?;
        Ok(staged)
    }

    fn move_to_target(&self) -> std::io::Result<()> {
        match &self.temporary {
            Some(temporary) => std::fs::rename(temporary, &self.target),
            None => std::fs::remove_file(&self.target),
        }
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // After a move there is nothing left to delete.
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Creates a temporary file in the directory of `target`, under a name that is not taken.
fn create_temporary(target: &Path, name: &str) -> std::io::Result<(std::fs::File, PathBuf)> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    for number in 0..100 {
        let path =
            target.with_file_name(format!(".{name}.{}-{number}.gatelet", std::process::id()));
        match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, path)),
        }
    }
    Err(Error::other("too many files of interrupted changes are beside it"))
}

/// Gives a new file the owner of the old one, also when another user writes it.
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
