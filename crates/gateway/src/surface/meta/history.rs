//! Orders browse results so that repeated browses begin the same, for clients that cache
//! prompts.
//!
//! Cards that the caller has seen come first, sorted by id and exactly as they were
//! first shown; then a marker; then all new cards. No card is left out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use catalog::card::{Card, Draft, Kind, Line};
use parking_lot::Mutex;

use super::card_format::CardFormat;
use crate::choice::Surface;
use artifacts::Owner;

/// The id of the marker between seen and new cards.
pub(crate) const MARKER: &str = "__cache_breakpoint__";

/// The most owners whose history is remembered.
const MAX_OWNERS: usize = 256;

/// Which cards each owner has seen, on each surface. The least recently active owner is
/// forgotten first.
#[derive(Debug, Default)]
pub(crate) struct BrowseHistory(Mutex<HistoryByOwner>);

#[derive(Debug, Default)]
struct HistoryByOwner {
    /// The seen cards, with the `clock` of the owner's last visit.
    seen: HashMap<(Surface, Owner), (u64, SeenCards)>,
    /// Counts the visits of all owners.
    clock: u64,
}

impl BrowseHistory {
    /// Calls `act` with the cards that an owner has seen.
    pub(crate) fn with<T>(
        &self,
        surface: Surface,
        owner: Owner,
        act: impl FnOnce(&mut SeenCards) -> T,
    ) -> T {
        let mut all = self.0.lock();
        let HistoryByOwner { seen, clock } = &mut *all;
        *clock += 1;
        let key = (surface, owner);
        if MAX_OWNERS <= seen.len() && !seen.contains_key(&key) {
            let oldest = seen.iter().min_by_key(|(_, (last, _))| *last);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                seen.remove(&oldest);
            }
        }
        let (last, seen) = seen.entry(key).or_default();
        *last = *clock;
        act(seen)
    }
}

/// The cards of one catalog that an owner has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenCards {
    generation: u64,
    /// The cards by id and format, as they were first shown.
    frozen: BTreeMap<(String, CardFormat), String>,
    /// Ids that were shown, hydrated or called.
    used: BTreeSet<String>,
}

impl SeenCards {
    /// Remembers an id that was hydrated or called.
    pub(crate) fn note(&mut self, generation: u64, id: &str) {
        self.reset_if_outdated(generation);
        self.used.insert(id.to_owned());
    }

    /// Orders cards, given as pairs of id and rendered card: seen ones first.
    pub(crate) fn arrange(
        &mut self,
        generation: u64,
        format: CardFormat,
        found: Vec<(String, String)>,
    ) -> Vec<(String, String)> {
        self.reset_if_outdated(generation);
        let known = |id: &String| self.used.contains(id);
        let (mut seen, mut new): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(id, _)| known(id));
        seen.sort();
        new.sort();
        let freeze = |(id, line): (String, String)| {
            self.used.insert(id.clone());
            let line = self.frozen.entry((id.clone(), format)).or_insert(line).clone();
            (id, line)
        };
        let both = !seen.is_empty() && !new.is_empty();
        let marker = both.then(|| (MARKER.to_owned(), marker(format)));
        let (mut freeze_seen, mut out) = (freeze, Vec::new());
        out.extend(seen.into_iter().map(&mut freeze_seen));
        out.extend(marker);
        out.extend(new.into_iter().map(&mut freeze_seen));
        out
    }

    /// Forgets everything if the catalog is a new one.
    fn reset_if_outdated(&mut self, generation: u64) {
        if self.generation != generation {
            *self = SeenCards { generation, ..SeenCards::default() };
        }
    }
}

