//! Files that are there whole or not at all, for their owner alone.
//!
//! Several processes may read, write and change the same file at the same time. A
//! reader never sees half of a file, and [`create`] makes a file only once. Whoever
//! changes a file by what is in it holds its [`Lock`]. This module does not know
//! what files contain.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Whether what is written is still there after a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Written through before anybody is told that it is there.
    Synced,
    /// For what can be had again.
    Unsynced,
}

/// Puts a file in its place, over one that may be there. Makes its directory.
pub fn replace(path: &Path, bytes: &[u8], safety: Safety) -> Result<()> {
    replace_with(path, safety, |file| file.write_all(bytes))
}

/// The same with what `write` writes, for what need not be put together before.
pub fn replace_with(
    path: &Path,
    safety: Safety,
    write: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let fresh = Fresh::beside(path, safety, write)?;
    std::fs::rename(&fresh.0, path)
}

/// Puts a file in its place unless there is one; whether there was none.
pub fn create(path: &Path, bytes: &[u8]) -> Result<bool> {
    let fresh = Fresh::beside(path, Safety::Synced, |file| file.write_all(bytes))?;
    let made = match std::fs::hard_link(&fresh.0, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => directly(path, bytes),
        made => made,
    };
    match made {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Some file systems have no links; there a reader may come too early.
fn directly(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A file beside the place that it is meant for; gone when this is.
struct Fresh(PathBuf);

impl Fresh {
    fn beside(
        path: &Path,
        safety: Safety,
        write: impl FnOnce(&mut File) -> Result<()>,
    ) -> Result<Fresh> {
        private(path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Nobody else's, be it another thread or a process in another container.
        let name = format!(".{name}.{}.{FRESH}", uuid::Uuid::new_v4().simple());
        let fresh = Fresh(path.with_file_name(name));
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

impl Drop for Fresh {
    fn drop(&mut self) {
        // Moved to its place, it is gone already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The extension of files that are not in their place yet.
pub(crate) const FRESH: &str = "new";

/// Makes a directory that only its owner looks into, unless there is one.
pub fn private(directory: &Path) -> Result<()> {
    match directory.as_os_str().is_empty() {
        true => Ok(()),
        false => DirBuilder::new().recursive(true).mode(0o700).create(directory),
    }
}

/// Held while nobody else may change a file: whoever reads it, changes what it
/// says and writes it again would otherwise lose what somebody else wrote in
/// between. The system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, never looked at")] File);

impl Lock {
    /// Takes the lock beside a file, without waiting; `None` while somebody else
    /// has it. The file itself is replaced when it is written, so another one is
    /// locked.
    pub(crate) fn try_beside(path: &Path) -> Result<Option<Lock>> {
        let directory = path.parent().unwrap_or(Path::new(""));
        private(directory).map_err(named("create", directory))?;
        let file = path.with_extension("lock");
        let handle = OpenOptions::new().create(true).append(true).open(&file);
        let handle = handle.map_err(named("open", &file))?;
        match handle.try_lock() {
            Ok(()) => Ok(Some(Lock(handle))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(named("lock", &file)(error)),
        }
    }
}

/// Says in an error what could not be done with which file.
pub(crate) fn named(what: &'static str, path: &Path) -> impl Fn(Error) -> Error {
    move |error| Error::new(error.kind(), format!("cannot {what} `{}`: {error}", path.display()))
}

/// When a file was written, and how long it is; `None` when there is none. One
/// that differs belongs to a file that somebody has changed.
pub type Stamp = Option<(SystemTime, u64)>;

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
