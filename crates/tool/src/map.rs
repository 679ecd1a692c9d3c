//! Hash maps and sets with a fast hash, for lookups that every call makes.

use std::collections::{HashMap, HashSet};

/// A hash map with a fast hash and a random seed of its own. Use it for keys that
/// an attacker cannot choose in large numbers: the calls in flight, the tools of a
/// catalog.
pub type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A hash set with a fast hash: see [`FastMap`].
pub type FastSet<K> = HashSet<K, foldhash::fast::RandomState>;
