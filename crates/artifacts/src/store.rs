//! The interface of artifact stores, and their size limits.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::artifact::{Artifact, ArtifactMeta, Owner};
use crate::log::{LogError, OpenLog};

/// Where an artifact was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredIn {
    /// In the regular place of the store, such as its directory.
    Stored,
    /// In memory only, because writing it failed.
    MemoryFallback { reason: String },
}

/// The artifact is larger than everything that one owner may store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the result has {bytes} bytes, and at most {limit} are stored for one caller")]
pub struct TooLarge {
    pub bytes: usize,
    pub limit: usize,
}

/// The store cannot be read now, so whether it holds something is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store of results cannot be read now: {reason}")]
pub struct Unreadable {
    pub reason: String,
}

/// The result of a lookup: `Ok(None)` if the store certainly has no such artifact.
pub type Lookup = Result<Option<Arc<Artifact>>, Unreadable>;

/// A store of artifacts.
#[async_trait]
pub trait Store: Send + Sync {
    /// Stores an artifact and returns where, or fails if it is too large. An
    /// earlier artifact of the same call is no longer found by that call, and one
    /// with the same handle is replaced.
    async fn put(&self, artifact: Artifact) -> Result<StoredIn, TooLarge>;

    /// Stores an artifact as [`Store::put`] does, and begins its log anew: a store that
    /// can lose writes notices when the log is opened ([`LogError::Void`]).
    async fn put_with_log(&self, artifact: Artifact) -> Result<StoredIn, TooLarge> {
        self.put(artifact).await
    }

    /// Returns the artifact with this handle, if the owner [may open](Owner::opens) it.
    /// A caller that gets `None` may run the call again, so a store that cannot be
    /// read must fail instead.
    async fn get(&self, owner: &Owner, handle: &str) -> Lookup;

    /// Returns the owner's artifact with the result of the call with this
    /// [key](Artifact::key). If this fails the call must not run: it may have run
    /// before.
    async fn find_by_call(&self, owner: &Owner, key: &str) -> Lookup;

    /// Returns the latest artifact of the call with this key, of the owner or of one that
    /// the owner [may have been](Owner::may_have_been), unless it was
    /// [forgotten](Store::forget_call). Only the owner may learn its handle.
    async fn find_begun(&self, owner: &Owner, key: &str) -> Lookup {
        self.find_by_call(owner, key).await
    }

    /// Forgets which call created an artifact, so that the same call runs again.
    async fn forget_call(&self, owner: &Owner, handle: &str);

    /// Lists an owner's artifacts, the latest first, without reading their content.
    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta>;

    /// Opens the log of a stored artifact for writing; `None` if this store keeps no
    /// logs, or not for this artifact. What is added to the log counts toward the
    /// owner's limits, and it goes with its artifact.
    async fn open_log(&self, owner: &Owner, handle: &str) -> Result<Option<OpenLog>, LogError> {
        let _ = (owner, handle);
        Ok(None)
    }

    /// Returns whether artifacts are still there after a restart.
    fn survives_restart(&self) -> bool {
        false
    }

    /// Returns how much is stored for all owners together; `None` if that is not
    /// counted.
    async fn usage(&self) -> Option<Usage> {
        None
    }
}

/// How much is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of artifacts.
    pub artifacts: usize,
    pub bytes: usize,
}

/// The limits of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long an artifact is stored.
    pub ttl: Duration,
    /// The maximum number of bytes per owner.
    pub owner_bytes: usize,
    /// The maximum number of bytes of all owners together.
    pub total_bytes: usize,
}

impl Config {
    /// Fails if an artifact is too large to be stored at all.
    pub fn check_size(&self, artifact: &Artifact) -> Result<(), TooLarge> {
        let (bytes, limit) = (artifact.bytes(), self.owner_bytes.min(self.total_bytes));
        if limit < bytes { Err(TooLarge { bytes, limit }) } else { Ok(()) }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config { ttl: Duration::from_secs(3600), owner_bytes: 64 << 20, total_bytes: 256 << 20 }
    }
}
