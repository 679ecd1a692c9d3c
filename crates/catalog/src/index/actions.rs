//! Recognises what a tool does from the verb in its name.
//!
//! `delete_event` and `create_event` share every other word, so the verb alone
//! tells them apart. Verbs that are used for the same action form one group; a
//! query and a name agree when they have a group in common.

use std::collections::HashMap;

use rust_stemmers::Stemmer;

use super::words::{self, Shape};

/// A set of action groups, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Actions(u32);

/// The action groups of verbs, by stem.
#[derive(Clone, Debug)]
pub(crate) struct Verbs {
    by_stem: Vec<(String, Actions)>,
    /// The same by term, for the stems that the index has.
    by_term: HashMap<u32, Actions>,
}

/// How the actions of a query and of a name relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Agree,
    Conflict,
    /// One of them names no action.
    Unknown,
}

impl Verbs {
    pub(crate) fn new(stemmer: &Stemmer) -> Verbs {
        let mut by_stem: Vec<(String, Actions)> = Vec::new();
        for (group, words) in GROUPS.iter().enumerate() {
            for word in words.split(' ') {
                let (stem, action) = (words::stem(stemmer, word), Actions(1 << group));
                match by_stem.iter_mut().find(|(known, _)| *known == stem) {
                    Some((_, actions)) => actions.add(action),
                    None => by_stem.push((stem.into_owned(), action)),
                }
            }
        }
        by_stem.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Verbs { by_stem, by_term: HashMap::new() }
    }

    /// Fills the table by term; `term` finds the term of a stem.
    pub(crate) fn index_terms(&mut self, term: impl Fn(&str) -> Option<u32>) {
        let known = |(stem, actions): &(String, Actions)| Some((term(stem)?, *actions));
        self.by_term = self.by_stem.iter().filter_map(known).collect();
    }

    /// The actions that a text names.
    pub(crate) fn of_text(&self, stemmer: &Stemmer, text: &str) -> Actions {
        let mut actions = Actions::default();
        words::each(text, |word, shape| {
            if shape == Shape::Word {
                actions.add(self.of_stem(&words::stem(stemmer, word)));
            }
        });
        actions
    }

    pub(crate) fn of_stem(&self, stem: &str) -> Actions {
        let at = self.by_stem.binary_search_by(|(known, _)| known.as_str().cmp(stem));
        at.map_or(Actions::default(), |at| self.by_stem[at].1)
    }

    pub(crate) fn of_term(&self, term: u32) -> Actions {
        self.by_term.get(&term).copied().unwrap_or_default()
    }

    /// The actions of a stop word, which is never stemmed: `get` is one.
    pub(crate) fn of_stop(&self, word: &str) -> Actions {
        if word.len() <= 3 { self.of_stem(word) } else { Actions::default() }
    }
}

impl Actions {
    pub(crate) fn add(&mut self, more: Actions) {
        self.0 |= more.0;
    }

    pub(crate) fn relation(self, other: Actions) -> Relation {
        match (self.0 & other.0, self.0, other.0) {
            (_, 0, _) | (_, _, 0) => Relation::Unknown,
            (0, _, _) => Relation::Conflict,
            _ => Relation::Agree,
        }
    }
}

/// Verbs of the same action; at most 32 groups.
const GROUPS: &[&str] = &[
    "create add new make insert register generate draft compose open raise",
    "delete remove drop erase destroy clear cancel",
    "list show enumerate display view",
    "find search query lookup locate discover browse",
    "get fetch retrieve read load download describe check",
    "send post publish deliver notify share blast",
    "update edit modify change patch set rename configure adjust reschedule amend revise alter",
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
        let found = verbs.of_text(&stemmer, query).relation(verbs.of_text(&stemmer, name));
        assert_eq!(found, expected);
    }

    #[test]
    fn verbs_of_one_group_agree() {
        check("remove the old branch", "delete_branch", Relation::Agree);
        check("open a pull request", "create_pull_request", Relation::Agree);
        check("remove the old branch", "createBranch", Relation::Conflict);
        check("old branch", "create_branch", Relation::Unknown);
    }

    #[test]
    fn stop_words_name_the_same_actions_without_a_stem() {
        let stemmer = words::stemmer();
        let verbs = Verbs::new(&stemmer);
        for word in words::STOP {
            assert_eq!(verbs.of_stop(word), verbs.of_stem(&words::stem(&stemmer, word)), "{word}");
        }
    }
}
