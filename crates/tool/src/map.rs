//! The hash map for lookups that every call makes.

use std::collections::{HashMap, HashSet};

/// A hash map with a quick hash instead of a strong one, each with a seed of its
/// own. For keys that we make ourselves, or of which nobody can bring many: the
/// calls in flight, the tools of a catalog.
pub type QuickMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The same for what is only there or not.
pub type QuickSet<K> = HashSet<K, foldhash::fast::RandomState>;
