//! Where artifacts live, and within which bounds.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::artifact::{Artifact, Header, Owner};

/// How an artifact is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// Where its store keeps artifacts.
    InPlace,
    /// In memory only, because it could not be written.
    InMemory { reason: String },
}

/// An artifact that is longer than all that its owner may have kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {bytes} bytes, and at most {limit} are kept for one caller")]
pub struct TooLong {
    pub bytes: usize,
    pub limit: usize,
}

/// Where artifacts live.
#[async_trait]
pub trait Store: Send + Sync {
    /// Keeps an artifact, and says how; or says that it is not kept. A call has
    /// one answer: an earlier one to the same call is no longer it.
    async fn put(&self, artifact: Artifact) -> Result<Keeping, TooLong>;

    /// The artifact of that handle, if the owner [opens](Owner::opens) it.
    async fn get(&self, owner: &Owner, handle: &str) -> Option<Arc<Artifact>>;

    /// The owner's artifact that answers the call with that key.
    async fn made_by(&self, owner: &Owner, key: &str) -> Option<Arc<Artifact>>;

    /// Forgets which call made an artifact, so that the same call runs again.
    async fn detach(&self, owner: &Owner, handle: &str);

    /// What there is of an owner, the latest first. Nothing is read for it.
    async fn list(&self, owner: &Owner) -> Vec<Header>;
}

/// Bounds on what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long an artifact lives.
    pub life: Duration,
    /// Bytes per owner.
    pub owner_bytes: usize,
    /// Bytes in all.
    pub total_bytes: usize,
}

impl Config {
    /// Whether an artifact can be kept at all.
    pub fn takes(&self, artifact: &Artifact) -> Result<(), TooLong> {
        let (bytes, limit) = (artifact.bytes(), self.owner_bytes.min(self.total_bytes));
        if limit < bytes { Err(TooLong { bytes, limit }) } else { Ok(()) }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config { life: Duration::from_secs(3600), owner_bytes: 64 << 20, total_bytes: 256 << 20 }
    }
}
