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
use crate::file::{self, Lock, Safety, named, stamp};
use crate::state::{Documents, StateError, StateFuture, Version, Versioned, changes, fits, ready};

impl Documents for Files {
    fn read<'a>(&'a self, name: &'a str, within: Duration) -> StateFuture<'a, Option<Versioned>> {
        let limit = self.0.limits.value_bytes;
        match self.0.file(name) {
            Ok(file) => run(within, move || Ok(Attempt::Done(versioned(&file, limit)?))),
            Err(error) => ready(Err(error)),
        }
    }

    fn swap<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Version>,
        next: Option<Bytes>,
        within: Duration,
    ) -> StateFuture<'a, Option<Version>> {
        let limit = self.0.limits.value_bytes;
        let fits = next.as_ref().map_or(Ok(()), |next| fits(next.len(), limit));
        let file = match fits.and_then(|()| self.0.file(name)) {
            Ok(file) => file,
            Err(error) => return ready(Err(error)),
        };
        let (directory, name) = (Arc::clone(&self.0), name.to_owned());
        run(within, move || {
            let Some(_lock) = directory.lock_for(&file)? else {
                return Ok(Attempt::Busy);
            };
            if versioned(&file, limit)?.map(|found| found.version) != expected {
                return Err(StateError::Conflict);
            }
            match &next {
                Some(bytes) => file::replace(&file, bytes, directory.safety),
                None => std::fs::remove_file(&file).or_else(unless_missing),
            }
            .map_err(named("write", &file))
            .map_err(StateError::unavailable)?;
            directory.tell(&name);
            Ok(Attempt::Done(next.as_ref().map(|bytes| Version::of(bytes))))
        })
    }

    /// Changes of other processes are seen when the file is next looked at.
    fn watch(&self, name: &str) -> BoxStream<'static, ()> {
        let Ok(file) = self.0.file(name) else { return futures::stream::pending().boxed() };
        let told = changes(self.0.listen(name));
        let (poll, directory) = (self.0.limits.poll, Arc::downgrade(&self.0));
        let looks = futures::stream::unfold(stamp(&file), move |before| {
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
        futures::stream::select(told, looks).boxed()
    }
}

impl Directory {
    /// Held while a document is replaced. Many small ones that can be had again
    /// share one lock, so that they do not leave a second file each.
    pub(super) fn lock_for(&self, file: &Path) -> Result<Option<Lock>, StateError> {
        let locked = match self.safety {
            Safety::Synced => file,
            Safety::Unsynced => &self.path,
        };
        Lock::try_beside(locked).map_err(StateError::unavailable)
    }

    /// Tells whoever watches a document in this process that it has changed.
    fn tell(&self, name: &str) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = watched.get(name) {
            watched.send_replace(());
        }
    }

    fn listen(&self, name: &str) -> watch::Receiver<()> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|_, watched| 0 < watched.receiver_count());
        watched.entry(name.to_owned()).or_default().subscribe()
    }
}

fn versioned(file: &Path, limit: u64) -> Result<Option<Versioned>, StateError> {
    let bytes = read(file, limit)?;
    Ok(bytes.map(|bytes| Versioned { version: Version::of(&bytes), bytes: bytes.into() }))
}

/// What a file holds; `None` when there is none.
pub(super) fn read(file: &Path, limit: u64) -> Result<Option<Vec<u8>>, StateError> {
    let unavailable = |error| StateError::unavailable(named("read", file)(error));
    let opened = match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unavailable)?,
    };
    let mut bytes = Vec::new();
    opened.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(unavailable)?;
    fits(bytes.len(), limit)?;
    Ok(Some(bytes))
}

pub(super) fn unless_missing(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
