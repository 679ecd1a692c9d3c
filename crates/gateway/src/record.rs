//! Exactly one [`Record`] for every call, however it ended, where a sink takes
//! records.
//!
//! Logs, counters, audit and the dashboard are views of records. A record
//! shares the payloads, so that tokens are counted outside of the call.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::tokens;
use parking_lot::Mutex;
use tool::trace::Trace;
use tool::{Client, Context, Failure, Finding, Identity, Json};

use crate::choice::Surface;
use artifacts::Artifact;
use policy::call::Callee;
use policy::code::{Code, classify};
use policy::refusal::Refused;
use tool::clock::Clock;

/// One call, from its arrival to its end.
#[derive(Clone, Debug)]
pub struct Record {
    /// Milliseconds since 1970 at the call's arrival.
    pub at: u64,
    pub surface: Surface,
    pub session: Arc<str>,
    pub client: Arc<Client>,
    pub caller: Arc<Identity>,
    /// What was called; all of its names are empty when nothing was found.
    pub callee: Arc<Callee>,
    /// The gateway surface's word for what was done (`tool_execute`,
    /// `resource_read`, `prompt_get`); `task` and `help` for what is asked
    /// about a function beside calling it. Empty when nothing was found.
    pub meta_tool: &'static str,
    pub ending: Ending,
    /// What it was called with. Of these, only the keys are for the record.
    pub arguments: Option<Json>,
    /// The script that made the call, by its id.
    pub script: Option<Arc<str>>,
    /// How often the upstream was asked.
    pub attempts: u32,
    pub took: Duration,
    /// The stages that the call came to, in order. The last one is where it
    /// ended.
    pub stages: Vec<StageEntry>,
    /// What was kept of the answer.
    pub artifact: Option<Arc<Artifact>>,
    /// The upstream's result.
    pub raw: Option<Json>,
    /// What the client got.
    pub sent: Option<Json>,
    /// The tokens of both, counted by whoever asks first.
    pub counts: Arc<TokenCounts>,
    /// The trace that the call belongs to, where somebody traces.
    pub trace: Option<Arc<Trace>>,
}

/// A stage of the pipeline, and when the call came to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageEntry {
    pub stage: Stage,
    /// Since the call's arrival.
    pub at: Duration,
}

/// The stages of a call that can end it, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Validate,
    Admission,
    /// A view of something kept.
    View,
    /// Whether the answer to an identical call was kept.
    Kept,
    Quota,
    Approval,
    Cache,
    /// The upstream is asked, once or several times.
    Upstream,
    Scrub,
    Gate,
}

impl Stage {
    /// A stable word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Validate => "validate",
            Stage::Admission => "admission",
            Stage::View => "view",
            Stage::Kept => "kept",
            Stage::Quota => "quota",
            Stage::Approval => "approval",
            Stage::Cache => "cache",
            Stage::Upstream => "upstream",
            Stage::Scrub => "scrub",
            Stage::Gate => "gate",
        }
    }
}

/// The tokens of a call's answer. Records of one call share them, so that they
/// are counted once however many observers there are.
#[derive(Debug, Default)]
pub struct TokenCounts {
    raw: OnceLock<usize>,
    sent: OnceLock<usize>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The tool answered, and the answer went out as it came.
    Answered,
    /// The tool answered that it could not do it.
    ToolError,
    /// The answer was too long and was kept.
    Gated,
    /// A kept answer was given without asking the tool again.
    Replayed,
    /// An answer from the cache.
    Cached,
    /// A dry run: nothing was asked.
    Planned,
    /// The pipeline refused it, and why.
    Refused(Refused),
    /// The upstream refused the request as such; by which code.
    Rejected(Code),
    /// No answer came, and why.
    Failed(Failure),
    /// The caller no longer waited.
    Cancelled,
}

/// Where records go.
pub trait Sink: Send + Sync {
    /// Takes a record. Never blocks.
    fn put(&self, record: Record);

    /// Whether it takes records; if not, none are made.
    fn takes_records(&self) -> bool {
        true
    }