fn marker(format: CardFormat) -> String {
    let words = "What was shown before is above, what is new below.";
    match format {
        CardFormat::Text => MARKER.to_owned(),
        CardFormat::Json => {
            let draft = Draft::new(MARKER, "cache_breakpoint", words, Kind::Internal);
            Line::json(&Card::truncated(draft)).into_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ids: &[&str], tag: &str) -> Vec<(String, String)> {
        ids.iter().map(|id| ((*id).to_owned(), format!("{id} {tag}"))).collect()
    }

    #[test]
    fn who_was_away_longest_is_forgotten_first() {
        let history = BrowseHistory::default();
        let browse = |name: &str| {
            let owner = Owner::from_stored(name);
            let all = found(&["a", "b"], "x");
            let arranged = history
                .with(Surface::Gateway, owner, |seen| seen.arrange(1, CardFormat::Text, all).len());
            history.with(Surface::Gateway, Owner::from_stored(name), |seen| seen.used.len());
            arranged
        };
        for n in 0..2 * MAX_OWNERS {
            browse("kept");
            browse(&n.to_string());
        }
        let all = history.0.lock();
        assert_eq!(all.seen.len(), MAX_OWNERS);
        assert!(all.seen.contains_key(&(Surface::Gateway, Owner::from_stored("kept"))));
    }

    fn lines(arranged: Vec<(String, String)>) -> Vec<String> {
        arranged.into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn what_was_seen_comes_first_as_it_was_and_everything_new_follows() {
        let mut seen = SeenCards::default();
        assert_eq!(
            lines(seen.arrange(1, CardFormat::Text, found(&["b", "a"], "1"))),
            ["a 1", "b 1"]
        );
        assert_eq!(
            lines(seen.arrange(1, CardFormat::Text, found(&["d", "b", "c"], "2"))),
            ["b 1", MARKER, "c 2", "d 2"]
        );
        assert_eq!(
            lines(seen.arrange(1, CardFormat::Text, found(&["d", "b"], "3"))),
            ["b 1", "d 2"]
        );
    }

    #[test]
    fn what_was_used_counts_as_seen_and_is_frozen_at_its_first_showing() {
        let mut seen = SeenCards::default();
        seen.note(1, "x");
        assert_eq!(
            lines(seen.arrange(1, CardFormat::Text, found(&["a", "x"], "1"))),
            ["x 1", MARKER, "a 1"]
        );
        assert_eq!(lines(seen.arrange(1, CardFormat::Text, found(&["x"], "2"))), ["x 1"]);
    }

    #[test]
    fn a_card_is_frozen_in_each_form_by_itself() {
        let mut seen = SeenCards::default();
        seen.arrange(1, CardFormat::Text, found(&["a"], "text"));
        let json = lines(seen.arrange(1, CardFormat::Json, found(&["a", "b"], "json")));
        assert_eq!((json[0].as_str(), json[2].as_str()), ("a json", "b json"));
        let marker: serde_json::Value = serde_json::from_str(&json[1]).unwrap();
        assert_eq!(marker["id"], MARKER);
        assert_eq!(lines(seen.arrange(1, CardFormat::Text, found(&["a"], "later"))), ["a text"]);
    }

    #[test]
    fn the_steps_of_the_vectors_lose_nothing() {
        let text =
            include_str!("../../../../catalog/tests/vectors/contextweaver_cache_stable.json");
        let vectors: serde_json::Value = serde_json::from_str(text).unwrap();
        let ids = |value: &serde_json::Value| -> Vec<String> {
            let all = value.as_array().into_iter().flatten();
            all.filter_map(|one| one.as_str().or_else(|| one["id"].as_str()))
                .map(str::to_owned)
                .collect()
        };
        let (mut seen, mut before) = (SeenCards::default(), BTreeSet::new());
        for step in vectors["steps"].as_array().unwrap() {
            if let Some(id) = step["hydrate"].as_str() {
                if !id.starts_with("no:") {
                    seen.note(1, id);
                    before.insert(id.to_owned());
                }
                continue;
            }
            let (cards, after) = (ids(&step["cards"]), ids(&step["seen_after"]));
            // What the program marked as seen it had found, shown or not.
            let mut all: BTreeSet<String> = cards.iter().cloned().collect();
            all.extend(after.iter().filter(|id| !before.contains(*id)).cloned());
            all.remove(MARKER);
            let shown = seen.arrange(
                1,
                CardFormat::Text,
                all.iter().map(|id| (id.clone(), id.clone())).collect(),
            );
            let shown: Vec<String> = shown.into_iter().map(|(id, _)| id).collect();
            let known = |id: &&String| before.contains(*id);
            let old: Vec<&String> = all.iter().filter(known).collect();
            let new: Vec<&String> = all.iter().filter(|id| !known(id)).collect();
            let marker = MARKER.to_owned();
            let both = !old.is_empty() && !new.is_empty();
            let expected = old.into_iter().chain(both.then_some(&marker)).chain(new);
            assert_eq!(shown.iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{step}");
            // Where the program cut nothing away, it shows the same.
            if cards.iter().filter(|id| *id != MARKER).count() == all.len() && both {
                assert_eq!(shown, cards);
            }
            before.extend(after);
        }
    }

    #[test]
    fn a_new_catalog_starts_anew() {
        let mut seen = SeenCards::default();
        seen.arrange(1, CardFormat::Text, found(&["a"], "1"));
        assert_eq!(lines(seen.arrange(2, CardFormat::Text, found(&["a"], "2"))), ["a 2"]);
    }
}
