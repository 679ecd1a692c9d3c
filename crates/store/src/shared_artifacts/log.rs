//! The log of a shared artifact: an expiring value that grows, and a lease.
//!
//! The lease refuses a second writer at once. What makes sure that there is only one is
//! the length of the value: whoever adds says where, and of two that add at the same
//! place one does. So a writer that lost its lease without noticing stores nothing.
//! A log begins with its artifact, so one that is missing is one that was lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use artifacts::{Artifact, Config, Log, LogError, OpenLog};
use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;
use tool::clock::Clock;

use super::contents::{Contents, TIMEOUT};
use super::index::{Index, OwnerIndex, value_key};
use crate::state::{Expiring, Lease, Leases, StateError};

/// How long a log stays with a writer that died.
const LEASE_TTL: Duration = Duration::from_secs(10);

/// Where the logs of artifacts are.
#[derive(Clone)]
pub struct Logs {
    /// A store that can lose writes has to say so: [`StateError::Gone`].
    pub values: Arc<dyn Expiring>,
    pub leases: Arc<dyn Leases>,
}

/// Returns the key of the log of the artifact with this key.
pub(super) fn log_key(artifact: &str) -> String {
    format!("log of {artifact}")
}

/// How many bytes of a log are counted ahead.
const STEP: usize = 16 << 10;

/// Counts the bytes of a log toward the limits of its owner.
pub(super) struct Size {
    pub(super) index: OwnerIndex,
    pub(super) contents: Contents,
    pub(super) config: Config,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) artifact: Arc<Artifact>,
}

impl Size {
    fn key(&self) -> String {
        value_key(&self.artifact.owner, &self.artifact.handle)
    }

    /// Counts a log of so many bytes. Returns how many are counted from now on.
    async fn count(&self, logs: &dyn Expiring, n_bytes: usize) -> Result<usize, LogError> {
        let (limit, own) =
            (self.config.owner_bytes.min(self.config.total_bytes), self.artifact.bytes());
        let room = limit.saturating_sub(own);
        if room < n_bytes {
            return Err(LogError::TooLarge { limit });
        }
        let counted = n_bytes.saturating_add(STEP).min(room);
        let ttl_millis = u64::try_from(self.config.ttl.as_millis()).unwrap_or(u64::MAX);
        let end = self.clock.unix_millis().saturating_add(ttl_millis);
        let mut gone = None;
        let grow = |index: &mut Index| {
            gone = index.grow(&self.artifact.handle, own + counted, end, &self.config);
        };
        self.index.change(grow).await.map_err(log_error)?;
        for handle in gone.ok_or_else(not_stored)? {
            let key = value_key(&self.artifact.owner, &handle);
            self.contents.remove(&key).await;
            // What cannot be removed expires.
            let _ = logs.remove(&log_key(&key), TIMEOUT).await;
        }
        Ok(counted)
    }
}

fn not_stored() -> LogError {
    LogError::unavailable("it is not stored any more")
}

/// A log that this process writes.
pub(super) struct SharedLog {
    values: Arc<dyn Expiring>,
    key: String,
    fence: u64,
    size: Size,
    state: Mutex<State>,
    /// Flushes take turns.
    turn: tokio::sync::Mutex<()>,
    /// Dropped with the log, which ends the lease.
    _held: oneshot::Sender<()>,
}

struct State {
    /// The length of the value, as far as is known.
    at: usize,
    /// What was added and is not stored yet.
    unstored: Vec<u8>,
    /// How many bytes are counted toward the owner's limits.
    counted: usize,
}

impl Logs {
    /// Begins the log of the artifact with this key, in place of an earlier one.
    pub(super) async fn begin(&self, artifact: &str, ttl: Duration) -> Result<(), StateError> {
        self.values.put(&log_key(artifact), Bytes::new(), ttl, TIMEOUT).await
    }

