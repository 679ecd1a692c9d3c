//! Where the bytes of kept answers are: values that expire by themselves, or blobs
//! that somebody has to take away.
//!
//! Blobs lie together by the hour in which they end, whoever owns them, so that
//! what is over is found without asking who has anything. A value that expires
//! says in which hour a blob lies.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tool::clock::Clock;

use crate::document::{IfDamaged, JsonDocument};
use crate::state::{Blobs, Documents, Expiring, Leases, StateError};

/// How long storing may hold up an answer.
pub(super) const WITHIN: Duration = Duration::from_secs(5);

const HOUR: u64 = 60 * 60 * 1000;
/// How much longer blobs are left in peace than they live: clocks differ.
const GRACE: u64 = HOUR / 4;
/// How many hours are looked through when nobody knows what was swept before.
const BACK: u64 = 48;
/// How often what is over is taken away, and how long that may take.
const SWEEP: Duration = Duration::from_secs(10 * 60);
const SWEEPING: Duration = Duration::from_secs(120);

/// Where bytes are.
#[derive(Clone)]
pub enum Contents {
    /// In values that expire.
    Values(Arc<dyn Expiring>),
    /// In blobs, such as objects; values say where.
    Blobs { blobs: Arc<dyn Blobs>, places: Arc<dyn Expiring> },
}

impl Contents {
    pub(super) async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        life: Duration,
        now: u64,
    ) -> Result<(), StateError> {
        match self {
            Contents::Values(values) => values.put(key, bytes, life, WITHIN).await,
            Contents::Blobs { blobs, places } => {
                let life_millis = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
                let hour = hour(now.saturating_add(life_millis));
                blobs.put(&hour, key, bytes, WITHIN).await?;
                places.put(key, hour.into(), life, WITHIN).await
            }
        }
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Bytes>, StateError> {
        match self {
            Contents::Values(values) => values.get(key, WITHIN).await,
            Contents::Blobs { blobs, places } => {
                let Some(hour) = place(&**places, key).await? else { return Ok(None) };
                match blobs.get(&hour, key, 0..u64::MAX, WITHIN).await {
                    Err(StateError::Gone) => Ok(None),
                    read => read.map(Some),
                }
            }
        }
    }

    /// What cannot be removed ends by itself, or is swept.
    pub(super) async fn remove(&self, key: &str) {
        match self {
            Contents::Values(values) => drop(values.remove(key, WITHIN).await),
            Contents::Blobs { blobs, places } => {
                if let Ok(Some(hour)) = place(&**places, key).await {
                    let _ = blobs.delete(&hour, key, WITHIN).await;
                }
                let _ = places.remove(key, WITHIN).await;
            }
        }
    }
}

fn hour(millis: u64) -> String {
    (millis / HOUR).to_string()
}

async fn place(places: &dyn Expiring, key: &str) -> Result<Option<String>, StateError> {
    let place = places.get(key, WITHIN).await?;
    Ok(place.and_then(|place| String::from_utf8(place.into()).ok()))
}

/// Takes away blobs that are over. Of several replicas one does it at a time.
pub struct Sweeper {
    blobs: Arc<dyn Blobs>,
    leases: Arc<dyn Leases>,
    swept: JsonDocument<Swept>,
    clock: Arc<dyn Clock>,
}

/// The first hour that may still hold something, since 1970.
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

    /// Sweeps now and then, until dropped.
    pub async fn keep(self) {
        loop {
            match self.sweep().await {
                Ok(0) | Err(StateError::Conflict) => {}
                Ok(n_blobs) => tracing::debug!(n_blobs, "took away results that are over"),
                Err(error) => tracing::warn!(%error, "cannot take away results that are over"),
            }
            tokio::time::sleep(SWEEP).await;
        }
    }

    /// Takes away what is over and gives how many that were; a
    /// [`StateError::Conflict`] while another replica does it.
    pub async fn sweep(&self) -> Result<usize, StateError> {
        let lease = self.leases.acquire("sweep artifacts", SWEEPING, WITHIN).await?;
        let swept = tokio::time::timeout(SWEEPING, self.sweep_alone()).await;
        self.leases.release(lease, WITHIN).await?;
        swept.unwrap_or_else(|_| Err(StateError::unavailable("it takes too long")))
    }

    async fn sweep_alone(&self) -> Result<usize, StateError> {
        // An hour is over when everything that ends in it has ended.
        let end = self.clock.unix_millis().saturating_sub(GRACE) / HOUR;
        let known = self.swept.read().await.map_err(StateError::unavailable)?.until;
        let begin = if known == 0 { end.saturating_sub(BACK) } else { known };
        let mut n_blobs = 0;
        for hour in begin..end {
            let hour = hour.to_string();
            for blob in self.blobs.list(&hour, SWEEPING).await? {
                self.blobs.delete(&hour, &blob.name, WITHIN).await?;
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
