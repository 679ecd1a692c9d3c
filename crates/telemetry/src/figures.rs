//! The last hour in memory: calls, errors, latency and tokens by minute, and who
//! was called.
//!
//! One [`Figures`] is made with the gateway and given to it as a sink. Whoever
//! reads [`Figures::overview`] sees every call that ended before. Nothing is
//! collected until somebody reads it for the first time, unless the operator
//! wants it [from the start](Collect::FromTheStart), and collecting ends when
//! nobody has read it for a while; so a gate that nobody watches pays nothing.

mod hour;
mod overview;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use gateway::record::{EventKind, GatewayEvent, Record, Sink, tokens};
use parking_lot::Mutex;
use tool::Json;
use tool::clock::Clock;

use crate::definitions::Definitions;
use crate::labels::{Bounded, OTHER, label};
use crate::metrics::{self, Metrics, Readings};
use crate::queue::{Limits, Queue, Weighed};
use hour::{Hour, Sample};

pub use overview::{Minute, Overview, ToolFigures, Total, UpstreamFigures};

/// When calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collect {
    FromTheStart,
    /// From the first reading on, until nobody has read for so long.
    WhileRead(Duration),
}

/// How many records may wait to be added up, and how many bytes of answers with
/// them.
const WAITING: Limits = Limits { items: 4_096, bytes: 32 << 20 };

/// How many upstreams and tools have figures of their own.
const UPSTREAMS: usize = 256;
const TOOLS: usize = 2_000;

/// How many tools an overview shows.
const SHOWN: usize = 20;

/// The figures of one gate. It ends its thread when dropped.
pub struct Figures {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Queue<Happening>,
    sums: Mutex<Sums>,
    /// Held while definitions are counted, which takes too long to hold the sums.
    counting: Mutex<()>,
    collect: Collect,
    is_collecting: AtomicBool,
    /// Whether the thread that adds up was started.
    thread: Once,
    /// When somebody last read, by the clock's elapsed time, in milliseconds.
    last_read: AtomicU64,
    clock: Arc<dyn Clock>,
}

/// Something to add up.
enum Happening {
    Call(Box<Record>),
    Event(Box<GatewayEvent>),
}

impl Weighed for Happening {
    fn n_bytes(&self) -> usize {
        let of = |json: &Json| json.as_bytes().len();
        match self {
            Happening::Call(record) => {
                record.raw.as_ref().map_or(0, of) + record.sent.as_ref().map_or(0, of)
            }
            // What they share is in memory anyway.
            Happening::Event(_) => 0,
        }
    }
}

/// A catalog, as far as its definitions cost something.
struct Published {
    /// Labels in the order of the definitions, with how many of them each has.
    namespaces: Vec<(String, usize)>,
    definitions: Vec<Json>,
    exposed: Vec<Json>,
}