    /// Opens the log of an artifact, which lives anew.
    pub(super) async fn open(&self, size: Size) -> Result<OpenLog, LogError> {
        let key = log_key(&size.key());
        let lease = self.leases.acquire(&key, LEASE_TTL, TIMEOUT).await.map_err(log_error)?;
        let (fence, (held, dropped)) = (lease.fence, oneshot::channel());
        tokio::spawn(hold(Arc::clone(&self.leases), lease, dropped));
        let found = self.values.get(&key, TIMEOUT).await.map_err(log_error)?;
        let bytes = found.ok_or(LogError::Void)?;
        let counted = size.count(&*self.values, bytes.len()).await?;
        let (ttl, now) = (size.config.ttl, size.clock.unix_millis());
        size.contents.renew(&size.key(), ttl, now).await.map_err(log_error)?;
        let state = Mutex::new(State { at: bytes.len(), unstored: Vec::new(), counted });
        let (values, turn) = (Arc::clone(&self.values), tokio::sync::Mutex::default());
        let log = SharedLog { values, key, fence, size, state, turn, _held: held };
        Ok(OpenLog { log: Box::new(log), bytes: bytes.into() })
    }

    pub(super) async fn remove(&self, key: &str) {
        // What cannot be removed expires.
        let _ = self.values.remove(key, TIMEOUT).await;
    }
}

/// Renews a lease until the log is dropped, then ends it.
async fn hold(leases: Arc<dyn Leases>, lease: Lease, mut dropped: oneshot::Receiver<()>) {
    loop {
        tokio::select! {
            _ = &mut dropped => break,
            () = tokio::time::sleep(LEASE_TTL / 3) => {
                if leases.renew(&lease, LEASE_TTL, TIMEOUT).await == Err(StateError::Gone) {
                    return;
                }
            }
        }
    }
    let _ = leases.release(lease, TIMEOUT).await;
}

fn log_error(error: StateError) -> LogError {
    match error {
        StateError::Conflict => LogError::Taken,
        StateError::TooLarge { limit } => {
            LogError::TooLarge { limit: usize::try_from(limit).unwrap_or(usize::MAX) }
        }
        StateError::Gone => LogError::Void,
        StateError::Unavailable { .. } => LogError::unavailable(error),
    }
}

impl SharedLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds out whether the bytes of a flush without an answer were stored after all.
    async fn catch_up(&self, at: usize) -> Result<(), LogError> {
        let value = self.values.get(&self.key, TIMEOUT).await.map_err(log_error)?;
        let value = value.ok_or_else(not_stored)?;
        let mut state = self.state();
        match value.get(at..).filter(|more| !more.is_empty()) {
            Some(more) if state.unstored.starts_with(more) => {
                state.at = value.len();
                state.unstored.drain(..more.len());
                Ok(())
            }
            Some(_) | None => Err(LogError::Taken),
        }
    }
}

#[async_trait]
impl Log for SharedLog {
    fn add(&self, bytes: &[u8]) {
        self.state().unstored.extend_from_slice(bytes);
    }

    async fn flush(&self) -> Result<(), LogError> {
        let _turn = self.turn.lock().await;
        loop {
            let (at, counted, bytes) = {
                let state = self.state();
                (state.at, state.counted, Bytes::copy_from_slice(&state.unstored))
            };
            let n_bytes = bytes.len();
            if n_bytes == 0 {
                return Ok(());
            }
            if counted < at + n_bytes {
                let counted = self.size.count(&*self.values, at + n_bytes).await?;
                self.state().counted = counted;
            }
            let ttl = self.size.config.ttl;
            match self.values.append_at(&self.key, at as u64, bytes, ttl, TIMEOUT).await {
                Ok(()) => {
                    let mut state = self.state();
                    state.at += n_bytes;
                    state.unstored.drain(..n_bytes);
                }
                Err(StateError::Conflict) => self.catch_up(at).await?,
                Err(error) => return Err(log_error(error)),
            }
        }
    }

    fn fence(&self) -> u64 {
        self.fence
    }
}
