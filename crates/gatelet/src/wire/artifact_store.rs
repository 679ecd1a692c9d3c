//! Opens the store of artifacts (long results) that the configuration asks for: in
//! memory, in a directory, with the other replicas or in an object store.
//!
//! A store that cannot be opened is logged and replaced by memory: results must not be
//! lost because a disk is full.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use artifacts::{
    Artifact, ArtifactMeta, Config, LogError, Lookup, Memory, OpenLog, Owner, Store, StoredIn,
    TooLarge, Usage,
};
use async_trait::async_trait;
use mcp::http_client::{self, root_cause};
use objects::Objects;
use reqwest::redirect::Policy;
use store::artifacts::Disk;
use store::files::Files;
use store::shared_artifacts::{Contents, Logs, SharedArtifacts, Sweeper};
use store::state::{Documents, Expiring, Leases};
use tokio::sync::OnceCell;
use tool::clock::Clock;
use valkey::{EpochValues, Valkey};

use super::cluster::Cluster;
use config::{Artifacts, Location, ObjectStore};

/// How long connecting to an object store and checking it may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the store that the configuration asks for.
pub(super) fn open(
    config: &Artifacts,
    state: &Path,
    cluster: Option<&Cluster>,
    clock: &Arc<dyn Clock>,
) -> Arc<dyn Store> {
    let (bounds, clock) = (config.bounds.clone(), Arc::clone(clock));
    let directory = match &config.location {
        Location::Memory => return Arc::new(Memory::new(bounds, clock)),
        Location::Shared => {
            return match cluster {
                Some(cluster) => {
                    let logs = replica_logs(cluster.store());
                    shared_artifacts(Arc::new(cluster.store().clone()), logs, bounds, clock)
                }
                None => Arc::new(Memory::new(bounds, clock)),
            };
        }
        Location::SharedDirectory(directory) => {
            if let Err(error) = create_private(directory) {
                let directory = directory.display();
                tracing::warn!(%directory, %error, "long results are kept in memory only");
                return Arc::new(Memory::new(bounds, clock));
            }
            let files = Arc::new(Files::at(directory));
            let logs = Logs { values: Arc::clone(&files) as _, leases: Arc::clone(&files) as _ };
            return shared_artifacts(files, logs, bounds, clock);
        }
        Location::Objects(store) => {
            let Some(blobs) = object_store(store) else {
                return Arc::new(Memory::new(bounds, clock));
            };
            let ObjectIndex { values, documents, leases } = ObjectIndex::new(state, cluster);
            let logs = match cluster {
                Some(cluster) => replica_logs(cluster.store()),
                None => Logs { values: Arc::clone(&values), leases },
            };
            let contents = Contents::Blobs { blobs: Arc::new(blobs), places: values };
            return Arc::new(SharedArtifacts::new(contents, documents, logs, bounds, clock));
        }
        Location::State => state.join("artifacts"),
        Location::Directory(directory) => directory.clone(),
    };
    Arc::new(LazyDirectory { directory, bounds, clock, opened: OnceCell::new() })
}

/// The logs of artifacts in the store of replicas: void after a failover of the store,
/// because a script that goes on without the last lines of its journal repeats calls.
fn replica_logs(store: &Valkey) -> Logs {
    let values = Arc::new(EpochValues(store.clone()));
    Logs { values, leases: Arc::new(store.clone()) }
}

/// Artifacts as values of a store that replicas share.
fn shared_artifacts<T: Expiring + Documents + 'static>(
    store: Arc<T>,
    logs: Logs,
    bounds: Config,
    clock: Arc<dyn Clock>,
) -> Arc<dyn Store> {
    let contents = Contents::Values(Arc::clone(&store) as _);
    Arc::new(SharedArtifacts::new(contents, store, logs, bounds, clock))
}

