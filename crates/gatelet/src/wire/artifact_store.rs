//! Where long results are kept.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use artifacts::{Artifact, ArtifactMeta, Config, Memory, Owner, Store, StoredIn, TooLarge};
use async_trait::async_trait;
use store::artifacts::Disk;
use store::shared_artifacts::SharedArtifacts;
use tokio::sync::OnceCell;
use tool::clock::Clock;

use super::shared::Shared;
use config::{Artifacts, Location};

/// The store that the configuration asks for.
pub(super) fn store(
    config: &Artifacts,
    state: &Path,
    shared: Option<&Shared>,
    clock: &Arc<dyn Clock>,
) -> Arc<dyn Store> {
    let directory = match &config.location {
        Location::Shared => {
            let (bounds, clock) = (config.bounds.clone(), Arc::clone(clock));
            return match shared.map(|shared| Arc::new(shared.store().clone())) {
                Some(store) => {
                    Arc::new(SharedArtifacts::new(Arc::clone(&store) as _, store, bounds, clock))
                }
                None => Arc::new(Memory::new(bounds, clock)),
            };
        }
        Location::Memory => {
            return Arc::new(Memory::new(config.bounds.clone(), Arc::clone(clock)));
        }
        Location::State => state.join("artifacts"),
        Location::Directory(directory) => directory.clone(),
    };
    let (bounds, clock) = (config.bounds.clone(), Arc::clone(clock));
    Arc::new(OpenedWhenNeeded { directory, bounds, clock, opened: OnceCell::new() })
}

/// A directory that is opened by who first asks for something in it, because
/// reading what is there takes a while and most runs keep nothing.
struct OpenedWhenNeeded {
    directory: PathBuf,
    bounds: Config,
    clock: Arc<dyn Clock>,
    opened: OnceCell<Arc<dyn Store>>,
}

impl OpenedWhenNeeded {
    async fn store(&self) -> &dyn Store {
        &**self.opened.get_or_init(|| self.open()).await
    }

    /// Falls back to memory: a disk that cannot be written must not take the
    /// results with it.
    async fn open(&self) -> Arc<dyn Store> {
        let (bounds, clock) = (self.bounds.clone(), Arc::clone(&self.clock));
        let made = private(&self.directory);
        let disk = match made {
            Ok(()) => Disk::open(&self.directory, bounds.clone(), Arc::clone(&clock)).await,
            Err(error) => Err(error),
        };
        match disk {
            Ok(disk) => Arc::new(disk),
            Err(error) => {
                let directory = self.directory.display();
                tracing::warn!(%directory, %error, "long results are kept in memory only");
                Arc::new(Memory::new(bounds, clock))
            }
        }
    }
}

/// Results may hold anything, so only their owner reads them.
fn private(directory: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[async_trait]
impl Store for OpenedWhenNeeded {
    async fn put(&self, artifact: Artifact) -> Result<StoredIn, TooLarge> {
        self.store().await.put(artifact).await
    }

    async fn get(&self, owner: &Owner, handle: &str) -> Option<Arc<Artifact>> {
        self.store().await.get(owner, handle).await
    }

    async fn find_by_call(&self, owner: &Owner, key: &str) -> Option<Arc<Artifact>> {
        self.store().await.find_by_call(owner, key).await
    }

    async fn forget_call(&self, owner: &Owner, handle: &str) {
        self.store().await.forget_call(owner, handle).await;
    }

    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta> {
        self.store().await.list(owner).await
    }
}
