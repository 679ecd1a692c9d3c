//! Prometheus gauges of the current state, and the plain values that they are set from.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::family::{Counters, Gauges, register};
use crate::definitions::DefinitionTokens;
use crate::labels::sanitize_label;

/// The current state of a gatelet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    pub upstreams: Vec<UpstreamReading>,
    /// Sessions of clients.
    pub sessions: u64,
    /// Programs of upstreams that are running.
    pub processes: u64,
    /// HTTP requests that are being processed.
    pub requests_under_way: u64,
    /// HTTP requests that wait for their turn.
    pub requests_waiting: u64,
    /// The number of stored answers and their bytes; `None` when the store cannot tell.
    pub artifacts: Option<(u64, u64)>,
    /// Calls that wait for somebody's agreement; `None` when the queue cannot be read.
    pub approvals_waiting: Option<u64>,
    /// Records that could not be written to their file.
    pub records_lost: u64,
    /// Spans that a collector accepted.
    pub spans_exported: u64,
    /// Spans that were dropped.
    pub spans_dropped: u64,
    pub process: Option<ProcessReading>,
}

/// The current state of one upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamReading {
    pub label: String,
    pub state: UpstreamState,
    pub tools: u64,
    /// How often it was restarted.
    pub restarts: u64,
    /// How many requests in a row it did not answer.
    pub unanswered: u64,
    /// Calls that wait for their turn.
    pub waiting: u64,
}

/// The state of an upstream's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamState {
    Up,
    Starting,
    /// Not running: the next call starts it.
    Ready,
    Down,
}

impl UpstreamState {
    const ALL: [UpstreamState; 4] =
        [UpstreamState::Up, UpstreamState::Starting, UpstreamState::Ready, UpstreamState::Down];

    fn as_str(self) -> &'static str {
        match self {
            UpstreamState::Up => "up",
            UpstreamState::Starting => "starting",
            UpstreamState::Ready => "ready",
            UpstreamState::Down => "down",
        }
    }
}

/// Resource use of gatelet's own process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessReading {
    pub resident_bytes: u64,
    pub open_files: u64,
    pub processor_seconds: f64,
    /// Seconds since 1970.
    pub started: f64,
}

type FloatGauge = Gauge<f64, AtomicU64>;
type FloatCounter = Counter<f64, AtomicU64>;

/// All gauges, and the counters that are maintained elsewhere.
pub(super) struct CurrentMetrics {
    upstream_state: Gauges<2>,
    upstream_tools: Gauges<1>,
    upstream_restarts: Counters<1>,
    upstream_unanswered: Gauges<1>,
    upstream_waiting: Gauges<1>,
    sessions: Gauge,
    processes: Gauge,
    requests: Gauges<1>,
    artifacts: Gauge,
    artifact_bytes: Gauge,
    definition_tokens: Gauges<1>,
    /// Without a series while nobody can say: an old count would hide that somebody waits.
    approvals_waiting: Gauges<0>,
    records_lost: Counters<1>,
    spans: Counters<1>,
    resident: Gauge,
    open_files: Gauge,
    processor_time: FloatCounter,
    started: FloatGauge,
}

