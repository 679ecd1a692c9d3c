//! Caches the listings that surfaces make of a snapshot.

use std::sync::Arc;

use parking_lot::Mutex;
use tool::{FastMap, Listing};

use super::listed::Variant;
use crate::choice::Surface;
use roster::Snapshot;

/// How many listings are cached before the cache is cleared.
const MAX_LISTINGS: usize = 64;

/// The listings, by surface, variant and visibility key. Every request needs one, and
/// making one visits every tool.
#[derive(Default)]
struct ListingCache(Mutex<FastMap<(Surface, Variant, String), Arc<Listing>>>);

/// Returns the cached listing of a surface for callers with this visibility key, or makes
/// it.
pub(crate) fn get_or_make(
    snapshot: &Snapshot,
    surface: Surface,
    variant: Variant,
    visibility_key: String,
    make: impl FnOnce() -> Listing,
) -> Arc<Listing> {
    let ListingCache(listings) = snapshot.derived(ListingCache::default);
    let key = (surface, variant, visibility_key);
    let lock = || listings.lock();
    if let Some(listing) = lock().get(&key) {
        return Arc::clone(listing);
    }
    // Outside of the lock: making one may need another listing.
    let listing = Arc::new(make());
    let mut made = lock();
    if MAX_LISTINGS <= made.len() {
        made.clear();
    }
    Arc::clone(made.entry(key).or_insert(listing))
}
