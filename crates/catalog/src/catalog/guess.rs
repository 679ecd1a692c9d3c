//! Suggests what a caller meant by a name that does not exist.
//!
//! Two kinds of guess end here: a slip of the pen (`creat_order`), which
//! spelling puts right, and another word for the same (`delete_file` where it
//! is `remove_path`), which only the search index knows. Spelling comes first
//! where it is close, the index next, faint likeness last.

use std::cmp::Reverse;

use super::{Catalog, ItemRef, Namespace, Priors, Slot};
use crate::index::Kind;
use crate::nearest::{self, CLOSE};

/// How a guess is made.
///
/// The index knows the words of everything, also of what a reader may not see,
/// so what it finds tells a little of that. Spelling tells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuessBy {
    Spelling,
    SpellingAndMeaning,
}

/// A guess by meaning is as good as this part of the best, or it is none.
const LIKELY: f32 = 0.6;

impl Catalog {
    /// The namespaces that `path` may mean. `keep` says which functions count
    /// for what is guessed by meaning.
    pub fn nearest_namespaces(
        &self,
        path: &str,
        limit: usize,
        by: GuessBy,
        keep: &dyn Fn(Slot) -> bool,
    ) -> Vec<&Namespace> {
        let kept = self.namespaces[1..].iter().filter(|namespace| self.keeps(namespace, keep));
        let paths = kept.map(|namespace| namespace.path.as_str());
        let spelt = nearest::rated(path, paths);
        let (close, faint): (Vec<_>, Vec<_>) =
            spelt.into_iter().partition(|(score, _)| CLOSE <= *score);
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
    /// First what is spelt like it there, then the same name somewhere else,
    /// then what does the like there, then anywhere.
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
        let spelt = self.spelt_like(function, keep);
        let mut guesses = Guesses::new(limit);
        let among = |from: f32, wanted: &dyn Fn(Slot) -> bool| -> Vec<Slot> {
            let fits = |(score, slot): &&(f32, Slot)| from <= *score && wanted(*slot);
            spelt.iter().filter(fits).map(|(_, slot)| *slot).collect()
        };
        guesses.extend(among(CLOSE, &is_here));
        guesses.extend(among(1.0, &|_| true).into_iter().take(1));
        let by_meaning = by == GuessBy::SpellingAndMeaning;
        if by_meaning && home.is_some() && guesses.has_room() {
            guesses.extend(self.meant(function, limit, &|slot| keep(slot) && is_here(slot)));
        }
        guesses.extend(among(CLOSE, &|_| true));
        if by_meaning && guesses.has_room() {
            // A namespace that is not there may be half of what is meant.
            let both = format!("{namespace} {function}");
            let words = if home.is_some() { function } else { &both };
            guesses.extend(self.meant(words, limit, keep));
        }
        guesses.extend(among(0.0, &is_here));
        guesses.extend(among(0.0, &|_| true));
        guesses.found
    }

    /// The same functions, those first whose name or a word of it is most like
    /// `function`; what is not like it stays in order.
    pub fn by_likeness(&self, function: &str, mut slots: Vec<Slot>) -> Vec<Slot> {
        let wanted = nearest::Wanted::new(function);
        slots.sort_by_cached_key(|slot| {
            let likeness = wanted.rate_words(&self.function(*slot).name).unwrap_or_default();
            Reverse((likeness * 1_000.0) as u32)
        });
        slots
    }

    /// The things of one kind that `name` may mean, by the index alone.
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

    /// Returns whether anything in a namespace or below it counts. One without any
    /// function does: nobody can be kept from what is not there.
    fn keeps(&self, namespace: &Namespace, keep: &dyn Fn(Slot) -> bool) -> bool {
        let below = |at: &usize| self.keeps(&self.namespaces[*at], keep);
        (namespace.functions.is_empty() && namespace.children.is_empty())
            || namespace.functions.iter().any(|slot| keep(*slot))
            || namespace.children.iter().any(below)
    }

    fn meant(&self, words: &str, limit: usize, keep: &dyn Fn(Slot) -> bool) -> Vec<Slot> {
        let hits = self.find(words, limit, keep);
        let enough = hits.first().map_or(0.0, |best| LIKELY * best.score);
        hits.into_iter().filter(|hit| enough <= hit.score).map(|hit| hit.slot).collect()
    }

    /// Every function that is spelt at all like `function`, best first.
    fn spelt_like(&self, function: &str, keep: &dyn Fn(Slot) -> bool) -> Vec<(f32, Slot)> {
        let wanted = nearest::Wanted::new(function);
        let rate = |slot: Slot| Some((wanted.rate(&self.function(slot).name)?, slot));
        let mut rated: Vec<(f32, Slot)> = self.slots().filter_map(rate).collect();
        rated.retain(|(_, slot)| keep(*slot));
        let name = |slot: Slot| (&self.function(slot).name, self.path(slot));
        rated.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| name(a.1).cmp(&name(b.1))));
        rated
    }
}

/// Guesses, each once, best first, as many as there is room for.
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
