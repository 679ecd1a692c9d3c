//! The ways in which the text of an upstream's skill is fetched.

use tool::Json;
use tool::listing::PromptArgument;

/// How the text is fetched from an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// With `prompts/get`.
    Prompt { name: String, arguments: Vec<PromptArgument> },
    /// With `resources/read`.
    Resource {
        uri: String,
        /// The digest of its `SKILL.md`, if the upstream lists one.
        digest: Option<String>,
        /// The upstream's entry for the skill; null if it is too large to be stored.
        entry: Json,
    },
    /// From a CaSH server, by its namespace and name there.
    Cash { namespace: String, name: String },
}
