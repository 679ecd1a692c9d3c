//! State in a directory that several processes may share.
//!
//! A document is a file that is replaced under a lock, so a reader never sees a
//! half and no change is lost. A single use or an expiring value is a file, too:
//! who renames it away has it, and nobody else does. A blob is a file in its
//! owner's directory, a lease is a lock that the system takes back when the
//! process ends, a log is a file that is appended to. Counters and messages
//! are kept in memory: each process counts for itself and talks to itself.
//!
//! A process that dies in the middle leaves the state as it was before or after,
//! never between. No runtime thread waits here for a disk or a lock: see
//! [`attempt`]. Lifetimes are measured by a clock that does not jump as long as the
//! process runs, and by the machine's clock across restarts ([`lifetimes`]).

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

/// What a directory may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest document, value or line.
    pub value_bytes: u64,
    /// The longest blob.
    pub blob_bytes: u64,
    /// How long a log may get before its older half goes.
    pub log_bytes: u64,
    /// How often a file is looked at for changes that other processes make.
    pub poll: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let poll = Duration::from_secs(1);
        Limits { value_bytes: 64 << 20, blob_bytes: 1 << 30, log_bytes: 64 << 20, poll }
    }
}

/// A store in a directory. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Files(Arc<Directory>);

struct Directory {
    path: PathBuf,
    limits: Limits,
    safety: Safety,
    memory: Memory,
    lifetimes: Lifetimes,
    /// What this process watches, told at once of its own changes.
    watched: Mutex<HashMap<String, watch::Sender<()>>>,
    /// The locks of the leases that this process holds.
    leases: Mutex<HashMap<PathBuf, Lock>>,
}

impl Files {
    /// A directory as most have it, by the machine's own clock.
    pub fn at(path: &Path) -> Files {
        Files::new(path, Arc::new(System::start()), Limits::default())
    }

    /// The directory is made when something is first kept in it.
    pub fn new(path: &Path, clock: Arc<dyn Clock>, limits: Limits) -> Files {
        Files::with_safety(path, clock, limits, Safety::Synced)
    }

    /// For what can be had again: it may be lost with the power, and never waits
    /// for a disk to spin.
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

    /// Does something while nobody else changes the document of that name, for
    /// what belongs together in several files. It waits right here, so it is for
    /// commands and for the pool of blocking work.
    pub fn alone<T>(
        &self,
        name: &str,
        within: Duration,
        act: impl FnOnce(&Path) -> T,
    ) -> Result<T, StateError> {
        let file = self.0.file(name)?;
        let _lock = attempt::run_here(within, &|| {
            Ok(match self.0.lock_for(&file)? {
                Some(lock) => Attempt::Done(lock),
                None => Attempt::Busy,
            })
        })?;
        Ok(act(&file))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl Directory {
    /// The file of that name. Names are ours, so one that leads elsewhere is a
    /// mistake.
    fn file(&self, name: &str) -> Result<PathBuf, StateError> {
        let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
        match name.split('/').all(is_plain) && !name.contains('\0') {
            true => Ok(self.path.join(name)),
            false => Err(StateError::unavailable(format!("`{name}` is not a name"))),
        }
    }

    /// A file for a key that may hold anything.
    fn keyed(&self, kind: &str, key: &str) -> PathBuf {
        self.path.join(kind).join(file_name(key))
    }
}

/// A file name that no other text has, and that a person can guess at.
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
    fn spend<'a>(&'a self, claims: &'a [Claim<'a>], within: Duration) -> StateFuture<'a, Spending> {
        self.0.memory.spend(claims, within)
    }

    fn look<'a>(&'a self, claims: &'a [Claim<'a>], within: Duration) -> StateFuture<'a, Spending> {
        self.0.memory.look(claims, within)
    }

    fn give_back<'a>(&'a self, claims: &'a [Claim<'a>], within: Duration) -> StateFuture<'a, ()> {
        self.0.memory.give_back(claims, within)
    }
}

impl Messages for Files {
    fn send<'a>(
        &'a self,
        mailbox: &'a str,
        message: Bytes,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()> {
        self.0.memory.send(mailbox, message, life, within)
    }

    fn receive<'a>(&'a self, mailbox: &'a str, wait: Duration) -> StateFuture<'a, Vec<Bytes>> {
        self.0.memory.receive(mailbox, wait)
    }
}

#[cfg(test)]
mod tests;
