//! The log of an artifact in a directory: a file beside that of the artifact.
//!
//! Its writer holds the lock of the file, which the system releases when the process
//! ends, however it ends. A process that was killed may have left part of a line at the
//! end, and it is cut off.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use artifacts::{Config, Log, LogError, OpenLog, Owner};
use async_trait::async_trait;
use tool::clock::Clock;

use super::index::{Counted, Index};
use super::paths::{file_of, remove_files};

/// What the log shares with its store.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) index: Arc<Mutex<Index>>,
    pub(super) config: Config,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) directory: PathBuf,
}

/// A log whose lock this process holds.
struct FileLog {
    shared: Shared,
    owner: Owner,
    handle: String,
    fence: u64,
    writer: Arc<Mutex<Writer>>,
}

struct Writer {
    file: File,
    /// The end of what is written whole.
    at: u64,
    /// What was added and is not written yet.
    unwritten: Vec<u8>,
}

/// Opens the log of an artifact and takes its lock.
pub(super) async fn open(
    shared: Shared,
    owner: Owner,
    handle: String,
    path: PathBuf,
) -> Result<OpenLog, LogError> {
    let opened = tokio::task::spawn_blocking(move || open_file(&path)).await;
    let (writer, bytes) = opened.map_err(LogError::unavailable)??;
    // Of two writers of one log, one has the lock; the number only tells them apart.
    let (fence, _) = uuid::Uuid::new_v4().as_u64_pair();
    let log = FileLog { shared, owner, handle, fence, writer: Arc::new(Mutex::new(writer)) };
    log.count(log.writer().at)?;
    Ok(OpenLog { log: Box::new(log), bytes })
}

fn open_file(path: &Path) -> Result<(Writer, Vec<u8>), LogError> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(path).map_err(LogError::unavailable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(LogError::Taken),
        Err(TryLockError::Error(error)) => return Err(LogError::unavailable(error)),
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(LogError::unavailable)?;
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    let at = bytes.len() as u64;
    file.set_len(at).map_err(LogError::unavailable)?;
    Ok((Writer { file, at, unwritten: Vec::new() }, bytes))
}

impl Writer {
    /// Writes what was added. If that fails, the next try writes to the same place.
    fn write(&mut self) -> std::io::Result<()> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all_at(&self.unwritten, self.at);
        if written.is_err() {
            let _ = self.file.set_len(self.at);
            return written;
        }
        self.at += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }
}

impl FileLog {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the bytes of the log toward the limits of its owner, and returns the files
    /// of what had to give way.
    fn count(&self, bytes: u64) -> Result<Vec<PathBuf>, LogError> {
        let Shared { index, config, clock, directory } = &self.shared;
        let now = clock.elapsed();
        let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let end = now.saturating_add(config.ttl);
        let gone = match index.count_log(&self.handle, bytes, end, config)? {
            Counted::Before => Vec::new(),
            Counted::More => index.remove_excess(config, now, Some(&self.owner)),
        };
        Ok(gone.iter().map(|handle| file_of(directory, handle)).collect())
    }
}

#[async_trait]
impl Log for FileLog {
    fn add(&self, bytes: &[u8]) {
        self.writer().unwritten.extend_from_slice(bytes);
    }

    async fn flush(&self) -> Result<(), LogError> {
        let length = {
            let writer = self.writer();
            writer.at + writer.unwritten.len() as u64
        };
        let gone = self.count(length)?;
        let writer = Arc::clone(&self.writer);
        let write = move || {
            gone.iter().for_each(|file| remove_files(file));
            writer.lock().unwrap_or_else(PoisonError::into_inner).write()
        };
        let written = tokio::task::spawn_blocking(write).await.map_err(LogError::unavailable)?;
        written.map_err(LogError::unavailable)
    }

    fn fence(&self) -> u64 {
        self.fence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_full_disk_did_not_take_is_written_once_there_is_room() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.log");
        let (mut writer, _) = open_file(&path).unwrap();
        writer.unwritten = b"one\n".to_vec();
        writer.write().unwrap();
        // A file that takes nothing, as on a full disk.
        let writable = std::mem::replace(&mut writer.file, File::open(&path).unwrap());
        writer.unwritten = b"two\n".to_vec();
        assert!(writer.write().is_err());
        // Part of it was taken before.
        writable.write_all_at(b"tw", 4).unwrap();
        writer.file = writable;
        writer.unwritten.extend_from_slice(b"three\n");
        writer.write().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
    }
}