impl Published {
    fn count(&self) -> (Definitions, BTreeMap<String, u64>) {
        let definitions = Definitions {
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

/// What was added up so far.
struct Sums {
    since: u64,
    hour: Hour,
    upstreams: HashMap<String, Hour>,
    known_upstreams: Bounded<String>,
    tools: HashMap<String, ToolFigures>,
    known_tools: Bounded<String>,
    definitions: Option<Definitions>,
    definitions_by_upstream: BTreeMap<String, u64>,
    /// The newest catalog whose definitions nobody has counted yet.
    uncounted: Option<Published>,
    /// Since the start, where somebody scrapes.
    metrics: Option<Metrics>,
}

impl Figures {
    /// Figures that count from now on, or when they are first read.
    pub fn new(clock: Arc<dyn Clock>, collect: Collect) -> Figures {
        Figures::made(clock, collect, None)
    }

    /// Figures that count from now on, with metrics for Prometheus.
    pub fn with_metrics(clock: Arc<dyn Clock>, config: &metrics::Config) -> Figures {
        Figures::made(clock, Collect::FromTheStart, Some(Metrics::new(config)))
    }

    fn made(clock: Arc<dyn Clock>, collect: Collect, metrics: Option<Metrics>) -> Figures {
        let shared = Arc::new(Shared {
            queue: Queue::new(WAITING),
            sums: Mutex::new(Sums { metrics, ..Sums::new(clock.unix_millis()) }),
            counting: Mutex::default(),
            collect,
            is_collecting: AtomicBool::new(false),
            thread: Once::new(),
            last_read: AtomicU64::new(0),
            clock,
        });
        if collect == Collect::FromTheStart {
            shared.start();
        }
        Figures { shared }
    }

    /// The figures now. Whoever reads them has them collected from now on.
    ///
    /// Definitions are counted first, where a new catalog was published: with
    /// thousands of tools that takes a while, so call it where waiting hurts nobody.
    pub fn overview(&self) -> Overview {
        self.shared.catch_up();
        self.glance()
    }

    /// The figures now, at once: what definitions cost is that of the last catalog
    /// that was counted.
    pub fn glance(&self) -> Overview {
        let shared = &self.shared;
        let now = shared.clock.unix_millis();
        shared.last_read.store(shared.elapsed(), Ordering::Relaxed);
        if !shared.is_collecting.load(Ordering::Relaxed) {
            *shared.sums.lock() = Sums::new(now);
            shared.start();
        }
        // The thread empties the queue under this lock, too: what it took is added
        // already, and what came since is added here.
        let mut sums = shared.sums.lock();
        sums.add_all(shared.queue.take());
        sums.overview(now, shared.queue.lost())
    }

    /// Everything for Prometheus; `None` where no metrics are kept.
    pub fn metrics(&self, readings: &Readings) -> Option<String> {
        self.shared.catch_up();
        let mut sums = self.shared.sums.lock();
        sums.add_all(self.shared.queue.take());
        let (definitions, lost) = (sums.definitions, self.shared.queue.lost());
        Some(sums.metrics.as_ref()?.text(readings, definitions, lost))
    }

    /// Whether calls are counted at the moment.
    pub fn is_collecting(&self) -> bool {
        self.shared.is_collecting.load(Ordering::Relaxed)
    }
}

impl Drop for Figures {
    fn drop(&mut self) {
        self.shared.queue.close();
    }
}

impl Sink for Figures {
    fn put(&self, record: Record) {
        self.shared.queue.push(Happening::Call(Box::new(record)));
    }

    fn takes_records(&self) -> bool {
        self.is_collecting()
    }

    fn takes_events(&self) -> bool {
        self.is_collecting()
    }

    fn event(&self, event: GatewayEvent) {
        self.shared.queue.push(Happening::Event(Box::new(event)));
    }
}

impl Shared {
    /// Has calls collected from now on.
    fn start(self: &Arc<Self>) {
        self.is_collecting.store(true, Ordering::Relaxed);
        self.thread.call_once(|| {
            let worker = Arc::clone(self);
            let thread = std::thread::Builder::new().name("figures".to_owned());
            // Without the thread, readings add up what waits.
            drop(thread.spawn(move || worker.work()));
        });
    }

    /// Adds up what comes, until the queue is closed.
    fn work(&self) {
        while self.queue.wait() {
            self.catch_up();
            self.stop_unless_read();
        }
    }

    /// Adds up what waits. Definitions are counted while nobody has to wait for the
    /// lock.
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

    /// Ends collecting when nobody has read the figures for a while.
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
            upstreams: HashMap::new(),
            known_upstreams: Bounded::new(UPSTREAMS),
            tools: HashMap::new(),
            known_tools: Bounded::new(TOOLS),
            definitions: None,
            definitions_by_upstream: BTreeMap::new(),
            uncounted: None,
            metrics: None,
        }
    }

    fn add_all(&mut self, happenings: Vec<Happening>) {
        for happening in happenings {
            match happening {
                Happening::Call(record) => self.add(&record),
                Happening::Event(event) => self.add_event(&event),
            }
        }
    }

    fn add_event(&mut self, event: &GatewayEvent) {
        match &event.what {
            EventKind::Browsed { .. } => self.hour.add_search(event.at),
            EventKind::Published { namespaces, definitions, exposed, .. } => {
                self.uncounted = Some(Published {
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
        if let Some(metrics) = &mut self.metrics {
            metrics.add(record);
        }
        let callee = &record.callee;
        if callee.upstream.is_empty() {
            return;
        }
        let upstream = self.known_upstreams.name(&callee.upstream);
        self.upstreams.entry(upstream).or_default().add(&sample);
        // Resources are named by callers, so only tools have names to count by.
        if record.meta_tool == "tool_execute" {
            let id = self.known_tools.name(&callee.id);
            let tool = self
                .tools
                .entry(id)
                .or_insert_with_key(|id| ToolFigures { id: id.clone(), ..ToolFigures::default() });
            tool.calls += 1;
            tool.errors += u64::from(sample.is_error);
        }
    }

    fn overview(&self, now: u64, lost: u64) -> Overview {
        let upstreams = self.upstreams.iter().map(|(label, hour)| hour.of_upstream(label, now));
        let mut upstreams: Vec<UpstreamFigures> = upstreams.collect();
        upstreams.sort_by(|one, other| (other.calls, &one.label).cmp(&(one.calls, &other.label)));
        let mut tools: Vec<ToolFigures> = self.tools.values().cloned().collect();
        tools.sort_by(|one, other| (other.calls, &one.id).cmp(&(one.calls, &other.id)));
        tools.truncate(SHOWN);
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

impl Bounded<String> {
    /// A name under which to count, which is [`OTHER`] for all beyond the limit.
    fn name(&mut self, name: &str) -> String {
        let name = label(name);
        if self.admits(name.clone()) { name } else { OTHER.to_owned() }
    }
}

fn cost(definitions: &[Json]) -> u64 {
    if definitions.is_empty() { 0 } else { tokens(Json::array(definitions).as_str()) as u64 }
}

#[cfg(test)]
mod tests;