impl CurrentMetrics {
    pub(super) fn register(registry: &mut Registry) -> CurrentMetrics {
        let r = registry;
        let state = "1 for the state that an upstream is in, 0 for the others";
        let tools = "Tools that an upstream lists";
        let restarts = "How often an upstream was started again";
        let unanswered = "Questions in a row that an upstream left without an answer";
        let waiting = "Calls that wait for their turn at an upstream";
        let sessions = "Sessions of clients over HTTP";
        let processes = "Programs that the gate started and that run";
        let requests = "Requests over HTTP, by whether they are worked on or wait";
        let artifacts = "Answers that are kept at the moment";
        let artifact_bytes = "Bytes of answers that are kept at the moment";
        let definitions = "Tokens of all tool definitions, and of those that clients see instead";
        let approvals = "Calls that wait for somebody's agreement";
        let lost = "Records that were dropped or could not be written, by who should have had them";
        let spans = "Spans of traces, by whether a collector took them or they were dropped";
        let resident = "Memory that the process holds";
        let files = "Files that the process has open";
        let processor = "Processor time that the process used";
        let started = "When the process was started, in seconds since 1970";
        CurrentMetrics {
            upstream_state: register(r, "gatelet_upstream_state", state, Family::default()),
            upstream_tools: register(r, "gatelet_upstream_tools", tools, Family::default()),
            upstream_restarts: register(
                r,
                "gatelet_upstream_restarts",
                restarts,
                Family::default(),
            ),
            upstream_unanswered: register(
                r,
                "gatelet_upstream_unanswered",
                unanswered,
                Family::default(),
            ),
            upstream_waiting: register(r, "gatelet_upstream_waiting", waiting, Family::default()),
            sessions: register(r, "gatelet_sessions", sessions, Gauge::default()),
            processes: register(r, "gatelet_upstream_processes", processes, Gauge::default()),
            requests: register(r, "gatelet_requests", requests, Family::default()),
            artifacts: register(r, "gatelet_artifacts", artifacts, Gauge::default()),
            artifact_bytes: register(r, "gatelet_artifact_bytes", artifact_bytes, Gauge::default()),
            definition_tokens: register(
                r,
                "gatelet_definition_tokens",
                definitions,
                Family::default(),
            ),
            approvals_waiting: register(
                r,
                "gatelet_approvals_waiting",
                approvals,
                Family::default(),
            ),
            records_lost: register(r, "gatelet_records_lost", lost, Family::default()),
            spans: register(r, "gatelet_spans", spans, Family::default()),
            resident: register(r, "process_resident_memory_bytes", resident, Gauge::default()),
            open_files: register(r, "process_open_fds", files, Gauge::default()),
            processor_time: register(r, "process_cpu_seconds", processor, FloatCounter::default()),
            started: register(r, "process_start_time_seconds", started, FloatGauge::default()),
        }
    }

    pub(super) fn set(
        &self,
        readings: &Readings,
        definitions: Option<DefinitionTokens>,
        lost: u64,
    ) {
        self.set_upstreams(&readings.upstreams);
        self.sessions.set(signed(readings.sessions));
        self.processes.set(signed(readings.processes));
        let requests =
            [("under_way", readings.requests_under_way), ("waiting", readings.requests_waiting)];
        for (state, count) in requests {
            self.requests.get_or_create(&[("state", state.to_owned())]).set(signed(count));
        }
        if let Some((count, bytes)) = readings.artifacts {
            self.artifacts.set(signed(count));
            self.artifact_bytes.set(signed(bytes));
        }
        self.approvals_waiting.clear();
        if let Some(waiting) = readings.approvals_waiting {
            self.approvals_waiting.get_or_create(&[]).set(signed(waiting));
        }
        let definitions = definitions.unwrap_or_default();
        for (shown, cost) in [("direct", definitions.direct), ("exposed", definitions.exposed)] {
            let tokens = self.definition_tokens.get_or_create(&[("shown", shown.to_owned())]);
            tokens.set(signed(cost));
        }
        for (by, count) in [("file", readings.records_lost), ("figures", lost)] {
            set(&self.records_lost.get_or_create(&[("by", by.to_owned())]), count);
        }
        for (outcome, count) in
            [("exported", readings.spans_exported), ("dropped", readings.spans_dropped)]
        {
            set(&self.spans.get_or_create(&[("outcome", outcome.to_owned())]), count);
        }
        if let Some(process) = readings.process {
            self.resident.set(signed(process.resident_bytes));
            self.open_files.set(signed(process.open_files));
            self.started.set(process.started);
            self.processor_time
                .inner()
                .store(process.processor_seconds.to_bits(), Ordering::Relaxed);
        }
    }

    fn set_upstreams(&self, upstreams: &[UpstreamReading]) {
        // Upstreams that are no longer configured must disappear.
        self.upstream_state.clear();
        self.upstream_tools.clear();
        self.upstream_restarts.clear();
        self.upstream_unanswered.clear();
        self.upstream_waiting.clear();
        for upstream in upstreams {
            let by_upstream = [("upstream", sanitize_label(&upstream.label))];
            for state in UpstreamState::ALL {
                let [own] = by_upstream.clone();
                let is =
                    self.upstream_state.get_or_create(&[own, ("state", state.as_str().to_owned())]);
                is.set(i64::from(state == upstream.state));
            }
            self.upstream_tools.get_or_create(&by_upstream).set(signed(upstream.tools));
            self.upstream_unanswered.get_or_create(&by_upstream).set(signed(upstream.unanswered));
            self.upstream_waiting.get_or_create(&by_upstream).set(signed(upstream.waiting));
            set(&self.upstream_restarts.get_or_create(&by_upstream), upstream.restarts);
        }
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Sets a counter to a count that is maintained elsewhere.
fn set(counter: &Counter, count: u64) {
    counter.inner().store(count, Ordering::Relaxed);
}
