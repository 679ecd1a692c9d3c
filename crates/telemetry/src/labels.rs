//! Sanitizes names for the labels of metrics, and limits how many there are.
//!
//! Servers choose the names of their tools, so there may be thousands, and strange ones.
//! Every label costs memory here and in the monitoring system.

use std::collections::HashSet;
use std::hash::Hash;

/// The longest label, in characters.
const LONGEST: usize = 96;

/// Stands for all names beyond the limit.
pub(crate) const OTHER: &str = "(other)";

/// Returns a name without control characters, cut to [`LONGEST`].
pub(crate) fn sanitize_label(name: &str) -> String {
    let is_plain = |c: char| !c.is_control();
    let mut label: String = name.chars().filter(|c| is_plain(*c)).take(LONGEST).collect();
    if name.chars().filter(|c| is_plain(*c)).nth(LONGEST).is_some() {
        label.pop();
        label.push('…');
    }
    label
}

/// A set that accepts the first `limit` keys and refuses later ones.
#[derive(Debug)]
pub(crate) struct BoundedSet<K> {
    known: HashSet<K>,
    limit: usize,
}

impl<K: Eq + Hash> BoundedSet<K> {
    pub(crate) fn new(limit: usize) -> BoundedSet<K> {
        BoundedSet { known: HashSet::new(), limit }
    }

    /// Returns whether a key is in the set, after adding it if there is room.
    pub(crate) fn admits(&mut self, key: K) -> bool {
        self.known.contains(&key) || (self.known.len() < self.limit && self.known.insert(key))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_names_stay_and_later_ones_are_refused() {
        let mut names = BoundedSet::new(2);
        let admitted = ["a", "b", "c", "a", "b", "d"].map(|name| names.admits(name));
        assert_eq!(admitted, [true, true, false, true, true, false]);
    }

    #[test]
    fn long_names_are_cut_and_say_so() {
        let cut = sanitize_label(&"x".repeat(10_000));
        assert!(cut.chars().count() == LONGEST && cut.ends_with('…'), "{cut}");
        assert_eq!(sanitize_label(&"x".repeat(LONGEST)), "x".repeat(LONGEST));
    }

    proptest! {
        #[test]
        fn a_label_is_short_and_has_no_control_characters(name in any::<String>()) {
            let label = sanitize_label(&name);
            prop_assert!(label.chars().count() <= LONGEST);
            prop_assert!(!label.chars().any(char::is_control));
        }
    }
}
