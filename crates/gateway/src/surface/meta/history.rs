//! Browsing whose beginning does not change, for clients that cache prompts.
//!
//! What was seen before comes first, in the order of ids and exactly as it was
//! first shown; then a marker; then everything new. Nothing that a browse
//! found is left out, and nothing counts as seen that was not shown.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use catalog::card::{Card, Draft, Kind, Line};
use parking_lot::Mutex;

use super::card_form::Form;
use crate::choice::Surface;
use artifacts::Owner;

/// The line between what was seen and what is new.
pub(crate) const MARKER: &str = "__cache_breakpoint__";

/// How many owners' history are remembered.
const OWNERS: usize = 256;

/// What each owner has seen so far, on each surface. It outlives the request:
/// clients without sessions have nothing else that does. Who was away longest
/// is forgotten first.
#[derive(Debug, Default)]
pub(crate) struct BrowseHistory(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    seen: HashMap<(Surface, Owner), (u64, Seen)>,
    /// Counts the visits.
    clock: u64,
}

impl BrowseHistory {
    /// Works on what an owner has seen.
    pub(crate) fn with<T>(
        &self,
        surface: Surface,
        owner: Owner,
        act: impl FnOnce(&mut Seen) -> T,
    ) -> T {
        let mut all = self.0.lock();
        let Remembered { seen, clock } = &mut *all;
        *clock += 1;
        let key = (surface, owner);
        if OWNERS <= seen.len() && !seen.contains_key(&key) {
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

/// What one session has seen of one catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    generation: u64,
    /// Cards by id and form, as they were first shown.
    frozen: BTreeMap<(String, Form), String>,
    /// Ids that were shown, hydrated or called.
    used: BTreeSet<String>,
}

impl Seen {
    /// Remembers an id that was hydrated or called.
    pub(crate) fn note(&mut self, generation: u64, id: &str) {
        self.at(generation);
        self.used.insert(id.to_owned());
    }

    /// Arranges found cards, given as pairs of id and line.
    pub(crate) fn arrange(
        &mut self,
        generation: u64,
        form: Form,
        found: Vec<(String, String)>,
    ) -> Vec<(String, String)> {
        self.at(generation);
        let known = |id: &String| self.used.contains(id);
        let (mut seen, mut new): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(id, _)| known(id));
        seen.sort();
        new.sort();
        let freeze = |(id, line): (String, String)| {
            self.used.insert(id.clone());
            let line = self.frozen.entry((id.clone(), form)).or_insert(line).clone();
            (id, line)
        };
        let both = !seen.is_empty() && !new.is_empty();
        let marker = both.then(|| (MARKER.to_owned(), marker(form)));
        let (mut freeze_seen, mut out) = (freeze, Vec::new());
        out.extend(seen.into_iter().map(&mut freeze_seen));
        out.extend(marker);
        out.extend(new.into_iter().map(&mut freeze_seen));
        out
    }

    /// A new catalog starts anew.
    fn at(&mut self, generation: u64) {
        if self.generation != generation {
            *self = Seen { generation, ..Seen::default() };
        }
    }
}

fn marker(form: Form) -> String {
    let words = "What was shown before is above, what is new below.";
    match form {
        Form::Text => MARKER.to_owned(),
        Form::Json => {
            let draft = Draft::new(MARKER, "cache_breakpoint", words, Kind::Internal);
            Line::json(&Card::cut(draft)).into_string()
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
            let owner = Owner::read(name);
            let all = found(&["a", "b"], "x");
            let arranged = history
                .with(Surface::Gateway, owner, |seen| seen.arrange(1, Form::Text, all).len());
            history.with(Surface::Gateway, Owner::read(name), |seen| seen.used.len());
            arranged
        };
        for n in 0..2 * OWNERS {
            browse("kept");
            browse(&n.to_string());
        }
        let all = history.0.lock();
        assert_eq!(all.seen.len(), OWNERS);
        assert!(all.seen.contains_key(&(Surface::Gateway, Owner::read("kept"))));
    }

    fn lines(arranged: Vec<(String, String)>) -> Vec<String> {
        arranged.into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn what_was_seen_comes_first_as_it_was_and_everything_new_follows() {
        let mut seen = Seen::default();
        assert_eq!(lines(seen.arrange(1, Form::Text, found(&["b", "a"], "1"))), ["a 1", "b 1"]);
        assert_eq!(
            lines(seen.arrange(1, Form::Text, found(&["d", "b", "c"], "2"))),
            ["b 1", MARKER, "c 2", "d 2"]
        );
        assert_eq!(lines(seen.arrange(1, Form::Text, found(&["d", "b"], "3"))), ["b 1", "d 2"]);
    }

    #[test]
    fn what_was_used_counts_as_seen_and_is_frozen_at_its_first_showing() {
        let mut seen = Seen::default();
        seen.note(1, "x");
        assert_eq!(
            lines(seen.arrange(1, Form::Text, found(&["a", "x"], "1"))),
            ["x 1", MARKER, "a 1"]
        );
        assert_eq!(lines(seen.arrange(1, Form::Text, found(&["x"], "2"))), ["x 1"]);
    }

    #[test]
    fn a_card_is_frozen_in_each_form_by_itself() {
        let mut seen = Seen::default();
        seen.arrange(1, Form::Text, found(&["a"], "text"));
        let json = lines(seen.arrange(1, Form::Json, found(&["a", "b"], "json")));
        assert_eq!((json[0].as_str(), json[2].as_str()), ("a json", "b json"));
        let marker: serde_json::Value = serde_json::from_str(&json[1]).unwrap();
        assert_eq!(marker["id"], MARKER);
        assert_eq!(lines(seen.arrange(1, Form::Text, found(&["a"], "later"))), ["a text"]);
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
        let (mut seen, mut before) = (Seen::default(), BTreeSet::new());
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
                Form::Text,
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
        let mut seen = Seen::default();
        seen.arrange(1, Form::Text, found(&["a"], "1"));
        assert_eq!(lines(seen.arrange(2, Form::Text, found(&["a"], "2"))), ["a 2"]);
    }
}
