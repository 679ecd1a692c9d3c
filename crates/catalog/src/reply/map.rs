//! What lies behind gatelet, before anybody knows what to search for.

use std::fmt::Write;

use crate::{Catalog, Slot};

/// What lies behind gatelet, in one line: the first levels of the namespaces
/// that have a function to show. It changes when one comes or goes and not
/// with what is in them, so that a prompt that holds it stays cached.
pub fn map(catalog: &Catalog, limit: usize, keep: &dyn Fn(Slot) -> bool) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for slot in catalog.slots().filter(|slot| !catalog.is_builtin(*slot)) {
        let path = catalog.path(slot);
        let first = path.split_once('.').map_or(path, |(first, _)| first);
        // Functions lie together by source.
        if !first.is_empty() && parts.last() != Some(&first) && keep(slot) {
            parts.push(first);
        }
    }
    parts.sort_unstable();
    parts.dedup();
    let all = parts.len();
    // Names are rated by their length instead of counted: this text is in a
    // tool definition, and loading the vocabulary would hold up the first
    // answer. Three bytes a token is more than names ever take.
    let mut left = limit.saturating_sub(REST);
    let fits = |part: &&&str| {
        let cost = part.len().div_ceil(3) + 1;
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    };
    let shown: Vec<&str> = parts.iter().take_while(fits).copied().collect();
    let mut text = shown.join(", ");
    if shown.len() < all && REST <= limit {
        let comma = if shown.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}and {} more", all - shown.len());
    }
    text
}

/// What `and 12 more` takes, in tokens.
const REST: usize = 5;
