//! Where long results are kept.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use artifacts::{
    Artifact, ArtifactMeta, Config, Lookup, Memory, Owner, Store, StoredIn, TooLarge, Usage,
};
use async_trait::async_trait;
use mcp::http_client::{self, deepest};
use objects::Objects;
use reqwest::redirect::Policy;
use store::artifacts::Disk;
use store::files::Files;
use store::shared_artifacts::{Contents, SharedArtifacts, Sweeper};
use store::state::{Documents, Expiring, Leases};
use tokio::sync::OnceCell;
use tool::clock::Clock;

use super::shared::Shared;
use config::{Artifacts, Location, ObjectStore};

/// How long an object store may take to say whether it can be used.
const CHECKING: Duration = Duration::from_secs(10);

/// The store that the configuration asks for.
pub(super) fn store(
    config: &Artifacts,
    state: &Path,
    shared: Option<&Shared>,
    clock: &Arc<dyn Clock>,
) -> Arc<dyn Store> {
    let (bounds, clock) = (config.bounds.clone(), Arc::clone(clock));
    let directory = match &config.location {
        Location::Memory => return Arc::new(Memory::new(bounds, clock)),
        Location::Shared => {
            return match shared.map(|shared| Arc::new(shared.store().clone())) {
                Some(store) => of_values(store, bounds, clock),
                None => Arc::new(Memory::new(bounds, clock)),
            };
        }
        Location::SharedDirectory(directory) => {
            // What others on the machine may read is not ours to say.
            if let Err(error) = private(directory) {
                let directory = directory.display();
                tracing::warn!(%directory, %error, "long results are kept in memory only");
                return Arc::new(Memory::new(bounds, clock));
            }
            return of_values(Arc::new(Files::at(directory)), bounds, clock);
        }
        Location::Objects(store) => {
            let Some(blobs) = objects(store) else { return Arc::new(Memory::new(bounds, clock)) };
            let Index { values: places, documents, .. } = Index::new(state, shared);
            let contents = Contents::Blobs { blobs: Arc::new(blobs), places };
            return Arc::new(SharedArtifacts::new(contents, documents, bounds, clock));
        }
        Location::State => state.join("artifacts"),
        Location::Directory(directory) => directory.clone(),
    };
    Arc::new(OpenedWhenNeeded { directory, bounds, clock, opened: OnceCell::new() })
}

fn of_values<T: Expiring + Documents + 'static>(
    store: Arc<T>,
    bounds: Config,
    clock: Arc<dyn Clock>,
) -> Arc<dyn Store> {
    let contents = Contents::Values(Arc::clone(&store) as _);
    Arc::new(SharedArtifacts::new(contents, store, bounds, clock))
}

/// Looks after an object store, until dropped: says when it cannot be used, and
/// takes away what is over. Nothing to do elsewhere.
pub(super) async fn look_after(
    config: &Artifacts,
    state: &Path,
    shared: Option<&Shared>,
    clock: &Arc<dyn Clock>,
) {
    let Location::Objects(store) = &config.location else { return };
    let Some(objects) = objects(store) else { return };
    if let Err(error) = objects.check(CHECKING).await {
        let place = &store.config.place;
        tracing::error!(%place, %error, "long results are kept in memory until the object store can be used");
    }
    let Index { documents, leases, .. } = Index::new(state, shared);
    Sweeper::new(Arc::new(objects), leases, documents, Arc::clone(clock)).keep().await;
}

/// Where it is noted what is in an object store: in the store that replicas share,
/// or in the state directory where there is none.
struct Index {
    values: Arc<dyn Expiring>,
    documents: Arc<dyn Documents>,
    leases: Arc<dyn Leases>,
}

impl Index {
    fn new(state: &Path, shared: Option<&Shared>) -> Index {
        match shared.map(|shared| Arc::new(shared.store().clone())) {
            Some(store) => Index {
                values: Arc::clone(&store) as _,
                documents: Arc::clone(&store) as _,
                leases: store,
            },
            None => {
                let files = Arc::new(Files::at(&state.join("objects")));
                Index {
                    values: Arc::clone(&files) as _,
                    documents: Arc::clone(&files) as _,
                    leases: files,
                }
            }
        }
    }
}

fn objects(store: &ObjectStore) -> Option<Objects> {
    let client = crate::fetch::trusting(http_client::builder(), store.authority.as_deref());
    let client = client.redirect(Policy::none()).connect_timeout(CHECKING).build();
    let opened = client.map_err(|error| deepest(&error));
    let opened = opened.and_then(|client| Objects::new(&store.config, client));
    opened
        .inspect_err(|error| {
            let place = &store.config.place;
            tracing::error!(%place, %error, "long results are kept in memory only");
        })
        .ok()
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

    async fn get(&self, owner: &Owner, handle: &str) -> Lookup {
        self.store().await.get(owner, handle).await
    }

    async fn find_by_call(&self, owner: &Owner, key: &str) -> Lookup {
        self.store().await.find_by_call(owner, key).await
    }

    async fn forget_call(&self, owner: &Owner, handle: &str) {
        self.store().await.forget_call(owner, handle).await;
    }

    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta> {
        self.store().await.list(owner).await
    }

    /// The directory is asked for so that it does; what could not be opened is told in
    /// the log.
    fn survives_restart(&self) -> bool {
        true
    }

    async fn usage(&self) -> Option<Usage> {
        self.store().await.usage().await
    }
}
