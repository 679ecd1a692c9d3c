//! Prometheus counters and histograms, fed by the records of calls and by events.

use gateway::record::{Ending, EventKind, GatewayEvent, Record};
use policy::refusal::RefusalCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::family::{Counters, Histograms, register};
use crate::labels::{BoundedSet, OTHER, sanitize_label};
use crate::semantics::{BUCKETS, method};

/// How many upstreams have series of their own; the others share one.
const UPSTREAMS: usize = 1_000;

/// All counters and histograms.
pub(super) struct Totals {
    calls: Counters<4>,
    call_duration: Histograms<2>,
    errors: Counters<2>,
    attempts: Counters<1>,
    quota_refusals: Counters<1>,
    tokens_raw: Counters<1>,
    tokens_sent: Counters<1>,
    searches: Counters<1>,
    search_duration: Histogram,
    artifacts_kept: Counter,
    artifact_bytes_kept: Counter,
    upstreams: BoundedSet<String>,
    tools: BoundedSet<(String, String)>,
}

impl Totals {
    pub(super) fn register(registry: &mut Registry, n_tools: usize) -> Totals {
        let r = registry;
        let calls = "Calls, and whatever else is asked of upstreams, by how they ended";
        let duration = "How long calls took, from their arrival to their answer";
        let errors = "Calls that did not get what they asked for, by the code of the error";
        let attempts = "How often upstreams were asked; more than calls where calls are retried";
        let quota = "Calls that a quota refused";
        let raw = "Tokens of what upstreams answered";
        let sent = "Tokens of what clients got";
        let searches = "Searches for tools, by how they ended";
        let search = "How long searches took";
        let kept = "Answers that were too long and were kept";
        let kept_bytes = "Bytes of answers that were kept";
        Totals {
            calls: register(r, "gatelet_calls", calls, Family::default()),
            call_duration: register(
                r,
                "gatelet_call_duration_seconds",
                duration,
                Family::new_with_constructor(histogram as fn() -> Histogram),
            ),
            errors: register(r, "gatelet_call_errors", errors, Family::default()),
            attempts: register(r, "gatelet_upstream_attempts", attempts, Family::default()),
            quota_refusals: register(r, "gatelet_quota_refusals", quota, Family::default()),
            tokens_raw: register(r, "gatelet_tokens_raw", raw, Family::default()),
            tokens_sent: register(r, "gatelet_tokens_sent", sent, Family::default()),
            searches: register(r, "gatelet_searches", searches, Family::default()),
            search_duration: register(r, "gatelet_search_duration_seconds", search, histogram()),
            artifacts_kept: register(r, "gatelet_artifacts_kept", kept, Counter::default()),
            artifact_bytes_kept: register(
                r,
                "gatelet_artifact_kept_bytes",
                kept_bytes,
                Counter::default(),
            ),
            upstreams: BoundedSet::new(UPSTREAMS),
            tools: BoundedSet::new(n_tools),
        }
    }

    pub(super) fn add(&mut self, record: &Record) {
        let upstream = self.upstream(record);
        let tool = self.tool(record, &upstream);
        let by_upstream = || [("upstream", upstream.clone())];
        let ending = record.ending.as_str().to_owned();
        let method = method(record.meta_tool).to_owned();
        let call = [
            ("upstream", upstream.clone()),
            ("tool", tool.clone()),
            ("method", method),
            ("ending", ending),
        ];
        self.calls.get_or_create(&call).inc();
        let timed = [("upstream", upstream.clone()), ("tool", tool)];
        self.call_duration.get_or_create(&timed).observe(record.took.as_secs_f64());
        if record.ending.is_error() {
            let code = record.ending.code().map_or_else(|| "TOOL_ERROR".to_owned(), |c| c.as_str());
            self.errors.get_or_create(&[("upstream", upstream.clone()), ("code", code)]).inc();
        }
        if record.ending == Ending::Refused(RefusalCode::RateLimited) {
            self.quota_refusals.get_or_create(&by_upstream()).inc();
        }
        self.attempts.get_or_create(&by_upstream()).inc_by(u64::from(record.attempts));
        self.tokens_raw.get_or_create(&by_upstream()).inc_by(record.tokens_raw() as u64);
        self.tokens_sent.get_or_create(&by_upstream()).inc_by(record.tokens_sent() as u64);
        if let Some(artifact) = &record.artifact {
            self.artifacts_kept.inc();
            self.artifact_bytes_kept.inc_by(artifact.bytes() as u64);
        }
    }

    pub(super) fn add_event(&mut self, event: &GatewayEvent) {
        match event.what {
            EventKind::Browsed { .. } => {
                let ending = if event.error.is_none() { "answered" } else { "refused" };
                self.searches.get_or_create(&[("ending", ending.to_owned())]).inc();
                if let Some(took) = event.took {
                    self.search_duration.observe(took.as_secs_f64());
                }
            }
            EventKind::Hydrated { .. } | EventKind::Viewed { .. } | EventKind::Published { .. } => {
            }
        }
    }

    /// Returns the label of the upstream; empty when the call found none.
    fn upstream(&mut self, record: &Record) -> String {
        let upstream = sanitize_label(&record.callee.upstream);
        if self.upstreams.admits(upstream.clone()) { upstream } else { OTHER.to_owned() }
    }

    /// Returns the name of a tool or a prompt. All other names come from callers, who must
    /// not be able to create series.
    fn tool(&mut self, record: &Record, upstream: &str) -> String {
        if !["tool_execute", "prompt_get"].contains(&record.meta_tool) {
            return String::new();
        }
        let tool = sanitize_label(&record.callee.tool);
        let is_known = self.tools.admits((upstream.to_owned(), tool.clone()));
        if is_known { tool } else { OTHER.to_owned() }
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}