/// Checks that the object store can be used and sweeps expired artifacts out of it,
/// until dropped. Returns immediately where artifacts are kept elsewhere.
pub(super) async fn maintain(
    config: &Artifacts,
    state: &Path,
    cluster: Option<&Cluster>,
    clock: &Arc<dyn Clock>,
) {
    let Location::Objects(store) = &config.location else { return };
    let Some(objects) = object_store(store) else { return };
    if let Err(error) = objects.check(CHECK_TIMEOUT).await {
        let place = &store.config.place;
        tracing::error!(%place, %error, "long results are kept in memory until the object store can be used");
    }
    let ObjectIndex { documents, leases, .. } = ObjectIndex::new(state, cluster);
    Sweeper::new(Arc::new(objects), leases, documents, Arc::clone(clock)).run().await;
}

/// Stores the index of an object store: in the store that replicas share, or in the
/// state directory of a single gatelet.
struct ObjectIndex {
    values: Arc<dyn Expiring>,
    documents: Arc<dyn Documents>,
    leases: Arc<dyn Leases>,
}

impl ObjectIndex {
    fn new(state: &Path, cluster: Option<&Cluster>) -> ObjectIndex {
        match cluster.map(|cluster| Arc::new(cluster.store().clone())) {
            Some(store) => ObjectIndex {
                values: Arc::clone(&store) as _,
                documents: Arc::clone(&store) as _,
                leases: store,
            },
            None => {
                let files = Arc::new(Files::at(&state.join("objects")));
                ObjectIndex {
                    values: Arc::clone(&files) as _,
                    documents: Arc::clone(&files) as _,
                    leases: files,
                }
            }
        }
    }
}

/// The object store as configured; `None`, with an error in the log, if its settings
/// cannot work.
fn object_store(store: &ObjectStore) -> Option<Objects> {
    let client = crate::fetch::with_authority(http_client::builder(), store.authority.as_deref());
    let client = client.redirect(Policy::none()).connect_timeout(CHECK_TIMEOUT).build();
    let opened = client.map_err(|error| root_cause(&error));
    let opened = opened.and_then(|client| Objects::new(&store.config, client));
    opened
        .inspect_err(|error| {
            let place = &store.config.place;
            tracing::error!(%place, %error, "long results are kept in memory only");
        })
        .ok()
}

/// A directory of artifacts that is opened at its first use, because reading it takes
/// a while and most runs store nothing.
struct LazyDirectory {
    directory: PathBuf,
    bounds: Config,
    clock: Arc<dyn Clock>,
    opened: OnceCell<Arc<dyn Store>>,
}

impl LazyDirectory {
    async fn store(&self) -> &dyn Store {
        &**self.opened.get_or_init(|| self.open()).await
    }

    /// Opens the directory, or falls back to memory.
    async fn open(&self) -> Arc<dyn Store> {
        let (bounds, clock) = (self.bounds.clone(), Arc::clone(&self.clock));
        let made = create_private(&self.directory);
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

/// Makes a directory that only its owner can read: results may hold anything. One that
/// exists keeps its permissions.
fn create_private(directory: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[async_trait]
impl Store for LazyDirectory {
    async fn put(&self, artifact: Artifact) -> Result<StoredIn, TooLarge> {
        self.store().await.put(artifact).await
    }

    async fn get(&self, owner: &Owner, handle: &str) -> Lookup {
        self.store().await.get(owner, handle).await
    }

    async fn find_by_call(&self, owner: &Owner, key: &str) -> Lookup {
        self.store().await.find_by_call(owner, key).await
    }

    async fn find_begun(&self, owner: &Owner, key: &str) -> Lookup {
        self.store().await.find_begun(owner, key).await
    }

    async fn forget_call(&self, owner: &Owner, handle: &str) {
        self.store().await.forget_call(owner, handle).await;
    }

    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta> {
        self.store().await.list(owner).await
    }

    async fn open_log(&self, owner: &Owner, handle: &str) -> Result<Option<OpenLog>, LogError> {
        self.store().await.open_log(owner, handle).await
    }

    /// True also for the fallback in memory, of which the log tells.
    fn survives_restart(&self) -> bool {
        true
    }

    async fn usage(&self) -> Option<Usage> {
        self.store().await.usage().await
    }
}
