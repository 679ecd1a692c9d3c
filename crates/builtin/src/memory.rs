//! The built-in scratch memory: short texts under keys, stored in one file for each
//! identity.
//!
//! Nobody reads or deletes what another identity keeps; callers without a name share one
//! file. Several gatelet processes, such as one that serves and one on the command line,
//! may share a file, too; no change is lost.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use native::{Context, State, Text, ToolError, tool};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use store::document::{DocumentError, IfDamaged, JsonDocument};
use store::files::Files;
use store::state::{Documents, wait};
use tool::{Identity, hex};

/// The maximum size of a text: the memory is for notes, not for files.
const LONGEST: usize = 64 * 1024;
const MOST: usize = 1_000;

/// The maximum size of everything that one identity keeps: each change reads and writes
/// the whole.
const MOST_BYTES: usize = 4 << 20;

/// The memory of every identity, each stored in a document.
pub(super) struct Memory {
    documents: Arc<dyn Documents>,
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
    context: &Context,
    /// A short name such as `plan` or `customer/42`.
    #[schemars(length(min = 1, max = 200))]
    key: String,
    text: String,
) -> Result<Text, ToolError> {
    if LONGEST < text.len() {
        let message = format!("the text has {} bytes; at most {LONGEST} are kept", text.len());
        return Err(ToolError::new("TooLong", message));
    }
    memory.change(&context.caller, |notes| {
        if notes.len() == MOST && !notes.contains_key(&key) {
            let message = format!("{MOST} texts are kept already; delete some first");
            return Err(ToolError::new("Full", message));
        }
        let others = notes.iter().filter(|(other, _)| **other != key);
        let n_bytes: usize = others.map(|(other, text)| other.len() + text.len()).sum();
        if MOST_BYTES < n_bytes + key.len() + text.len() {
            let message = format!("{MOST_BYTES} bytes are kept at most; delete some first");
            return Err(ToolError::new("Full", message));
        }
        let said = if notes.contains_key(&key) { "replaced" } else { "kept" };
        notes.insert(key.clone(), text.clone());
        Ok(Text(format!("{said} `{key}`")))
    })?
}

/// Reads the text that is kept under a key.
#[tool(read_only, category = "memory", tags = ["recall", "load", "get"])]
fn read(memory: State<Memory>, context: &Context, key: String) -> Result<Text, ToolError> {
    let notes = memory.notes(&context.caller)?;
    notes.get(&key).cloned().map(Text).ok_or_else(|| unknown(&key))
}

/// Lists what is kept, with the start of each text.
#[tool(read_only, category = "memory")]
fn list(
    memory: State<Memory>,
    context: &Context,
    /// Only keys that start with this.
    #[default(String::new())]
    prefix: String,
) -> Result<Vec<Entry>, ToolError> {
    let notes = memory.notes(&context.caller)?;
    Ok(notes.iter().filter(|(key, _)| key.starts_with(&prefix)).map(entry).collect())
}

/// Finds what is kept by words in its key or text.
#[tool(read_only, category = "memory", tags = ["recall"])]
fn search(
    memory: State<Memory>,
    context: &Context,
    /// Words; all of them must occur.
    #[schemars(length(max = 1000))]
    query: String,
) -> Result<Vec<Entry>, ToolError> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let notes = memory.notes(&context.caller)?;
    let fits = |(key, text): &(&String, &String)| {
        let both = format!("{key}\n{text}").to_lowercase();
        words.iter().all(|word| both.contains(word))
    };
    Ok(notes.iter().filter(fits).map(entry).collect())
}

/// Forgets what is kept under a key.
#[tool(destructive, idempotent, category = "memory", tags = ["forget", "remove"])]
fn delete(memory: State<Memory>, context: &Context, key: String) -> Result<Text, ToolError> {
    memory.change(&context.caller, |notes| match notes.remove(&key) {
        Some(_) => Ok(Text(format!("forgot `{key}`"))),
        None => Err(unknown(&key)),
    })?
}

fn entry((key, text): (&String, &String)) -> Entry {
    let start: String = text.chars().take(80).collect();
    Entry { key: key.clone(), characters: text.chars().count(), start: start.replace('\n', " ") }
}

fn unknown(key: &str) -> ToolError {
    ToolError::new(
        "UnknownKey",
        format!("nothing is kept under `{key}`; `memory.list` shows the keys"),
    )
}

type Notes = BTreeMap<String, String>;

impl Memory {
    pub(super) fn in_directory(directory: &Path) -> Memory {
        Memory { documents: Arc::new(Files::at(directory)) }
    }

    fn document(&self, caller: &Identity) -> JsonDocument<Notes> {
        let documents = Arc::clone(&self.documents);
        JsonDocument::new(documents, &document_name(caller), IfDamaged::Fail)
    }

    fn notes(&self, caller: &Identity) -> Result<Notes, ToolError> {
        wait(self.document(caller).read()).map_err(fault)
    }

    /// Changes and stores the notes of a caller, so that no other change is lost.
    fn change<T: Send>(
        &self,
        caller: &Identity,
        change: impl Fn(&mut Notes) -> T + Sync,
    ) -> Result<T, ToolError> {
        let mut outcome = None;
        let document = self.document(caller);
        wait(document.change(|notes| outcome = Some(change(notes)))).map_err(fault)?;
        outcome.ok_or_else(|| ToolError::new("MemoryUnavailable", "the memory was not changed"))
    }
}

/// The name of the document of a caller. A subject may hold any characters, so its hash
/// stands for it.
fn document_name(caller: &Identity) -> String {
    match caller.is_anonymous() {
        true => "memory.json".to_owned(),
        false => format!("memory-{}.json", hex::encode(&Sha256::digest(&caller.subject))),
    }
}

fn fault(error: DocumentError) -> ToolError {
    match error {
        DocumentError::Damaged(error) => {
            ToolError::new("Damaged", format!("the file of the memory: {error}"))
        }
        DocumentError::State(error) => {
            ToolError::new("MemoryUnavailable", format!("the memory cannot be used: {error}"))
        }
    }
}
