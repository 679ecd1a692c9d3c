//! Histograms of how long operations and sessions took, since the process started.

use std::collections::HashMap;
use std::time::Duration;

use super::resource::{Attribute, Value};
use super::spans::common_attributes;
use crate::semantics::{BUCKETS, Side};
use crate::traces::{Operation, Session};

/// How many combinations of attributes there may be; all later ones share one.
const SERIES: usize = 2_000;

/// The histograms that the semantic conventions define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Metric {
    ClientOperation,
    ServerOperation,
    ClientSession,
    ServerSession,
}

impl Metric {
    pub(super) const ALL: [Metric; 4] = [
        Metric::ClientOperation,
        Metric::ServerOperation,
        Metric::ClientSession,
        Metric::ServerSession,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Metric::ClientOperation => "mcp.client.operation.duration",
            Metric::ServerOperation => "mcp.server.operation.duration",
            Metric::ClientSession => "mcp.client.session.duration",
            Metric::ServerSession => "mcp.server.session.duration",
        }
    }
}

/// All histograms.
#[derive(Debug)]
pub(super) struct Histograms {
    /// Nanoseconds since 1970 when counting began.
    pub(super) since: u64,
    pub(super) series: HashMap<(Metric, Vec<Attribute>), Series>,
}

/// One histogram for one combination of attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Series {
    /// By bucket; the last one is for everything above.
    pub(super) counts: [u64; BUCKETS.len() + 1],
    pub(super) sum: f64,
}

impl Histograms {
    pub(super) fn new(since: u64) -> Histograms {
        Histograms { since, series: HashMap::new() }
    }

    pub(super) fn add(&mut self, operation: &Operation) {
        let metric = match operation.side {
            Side::Client => Metric::ClientOperation,
            Side::Server => Metric::ServerOperation,
        };
        self.observe(metric, common_attributes(operation), operation.took);
    }

    pub(super) fn add_session(&mut self, session: &Session) {
        let metric = match session.side {
            Side::Client => Metric::ClientSession,
            Side::Server => Metric::ServerSession,
        };
        let mut attributes: Vec<Attribute> = Vec::new();
        if !session.protocol.is_empty() {
            attributes.push(("mcp.protocol.version", session.protocol.as_str().into()));
        }
        if !session.peer.transport.is_empty() {
            attributes.push(("network.transport", session.peer.transport.into()));
        }
        if let Some(upstream) = &session.peer.upstream {
            attributes.push(("gatelet.upstream", upstream.as_str().into()));
        }
        self.observe(metric, attributes, session.took);
    }

    fn observe(&mut self, metric: Metric, attributes: Vec<Attribute>, took: Duration) {
        let mut key = (metric, attributes);
        if SERIES <= self.series.len() && !self.series.contains_key(&key) {
            key.1 = vec![("otel.metric.overflow", Value::Flag(true))];
        }
        let seconds = took.as_secs_f64();
        let series = self.series.entry(key).or_default();
        let bucket = BUCKETS.iter().position(|end| seconds <= *end).unwrap_or(BUCKETS.len());
        series.counts[bucket] += 1;
        series.sum += seconds;
    }
}
