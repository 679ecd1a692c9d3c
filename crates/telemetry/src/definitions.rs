//! The cost of tool definitions for a model.

use serde::{Deserialize, Serialize};

/// The cost of tool definitions, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionTokens {
    /// All upstreams' tools, as a client would list them that connects to each upstream.
    pub direct: u64,
    /// The tools that gatelet lists instead.
    pub exposed: u64,
    /// The number of upstreams' tools.
    pub n_tools: u64,
}

impl DefinitionTokens {
    /// Returns how many tokens a session saves.
    pub fn saved(&self) -> u64 {
        self.direct.saturating_sub(self.exposed)
    }
}
