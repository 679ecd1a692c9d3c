//! Statistics of the last hour in memory: calls, errors, latency and tokens by minute, by
//! upstream and by tool.
//!
//! [`Figures`] is a sink of the gateway. [`Figures::overview`] includes every call that
//! ended before. Collecting starts with the first reading, or
//! [with the process](Collect::FromTheStart), and ends when nobody has read for a while;
//! so a gatelet that nobody watches pays nothing.

mod hour;
mod overview;
mod sessions;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use gateway::record::{EventKind, GatewayEvent, Record, Sink, tokens};
use parking_lot::Mutex;
use tool::Json;
use tool::clock::Clock;

use crate::definitions::DefinitionTokens;
use crate::labels::{BoundedSet, OTHER, sanitize_label};
use crate::metrics::{self, Metrics, Readings};
use crate::queue::{HasSize, Limits, Queue};
use hour::{Hour, Sample};
use sessions::RecentSessions;

pub use overview::{Minute, Overview, ToolFigures, Total, UpstreamFigures};

/// When calls are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collect {
    FromTheStart,
    /// From the first reading on, until nobody has read for this long.
    WhileRead(Duration),
}

/// How many records may be queued, and how many bytes of answers.
const MAX_QUEUED: Limits = Limits { items: 4_096, bytes: 32 << 20 };

/// How many upstreams have figures of their own; the others share one.
const MAX_UPSTREAMS: usize = 256;
/// How many tools have figures of their own; the others share one.
const MAX_TOOLS: usize = 2_000;

/// How many tools an overview shows.
const SHOWN_TOOLS: usize = 20;

/// The statistics of one gatelet. Dropping it ends its thread.
pub struct Figures {
    collector: Arc<Collector>,
}

struct Collector {
    queue: Queue<Update>,
    sums: Mutex<Sums>,
    /// Held while the tokens of definitions are counted, which takes too long to hold
    /// `sums`.
    counting: Mutex<()>,
    collect: Collect,
    is_collecting: AtomicBool,
    /// Starts the thread once.
    thread: Once,
    /// When the figures were last read, by the clock's elapsed time in milliseconds.
    last_read: AtomicU64,
    clock: Arc<dyn Clock>,
}

/// A record or an event that is not counted yet.
enum Update {
    Call(Box<Record>),
    Event(Box<GatewayEvent>),
}

impl HasSize for Update {
    fn n_bytes(&self) -> usize {
        let of = |json: &Json| json.as_bytes().len();
        match self {
            Update::Call(record) => {
                record.raw.as_ref().map_or(0, of) + record.sent.as_ref().map_or(0, of)
            }
            // An event only shares what is in memory anyway.
            Update::Event(_) => 0,
        }
    }
}

/// The tool definitions of a published catalog.
struct PublishedCatalog {
    /// The label and the number of tools of each upstream, in the order of `definitions`.
    namespaces: Vec<(String, usize)>,
    definitions: Vec<Json>,
    exposed: Vec<Json>,
}

impl PublishedCatalog {
    /// Counts the tokens of all definitions, in total and by upstream.
    fn count(&self) -> (DefinitionTokens, BTreeMap<String, u64>) {
        let definitions = DefinitionTokens {
            direct: cost(&self.definitions),
            exposed: cost(&self.exposed),
            n_tools: self.definitions.len() as u64,
        };
        let mut rest = &self.definitions[..];
        let by_upstream = self.namespaces.iter().map(|(label, n_tools)| {
            let (own, others) = rest.split_at((*n_tools).min(rest.len()));
            rest = others;
            (label.clone(), cost(own))
        });
        (definitions, by_upstream.collect())
    }
}

/// Everything counted so far.
struct Sums {
    /// When counting began, in milliseconds since 1970.
    since: u64,
    hour: Hour,
    sessions: RecentSessions,
    upstreams: HashMap<String, Hour>,
    known_upstreams: BoundedSet<String>,
    tools: HashMap<String, ToolFigures>,
    known_tools: BoundedSet<String>,
    definitions: Option<DefinitionTokens>,
    definitions_by_upstream: BTreeMap<String, u64>,
    /// The newest catalog, if its definitions are not counted yet.
    uncounted: Option<PublishedCatalog>,
    /// The metrics since the start; `None` when they are off.
    metrics: Option<Metrics>,
}

