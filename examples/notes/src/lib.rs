//! A notebook for agents: five tools over one piece of shared state.
//!
//! Everything that `#[tool]` can do is shown once: plain and async functions,
//! defaults, a typed result, an error type, state, progress, annotations.

mod notebook;

use native::{Context, Registry, State, Text, ToolError, tool};
use schemars::JsonSchema;
use serde::Serialize;

pub use notebook::{Note, Notebook};

/// The registry with all tools of this crate.
pub fn registry() -> Registry {
    Registry::new("notes", env!("CARGO_PKG_VERSION"))
        .instructions("A notebook. Write with `note_write`, find with `note_search`.")
        .state(Notebook::default())
        .discover_in(module_path!())
}

/// Why a note cannot be had. The name of the type is what clients see as
/// `error_type`.
#[derive(Debug, thiserror::Error)]
#[error("there is no note called `{title}`; `note_list` shows all titles")]
struct NoteNotFound {
    title: String,
}

/// Writes a note, and replaces the one that has the same title.
#[tool(idempotent, category = "notes", tags = ["write"])]
fn note_write(
    notebook: State<Notebook>,
    /// What the note is called.
    #[schemars(length(min = 1, max = 80))]
    title: String,
    /// What it says.
    text: String,
    /// Words to find it by.
    #[default(vec![])]
    tags: Vec<String>,
) -> Note {
    notebook.write(Note { title, text, tags })
}

/// Reads one note by its title.
#[tool(read_only, category = "notes")]
fn note_read(notebook: State<Notebook>, title: String) -> Result<Note, NoteNotFound> {
    notebook.read(&title).ok_or(NoteNotFound { title })
}

/// Lists the titles of all notes, in the order of the alphabet.
#[tool(read_only, category = "notes")]
fn note_list(notebook: State<Notebook>) -> Vec<String> {
    notebook.titles()
}

/// What a search found.
#[derive(Debug, Serialize, JsonSchema)]
struct Hits {
    /// The notes, best first.
    notes: Vec<Note>,
    /// How many notes were looked at.
    searched: usize,
}

/// Finds notes that contain all words of a query, in title, text or tags.
#[tool(read_only, category = "notes", tags = ["search"], timeout = "5s")]
async fn note_search(
    context: &Context,
    notebook: State<Notebook>,
    /// Words, separated by blanks.
    query: String,
    /// How many notes to return at most.
    #[schemars(range(min = 1, max = 50))]
    #[default(10u32)]
    limit: u32,
) -> Result<Hits, ToolError> {
    if query.trim().is_empty() {
        return Err(ToolError::new("EmptyQuery", "the query has no words; name at least one"));
    }
    let searched = notebook.titles().len();
    context.progress(0.0, None, &format!("looking through {searched} notes"));
    let notes = notebook.search(&query, usize::try_from(limit).unwrap_or(50));
    Ok(Hits { notes, searched })
}

/// Deletes a note for good.
#[tool(destructive, category = "notes")]
fn note_delete(notebook: State<Notebook>, title: String) -> Result<Text, NoteNotFound> {
    match notebook.delete(&title) {
        Some(note) => Ok(Text(format!("deleted `{}` ({} bytes)", note.title, note.text.len()))),
        None => Err(NoteNotFound { title }),
    }
}
