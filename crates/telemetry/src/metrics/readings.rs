//! What a gate looks like at the moment: plain values in, gauges out.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::family::{Counters, Gauges, registered};
use crate::definitions::Definitions;
use crate::labels::label;

/// What a gate looks like at the moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    pub upstreams: Vec<UpstreamReading>,
    /// Sessions of clients.
    pub sessions: u64,
    /// Programs that were started and run.
    pub processes: u64,
    /// Requests over HTTP that are worked on, and that wait for their turn.
    pub requests_under_way: u64,
    pub requests_waiting: u64,
    /// Kept answers, and their bytes; `None` where the store does not say.
    pub artifacts: Option<(u64, u64)>,
    /// Records that could not be written to their file.
    pub records_lost: u64,
    /// Spans that a collector took, and that were dropped.
    pub spans_exported: u64,
    pub spans_dropped: u64,
    pub process: Option<ProcessReading>,
}

/// One upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamReading {
    pub label: String,
    pub state: UpstreamState,
    pub tools: u64,
    /// How often it was started again since the gate was.
    pub restarts: u64,
    /// How many questions in a row it left without an answer.
    pub unanswered: u64,
    /// Calls that wait for their turn.
    pub waiting: u64,
}

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

/// The gate's own process.
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

pub(super) struct Now {
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
    records_lost: Counters<1>,
    spans: Counters<1>,
    resident: Gauge,
    open_files: Gauge,
    processor_time: FloatCounter,
    started: FloatGauge,
}

impl Now {
    pub(super) fn register(registry: &mut Registry) -> Now {
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
        let lost = "Records that were dropped or could not be written, by who should have had them";
        let spans = "Spans of traces, by whether a collector took them or they were dropped";
        let resident = "Memory that the process holds";
        let files = "Files that the process has open";
        let processor = "Processor time that the process used";
        let started = "When the process was started, in seconds since 1970";
        Now {
            upstream_state: registered(r, "gatelet_upstream_state", state, Family::default()),
            upstream_tools: registered(r, "gatelet_upstream_tools", tools, Family::default()),
            upstream_restarts: registered(
                r,
                "gatelet_upstream_restarts",
                restarts,
                Family::default(),
            ),
            upstream_unanswered: registered(
                r,
                "gatelet_upstream_unanswered",
                unanswered,
                Family::default(),
            ),
            upstream_waiting: registered(r, "gatelet_upstream_waiting", waiting, Family::default()),
            sessions: registered(r, "gatelet_sessions", sessions, Gauge::default()),
            processes: registered(r, "gatelet_upstream_processes", processes, Gauge::default()),
            requests: registered(r, "gatelet_requests", requests, Family::default()),
            artifacts: registered(r, "gatelet_artifacts", artifacts, Gauge::default()),
            artifact_bytes: registered(
                r,
                "gatelet_artifact_bytes",
                artifact_bytes,
                Gauge::default(),
            ),
            definition_tokens: registered(
                r,
                "gatelet_definition_tokens",
                definitions,
                Family::default(),
            ),
            records_lost: registered(r, "gatelet_records_lost", lost, Family::default()),
            spans: registered(r, "gatelet_spans", spans, Family::default()),
            resident: registered(r, "process_resident_memory_bytes", resident, Gauge::default()),
            open_files: registered(r, "process_open_fds", files, Gauge::default()),
            processor_time: registered(
                r,
                "process_cpu_seconds",
                processor,
                FloatCounter::default(),
            ),
            started: registered(r, "process_start_time_seconds", started, FloatGauge::default()),
        }
    }

    pub(super) fn set(&self, readings: &Readings, definitions: Option<Definitions>, lost: u64) {
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
        // What is no longer configured is no longer there.
        self.upstream_state.clear();
        self.upstream_tools.clear();
        self.upstream_restarts.clear();
        self.upstream_unanswered.clear();
        self.upstream_waiting.clear();
        for upstream in upstreams {
            let of = [("upstream", label(&upstream.label))];
            for state in UpstreamState::ALL {
                let [own] = of.clone();
                let is =
                    self.upstream_state.get_or_create(&[own, ("state", state.as_str().to_owned())]);
                is.set(i64::from(state == upstream.state));
            }
            self.upstream_tools.get_or_create(&of).set(signed(upstream.tools));
            self.upstream_unanswered.get_or_create(&of).set(signed(upstream.unanswered));
            self.upstream_waiting.get_or_create(&of).set(signed(upstream.waiting));
            set(&self.upstream_restarts.get_or_create(&of), upstream.restarts);
        }
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Sets a counter to what somebody else counted.
fn set(counter: &Counter, count: u64) {
    counter.inner().store(count, Ordering::Relaxed);
}
