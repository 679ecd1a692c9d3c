//! Stores the bytes of shared artifacts: in values that expire by themselves, or in
//! blobs that a [`Sweeper`] has to delete.
//!
//! All blobs that expire in the same hour are stored under that hour, whoever owns
//! their artifacts, so that expired ones are found without knowing the owners. An
//! expiring value says under which hour a blob is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tool::clock::Clock;

use crate::document::{IfDamaged, JsonDocument};
use crate::state::{Blobs, Documents, Expiring, Leases, StateError};

/// How long a store operation may delay an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

const HOUR_MILLIS: u64 = 60 * 60 * 1000;
/// How long after their expiry blobs are deleted, because clocks differ.
const GRACE_MILLIS: u64 = HOUR_MILLIS / 4;
/// How many hours are swept if it is not known what was swept before.
const HOURS_BACK: u64 = 48;
/// How often expired blobs are deleted, and how long that may take.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10 * 60);
const SWEEP_TIMEOUT: Duration = Duration::from_secs(120);

/// Where the bytes of artifacts are stored.
#[derive(Clone)]
pub enum Contents {
    /// In values that expire.
    Values(Arc<dyn Expiring>),
    /// In blobs, such as objects. `places` holds the hour of each blob.
    Blobs { blobs: Arc<dyn Blobs>, places: Arc<dyn Expiring> },
}

impl Contents {
    pub(super) async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        ttl: Duration,
        now: u64,
    ) -> Result<(), StateError> {
        match self {
            Contents::Values(values) => values.put(key, bytes, ttl, TIMEOUT).await,
            Contents::Blobs { blobs, places } => {
                let ttl_millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
                let hour = hour(now.saturating_add(ttl_millis));
                blobs.put(&hour, key, bytes, TIMEOUT).await?;
                places.put(key, hour.into(), ttl, TIMEOUT).await
            }
        }
    }

    /// Lets the bytes live for `ttl` from now on, if they are there.
    pub(super) async fn renew(&self, key: &str, ttl: Duration, now: u64) -> Result<(), StateError> {
        match self {
            Contents::Values(values) => values.touch(key, ttl, TIMEOUT).await.map(drop),
            Contents::Blobs { blobs, places } => {
                let Some(before) = location(&**places, key).await? else { return Ok(()) };
                let Some(bytes) = self.get(key).await? else { return Ok(()) };
                self.put(key, bytes, ttl, now).await?;
                if location(&**places, key).await?.is_some_and(|after| after != before) {
                    blobs.delete(&before, key, TIMEOUT).await?;
                }
                Ok(())
            }
        }
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Bytes>, StateError> {
        match self {
            Contents::Values(values) => values.get(key, TIMEOUT).await,
            Contents::Blobs { blobs, places } => {
                let Some(hour) = location(&**places, key).await? else { return Ok(None) };
                match blobs.get(&hour, key, 0..u64::MAX, TIMEOUT).await {
                    Err(StateError::Gone) => Ok(None),
                    read => read.map(Some),
                }
            }
        }
    }

    /// Removes the bytes. What cannot be removed expires or is swept later.
    pub(super) async fn remove(&self, key: &str) {
        match self {
            Contents::Values(values) => drop(values.remove(key, TIMEOUT).await),
            Contents::Blobs { blobs, places } => {
                if let Ok(Some(hour)) = location(&**places, key).await {
                    let _ = blobs.delete(&hour, key, TIMEOUT).await;
                }
                let _ = places.remove(key, TIMEOUT).await;
            }
        }
    }
}

fn hour(millis: u64) -> String {
    (millis / HOUR_MILLIS).to_string()
}

async fn location(places: &dyn Expiring, key: &str) -> Result<Option<String>, StateError> {
    let place = places.get(key, TIMEOUT).await?;
    Ok(place.and_then(|place| String::from_utf8(place.into()).ok()))
}

/// Deletes expired blobs. Only one of several replicas does so at a time.
pub struct Sweeper {
    blobs: Arc<dyn Blobs>,
    leases: Arc<dyn Leases>,
    swept: JsonDocument<Swept>,
    clock: Arc<dyn Clock>,
}

/// The first hour since 1970 that may still have blobs.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Swept {
    until: u64,
}

impl Sweeper {
    pub fn new(
        blobs: Arc<dyn Blobs>,
        leases: Arc<dyn Leases>,
        documents: Arc<dyn Documents>,
        clock: Arc<dyn Clock>,
    ) -> Sweeper {
        let swept = JsonDocument::new(documents, "artifacts/swept", IfDamaged::StartOver);
        Sweeper { blobs, leases, swept, clock }
    }

    /// Sweeps at intervals, until it is dropped.
    pub async fn run(self) {
        loop {
            match self.sweep().await {
                Ok(0) | Err(StateError::Conflict) => {}
                Ok(n_blobs) => tracing::debug!(n_blobs, "took away results that are over"),
                Err(error) => tracing::warn!(%error, "cannot take away results that are over"),
            }
            tokio::time::sleep(SWEEP_INTERVAL).await;
        }
    }

    /// Deletes expired blobs and returns how many; [`StateError::Conflict`] while
    /// another replica does so.
    pub async fn sweep(&self) -> Result<usize, StateError> {
        let lease = self.leases.acquire("sweep artifacts", SWEEP_TIMEOUT, TIMEOUT).await?;
        let swept = tokio::time::timeout(SWEEP_TIMEOUT, self.sweep_alone()).await;
        self.leases.release(lease, TIMEOUT).await?;
        swept.unwrap_or_else(|_| Err(StateError::unavailable("it takes too long")))
    }

    async fn sweep_alone(&self) -> Result<usize, StateError> {
        // Only hours that have ended completely are swept.
        let end = self.clock.unix_millis().saturating_sub(GRACE_MILLIS) / HOUR_MILLIS;
        let known = self.swept.read().await.map_err(StateError::unavailable)?.until;
        let begin = if known == 0 { end.saturating_sub(HOURS_BACK) } else { known };
        let mut n_blobs = 0;
        for hour in begin..end {
            let hour = hour.to_string();
            for blob in self.blobs.list(&hour, SWEEP_TIMEOUT).await? {
                self.blobs.delete(&hour, &blob.name, TIMEOUT).await?;
                n_blobs += 1;
            }
        }
        if known < end {
            let noted = self.swept.change(|swept| swept.until = swept.until.max(end)).await;
            noted.map_err(StateError::unavailable)?;
        }
        Ok(n_blobs)
    }
}
