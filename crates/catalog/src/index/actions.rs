//! What a tool does to its object, as the verb in its name says.
//!
//! `delete_event` and `create_event` share every other word, so the verb alone
//! tells them apart. Verbs that are used for the same action form one group; a
//! query and a name agree when they have a group in common.

use super::words::{self, Shape};
use rust_stemmers::Stemmer;

/// A set of action groups, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Actions(u32);

/// Knows the groups by stem.
#[derive(Clone, Debug)]
pub(crate) struct Verbs(Vec<(String, u32)>);

/// How the actions of a query and of a name relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Agree,
    Conflict,
    /// One of them names no action.
    Open,
}

impl Verbs {
    pub(crate) fn new(stemmer: &Stemmer) -> Verbs {
        let mut stems: Vec<(String, u32)> = Vec::new();
        for (group, words) in GROUPS.iter().enumerate() {
            for word in words.split(' ') {
                let stem = words::stem(stemmer, word);
                match stems.iter_mut().find(|(known, _)| *known == stem) {
                    Some((_, bits)) => *bits |= 1 << group,
                    None => stems.push((stem, 1 << group)),
                }
            }
        }
        stems.sort_unstable();
        Verbs(stems)
    }

    /// The actions that a text names.
    pub(crate) fn of(&self, stemmer: &Stemmer, text: &str) -> Actions {
        let mut bits = 0;
        words::each(text, |word, shape| {
            if shape == Shape::Word {
                let stem = words::stem(stemmer, word);
                if let Ok(at) = self.0.binary_search_by(|(known, _)| known.as_str().cmp(&stem)) {
                    bits |= self.0[at].1;
                }
            }
        });
        Actions(bits)
    }
}

impl Actions {
    pub(crate) fn relation(self, other: Actions) -> Relation {
        match (self.0 & other.0, self.0, other.0) {
            (_, 0, _) | (_, _, 0) => Relation::Open,
            (0, _, _) => Relation::Conflict,
            _ => Relation::Agree,
        }
    }
}

/// At most 32 groups.
const GROUPS: &[&str] = &[
    "create add new make insert register generate draft compose",
    "delete remove drop erase destroy clear cancel",
    "list show enumerate display view",
    "find search query lookup locate discover browse",
    "get fetch retrieve read load download describe check",
    "send post publish deliver notify share blast",
    "update edit modify change patch set rename configure adjust reschedule",
    "write save store upload",
    "run execute invoke launch start trigger",
    "stop abort terminate kill pause disable",
    "calculate compute evaluate determine estimate",
    "convert transform translate format",
    "book reserve schedule order purchase buy",
    "compare diff",
    "analyze analyse summarize inspect",
    "export",
    "import",
    "merge",
    "assign",
    "approve",
    "copy duplicate clone",
    "move",
    "validate verify test",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, name: &str, expected: Relation) {
        let stemmer = words::stemmer();
        let verbs = Verbs::new(&stemmer);
        let found = verbs.of(&stemmer, query).relation(verbs.of(&stemmer, name));
        assert_eq!(found, expected);
    }

    #[test]
    fn verbs_of_one_group_agree() {
        check("remove the old branch", "delete_branch", Relation::Agree);
        check("remove the old branch", "createBranch", Relation::Conflict);
        check("old branch", "create_branch", Relation::Open);
    }
}
