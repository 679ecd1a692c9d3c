//! Metrics for Prometheus: what the records of calls add up to since the gate
//! started, and what it looks like at the moment.
//!
//! Counters and histograms come from records and events ([`totals`]); what is
//! true only now (sessions, processes, queues) comes in as [`Readings`] when
//! somebody asks. The number of series is bounded whatever is called.

mod readings;
mod totals;

mod family;

use gateway::record::{GatewayEvent, Record};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::definitions::Definitions;
use readings::Now;
use totals::Totals;

pub use readings::{ProcessReading, Readings, UpstreamReading, UpstreamState};

/// What the text is, for the header of an answer.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What an operator decides about metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many tools have series of their own; the others share one.
    pub n_tools: usize,
    /// The version of the program.
    pub version: String,
}

/// All metrics of a gate.
pub(crate) struct Metrics {
    registry: Registry,
    totals: Totals,
    now: Now,
}

impl Metrics {
    pub(crate) fn new(config: &Config) -> Metrics {
        let mut registry = Registry::default();
        let build = Info::new([("version", config.version.clone())]);
        registry.register("gatelet_build", "The program that runs", build);
        let totals = Totals::register(&mut registry, config.n_tools);
        let now = Now::register(&mut registry);
        Metrics { registry, totals, now }
    }

    pub(crate) fn add(&mut self, record: &Record) {
        self.totals.add(record);
    }

    pub(crate) fn add_event(&mut self, event: &GatewayEvent) {
        self.totals.add_event(event);
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn text(
        &self,
        readings: &Readings,
        definitions: Option<Definitions>,
        lost: u64,
    ) -> String {
        self.now.set(readings, definitions, lost);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests;
