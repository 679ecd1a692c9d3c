//! Leases: a file with the newest lease of a name, and a lock that its holder keeps.
//!
//! The system releases the lock when the process ends, however it ends, so nobody
//! waits for the lease of a dead process to expire. A second lock makes sure that
//! only one process at a time acquires, renews or releases.

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, run};
use super::documents::{ignore_missing, read_file};
use super::{Directory, Files};
use crate::file::{self, Lock, Safety, with_path};
use crate::state::{Lease, Leases, StateError, StateFuture};

/// The newest lease of a name.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Newest {
    fence: u64,
    /// When it was acquired or renewed, in milliseconds since 1970.
    made: u64,
    /// The TTL in milliseconds.
    life: u64,
}

impl Leases for Files {
    fn acquire<'a>(
        &'a self,
        name: &'a str,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, Lease> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed_file("leases", name));
        let name = name.to_owned();
        run(timeout, move || {
            let Some(_decision_lock) = lock_decision(&file)? else { return Ok(Attempt::Busy) };
            let newest = read_newest(&file)?;
            let old = holder_file(&file, newest.fence);
            if !directory.is_expired(&file, &newest) && is_locked(&old)? {
                return Err(StateError::Conflict);
            }
            let fence = newest.fence + 1;
            let held = holder_file(&file, fence);
            let lock = Lock::try_beside(&held).map_err(StateError::unavailable)?;
            let lock = lock.ok_or(StateError::Conflict)?;
            directory.write_newest(&file, fence, ttl)?;
            directory.leases().insert(held, lock);
            directory.release_lock(&old);
            Ok(Attempt::Done(Lease { name: name.clone(), fence }))
        })
    }

    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed_file("leases", &lease.name));
        let fence = lease.fence;
        run(timeout, move || {
            let Some(_decision_lock) = lock_decision(&file)? else { return Ok(Attempt::Busy) };
            let newest = read_newest(&file)?;
            let is_held = directory.leases().contains_key(&holder_file(&file, fence));
            if newest.fence != fence || !is_held || directory.is_expired(&file, &newest) {
                return Err(StateError::Gone);
            }
            directory.write_newest(&file, fence, ttl).map(Attempt::Done)
        })
    }

    fn release(&self, lease: Lease, timeout: Duration) -> StateFuture<'_, ()> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed_file("leases", &lease.name));
        run(timeout, move || {
            let Some(_decision_lock) = lock_decision(&file)? else { return Ok(Attempt::Busy) };
            directory.release_lock(&holder_file(&file, lease.fence));
            Ok(Attempt::Done(()))
        })
    }
}

impl Directory {
    fn leases(&self) -> MutexGuard<'_, std::collections::HashMap<PathBuf, Lock>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_expired(&self, file: &Path, newest: &Newest) -> bool {
        let ttl = Duration::from_millis(newest.life);
        self.lifetimes.is_expired(&file.to_string_lossy(), newest.made, ttl)
    }

    fn write_newest(&self, file: &Path, fence: u64, ttl: Duration) -> Result<(), StateError> {
        let made = self.lifetimes.unix_millis();
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let text = tool::Json::encode(&Newest { fence, made, life: millis });
        let written = file::replace(file, text.as_bytes(), Safety::Unsynced);
        written.map_err(with_path("write", file)).map_err(StateError::unavailable)?;
        self.lifetimes.start(&file.to_string_lossy(), made, ttl);
        Ok(())
    }

    fn release_lock(&self, held: &Path) {
        self.leases().remove(held);
        // Nobody uses the lock file of an old lease again.
        let _ = std::fs::remove_file(held.with_extension("lock")).or_else(ignore_missing);
    }
}

/// Takes the lock for acquiring, renewing and releasing; `None` while another
/// process has it.
fn lock_decision(file: &Path) -> Result<Option<Lock>, StateError> {
    Lock::try_beside(&file.with_extension("lease")).map_err(StateError::unavailable)
}

/// Returns the file whose lock the holder of a lease keeps.
fn holder_file(file: &Path, fence: u64) -> PathBuf {
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

fn read_newest(file: &Path) -> Result<Newest, StateError> {
    let text = read_file(file, 1 << 10)?;
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default())
}