impl Figures {
    /// Creates figures without metrics for Prometheus.
    pub fn new(clock: Arc<dyn Clock>, collect: Collect) -> Figures {
        Figures::build(clock, collect, None)
    }

    /// Creates figures that collect from now on, with metrics for Prometheus.
    pub fn with_metrics(clock: Arc<dyn Clock>, config: &metrics::Config) -> Figures {
        Figures::build(clock, Collect::FromTheStart, Some(Metrics::new(config)))
    }

    fn build(clock: Arc<dyn Clock>, collect: Collect, metrics: Option<Metrics>) -> Figures {
        let collector = Arc::new(Collector {
            queue: Queue::new(MAX_QUEUED),
            sums: Mutex::new(Sums { metrics, ..Sums::new(clock.unix_millis()) }),
            counting: Mutex::default(),
            collect,
            is_collecting: AtomicBool::new(false),
            thread: Once::new(),
            last_read: AtomicU64::new(0),
            clock,
        });
        if collect == Collect::FromTheStart {
            collector.start();
        }
        Figures { collector }
    }

    /// Returns the current figures, and starts collecting if it was off.
    ///
    /// After a new catalog the tokens of its definitions are counted first. With thousands
    /// of tools that takes a while, so do not call this on an async thread.
    pub fn overview(&self) -> Overview {
        self.collector.catch_up();
        self.quick_overview()
    }

    /// Returns the current figures without waiting; the cost of definitions may be that of
    /// an older catalog.
    pub fn quick_overview(&self) -> Overview {
        let collector = &self.collector;
        let now = collector.clock.unix_millis();
        collector.last_read.store(collector.elapsed(), Ordering::Relaxed);
        if !collector.is_collecting.load(Ordering::Relaxed) {
            *collector.sums.lock() = Sums::new(now);
            collector.start();
        }
        // The thread empties the queue under this lock, too: what it took is counted
        // already, and the rest is counted here.
        let mut sums = collector.sums.lock();
        sums.add_all(collector.queue.take());
        sums.overview(now, collector.queue.lost())
    }

    /// Renders the metrics for Prometheus; `None` when they are off.
    pub fn metrics(&self, readings: &Readings) -> Option<String> {
        self.collector.catch_up();
        let mut sums = self.collector.sums.lock();
        sums.add_all(self.collector.queue.take());
        let (definitions, lost) = (sums.definitions, self.collector.queue.lost());
        Some(sums.metrics.as_ref()?.text(readings, definitions, lost))
    }

    /// Returns whether calls are collected at the moment.
    pub fn is_collecting(&self) -> bool {
        self.collector.is_collecting.load(Ordering::Relaxed)
    }
}

impl Drop for Figures {
    fn drop(&mut self) {
        self.collector.queue.close();
    }
}

impl Sink for Figures {
    fn put(&self, record: Record) {
        self.collector.queue.push(Update::Call(Box::new(record)));
    }

    fn takes_records(&self) -> bool {
        self.is_collecting()
    }

    fn takes_events(&self) -> bool {
        self.is_collecting()
    }

    fn event(&self, event: GatewayEvent) {
        self.collector.queue.push(Update::Event(Box::new(event)));
    }
}

impl Collector {
    /// Starts collecting.
    fn start(self: &Arc<Self>) {
        self.is_collecting.store(true, Ordering::Relaxed);
        self.thread.call_once(|| {
            let worker = Arc::clone(self);
            let thread = std::thread::Builder::new().name("figures".to_owned());
            // Without the thread, every reading counts what is queued.
            drop(thread.spawn(move || worker.work()));
        });
    }

    /// Counts what is queued, until the queue is closed.
    fn work(&self) {
        while self.queue.wait() {
            self.catch_up();
            self.stop_unless_read();
        }
    }

    /// Counts what is queued. The tokens of definitions are counted outside of the lock on
    /// `sums`.
    fn catch_up(&self) {
        let _alone = self.counting.lock();
        let mut sums = self.sums.lock();
        sums.add_all(self.queue.take());
        let Some(published) = sums.uncounted.take() else { return };
        drop(sums);
        let (definitions, by_upstream) = published.count();
        let mut sums = self.sums.lock();
        sums.definitions = Some(definitions);
        sums.definitions_by_upstream = by_upstream;
    }

