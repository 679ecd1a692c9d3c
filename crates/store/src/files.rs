//! A store of state in a directory that several processes may share.
//!
//! A document is a file that is replaced under a lock, so a reader never sees half
//! of it and no change is lost. A single-use or expiring value is a file, too;
//! taking one renames the file, which only one process can do. A blob is a file in
//! its owner's directory, a lease is a file lock that the system releases when the
//! process ends, a log is a file that is appended to. Counters and messages are in
//! memory only: each process counts for itself and reaches only itself.
//!
//! A process that dies in the middle of an operation leaves the state as it was
//! before or after it. No runtime thread waits for a disk or a lock: see
//! [`attempt`]. Expiry is measured by a monotonic clock while the process runs, and
//! by the wall clock across restarts ([`lifetimes`]).

mod attempt;

mod blobs;
mod documents;
mod leases;
mod lines;
mod values;

pub mod lifetimes;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tool::clock::Clock;

use crate::clock::System;
use crate::file::{Lock, Safety};
use crate::memory::{self, Memory};
use crate::state::{Claim, Counters, Messages, Spending, StateError, StateFuture};
use attempt::Attempt;
use lifetimes::Lifetimes;

/// The limits of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum size of a document, value or line.
    pub value_bytes: u64,
    /// The maximum size of a blob.
    pub blob_bytes: u64,
    /// The maximum size of a log; its older half is dropped when it is reached.
    pub log_bytes: u64,
    /// How often watched files are checked for changes of other processes.
    pub poll: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let poll = Duration::from_secs(1);
        Limits { value_bytes: 64 << 20, blob_bytes: 1 << 30, log_bytes: 64 << 20, poll }
    }
}

/// A store in a directory. Cheap to clone; all clones share one state.
#[derive(Clone)]
pub struct Files(Arc<Directory>);

struct Directory {
    path: PathBuf,
    limits: Limits,
    safety: Safety,
    /// Holds the counters and messages.
    memory: Memory,
    lifetimes: Lifetimes,
    /// The documents that this process watches, notified at once of its own changes.
    watched: Mutex<HashMap<String, watch::Sender<()>>>,
    /// The locks of the leases that this process holds.
    leases: Mutex<HashMap<PathBuf, Lock>>,
}

impl Files {
    /// Opens a directory with the default limits and the machine's clock.
    pub fn at(path: &Path) -> Files {
        Files::new(path, Arc::new(System::start()), Limits::default())
    }

    /// Opens a directory. It is created when something is first stored in it.
    pub fn new(path: &Path, clock: Arc<dyn Clock>, limits: Limits) -> Files {
        Files::with_safety(path, clock, limits, Safety::Synced)
    }

    /// Opens a directory for data that can be restored from elsewhere: writes do not
    /// wait for the disk and may be lost with the power.
    pub fn unsynced(path: &Path, clock: Arc<dyn Clock>, limits: Limits) -> Files {
        Files::with_safety(path, clock, limits, Safety::Unsynced)
    }

    fn with_safety(path: &Path, clock: Arc<dyn Clock>, limits: Limits, safety: Safety) -> Files {
        Files(Arc::new(Directory {
            path: path.to_owned(),
            limits,
            safety,
            memory: Memory::new(Arc::clone(&clock), memory::Limits::default()),
            lifetimes: Lifetimes::new(clock),
            watched: Mutex::default(),
            leases: Mutex::default(),
        }))
    }

    /// Calls `act` with the path of a document while nobody else changes it, for data
    /// that belongs together in several files. It blocks the thread, so it is for
    /// commands and for the pool of blocking work.
    pub fn with_lock<T>(
        &self,
        name: &str,
        timeout: Duration,
        act: impl FnOnce(&Path) -> T,
    ) -> Result<T, StateError> {
        let file = self.0.file(name)?;
        let _lock = attempt::run_here(timeout, &|| {
            Ok(match self.0.lock_for(&file)? {
                Some(lock) => Attempt::Done(lock),
                None => Attempt::Busy,
            })
        })?;
        Ok(act(&file))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl Directory {
    /// Returns the file of a document or log. Fails if the name leads out of the
    /// directory, which is a bug.
    fn file(&self, name: &str) -> Result<PathBuf, StateError> {
        let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
        match name.split('/').all(is_plain) && !name.contains('\0') {
            true => Ok(self.path.join(name)),
            false => Err(StateError::unavailable(format!("`{name}` is not a name"))),
        }
    }

    /// Returns the file for a key, which may contain any characters.
    fn keyed_file(&self, kind: &str, key: &str) -> PathBuf {
        self.path.join(kind).join(file_name(key))
    }
}

/// Makes a file name of any text: unique by a digest, and readable for people.
pub(crate) fn file_name(text: &str) -> String {
    let plain = |byte: u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        other => format!("_{other:02x}"),
    };
    let shown: String = text.bytes().take(40).map(plain).collect();
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    format!("{shown}_{}", tool::hex::encode(&digest.as_ref()[..16]))
}

impl Counters for Files {
    fn spend<'a>(
        &'a self,
        claims: &'a [Claim<'a>],
        timeout: Duration,
    ) -> StateFuture<'a, Spending> {
        self.0.memory.spend(claims, timeout)
    }

    fn check<'a>(
        &'a self,
        claims: &'a [Claim<'a>],
        timeout: Duration,
    ) -> StateFuture<'a, Spending> {
        self.0.memory.check(claims, timeout)
    }

    fn give_back<'a>(&'a self, claims: &'a [Claim<'a>], timeout: Duration) -> StateFuture<'a, ()> {
        self.0.memory.give_back(claims, timeout)
    }
}

impl Messages for Files {
    fn send<'a>(
        &'a self,
        mailbox: &'a str,
        message: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        self.0.memory.send(mailbox, message, ttl, timeout)
    }

    fn receive<'a>(&'a self, mailbox: &'a str, wait: Duration) -> StateFuture<'a, Vec<Bytes>> {
        self.0.memory.receive(mailbox, wait)
    }
}

#[cfg(test)]
mod tests;
