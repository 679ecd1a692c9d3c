//! The built-in scratch memory: short texts under keys, stored in one file.
//!
//! Several gatelets (one that serves, one on the command line) share the file and
//! lose nothing of each other.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use native::{Fault, State, Text, tool};
use schemars::JsonSchema;
use serde::Serialize;
use store::document::{DocumentError, IfDamaged, JsonDocument};
use store::files::Files;
use store::state::wait;

/// What is kept is for notes, not for files.
const LONGEST: usize = 64 * 1024;
const MOST: usize = 1_000;

/// The memory and where it is.
pub(super) struct Memory {
    document: JsonDocument<Notes>,
}

/// A key and the start of its text.
#[derive(Debug, Serialize, JsonSchema)]
struct Entry {
    key: String,
    characters: usize,
    /// How the text starts.
    start: String,
}

/// Keeps a text under a key, replacing what was there.
#[tool(idempotent, category = "memory", tags = ["remember", "save", "note", "store"])]
fn write(
    memory: State<Memory>,
    /// A short name such as `plan` or `customer/42`.
    #[schemars(length(min = 1, max = 200))]
    key: String,
    text: String,
) -> Result<Text, Fault> {
    if LONGEST < text.len() {
        let message = format!("the text has {} bytes; at most {LONGEST} are kept", text.len());
        return Err(Fault::new("TooLong", message));
    }
    memory.change(|notes| {
        if notes.len() == MOST && !notes.contains_key(&key) {
            let message = format!("{MOST} texts are kept already; delete some first");
            return Err(Fault::new("Full", message));
        }
        let said = if notes.contains_key(&key) { "replaced" } else { "kept" };
        notes.insert(key.clone(), text.clone());
        Ok(Text(format!("{said} `{key}`")))
    })?
}

/// Reads the text that is kept under a key.
#[tool(read_only, category = "memory", tags = ["recall", "load", "get"])]
fn read(memory: State<Memory>, key: String) -> Result<Text, Fault> {
    let notes = memory.notes()?;
    notes.get(&key).cloned().map(Text).ok_or_else(|| unknown(&key))
}

/// Lists what is kept, with the start of each text.
#[tool(read_only, category = "memory")]
fn list(
    memory: State<Memory>,
    /// Only keys that start with this.
    #[default(String::new())]
    prefix: String,
) -> Result<Vec<Entry>, Fault> {
    let notes = memory.notes()?;
    Ok(notes.iter().filter(|(key, _)| key.starts_with(&prefix)).map(entry).collect())
}

/// Finds what is kept by words in its key or text.
#[tool(read_only, category = "memory", tags = ["recall"])]
fn search(
    memory: State<Memory>,
    /// Words; all of them must occur.
    #[schemars(length(max = 1000))]
    query: String,
) -> Result<Vec<Entry>, Fault> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let notes = memory.notes()?;
    let fits = |(key, text): &(&String, &String)| {
        let both = format!("{key}\n{text}").to_lowercase();
        words.iter().all(|word| both.contains(word))
    };
    Ok(notes.iter().filter(fits).map(entry).collect())
}

/// Forgets what is kept under a key.
#[tool(destructive, idempotent, category = "memory", tags = ["forget", "remove"])]
fn delete(memory: State<Memory>, key: String) -> Result<Text, Fault> {
    memory.change(|notes| match notes.remove(&key) {
        Some(_) => Ok(Text(format!("forgot `{key}`"))),
        None => Err(unknown(&key)),
    })?
}

fn entry((key, text): (&String, &String)) -> Entry {
    let start: String = text.chars().take(80).collect();
    Entry { key: key.clone(), characters: text.chars().count(), start: start.replace('\n', " ") }
}

fn unknown(key: &str) -> Fault {
    Fault::new("UnknownKey", format!("nothing is kept under `{key}`; `memory.list` shows the keys"))
}

type Notes = BTreeMap<String, String>;

impl Memory {
    pub(super) fn in_directory(directory: &Path) -> Memory {
        let document =
            JsonDocument::new(Arc::new(Files::at(directory)), "memory.json", IfDamaged::Fail);
        Memory { document }
    }

    fn notes(&self) -> Result<Notes, Fault> {
        wait(self.document.read()).map_err(fault)
    }

    /// Changes the notes and writes them, with nobody else between.
    fn change<T: Send>(&self, change: impl Fn(&mut Notes) -> T + Sync) -> Result<T, Fault> {
        let mut outcome = None;
        wait(self.document.change(|notes| outcome = Some(change(notes)))).map_err(fault)?;
        outcome.ok_or_else(|| Fault::new("MemoryUnavailable", "the memory was not changed"))
    }
}

fn fault(error: DocumentError) -> Fault {
    match error {
        DocumentError::Damaged(error) => Fault::new("Damaged", format!("memory.json: {error}")),
        DocumentError::State(error) => {
            Fault::new("MemoryUnavailable", format!("the memory cannot be used: {error}"))
        }
    }
}
