//! `[scripts]`: JavaScript that calls functions, in `gatelet.run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use script::Limits;
use serde::{Deserialize, Serialize};

/// JavaScript that calls functions, in `gatelet.run`. Off when left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Scripts")]
pub(crate) struct Raw {
    /// Whether models may run scripts. Off when left out.
    #[serde(default)]
    enabled: bool,
    /// How long a script may take, in seconds, calls included. 120 when left out.
    #[schemars(range(min = 1))]
    seconds: Option<u64>,
    /// How many megabytes its values may take. 64 when left out.
    #[schemars(range(min = 1, max = 1024))]
    memory_mb: Option<usize>,
    /// How many millions of steps it may take. 1000 when left out.
    #[schemars(range(min = 1))]
    million_steps: Option<u64>,
    /// How many functions it may call in all. 200 when left out.
    #[schemars(range(min = 1))]
    calls: Option<usize>,
    /// How many of them at once. 8 when left out.
    #[schemars(range(min = 1, max = 64))]
    parallel: Option<usize>,
    /// How many scripts run at once, of all callers; further ones wait. 16 when left out.
    #[schemars(range(min = 1, max = 256))]
    workers: Option<usize>,
    /// Whether the gateway surface has a tool for them, too (`tool_run`). Off when left out.
    #[serde(default)]
    gateway: bool,
    /// A directory of recipes: scripts that are functions. `recipes` beside the configuration when left out.
    recipes: Option<String>,
}

/// The validated `[scripts]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    pub enabled: bool,
    pub limits: Limits,
    /// How many scripts run at once.
    pub workers: usize,
    /// Whether the gateway surface has the tool `tool_run`.
    pub run_tool: bool,
    /// The directory of scripts that are offered as functions.
    pub recipes: PathBuf,
}

pub(crate) fn parse(raw: &Raw, base: &Path) -> Scripts {
    let usual = Limits::default();
    let limits = Limits {
        time: raw.seconds.map_or(usual.time, Duration::from_secs),
        memory: raw.memory_mb.map_or(usual.memory, |megabytes| megabytes << 20),
        steps: raw.million_steps.map_or(usual.steps, |millions| millions.saturating_mul(1_000_000)),
        calls: raw.calls.unwrap_or(usual.calls),
        parallel: raw.parallel.unwrap_or(usual.parallel),
        ..usual
    };
    Scripts {
        enabled: raw.enabled,
        limits,
        workers: raw.workers.unwrap_or(16),
        run_tool: raw.gateway,
        recipes: base.join(raw.recipes.as_deref().unwrap_or("recipes")),
    }
}
