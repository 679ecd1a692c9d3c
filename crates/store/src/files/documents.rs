//! Documents: files that are replaced under a lock.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::watch;

use super::attempt::{Attempt, run};
use super::{Directory, Files};
use crate::file::{self, Lock, Safety, stamp, with_path};
use crate::state::{
    Documents, StateError, StateFuture, Version, Versioned, changes, check_size, ready,
};

impl Documents for Files {
    fn read<'a>(&'a self, name: &'a str, timeout: Duration) -> StateFuture<'a, Option<Versioned>> {
        let limit = self.0.limits.value_bytes;
        match self.0.file(name) {
            Ok(file) => run(timeout, move || Ok(Attempt::Done(read_versioned(&file, limit)?))),
            Err(error) => ready(Err(error)),
        }
    }

    fn swap<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Version>,
        next: Option<Bytes>,
        timeout: Duration,
    ) -> StateFuture<'a, Option<Version>> {
        let limit = self.0.limits.value_bytes;
        let checked = next.as_ref().map_or(Ok(()), |next| check_size(next.len(), limit));
        let file = match checked.and_then(|()| self.0.file(name)) {
            Ok(file) => file,
            Err(error) => return ready(Err(error)),
        };
        let (directory, name) = (Arc::clone(&self.0), name.to_owned());
        run(timeout, move || {
            let Some(_lock) = directory.lock_for(&file)? else {
                return Ok(Attempt::Busy);
            };
            if read_versioned(&file, limit)?.map(|found| found.version) != expected {
                return Err(StateError::Conflict);
            }
            match &next {
                Some(bytes) => file::replace(&file, bytes, directory.safety),
                None => std::fs::remove_file(&file).or_else(ignore_missing),
            }
            .map_err(with_path("write", &file))
            .map_err(StateError::unavailable)?;
            directory.notify_watchers(&name);
            Ok(Attempt::Done(next.as_ref().map(|bytes| Version::of_content(bytes))))
        })
    }

    /// Changes of other processes are noticed when the file is polled.
    fn watch(&self, name: &str) -> BoxStream<'static, ()> {
        let Ok(file) = self.0.file(name) else { return futures::stream::pending().boxed() };
        let own_changes = changes(self.0.subscribe_to(name));
        let (poll, directory) = (self.0.limits.poll, Arc::downgrade(&self.0));
        let polled_changes = futures::stream::unfold(stamp(&file), move |before| {
            let (file, directory) = (file.clone(), Weak::clone(&directory));
            async move {
                loop {
                    tokio::time::sleep(poll).await;
                    directory.upgrade()?;
                    let looked = file.clone();
                    let now = tokio::task::spawn_blocking(move || stamp(&looked)).await.ok()?;
                    if now != before {
                        return Some(((), now));
                    }
                }
            }
        });
        futures::stream::select(own_changes, polled_changes).boxed()
    }
}

impl Directory {
    /// Takes the lock for replacing a document; `None` while another process has it.
    /// In an unsynced directory, with many small documents, all share one lock file.
    pub(super) fn lock_for(&self, file: &Path) -> Result<Option<Lock>, StateError> {
        let locked = match self.safety {
            Safety::Synced => file,
            Safety::Unsynced => &self.path,
        };
        Lock::try_beside(locked).map_err(StateError::unavailable)
    }

    /// Notifies the watchers of a document in this process.
    fn notify_watchers(&self, name: &str) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = watched.get(name) {
            watched.send_replace(());
        }
    }

    fn subscribe_to(&self, name: &str) -> watch::Receiver<()> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|_, watched| 0 < watched.receiver_count());
        watched.entry(name.to_owned()).or_default().subscribe()
    }
}

fn read_versioned(file: &Path, limit: u64) -> Result<Option<Versioned>, StateError> {
    let bytes = read_file(file, limit)?;
    Ok(bytes.map(|bytes| Versioned { version: Version::of_content(&bytes), bytes: bytes.into() }))
}

/// Reads a file of at most `limit` bytes; `None` if there is none.
pub(super) fn read_file(file: &Path, limit: u64) -> Result<Option<Vec<u8>>, StateError> {
    let unavailable = |error| StateError::unavailable(with_path("read", file)(error));
    let opened = match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unavailable)?,
    };
    let mut bytes = Vec::new();
    opened.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(unavailable)?;
    check_size(bytes.len(), limit)?;
    Ok(Some(bytes))
}

pub(super) fn ignore_missing(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
