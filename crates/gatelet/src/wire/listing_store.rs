//! Remembers the listings and protocol revisions of upstreams: in a directory, and in
//! the store that replicas share, so that a new replica has them at once.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use roster::ListingStore;
use store::clock::System;
use store::document::{IfDamaged, JsonDocument};
use store::files::{Files, Limits};
use store::state::{Change, Documents, Expiring, StateError, change, wait};

use super::cluster::Cluster;

/// How long one operation on a file or on the shared store may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a listing stays in the shared store after it was last saved.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How many listings may be in the shared store.
const MAX_LISTINGS: usize = 10_000;

/// A directory with one file per name.
pub(super) struct ListingDirectory {
    documents: Files,
    cluster: Option<Cluster>,
}

impl ListingDirectory {
    pub(super) fn new(path: &Path, cluster: Option<Cluster>) -> ListingDirectory {
        // Not synced to disk: what is lost is asked of the upstream again.
        let documents = Files::unsynced(path, Arc::new(System::start()), Limits::default());
        ListingDirectory { documents, cluster }
    }

    /// Copies the listings that other replicas have and this one has not.
    pub(super) async fn load_from_replicas(&self) {
        let Some(cluster) = &self.cluster else { return };
        match self.load_from(cluster).await {
            Ok(0) => {}
            Ok(n_listings) => tracing::debug!(n_listings, "know listings from other replicas"),
            Err(error) => tracing::warn!(%error, "cannot learn listings from other replicas"),
        }
    }

    /// Returns how many listings it copied.
    async fn load_from(&self, cluster: &Cluster) -> Result<usize, StateError> {
        let names = shared_names(cluster).read().await.map_err(StateError::unavailable)?;
        let mut n_listings = 0;
        for name in &names {
            if self.documents.read(name, TIMEOUT).await?.is_some() {
                continue;
            }
            let Some(signed) = Expiring::get(cluster.store(), &key(name), TIMEOUT).await? else {
                continue;
            };
            // Instead of one that is forged, the upstream is asked again.
            let Ok(text) = cluster.signer().verify(name, &signed) else { continue };
            write_if_changed(&self.documents, name, text).await?;
            n_listings += 1;
        }
        Ok(n_listings)
    }
}

fn key(name: &str) -> String {
    format!("listing {name}")
}

/// The names of all listings in the shared store.
fn shared_names(cluster: &Cluster) -> JsonDocument<BTreeSet<String>> {
    let documents = Arc::new(cluster.store().clone());
    JsonDocument::new(documents, "listings", IfDamaged::StartOver)
}

/// Writes a listing into the directory, unless the same is there already.
async fn write_if_changed(documents: &Files, name: &str, text: &[u8]) -> Result<(), StateError> {
    let replace = |before: Option<&[u8]>| -> Result<Change, StateError> {
        let is_new = before != Some(text);
        Ok(if is_new { Change::Replace(text.to_vec().into()) } else { Change::Keep })
    };
    change(documents, name, TIMEOUT, replace).await.map(drop)
}

/// Puts a listing into the shared store, or makes it live longer if it is there.
async fn share(cluster: Cluster, name: String, text: Vec<u8>) -> Result<(), StateError> {
    let signed = cluster.signer().sign(&name, &text);
    let before = Expiring::get(cluster.store(), &key(&name), TIMEOUT).await?;
    if before.is_some_and(|before| before == signed) {
        return cluster.store().touch(&key(&name), LIFETIME, TIMEOUT).await.map(drop);
    }
    Expiring::put(cluster.store(), &key(&name), signed.into(), LIFETIME, TIMEOUT).await?;
    let add = |names: &mut BTreeSet<String>| {
        if names.len() < MAX_LISTINGS {
            names.insert(name.clone());
        }
    };
    shared_names(&cluster).change(add).await.map(drop).map_err(StateError::unavailable)
}

impl ListingStore for ListingDirectory {
    fn load(&self, name: &str) -> Option<Vec<u8>> {
        let found = wait(self.documents.read(name, TIMEOUT)).ok()??;
        Some(found.bytes.into())
    }

    fn save(&self, name: &str, text: &[u8]) {
        if let Err(error) = wait(write_if_changed(&self.documents, name, text)) {
            let directory = self.documents.path().display();
            tracing::warn!(%directory, %error, "cannot remember a listing");
        }
        let Some(cluster) = self.cluster.clone() else { return };
        let (name, text) = (name.to_owned(), text.to_vec());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = share(cluster, name, text).await {
                    tracing::debug!(%error, "other replicas do not hear of a listing");
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_there_in_the_next_run() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("listings");
        assert_eq!(ListingDirectory::new(&path, None).load("a"), None);
        ListingDirectory::new(&path, None).save("a", b"one");
        ListingDirectory::new(&path, None).save("a", b"two");
        assert_eq!(
            ListingDirectory::new(&path, None).load("a").as_deref(),
            Some(b"two".as_slice())
        );
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_cannot_be_written_loses_nothing_else() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let listings = ListingDirectory::new(&file.path().join("below"), None);
        listings.save("a", b"one");
        assert_eq!(listings.load("a"), None);
    }
}
