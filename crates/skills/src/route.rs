//! How the text of an upstream's skill is fetched.

use tool::Json;
use tool::listing::PromptArgument;

/// How the text is fetched from an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Prompt {
        name: String,
        arguments: Vec<PromptArgument>,
    },
    Resource {
        uri: String,
        /// Of its `SKILL.md`, where the upstream lists one.
        digest: Option<String>,
        /// What it says of the skill, whole; nothing where that is too much to
        /// remember.
        entry: Json,
    },
    /// A skill of a CaSH server, under its name there.
    Cash {
        namespace: String,
        name: String,
    },
}
