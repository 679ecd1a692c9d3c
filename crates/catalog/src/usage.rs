//! Usage history: which function was called after which query.
//!
//! A [`UsageHistory`] counts which documents were chosen after which query words. It
//! only re-ranks hits, by no more than the index allows ([`Query::prefer`]). It is plain
//! data that its owner stores, shows and erases; it only learns from
//! [`UsageHistory::note`], and time comes in as the number of a day.
//!
//! [`Query::prefer`]: crate::index::Query::prefer

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::index;

/// The history. It serializes to an object that an operator can read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageHistory {
    /// By word of a query: the documents that were chosen.
    words: BTreeMap<String, BTreeMap<String, Choice>>,
}

/// How often a document was chosen after a word, decayed to `day`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    pub times: f32,
    pub day: u32,
}

/// Days until a choice counts half.
const HALF_LIFE: f32 = 30.0;
/// The most words, and the most documents per word; the weakest are dropped first.
const MOST_WORDS: usize = 5_000;
const MOST_CHOICES: usize = 20;
/// A document counts fully after about this many choices.
const ENOUGH: f32 = 4.0;

impl UsageHistory {
    /// Records that `document` was called after `query` on `day`.
    pub fn note(&mut self, query: &str, document: &str, day: u32) {
        for word in index::terms(query) {
            let choices = self.words.entry(word).or_default();
            let choice = choices.entry(document.to_owned()).or_insert(Choice { times: 0.0, day });
            *choice = Choice { times: (choice.at(day) + 1.0).min(50.0), day };
            keep_strongest(choices, MOST_CHOICES, |choice| choice.at(day));
        }
        let total = |choices: &BTreeMap<String, Choice>| {
            choices.values().map(|choice| choice.at(day)).sum::<f32>()
        };
        keep_strongest(&mut self.words, MOST_WORDS, total);
    }

    /// The documents that were chosen after similar queries, each with a share from 0 to 1.
    pub fn priors(&self, query: &str, day: u32) -> BTreeMap<&str, f32> {
        let words = index::terms(query);
        let mut priors: BTreeMap<&str, f32> = BTreeMap::new();
        for choices in words.iter().filter_map(|word| self.words.get(word)) {
            let total: f32 = choices.values().map(|choice| choice.at(day)).sum();
            for (document, choice) in choices {
                let times = choice.at(day);
                let trust = times / (times + ENOUGH / 4.0);
                *priors.entry(document).or_default() +=
                    trust * times / total.max(f32::MIN_POSITIVE) / words.len() as f32;
            }
        }
        priors
    }

    /// The documents that were chosen most often, most frequent first. For each document
    /// the word that led to it most often counts.
    pub fn most_used(&self, most: usize) -> Vec<String> {
        let mut uses: BTreeMap<&str, f32> = BTreeMap::new();
        let newest = self.words.values().flat_map(BTreeMap::values).map(|choice| choice.day).max();
        let today = newest.unwrap_or_default();
        for (document, choice) in self.words.values().flatten() {
            let times = uses.entry(document).or_default();
            *times = times.max(choice.at(today));
        }
        let mut used: Vec<(&str, f32)> = uses.into_iter().collect();
        // Stable: of equal ones the name decides.
        used.sort_by(|a, b| b.1.total_cmp(&a.1));
        used.into_iter().take(most).map(|(document, _)| document.to_owned()).collect()
    }

    /// Every word with the documents that were chosen after it.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, Choice>)> {
        self.words.iter().map(|(word, choices)| (word.as_str(), choices))
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Forgets everything about one document.
    pub fn forget(&mut self, document: &str) {
        for choices in self.words.values_mut() {
            choices.remove(document);
        }
        self.words.retain(|_, choices| !choices.is_empty());
    }

    /// Forgets everything.
    pub fn erase(&mut self) {
        self.words.clear();
    }
}

impl Choice {
    /// The count, decayed to a day.
    fn at(&self, day: u32) -> f32 {
        self.times * 0.5_f32.powf(day.saturating_sub(self.day) as f32 / HALF_LIFE)
    }
}

/// Drops the weakest entries until at most `most` are left.
fn keep_strongest<T>(entries: &mut BTreeMap<String, T>, most: usize, strength: impl Fn(&T) -> f32) {
    let n_too_many = entries.len().saturating_sub(most);
    if n_too_many == 0 {
        return;
    }
    let mut by_strength: Vec<(f32, String)> =
        entries.iter().map(|(key, entry)| (strength(entry), key.clone())).collect();
    by_strength.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, key) in by_strength.into_iter().take(n_too_many) {
        entries.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_chosen_often_counts_more_and_fades() {
        let mut history = UsageHistory::default();
        for _ in 0..8 {
            history.note("ship the parcel", "orders/ship", 10);
        }
        history.note("ship the parcel", "post/send", 10);
        let priors = history.priors("shipping a parcel", 10);
        assert!(0.6 < priors["orders/ship"] && priors["post/send"] < 0.2, "{priors:?}");
        let later = history.priors("shipping a parcel", 10 + 365);
        assert!(later["orders/ship"] < 0.1, "{later:?}");
        assert!(history.priors("weather", 10).is_empty());
    }

    #[test]
    fn shares_stay_between_nothing_and_all() {
        let mut history = UsageHistory::default();
        for _ in 0..1000 {
            history.note("a b c parcel parcel", "x/y", 1);
        }
        assert!(history.priors("parcel", 1).values().all(|share| (0.0..=1.0).contains(share)));
    }

    #[test]
    fn queries_of_many_words_do_not_outgrow_the_ledger() {
        let mut history = UsageHistory::default();
        for _ in 0..3 {
            history.note("parcel", "orders/ship", 1);
        }
        for query in 0..200 {
            let words: Vec<String> = (0..60).map(|word| format!("q{query}w{word}")).collect();
            history.note(&words.join(" "), "orders/find", 1);
        }
        assert_eq!(history.iter().count(), MOST_WORDS);
        assert!(!history.priors("parcel", 1).is_empty(), "the strongest stays");
    }

    #[test]
    fn the_ledger_is_bounded_readable_and_erasable() {
        let mut history = UsageHistory::default();
        for n in 0..100 {
            history.note("parcel", &format!("server/tool{n}"), n);
        }
        assert_eq!(history.iter().map(|(_, choices)| choices.len()).max(), Some(MOST_CHOICES));
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(serde_json::from_str::<UsageHistory>(&text).unwrap(), history);
        history.forget("server/tool99");
        assert!(!serde_json::to_string(&history).unwrap().contains("tool99"));
        history.erase();
        assert!(history.is_empty());
    }
}
