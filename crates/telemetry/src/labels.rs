//! Names as labels: short, readable, and never more than so many.
//!
//! Servers name their tools, so there may be thousands of names, and odd ones.
//! Every different label costs memory here and in whatever collects metrics.

use std::collections::HashSet;
use std::hash::Hash;

/// The longest label, in characters.
const LONGEST: usize = 96;

/// Stands for all names beyond the limit.
pub(crate) const OTHER: &str = "(other)";

/// A name as it may stand in a label: without control characters, and cut where
/// it is too long.
pub(crate) fn label(name: &str) -> String {
    let is_plain = |c: char| !c.is_control();
    let mut label: String = name.chars().filter(|c| is_plain(*c)).take(LONGEST).collect();
    if name.chars().filter(|c| is_plain(*c)).nth(LONGEST).is_some() {
        label.pop();
        label.push('…');
    }
    label
}

/// The first so many of something; later ones are refused.
#[derive(Debug)]
pub(crate) struct Bounded<K> {
    known: HashSet<K>,
    limit: usize,
}

impl<K: Eq + Hash> Bounded<K> {
    pub(crate) fn new(limit: usize) -> Bounded<K> {
        Bounded { known: HashSet::new(), limit }
    }

    /// Whether this one is among the first.
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
        let mut names = Bounded::new(2);
        let admitted = ["a", "b", "c", "a", "b", "d"].map(|name| names.admits(name));
        assert_eq!(admitted, [true, true, false, true, true, false]);
    }

    #[test]
    fn long_names_are_cut_and_say_so() {
        let cut = label(&"x".repeat(10_000));
        assert!(cut.chars().count() == LONGEST && cut.ends_with('…'), "{cut}");
        assert_eq!(label(&"x".repeat(LONGEST)), "x".repeat(LONGEST));
    }

    proptest! {
        #[test]
        fn a_label_is_short_and_has_no_control_characters(name in any::<String>()) {
            let label = label(&name);
            prop_assert!(label.chars().count() <= LONGEST);
            prop_assert!(!label.chars().any(char::is_control));
        }
    }
}
