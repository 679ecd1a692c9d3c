//! The hash map for lookups that every call makes.

use std::collections::{HashMap, HashSet};

/// A hash map with a quick hash instead of a strong one, each with a seed of its
/// own. For keys that we make ourselves, or of which nobody can bring many: the
/// calls in flight, the tools of a catalog.
pub type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A hash set with a quick hash: see [`FastMap`].
pub type FastSet<K> = HashSet<K, foldhash::fast::RandomState>;
