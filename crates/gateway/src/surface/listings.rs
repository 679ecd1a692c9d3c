//! What each surface lists of a snapshot, made when first needed.

use std::sync::Arc;

use parking_lot::Mutex;
use tool::{Listing, QuickMap};

use super::listed::Variant;
use crate::choice::Surface;
use roster::Snapshot;

/// How many listings are kept before all are made again.
const MOST: usize = 64;

/// By surface, by what its clients are and by what its callers see: every request looks at a listing, and
/// making one takes a look at every tool.
#[derive(Default)]
struct Listings(Mutex<QuickMap<(Surface, Variant, String), Arc<Listing>>>);

/// What a surface lists for callers who see what this key stands for.
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
    // Not under the lock: what is made may be made of another listing.
    let listing = Arc::new(make());
    let mut made = lock();
    if MOST <= made.len() {
        made.clear();
    }
    Arc::clone(made.entry(key).or_insert(listing))
}
