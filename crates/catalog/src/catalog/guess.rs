//! Suggests what a caller meant by a name that does not exist.
//!
//! There are two kinds of mistakes: a typo (`creat_order`), which is found by spelling,
//! and another word for the same (`delete_file` for `remove_path`), which only the search
//! index finds. Close spellings come first, then the index, then faint similarity.

use std::cmp::Reverse;

use super::{Catalog, ItemRef, Namespace, Priors, Slot};
use crate::index::Kind;
use crate::nearest::{self, TYPO_SIMILARITY};

/// How a guess is made.
///
/// The index knows the words of all functions, so its answers may reveal something about
/// those that a caller may not see. Spelling reveals nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuessBy {
    Spelling,
    SpellingAndMeaning,
}

/// A guess by meaning needs at least this fraction of the best score.
const LIKELY: f32 = 0.6;

impl Catalog {
    /// The namespaces that `path` may mean, best first. Only functions that `keep` accepts
    /// count.
    pub fn nearest_namespaces(
        &self,
        path: &str,
        limit: usize,
        by: GuessBy,
        keep: &dyn Fn(Slot) -> bool,
    ) -> Vec<&Namespace> {
        let kept = self.namespaces[1..].iter().filter(|namespace| self.keeps(namespace, keep));
        let paths = kept.map(|namespace| namespace.path.as_str());
        let spelt = nearest::rank_by_similarity(path, paths);
        let (close, faint): (Vec<_>, Vec<_>) =
            spelt.into_iter().partition(|(score, _)| TYPO_SIMILARITY <= *score);
        let mut guesses = Guesses::new(limit);
        guesses.extend(close.into_iter().map(|(_, path)| path));
        if by == GuessBy::SpellingAndMeaning && guesses.has_room() {
            let hits = self.find(path, 4 * limit, keep);
            guesses.extend(hits.iter().map(|hit| self.path(hit.slot)));
        }
        guesses.extend(faint.into_iter().map(|(_, path)| path));
        guesses.found.into_iter().filter_map(|path| self.namespace(path).ok()).collect()
    }

    /// The functions that `function` in `namespace` (any spelling) may mean.
    ///
    /// The order is: similar spelling in that namespace, the same name elsewhere, similar
    /// meaning in that namespace, then anywhere.
    pub fn nearest_functions(
        &self,
        namespace: &str,
        function: &str,
        limit: usize,
        by: GuessBy,
        keep: &dyn Fn(Slot) -> bool,
    ) -> Vec<Slot> {
        let home = self.namespace(namespace).ok().filter(|found| self.keeps(found, keep));
        let home = home.map(|namespace| namespace.path.as_str());
        let is_here = |slot: Slot| home == Some(self.path(slot));
        let spelt = self.by_spelling(function, keep);
        let mut guesses = Guesses::new(limit);
        let among = |from: f32, wanted: &dyn Fn(Slot) -> bool| -> Vec<Slot> {
            let fits = |(score, slot): &&(f32, Slot)| from <= *score && wanted(*slot);
            spelt.iter().filter(fits).map(|(_, slot)| *slot).collect()
        };
        guesses.extend(among(TYPO_SIMILARITY, &is_here));
        guesses.extend(among(1.0, &|_| true).into_iter().take(1));
        let by_meaning = by == GuessBy::SpellingAndMeaning;
        if by_meaning && home.is_some() && guesses.has_room() {
            guesses.extend(self.by_meaning(function, limit, &|slot| keep(slot) && is_here(slot)));
        }
        guesses.extend(among(TYPO_SIMILARITY, &|_| true));
        if by_meaning && guesses.has_room() {
            // The words of an unknown namespace may also describe the function.
            let both = format!("{namespace} {function}");
            let words = if home.is_some() { function } else { &both };
            guesses.extend(self.by_meaning(words, limit, keep));
        }
        guesses.extend(among(0.0, &is_here));
        guesses.extend(among(0.0, &|_| true));
        guesses.found
    }

    /// Sorts functions by the similarity of their names (or a word of them) to
    /// `function`; the order of dissimilar ones stays.
    pub fn by_likeness(&self, function: &str, mut slots: Vec<Slot>) -> Vec<Slot> {
        let wanted = nearest::NameMatcher::new(function);
        slots.sort_by_cached_key(|slot| {
            let likeness = wanted.word_similarity(&self.function(*slot).name).unwrap_or_default();
            Reverse((likeness * 1_000.0) as u32)
        });
        slots
    }

    /// The items of one kind that `name` may mean, by the index alone.
    pub fn nearest_items(
        &self,
        kind: Kind,
        name: &str,
        limit: usize,
        keep: &dyn Fn(ItemRef) -> bool,
    ) -> Vec<ItemRef> {
        let found = self.search_items(&[kind], name, limit, &Priors::new(), keep);
        found.hits.into_iter().map(|(place, _)| place).collect()
    }

    /// Whether `keep` accepts anything in a namespace or below it. An empty namespace
    /// counts as accepted.
    fn keeps(&self, namespace: &Namespace, keep: &dyn Fn(Slot) -> bool) -> bool {
        let below = |at: &usize| self.keeps(&self.namespaces[*at], keep);
        (namespace.functions.is_empty() && namespace.children.is_empty())
            || namespace.functions.iter().any(|slot| keep(*slot))
            || namespace.children.iter().any(below)
    }

    /// The functions that a search by meaning finds with a good score.
    fn by_meaning(&self, words: &str, limit: usize, keep: &dyn Fn(Slot) -> bool) -> Vec<Slot> {
        let hits = self.find(words, limit, keep);
        let enough = hits.first().map_or(0.0, |best| LIKELY * best.score);
        hits.into_iter().filter(|hit| enough <= hit.score).map(|hit| hit.slot).collect()
    }

    /// Every function with a similar name, best first, with its similarity.
    fn by_spelling(&self, function: &str, keep: &dyn Fn(Slot) -> bool) -> Vec<(f32, Slot)> {
        let wanted = nearest::NameMatcher::new(function);
        let rate = |slot: Slot| Some((wanted.similarity(&self.function(slot).name)?, slot));
        let mut rated: Vec<(f32, Slot)> = self.slots().filter_map(rate).collect();
        rated.retain(|(_, slot)| keep(*slot));
        let name = |slot: Slot| (&self.function(slot).name, self.path(slot));
        rated.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| name(a.1).cmp(&name(b.1))));
        rated
    }
}

/// Distinct guesses, best first, at most `limit`.
struct Guesses<T> {
    found: Vec<T>,
    limit: usize,
}

impl<T: PartialEq> Guesses<T> {
    fn new(limit: usize) -> Guesses<T> {
        Guesses { found: Vec::with_capacity(limit), limit }
    }

    fn has_room(&self) -> bool {
        self.found.len() < self.limit
    }

    fn extend(&mut self, more: impl IntoIterator<Item = T>) {
        for one in more {
            if self.has_room() && !self.found.contains(&one) {
                self.found.push(one);
            }
        }
    }
}

#[cfg(test)]
mod tests;
