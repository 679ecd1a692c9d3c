//! `[metrics]`: where gatelet serves metrics for Prometheus.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path as FilePath;

use document::tree::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problems;
use super::serve::parse_address;
use super::text::{self, Environment};

/// Figures for Prometheus, under `/metrics`. Off when neither `listen` nor `on_gate` is given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Metrics")]
pub(crate) struct Raw {
    /// An address and port for metrics alone, such as `127.0.0.1:9464`.
    listen: Option<String>,
    /// Serve `/metrics` where clients are served. Scrapers need a key with the scope `metrics`; where callers
    /// need none, those on this machine do not either.
    #[serde(default)]
    on_gate: bool,
    /// What scrapers of `listen` have to show as `Authorization: Bearer TOKEN`. Needed beyond loopback.
    token: Option<String>,
    /// How many tools have figures of their own; the others share one. 200 when left out.
    #[schemars(range(min = 1, max = 10000))]
    tools: Option<usize>,
}

/// The validated `[metrics]` section.
#[derive(Clone, PartialEq, Eq)]
pub struct Metrics {
    /// An address for metrics alone.
    pub listen: Option<SocketAddr>,
    /// Whether `/metrics` is served where clients are served.
    pub on_gate: bool,
    /// The bearer token for `listen`.
    pub token: Option<String>,
    /// How many tools have metrics of their own.
    pub n_tools: usize,
}

/// The default of `n_tools`.
const TOOLS: usize = 200;

impl Metrics {
    pub fn is_on(&self) -> bool {
        self.listen.is_some() || self.on_gate
    }
}

impl fmt::Debug for Metrics {
    /// Leaves out the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Metrics");
        shown.field("listen", &self.listen).field("on_gate", &self.on_gate).finish_non_exhaustive()
    }
}

pub(crate) fn parse(
    raw: &Raw,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Metrics {
    let path = Path::default().key("metrics");
    let listen = raw.listen.as_deref();
    let listen = listen.and_then(|text| problems.parse(&path.key("listen"), text, parse_address));
    let token = raw.token.as_deref().and_then(|text| {
        problems.parse(&path.key("token"), text, |text| {
            text::fill_placeholders(text, base, environment)
        })
    });
    if token.as_deref() == Some("") {
        problems.error(&path.key("token"), "must not be empty", None);
    }
    if listen.is_some_and(|listen| !listen.ip().is_loopback()) && raw.token.is_none() {
        let hint = "add `token`, or listen on 127.0.0.1";
        let message = "other machines can reach this address and read the names of all tools";
        problems.error(&path.key("listen"), message, Some(hint));
    }
    if raw.token.is_some() && raw.listen.is_none() {
        let hint = "on the gate, scrapers show a key with the scope `metrics`";
        problems.error(&path.key("token"), "only goes with `listen`", Some(hint));
    }
    Metrics { listen, on_gate: raw.on_gate, token, n_tools: raw.tools.unwrap_or(TOOLS) }
}
