//! `[learning]`: whether searches learn from use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether searches learn from what is called after them. Off unless switched on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Learning")]
pub(crate) struct Raw {
    /// Remember which function was called after which search words, in the state directory of
    /// this machine, and rank it higher later. `gatelet habits` shows and forgets.
    #[serde(default)]
    enabled: bool,
}

/// Whether searches learn from use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learning {
    On,
    Off,
}

pub(crate) fn parse(raw: &Raw) -> Learning {
    if raw.enabled { Learning::On } else { Learning::Off }
}
