//! The statistics as plain values, for the console and `gatelet top`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::definitions::DefinitionTokens;

/// The statistics of the last hour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// Milliseconds since 1970.
    pub now: u64,
    /// When counting began, in milliseconds since 1970.
    pub since: u64,
    /// The last sixty minutes, the oldest first; the last one is not over yet.
    pub minutes: Vec<Minute>,
    /// The total of all minutes.
    pub hour: Total,
    /// By upstream, the most called first.
    pub upstreams: Vec<UpstreamFigures>,
    /// The tools that were called most, by canonical id.
    pub tools: Vec<ToolFigures>,
    /// The cost of tool definitions; `None` before a catalog was published.
    pub definitions: Option<DefinitionTokens>,
    /// The tokens of all definitions of each upstream.
    #[serde(default)]
    pub definitions_by_upstream: BTreeMap<String, u64>,
    /// How many records were dropped because they came too fast.
    pub lost: u64,
}

/// One minute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Minute {
    /// When it began, in milliseconds since 1970.
    pub at: u64,
    #[serde(flatten)]
    pub total: Total,
}

/// The statistics of a span of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Total {
    pub calls: u64,
    pub errors: u64,
    pub searches: u64,
    /// Sessions that were heard of for the first time in an hour; each read the definitions
    /// of tools, or would have.
    #[serde(default)]
    pub sessions: u64,
    /// The median duration of a call; `None` without calls.
    pub p50_ms: Option<f64>,
    /// The 95th percentile of the duration of a call; `None` without calls.
    pub p95_ms: Option<f64>,
    /// Tokens of the upstreams' answers.
    pub tokens_raw: u64,
    /// Tokens of the answers that were sent to clients.
    pub tokens_sent: u64,
}

/// The calls to one upstream in the last hour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpstreamFigures {
    pub label: String,
    pub calls: u64,
    pub errors: u64,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub tokens_raw: u64,
    pub tokens_sent: u64,
    /// Calls by minute, as in [`Overview::minutes`].
    pub calls_by_minute: Vec<u64>,
}

/// The calls to one tool since counting began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolFigures {
    pub id: String,
    pub calls: u64,
    pub errors: u64,
}

impl Total {
    /// Returns how many tokens were not sent to models.
    pub fn tokens_saved(&self) -> u64 {
        self.tokens_raw.saturating_sub(self.tokens_sent)
    }
}