    /// Whether it takes events; if not, none are made.
    fn takes_events(&self) -> bool {
        false
    }

    /// Takes an event. Never blocks.
    fn event(&self, _: GatewayEvent) {}
}

/// Something besides a call that an operator may want to count.
#[derive(Clone, Debug)]
pub struct GatewayEvent {
    /// Milliseconds since 1970.
    pub at: u64,
    /// Empty where no session brought it about.
    pub session: Arc<str>,
    /// The canonical id that it is about, empty where it is about none.
    pub id: String,
    pub took: Option<Duration>,
    /// The code of the error it was answered with.
    pub error: Option<Code>,
    pub what: EventKind,
}

/// What happened, without its content: no queries, no results.
#[derive(Clone, Debug)]
pub enum EventKind {
    Browsed {
        query_chars: usize,
        path_depth: usize,
        ids: Vec<String>,
        /// The definitions of the tools among them, which were not sent.
        definitions: Vec<Json>,
        sent: Json,
    },
    Hydrated {
        sent: Json,
    },
    Viewed {
        handle: String,
        selector: String,
        sent: Json,
    },
    /// A catalog is there: the first one of its pool, or a later one.
    Published {
        generation: u64,
        /// Tools by namespace.
        namespaces: Vec<(String, usize)>,
        /// The definitions that there are.
        definitions: Vec<Json>,
        /// What clients get by default, and the definitions that they see.
        surface: Surface,
        exposed: Vec<Json>,
        /// Everything skipped, renamed or damaged.
        findings: Vec<Finding>,
    },
}

/// For who keeps no records.
#[derive(Clone, Copy, Debug)]
pub struct NoSink;

impl Sink for NoSink {
    fn put(&self, _: Record) {}

    fn takes_records(&self) -> bool {
        false
    }
}

/// The last records, in memory.
#[derive(Debug)]
pub struct RecentRecords {
    room: usize,
    records: Mutex<VecDeque<Record>>,
}

impl RecentRecords {
    /// Keeps the last `room` records.
    pub fn new(room: usize) -> RecentRecords {
        RecentRecords { room, records: Mutex::default() }
    }

    pub fn records(&self) -> Vec<Record> {
        let records = self.records.lock();
        records.iter().cloned().collect()
    }
}

impl Sink for RecentRecords {
    fn put(&self, record: Record) {
        let mut records = self.records.lock();
        if records.len() == self.room {
            records.pop_front();
        }
        records.push_back(record);
    }
}

/// What a text costs a model.
pub fn tokens(text: &str) -> usize {
    tokens::count(text)
}

impl Ending {
    /// A stable word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Ending::Answered => "answered",
            Ending::ToolError => "tool_error",
            Ending::Gated => "gated",
            Ending::Replayed => "replayed",
            Ending::Cached => "cached",
            Ending::Planned => "planned",
            Ending::Refused(_) => "refused",
            Ending::Rejected(_) => "rejected",
            Ending::Failed(_) => "failed",
            Ending::Cancelled => "cancelled",
        }
    }

    /// Whether the caller did not get what it asked for. A caller that hung up
    /// made no error.
    pub fn is_error(&self) -> bool {
        match self {
            Ending::Answered
            | Ending::Gated
            | Ending::Replayed
            | Ending::Cached
            | Ending::Planned
            | Ending::Cancelled => false,
            Ending::ToolError | Ending::Refused(_) | Ending::Rejected(_) | Ending::Failed(_) => {
                true
            }
        }
    }

    /// The code of the taxonomy, for what did not end well.
    pub fn code(&self) -> Option<Code> {
        match self {
            Ending::Answered
            | Ending::ToolError
            | Ending::Gated
            | Ending::Replayed
            | Ending::Cached
            | Ending::Planned
            | Ending::Cancelled => None,
            Ending::Refused(why) => Some(why.code()),
            Ending::Rejected(code) => Some(*code),
            Ending::Failed(failure) => Some(classify(failure)),
        }
    }
}

