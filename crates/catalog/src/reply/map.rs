//! The overview of all namespaces, for the definitions of a surface's tools.

use std::fmt::Write;

use crate::{Catalog, Slot};

/// One line with the top namespaces that have a function which `keep` accepts, in at most
/// `limit` tokens. It does not depend on what is in the namespaces, so that a prompt that
/// holds it stays cached.
pub fn map(catalog: &Catalog, limit: usize, keep: &dyn Fn(Slot) -> bool) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for slot in catalog.slots().filter(|slot| !catalog.is_builtin(*slot)) {
        let path = catalog.path(slot);
        let first = path.split_once('.').map_or(path, |(first, _)| first);
        // Functions of one source are adjacent.
        if !first.is_empty() && parts.last() != Some(&first) && keep(slot) {
            parts.push(first);
        }
    }
    parts.sort_unstable();
    parts.dedup();
    let all = parts.len();
    // Tokens are estimated by length: this text is in a tool definition, and loading the
    // vocabulary would delay the first answer. Three bytes a token is an upper bound.
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

/// The tokens of `and 12 more`.
const REST: usize = 5;
