//! Writes files atomically, readable for their owner alone.
//!
//! Several processes may read, write and change the same file at the same time. A
//! reader never sees half of a file, and only one process can [`create`] it. To
//! change a file depending on its content, a process holds its [`Lock`]. This module
//! does not know what files contain.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Whether a file that was written survives a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// The file is flushed to the disk before it appears under its name.
    Synced,
    /// It may be lost; for data that can be restored from elsewhere.
    Unsynced,
}

/// Writes a file atomically, replacing one that may be there. Creates its directory.
pub fn replace(path: &Path, bytes: &[u8], safety: Safety) -> Result<()> {
    replace_with(path, safety, |file| file.write_all(bytes))
}

/// Does what [`replace`] does with the content that `write` writes, so that it need
/// not be in memory at once.
pub fn replace_with(
    path: &Path,
    safety: Safety,
    write: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let fresh = TempFile::beside(path, safety, write)?;
    std::fs::rename(&fresh.0, path)
}

/// Writes a file atomically unless there is one; returns whether it was written.
pub fn create(path: &Path, bytes: &[u8]) -> Result<bool> {
    let fresh = TempFile::beside(path, Safety::Synced, |file| file.write_all(bytes))?;
    let made = match std::fs::hard_link(&fresh.0, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => create_directly(path, bytes),
        made => made,
    };
    match made {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a file on a file system without hard links. A reader may see part of it.
fn create_directly(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A temporary file in the directory of its target; removed when this is dropped.
struct TempFile(PathBuf);

impl TempFile {
    fn beside(
        path: &Path,
        safety: Safety,
        write: impl FnOnce(&mut File) -> Result<()>,
    ) -> Result<TempFile> {
        create_private_dir(path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Unique also among threads and among processes in other containers.
        let name = format!(".{name}.{}.{TEMP_EXTENSION}", uuid::Uuid::new_v4().simple());
        let fresh = TempFile(path.with_file_name(name));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&fresh.0)?;
        write(&mut file)?;
        match safety {
            Safety::Synced => file.sync_all()?,
            Safety::Unsynced => {}
        }
        Ok(fresh)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // If it was renamed to its target, there is nothing to remove.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The extension of temporary files.
pub(crate) const TEMP_EXTENSION: &str = "new";

/// Creates a directory that only its owner can read, unless there is one.
pub fn create_private_dir(directory: &Path) -> Result<()> {
    match directory.as_os_str().is_empty() {
        true => Ok(()),
        false => DirBuilder::new().recursive(true).mode(0o700).create(directory),
    }
}

/// The exclusive right of a process to change a file, so that nothing is lost when
/// several processes read, change and write it. The system releases it when the
/// process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, never looked at")] File);

impl Lock {
    /// Takes the lock of a file, without waiting; `None` while somebody else has it.
    /// A second file with the extension `lock` is locked, because the file itself is
    /// replaced when it is written.
    pub(crate) fn try_beside(path: &Path) -> Result<Option<Lock>> {
        let directory = path.parent().unwrap_or(Path::new(""));
        create_private_dir(directory).map_err(with_path("create", directory))?;
        let file = path.with_extension("lock");
        let handle = OpenOptions::new().create(true).append(true).open(&file);
        let handle = handle.map_err(with_path("open", &file))?;
        match handle.try_lock() {
            Ok(()) => Ok(Some(Lock(handle))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(with_path("lock", &file)(error)),
        }
    }
}

/// Adds the operation and the path to an error.
pub(crate) fn with_path(operation: &'static str, path: &Path) -> impl Fn(Error) -> Error {
    move |error| {
        Error::new(error.kind(), format!("cannot {operation} `{}`: {error}", path.display()))
    }
}

/// The modification time and size of a file; `None` if there is none. A different
/// stamp means that the file has changed.
pub type Stamp = Option<(SystemTime, u64)>;

/// Returns the stamp of a file.
pub fn stamp(file: &Path) -> Stamp {
    let found = std::fs::metadata(file).ok()?;
    Some((found.modified().unwrap_or(SystemTime::UNIX_EPOCH), found.len()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_whole_and_is_its_owners() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("below/a.json");
        for text in ["one", "two"] {
            replace(&file, text.as_bytes(), Safety::Synced).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(names(file.parent().unwrap()), ["a.json"]);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_cannot_be_put_in_its_place_is_not_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let taken = place.path().join("a.json");
        std::fs::create_dir(&taken).unwrap();
        assert!(replace(&taken, b"x", Safety::Unsynced).is_err());
        assert!(!create(&taken, b"x").unwrap());
        assert_eq!(names(place.path()), ["a.json"]);
    }

    #[test]
    fn of_many_who_make_a_file_at_once_one_does() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("key");
        let start = std::sync::Barrier::new(8);
        let made: Vec<u8> = std::thread::scope(|scope| {
            let make = |own: u8| {
                let (file, start) = (&file, &start);
                scope.spawn(move || {
                    start.wait();
                    create(file, &[own]).unwrap().then_some(own)
                })
            };
            let makers: Vec<_> = (0..8).map(make).collect();
            makers.into_iter().filter_map(|maker| maker.join().unwrap()).collect()
        });
        assert_eq!(made, std::fs::read(&file).unwrap());
        assert_eq!(names(place.path()), ["key"]);
    }
}
