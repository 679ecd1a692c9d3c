//! Metrics for Prometheus: counters since the process started, and the current state.
//!
//! Counters and histograms come from records and events ([`totals`]); gauges of the
//! current state (sessions, processes, queues) come as [`Readings`] with every scrape.
//! The number of series is bounded, whatever is called.

mod readings;
mod totals;

mod family;

use gateway::record::{GatewayEvent, Record};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::definitions::DefinitionTokens;
use readings::CurrentMetrics;
use totals::Totals;

pub use readings::{ProcessReading, Readings, UpstreamReading, UpstreamState};

/// The `Content-Type` of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The settings of the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many tools have series of their own; the others share one.
    pub n_tools: usize,
    /// The version of the program.
    pub version: String,
}

/// All metrics of a gatelet.
pub(crate) struct Metrics {
    registry: Registry,
    totals: Totals,
    current: CurrentMetrics,
}

impl Metrics {
    pub(crate) fn new(config: &Config) -> Metrics {
        let mut registry = Registry::default();
        let build = Info::new([("version", config.version.clone())]);
        registry.register("gatelet_build", "The program that runs", build);
        let totals = Totals::register(&mut registry, config.n_tools);
        let current = CurrentMetrics::register(&mut registry);
        Metrics { registry, totals, current }
    }

    pub(crate) fn add(&mut self, record: &Record) {
        self.totals.add(record);
    }

    pub(crate) fn add_event(&mut self, event: &GatewayEvent) {
        self.totals.add_event(event);
    }

    /// Renders everything for Prometheus; `lost` is how many records were not counted.
    pub(crate) fn text(
        &self,
        readings: &Readings,
        definitions: Option<DefinitionTokens>,
        lost: u64,
    ) -> String {
        self.current.set(readings, definitions, lost);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests;
