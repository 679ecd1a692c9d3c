//! The documents that an index is built from.

use tool::Json;

/// What a document describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Tool,
    Resource,
    Prompt,
    Skill,
}

/// One thing that can be found.
#[derive(Clone, Debug)]
pub struct Document {
    /// Unique within the index; breaks ties.
    pub id: String,
    pub kind: Kind,
    /// The namespace it belongs to, empty where there is none.
    pub server: String,
    /// What that server says of itself, empty when it says nothing.
    pub server_description: String,
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Option<Json>,
}
