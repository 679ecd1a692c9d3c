//! The notes themselves, kept in memory. Knows nothing of tools.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub title: String,
    pub text: String,
    pub tags: Vec<String>,
}

/// All notes, by title.
#[derive(Debug, Default)]
pub struct Notebook(Mutex<BTreeMap<String, Note>>);

impl Notebook {
    pub fn write(&self, note: Note) -> Note {
        self.notes().insert(note.title.clone(), note.clone());
        note
    }

    pub fn read(&self, title: &str) -> Option<Note> {
        self.notes().get(title).cloned()
    }

    pub fn delete(&self, title: &str) -> Option<Note> {
        self.notes().remove(title)
    }

    pub fn titles(&self) -> Vec<String> {
        self.notes().keys().cloned().collect()
    }

    /// Notes with all words of the query; those with more of them in the
    /// title come first.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Note> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let has = |text: &str, word: &String| text.to_lowercase().contains(word);
        let fits = |note: &&Note| {
            let all = format!("{}\n{}\n{}", note.title, note.text, note.tags.join(" "));
            words.iter().all(|word| has(&all, word))
        };
        let mut hits: Vec<Note> = self.notes().values().filter(fits).cloned().collect();
        let in_title = |note: &Note| words.iter().filter(|word| has(&note.title, word)).count();
        hits.sort_by_key(|note| std::cmp::Reverse(in_title(note)));
        hits.truncate(limit);
        hits
    }

    fn notes(&self) -> MutexGuard<'_, BTreeMap<String, Note>> {
        // A map is whole between two operations, whoever panicked meanwhile.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
