//! What definitions cost a model.

use serde::{Deserialize, Serialize};

/// What definitions cost a model, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definitions {
    /// Of all upstreams' tools, as a client gets them that connects to each.
    pub direct: u64,
    /// Of what the gate shows instead.
    pub exposed: u64,
    /// How many tools that is.
    pub n_tools: u64,
}

impl Definitions {
    /// What a session saves by not reading all definitions.
    pub fn saved(&self) -> u64 {
        self.direct.saturating_sub(self.exposed)
    }
}
