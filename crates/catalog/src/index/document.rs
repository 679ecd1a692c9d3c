//! The documents that an index is built from.

use tool::Json;

/// The kind of thing that a document describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Tool,
    Resource,
    Prompt,
    Skill,
}

/// One item that can be found.
#[derive(Clone, Debug)]
pub struct Document {
    /// Unique within the index; breaks ties.
    pub id: String,
    pub kind: Kind,
    /// The namespace that it belongs to; empty where there is none.
    pub server: String,
    /// The server's description of itself; empty where there is none.
    pub server_description: String,
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Option<Json>,
}
