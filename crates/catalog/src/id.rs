//! Stable ids of tools, resources and prompts.
//!
//! A [`ToolId`] is `namespace:name@version` or `namespace:name#hash8`, where
//! the hash covers the upstream's name for the tool and the shape of its
//! arguments, so prose edits keep an id and a changed call breaks it. Resources
//! and prompts carry `resource::` or `prompt::` before the same grammar. This
//! module knows only the grammar and how ids are derived from definitions.

mod derive;
mod parse;

pub use derive::{
    DerivedId, ascii_string, canonical_shape, disambiguate, namespace_of, of_prompt, of_resource,
    of_tool, prompt_hash, qualify, resource_hash, short_name, strict_prompt, strict_tool,
    tool_hash,
};

/// The parts of a canonical tool id, each within its grammar.
///
/// Invariant: a version, a hash, or both; at most 240 characters together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolId {
    namespace: String,
    name: String,
    version: Option<String>,
    hash8: Option<String>,
}

/// The kind of thing that an id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Primitive {
    Tool,
    Resource,
    Prompt,
}

/// The id of a tool, a resource or a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrimitiveId {
    pub kind: Primitive,
    pub body: ToolId,
}

/// Why a text is not an id. The specification calls all of these `CatalogError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    #[error("an id has at most 240 characters, this one has {0}")]
    TooLong(usize),
    #[error("an id needs `:` after its namespace, `{0}` has none")]
    NoNamespace(String),
    #[error("`{text}` is no legal {part} of an id, which is {grammar}")]
    Part { part: &'static str, text: String, grammar: &'static str },
    #[error("an id needs `@version` or `#hash8` at its end")]
    Unpinned,
    #[error("`{0}::` starts no id; `resource::` and `prompt::` do")]
    Kind(String),
    #[error("a definition without `{0}` has no id")]
    Nameless(&'static str),
}

impl ToolId {
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    pub fn hash8(&self) -> Option<&str> {
        self.hash8.as_deref()
    }
}

#[cfg(test)]
mod tests;
