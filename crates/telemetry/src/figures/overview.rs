//! The figures as the console and `gatelet top` show them: plain values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::definitions::Definitions;

/// How the gate fares, over the last hour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// Milliseconds since 1970.
    pub now: u64,
    /// Since when calls are counted. What was before is not known.
    pub since: u64,
    /// The last sixty minutes, the oldest first; the last one is not over yet.
    pub minutes: Vec<Minute>,
    /// All of them together.
    pub hour: Total,
    /// By upstream, the most called first.
    pub upstreams: Vec<UpstreamFigures>,
    /// The tools that were called most, by canonical id.
    pub tools: Vec<ToolFigures>,
    /// What definitions cost a model; `None` before a catalog was seen.
    pub definitions: Option<Definitions>,
    /// What the definitions of each upstream would cost, in tokens.
    #[serde(default)]
    pub definitions_by_upstream: BTreeMap<String, u64>,
    /// How many records are missing in the figures because they came too fast.
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

/// What a span of time adds up to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Total {
    pub calls: u64,
    pub errors: u64,
    pub searches: u64,
    /// How long a call took, in milliseconds; `None` without calls.
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    /// What the upstreams' answers would have cost a model, and what was sent.
    pub tokens_raw: u64,
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
    /// What the gate kept from the model.
    pub fn tokens_saved(&self) -> u64 {
        self.tokens_raw.saturating_sub(self.tokens_sent)
    }
}