impl Record {
    /// What the upstream's result would have cost the model.
    pub fn tokens_raw(&self) -> usize {
        let count = || self.raw.as_ref().map_or(0, |json| tokens::count(json.as_str()));
        *self.counts.raw.get_or_init(count)
    }

    /// What the client's answer costs the model.
    pub fn tokens_sent(&self) -> usize {
        let count = || match (&self.sent, &self.raw) {
            // Most answers go out as they came.
            (Some(sent), Some(raw)) if sent.as_str() == raw.as_str() => self.tokens_raw(),
            (Some(sent), _) => tokens::count(sent.as_str()),
            (None, _) => 0,
        };
        *self.counts.sent.get_or_init(count)
    }
}

/// A record being written. It reaches the sink once: when it is closed, or,
/// because a caller who hangs up drops the whole call, when it is dropped.
pub(crate) struct OpenRecord<'a> {
    /// `None` where nobody takes it. Boxed: a call under way carries it through
    /// all of its stages.
    record: Option<Box<Record>>,
    since: Duration,
    recorder: &'a Recorder,
}

/// Writes records and events.
pub(crate) struct Recorder {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Recorder {
    /// Reports something that a client did.
    pub(crate) fn event(
        &self,
        context: &Context,
        id: &str,
        since: Duration,
        error: Option<Code>,
        what: impl FnOnce() -> EventKind,
    ) {
        if !self.sink.takes_events() {
            return;
        }
        let what = what();
        self.sink.event(GatewayEvent {
            at: self.clock.unix_millis(),
            session: Arc::clone(&context.session),
            id: id.to_owned(),
            took: Some(self.clock.elapsed().saturating_sub(since)),
            error,
            what,
        });
    }

    /// Reports something that no client caused.
    pub(crate) fn global_event(&self, what: impl FnOnce() -> EventKind) {
        if !self.sink.takes_events() {
            return;
        }
        self.sink.event(GatewayEvent {
            at: self.clock.unix_millis(),
            session: "".into(),
            id: String::new(),
            took: None,
            error: None,
            what: what(),
        });
    }

    pub(crate) fn open(&self, surface: Surface, context: &Context) -> OpenRecord<'_> {
        if !self.sink.takes_records() {
            return OpenRecord { record: None, since: Duration::ZERO, recorder: self };
        }
        let record = Record {
            at: self.clock.unix_millis(),
            surface,
            session: Arc::clone(&context.session),
            client: Arc::clone(&context.client),
            caller: Arc::clone(&context.caller),
            callee: Arc::default(),
            meta_tool: "",
            ending: Ending::Cancelled,
            arguments: None,
            script: None,
            attempts: 0,
            took: Duration::ZERO,
            stages: Vec::with_capacity(STAGES),
            artifact: None,
            raw: None,
            sent: None,
            counts: Arc::default(),
            trace: context.trace.clone(),
        };
        OpenRecord { record: Some(Box::new(record)), since: self.clock.elapsed(), recorder: self }
    }
}

/// How many stages a call comes to that is answered by its upstream.
const STAGES: usize = 9;

impl OpenRecord<'_> {
    /// Notes that the call comes to a stage now.
    pub(crate) fn enter(&mut self, stage: Stage) {
        if let Some(record) = &mut self.record {
            let at = self.recorder.clock.elapsed().saturating_sub(self.since);
            record.stages.push(StageEntry { stage, at });
        }
    }

    pub(crate) fn update(&mut self, write: impl FnOnce(&mut Record)) {
        if let Some(record) = &mut self.record {
            write(record);
        }
    }

    pub(crate) fn close(mut self, sent: &Json) {
        self.update(|record| record.sent = Some(sent.clone()));
        self.put();
    }

    fn put(&mut self) {
        if let Some(mut record) = self.record.take() {
            record.took = self.recorder.clock.elapsed().saturating_sub(self.since);
            self.recorder.sink.put(*record);
        }
    }
}

impl Drop for OpenRecord<'_> {
    fn drop(&mut self) {
        self.put();
    }
}
