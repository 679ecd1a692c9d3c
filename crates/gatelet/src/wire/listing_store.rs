//! Listings and revisions, remembered in a directory, and with the other replicas
//! where there are some: a new one knows at once what they know.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use roster::ListingStore;
use store::clock::System;
use store::document::{IfDamaged, JsonDocument};
use store::files::{Files, Limits};
use store::state::{Change, Documents, Expiring, StateError, change, wait};

use super::shared::Shared;

/// How long a look at a file or into the store may take.
const WITHIN: Duration = Duration::from_secs(5);
/// How long a listing is remembered for others after it was last new.
const LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How many others may have left there.
const MOST: usize = 10_000;

/// A directory with one file per name.
pub(super) struct ListingDirectory {
    documents: Files,
    shared: Option<Shared>,
}

impl ListingDirectory {
    pub(super) fn new(path: &Path, shared: Option<Shared>) -> ListingDirectory {
        // What is lost is asked for again.
        let documents = Files::unsynced(path, Arc::new(System::start()), Limits::default());
        ListingDirectory { documents, shared }
    }

    /// Takes over what other replicas know and this one does not.
    pub(super) async fn learn(&self) {
        let Some(shared) = &self.shared else { return };
        match self.learn_from(shared).await {
            Ok(0) => {}
            Ok(n_listings) => tracing::debug!(n_listings, "know listings from other replicas"),
            Err(error) => tracing::warn!(%error, "cannot learn listings from other replicas"),
        }
    }

    async fn learn_from(&self, shared: &Shared) -> Result<usize, StateError> {
        let known = names(shared).read().await.map_err(StateError::unavailable)?;
        let mut n_listings = 0;
        for name in &known {
            if self.documents.read(name, WITHIN).await?.is_some() {
                continue;
            }
            let Some(sealed) = Expiring::get(shared.store(), &key(name), WITHIN).await? else {
                continue;
            };
            // What is forged is asked for again of its upstream.
            let Ok(text) = shared.seal().open(name, &sealed) else { continue };
            keep(&self.documents, name, text).await?;
            n_listings += 1;
        }
        Ok(n_listings)
    }
}

fn key(name: &str) -> String {
    format!("listing {name}")
}

/// The names of what replicas remember for each other.
fn names(shared: &Shared) -> JsonDocument<BTreeSet<String>> {
    let documents = Arc::new(shared.store().clone());
    JsonDocument::new(documents, "listings", IfDamaged::StartOver)
}

/// Puts a listing into the directory; whether it was another before.
async fn keep(documents: &Files, name: &str, text: &[u8]) -> Result<bool, StateError> {
    let mut is_new = false;
    let replace = |before: Option<&[u8]>| -> Result<Change, StateError> {
        is_new = before != Some(text);
        Ok(if is_new { Change::Replace(text.to_vec().into()) } else { Change::Keep })
    };
    change(documents, name, WITHIN, replace).await?;
    Ok(is_new)
}

/// Tells the other replicas, if they do not know it.
async fn tell(shared: Shared, name: String, text: Vec<u8>) -> Result<(), StateError> {
    let sealed = shared.seal().close(&name, &text);
    let known = Expiring::get(shared.store(), &key(&name), WITHIN).await?;
    if known.is_some_and(|known| known == sealed) {
        return shared.store().touch(&key(&name), LIFE, WITHIN).await.map(drop);
    }
    Expiring::put(shared.store(), &key(&name), sealed.into(), LIFE, WITHIN).await?;
    let add = |names: &mut BTreeSet<String>| {
        if names.len() < MOST {
            names.insert(name.clone());
        }
    };
    names(&shared).change(add).await.map(drop).map_err(StateError::unavailable)
}

impl ListingStore for ListingDirectory {
    fn load(&self, name: &str) -> Option<Vec<u8>> {
        let found = wait(self.documents.read(name, WITHIN)).ok()??;
        Some(found.bytes.into())
    }

    fn save(&self, name: &str, text: &[u8]) {
        if let Err(error) = wait(keep(&self.documents, name, text)) {
            let directory = self.documents.path().display();
            tracing::warn!(%directory, %error, "cannot remember a listing");
        }
        let Some(shared) = self.shared.clone() else { return };
        let (name, text) = (name.to_owned(), text.to_vec());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = tell(shared, name, text).await {
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
