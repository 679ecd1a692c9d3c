//! `[builtin]`: the tools that come with gatelet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tools that come with gatelet: time, text, JSON, units, memory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Builtin")]
pub(crate) struct Raw {
    /// Whether they are offered beside the upstreams. Off when left out.
    tools: Option<bool>,
}

pub(super) fn parse(raw: &Raw) -> bool {
    raw.tools.unwrap_or(false)
}
