//! Stores the listings of upstreams between runs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tool::{Json, Listing};

use super::profile::Profile;
use super::upstream::Upstream;

/// Stores texts by name. A name consists of letters, digits, `-` and `_`, so that it can
/// be a file name.
pub trait ListingStore: Send + Sync {
    fn load(&self, name: &str) -> Option<Vec<u8>>;

    /// Stores a text. Losing it does no harm: the next run asks the upstream.
    fn save(&self, name: &str, text: &[u8]);
}

/// A store that lasts as long as the process.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<HashMap<String, Vec<u8>>>);

impl ListingStore for InMemory {
    fn load(&self, name: &str) -> Option<Vec<u8>> {
        self.0.lock().get(name).cloned()
    }

    fn save(&self, name: &str, text: &[u8]) {
        let mut texts = self.0.lock();
        texts.insert(name.to_owned(), text.to_owned());
    }
}

/// The stored listings of upstreams by client profile, and which of them were
/// refreshed in this run.
pub(crate) struct ListingCache {
    store: Arc<dyn ListingStore>,
    listed_this_run: Mutex<HashSet<String>>,
}

impl ListingCache {
    pub(crate) fn new(store: Arc<dyn ListingStore>) -> ListingCache {
        ListingCache { store, listed_this_run: Mutex::default() }
    }

    /// Loads what an upstream last listed for clients with this profile.
    pub(crate) fn load(&self, upstream: &Upstream, profile: &Profile) -> Option<Listing> {
        let text = self.store.load(&name(upstream, profile))?;
        Json::parse(text).ok()?.parse_as().ok()
    }

    /// Stores a listing. Writing may block.
    pub(crate) fn save(&self, upstream: &Upstream, profile: &Profile, listing: &Listing) {
        self.store.save(&name(upstream, profile), Json::encode(listing).as_bytes());
    }

    /// Returns whether the upstream was listed for this profile in this run.
    pub(crate) fn was_listed(&self, upstream: &Upstream, profile: &Profile) -> bool {
        self.lock().contains(&name(upstream, profile))
    }

    pub(crate) fn mark_listed(&self, upstream: &Upstream, profile: &Profile) {
        self.lock().insert(name(upstream, profile));
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.listed_this_run.lock()
    }
}

/// Returns the name under which a listing is stored.
fn name(upstream: &Upstream, profile: &Profile) -> String {
    let key = format!("{}\u{1f}{}\u{1f}{}", upstream.label, upstream.fingerprint, profile.text());
    format!("{}-{}", catalog::name::alias(&upstream.label), catalog::name::tag(&key, 16))
}
