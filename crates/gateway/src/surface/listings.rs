//! What each surface lists of a snapshot, made when first needed.

use std::sync::Arc;

use parking_lot::Mutex;
use tool::{FastMap, Listing};

use super::listed::Variant;
use crate::choice::Surface;
use roster::Snapshot;

/// How many listings are kept before all are made again.
const MOST: usize = 64;

/// By surface, kind of client and what its callers see: every request needs a
/// listing, and making one takes a look at every tool.
#[derive(Default)]
struct Listings(Mutex<FastMap<(Surface, Variant, String), Arc<Listing>>>);

/// What a surface lists for callers with this visibility key.
pub(crate) fn listing(
    snapshot: &Snapshot,
    surface: Surface,
    variant: Variant,
    view_key: String,
    make: impl FnOnce() -> Listing,
) -> Arc<Listing> {
    let Listings(listings) = snapshot.derived(Listings::default);
    let key = (surface, variant, view_key);
    let lock = || listings.lock();
    if let Some(listing) = lock().get(&key) {
        return Arc::clone(listing);
    }
    // Outside of the lock: making one may need another listing.
    let listing = Arc::new(make());
    let mut made = lock();
    if MOST <= made.len() {
        made.clear();
    }
    Arc::clone(made.entry(key).or_insert(listing))
}
