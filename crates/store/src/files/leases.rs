//! Leases: a file that says who was let in last, and a lock that the holder keeps.
//!
//! The system lets go of the lock when the process ends, however it ends, so
//! nobody waits for the life of a lease whose holder is dead. Who is let in, and
//! who may go on, is decided one at a time under a second lock.

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, run};
use super::documents::{read, unless_missing};
use super::{Directory, Files};
use crate::file::{self, Lock, Safety, named};
use crate::state::{Lease, Leases, StateError, StateFuture};

/// The newest lease of a name.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Newest {
    fence: u64,
    /// When it was acquired or renewed, by the machine's clock.
    made: u64,
    /// In milliseconds.
    life: u64,
}

impl Leases for Files {
    fn acquire<'a>(
        &'a self,
        name: &'a str,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, Lease> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed("leases", name));
        let name = name.to_owned();
        run(within, move || {
            let Some(_one_at_a_time) = decide(&file)? else { return Ok(Attempt::Busy) };
            let newest = newest(&file)?;
            let old = held_by(&file, newest.fence);
            if !directory.is_over(&file, &newest) && is_locked(&old)? {
                return Err(StateError::Conflict);
            }
            let fence = newest.fence + 1;
            let held = held_by(&file, fence);
            let lock = Lock::try_beside(&held).map_err(StateError::unavailable)?;
            let lock = lock.ok_or(StateError::Conflict)?;
            directory.note(&file, fence, life)?;
            directory.leases().insert(held, lock);
            directory.let_go(&old);
            Ok(Attempt::Done(Lease { name: name.clone(), fence }))
        })
    }

    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed("leases", &lease.name));
        let fence = lease.fence;
        run(within, move || {
            let Some(_one_at_a_time) = decide(&file)? else { return Ok(Attempt::Busy) };
            let newest = newest(&file)?;
            let is_held = directory.leases().contains_key(&held_by(&file, fence));
            if newest.fence != fence || !is_held || directory.is_over(&file, &newest) {
                return Err(StateError::Gone);
            }
            directory.note(&file, fence, life).map(Attempt::Done)
        })
    }

    fn release(&self, lease: Lease, within: Duration) -> StateFuture<'_, ()> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed("leases", &lease.name));
        run(within, move || {
            let Some(_one_at_a_time) = decide(&file)? else { return Ok(Attempt::Busy) };
            directory.let_go(&held_by(&file, lease.fence));
            Ok(Attempt::Done(()))
        })
    }
}

impl Directory {
    fn leases(&self) -> MutexGuard<'_, std::collections::HashMap<PathBuf, Lock>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self, file: &Path, newest: &Newest) -> bool {
        let life = Duration::from_millis(newest.life);
        self.lifetimes.is_over(&file.to_string_lossy(), newest.made, life)
    }

    fn note(&self, file: &Path, fence: u64, life: Duration) -> Result<(), StateError> {
        let made = self.lifetimes.unix_millis();
        let millis = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
        let text = tool::Json::encode(&Newest { fence, made, life: millis });
        let written = file::replace(file, text.as_bytes(), Safety::Unsynced);
        written.map_err(named("write", file)).map_err(StateError::unavailable)?;
        self.lifetimes.begin(&file.to_string_lossy(), made, life);
        Ok(())
    }

    fn let_go(&self, held: &Path) {
        self.leases().remove(held);
        // A lock that nobody looks at any more is only in the way.
        let _ = std::fs::remove_file(held.with_extension("lock")).or_else(unless_missing);
    }
}

/// Held while it is decided whose a lease is.
fn decide(file: &Path) -> Result<Option<Lock>, StateError> {
    Lock::try_beside(&file.with_extension("lease")).map_err(StateError::unavailable)
}

/// What the holder of a lease keeps locked.
fn held_by(file: &Path, fence: u64) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!("-{fence}.held"));
    name.into()
}

fn is_locked(held: &Path) -> Result<bool, StateError> {
    if !held.with_extension("lock").exists() {
        return Ok(false);
    }
    let lock = Lock::try_beside(held).map_err(StateError::unavailable)?;
    Ok(lock.is_none())
}

fn newest(file: &Path) -> Result<Newest, StateError> {
    let text = read(file, 1 << 10)?;
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default())
}