    /// Stops collecting when nobody has read the figures for a while.
    fn stop_unless_read(&self) {
        let Collect::WhileRead(patience) = self.collect else { return };
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        if patience <= self.elapsed().saturating_sub(self.last_read.load(Ordering::Relaxed)) {
            self.is_collecting.store(false, Ordering::Relaxed);
        }
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Sums {
    fn new(since: u64) -> Sums {
        Sums {
            since,
            hour: Hour::default(),
            sessions: RecentSessions::default(),
            upstreams: HashMap::new(),
            known_upstreams: BoundedSet::new(MAX_UPSTREAMS),
            tools: HashMap::new(),
            known_tools: BoundedSet::new(MAX_TOOLS),
            definitions: None,
            definitions_by_upstream: BTreeMap::new(),
            uncounted: None,
            metrics: None,
        }
    }

    fn add_all(&mut self, updates: Vec<Update>) {
        for update in updates {
            match update {
                Update::Call(record) => self.add(&record),
                Update::Event(event) => self.add_event(&event),
            }
        }
    }

    fn add_event(&mut self, event: &GatewayEvent) {
        match &event.what {
            EventKind::Browsed { .. } => {
                self.hour.add_search(event.at);
                self.add_session(&event.session, event.at);
            }
            EventKind::Published { namespaces, definitions, exposed, .. } => {
                self.uncounted = Some(PublishedCatalog {
                    namespaces: namespaces.clone(),
                    definitions: definitions.clone(),
                    exposed: exposed.clone(),
                });
            }
            EventKind::Hydrated { .. } | EventKind::Viewed { .. } => {}
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.add_event(event);
        }
    }

    fn add(&mut self, record: &Record) {
        let took = u64::try_from(record.took.as_millis()).unwrap_or(u64::MAX);
        let sample = Sample {
            at: record.at.saturating_add(took),
            took: record.took,
            is_error: record.ending.is_error(),
            tokens_raw: record.tokens_raw() as u64,
            tokens_sent: record.tokens_sent() as u64,
        };
        self.hour.add(&sample);
        self.add_session(&record.session, sample.at);
        if let Some(metrics) = &mut self.metrics {
            metrics.add(record);
        }
        let callee = &record.callee;
        if callee.upstream.is_empty() {
            return;
        }
        let upstream = self.known_upstreams.name_or_other(&callee.upstream);
        self.upstreams.entry(upstream).or_default().add(&sample);
        // The names of resources come from callers, so only tools are counted by name.
        if record.meta_tool == "tool_execute" {
            let id = self.known_tools.name_or_other(&callee.id);
            let tool = self
                .tools
                .entry(id)
                .or_insert_with_key(|id| ToolFigures { id: id.clone(), ..ToolFigures::default() });
            tool.calls += 1;
            tool.errors += u64::from(sample.is_error);
        }
    }

    fn add_session(&mut self, session: &Arc<str>, at: u64) {
        if self.sessions.is_new(session, at) {
            self.hour.add_session(at);
        }
    }

    fn overview(&self, now: u64, lost: u64) -> Overview {
        let upstreams =
            self.upstreams.iter().map(|(label, hour)| hour.upstream_figures(label, now));
        let mut upstreams: Vec<UpstreamFigures> = upstreams.collect();
        upstreams.sort_by(|one, other| (other.calls, &one.label).cmp(&(one.calls, &other.label)));
        let mut tools: Vec<ToolFigures> = self.tools.values().cloned().collect();
        tools.sort_by(|one, other| (other.calls, &one.id).cmp(&(one.calls, &other.id)));
        tools.truncate(SHOWN_TOOLS);
        Overview {
            now,
            since: self.since,
            minutes: self.hour.minutes(now),
            hour: self.hour.total(now),
            upstreams,
            tools,
            definitions: self.definitions,
            definitions_by_upstream: self.definitions_by_upstream.clone(),
            lost,
        }
    }
}

impl BoundedSet<String> {
    /// Returns the name under which to count: [`OTHER`] for all beyond the limit.
    fn name_or_other(&mut self, name: &str) -> String {
        let name = sanitize_label(name);
        if self.admits(name.clone()) { name } else { OTHER.to_owned() }
    }
}

fn cost(definitions: &[Json]) -> u64 {
    if definitions.is_empty() { 0 } else { tokens(Json::array(definitions).as_str()) as u64 }
}

#[cfg(test)]
mod tests;
