//! `[listing]`: which upstream tools are listed with their full definitions, beside
//! gatelet's own tools.

use gateway::surface::listed;
use policy::pattern::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What clients are shown whole beside our own tools, on `cash`, `gateway` and `auto`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Listing")]
pub(crate) struct Raw {
    /// On `auto`, list every tool when all that a caller sees costs fewer tokens than this. 1100
    /// when left out; 0 never does.
    everything_below: Option<usize>,
    /// Tools to list whole, most wanted first: `github.create_issue`, `files.*`.
    #[serde(default)]
    pinned: Vec<String>,
    /// How many of the tools that were used most to list, too. 0 when left out; needs `[learning]`.
    most_used: Option<usize>,
    /// Tokens that pinned and most used tools may cost together. 2000 when left out.
    pinned_tokens: Option<usize>,
    /// Offer `call_read`, which runs only what changes nothing, so that hosts can allow it once
    /// for all.
    #[serde(default)]
    read_tool: bool,
    /// Tools that change nothing, whatever they say themselves.
    #[serde(default)]
    read_only: Vec<String>,
    /// Tell namespaces as groups, by the draft of MCP's grouping extension.
    #[serde(default)]
    groups: bool,
}

pub(crate) fn parse(raw: &Raw) -> listed::Config {
    let default = listed::Config::default();
    let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
    listed::Config {
        everything_below: raw.everything_below.unwrap_or(default.everything_below),
        pinned: patterns(&raw.pinned),
        most_used: raw.most_used.unwrap_or(default.most_used),
        tokens: raw.pinned_tokens.unwrap_or(default.tokens),
        read_tool: raw.read_tool,
        read_only: patterns(&raw.read_only),
        groups: raw.groups,
    }
}
