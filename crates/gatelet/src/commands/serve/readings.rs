//! Reads the present state of a running gatelet for its metrics: upstreams, load, process.

use std::collections::HashMap;
use std::sync::Arc;

use gateway::Gateway;
use roster::{Phase, Status, SupervisedUpstream};
use telemetry::metrics::{ProcessReading, Readings, UpstreamReading, UpstreamState};
use web::site::Load;

/// Reads everything once.
pub(super) async fn read(gateway: &Gateway, load: Load) -> Readings {
    let usage = gateway.artifact_usage().await;
    Readings {
        upstreams: upstreams(gateway),
        sessions: load.sessions as u64,
        processes: process::children(),
        requests_under_way: load.under_way as u64,
        requests_waiting: load.waiting as u64,
        approvals_waiting: approvals_waiting(gateway).await,
        artifacts: usage.map(|usage| (usage.artifacts as u64, usage.bytes as u64)),
        process: process::own(),
        ..Readings::default()
    }
}

/// How many calls wait for approval, if the queue can be read.
async fn approvals_waiting(gateway: &Gateway) -> Option<u64> {
    let requests = gateway.approvals().list().await.ok()?;
    Some(requests.iter().filter(|request| request.is_waiting()).count() as u64)
}

/// One reading per upstream, added up over the pools of all kinds of clients.
fn upstreams(gateway: &Gateway) -> Vec<UpstreamReading> {
    let waiting = gateway.waiting_calls();
    let mut readings: Vec<UpstreamReading> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for pool in gateway.roster().pools() {
        for upstream in pool.snapshot().upstreams() {
            let reading = reading(upstream, &waiting);
            match places.get(&reading.label) {
                None => {
                    places.insert(reading.label.clone(), readings.len());
                    readings.push(reading);
                }
                Some(at) => {
                    let known = &mut readings[*at];
                    known.restarts += reading.restarts;
                    known.unanswered = known.unanswered.max(reading.unanswered);
                    // The pool that clients use counts; the default pool may be idle.
                    if known.state == UpstreamState::Ready {
                        (known.state, known.tools) = (reading.state, reading.tools);
                    }
                }
            }
        }
    }
    readings
}

fn reading(
    upstream: &Arc<SupervisedUpstream>,
    waiting: &HashMap<String, usize>,
) -> UpstreamReading {
    let Status { label, phase, listing, unanswered, restarts, .. } = upstream.status();
    UpstreamReading {
        state: match phase {
            Phase::Up => UpstreamState::Up,
            Phase::Starting => UpstreamState::Starting,
            Phase::Asleep => UpstreamState::Ready,
            Phase::Down { .. } => UpstreamState::Down,
        },
        tools: listing.tools.len() as u64,
        restarts,
        unanswered: unanswered.into(),
        waiting: waiting.get(&label).map_or(0, |n_calls| *n_calls as u64),
        label,
    }
}

/// Reads about our own process from `/proc`, which only Linux has.
mod process {
    use std::fs;

    use super::ProcessReading;

    /// Our own process.
    pub(super) fn own() -> Option<ProcessReading> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program stands in parentheses and may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        // As `man proc` counts them, with the state as the third.
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let boot = fs::read_to_string("/proc/stat").ok()?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(ProcessReading {
            resident_bytes: field(24)? as u64 * rustix::param::page_size() as u64,
            open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
            processor_seconds: (field(14)? + field(15)?) / ticks,
            started: boot.trim().parse::<f64>().ok()? + field(22)? / ticks,
        })
    }

    /// How many child processes run.
    pub(super) fn children() -> u64 {
        let Ok(threads) = fs::read_dir("/proc/self/task") else { return 0 };
        let children = threads
            .flatten()
            .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        children.map(|pids| pids.split_whitespace().count() as u64).sum()
    }
}
