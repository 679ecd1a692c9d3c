//! The [`Record`] that every call leaves, exactly one however the call ended, and the
//! [`Sink`] that it is sent to.
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
use policy::refusal::RefusalCode;
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
    /// What was called; all of its names are empty when it was not found.
    pub callee: Arc<Callee>,
    /// The meta-tool of the gateway surface that does the same (`tool_execute`,
    /// `resource_read`, `prompt_get`), or `task` or `help` for requests about a
    /// function that do not call it. Empty when nothing was found.
    pub meta_tool: &'static str,
    pub ending: Ending,
    /// The arguments of the call. Only their keys may be written down.
    pub arguments: Option<Json>,
    /// The id of the script that made the call.
    pub script: Option<Arc<str>>,
    /// How often the request was sent to the upstream.
    pub attempts: u32,
    pub took: Duration,
    /// The stages that the call entered, in order. It ended in the last one.
    pub stages: Vec<StageEntry>,
    /// The artifact as which the answer was stored.
    pub artifact: Option<Arc<Artifact>>,
    /// The upstream's result, scrubbed.
    pub raw: Option<Json>,
    /// The reply that the client got.
    pub sent: Option<Json>,
    /// The tokens of `raw` and `sent`, counted by whoever asks first.
    pub counts: Arc<TokenCounts>,
    /// The distributed trace that the call belongs to, if there is one.
    pub trace: Option<Arc<Trace>>,
}

/// A stage of the pipeline, and when the call entered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageEntry {
    pub stage: Stage,
    /// The time since the call's arrival.
    pub at: Duration,
}

/// The stages of a call that can end it, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Validate,
    Admission,
    /// The call is a view of an artifact.
    View,
    /// The stored answer of an identical call is looked up.
    Kept,
    Quota,
    Approval,
    Cache,
    /// The request is sent to the upstream, once or several times.
    Upstream,
    Scrub,
    Gate,
}

impl Stage {
    /// Returns a stable name for logs and metrics.
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
    /// The answer was over the size limit and was stored as an artifact.
    Gated,
    /// The stored answer of an identical call was returned; the tool did not run.
    Replayed,
    /// The answer came from the cache.
    Cached,
    /// It was a dry run: the upstream was not asked.
    Planned,
    /// The pipeline refused the call, for this reason.
    Refused(RefusalCode),
    /// The upstream refused the request with a JSON-RPC error of this code.
    Rejected(Code),
    /// No answer came, for this reason.
    Failed(Failure),
    /// The caller hung up.
    Cancelled,
}

/// Receives records and events.
pub trait Sink: Send + Sync {
    /// Takes a record. Never blocks.
    fn put(&self, record: Record);

    /// Returns whether it takes records; if not, none are made.
    fn takes_records(&self) -> bool {
        true
    }

    /// Returns whether it takes events; if not, none are made.
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
    /// The session that caused it; empty if none did.
    pub session: Arc<str>,
    /// The canonical id of the function, resource or prompt that it is about; may be empty.
    pub id: String,
    pub took: Option<Duration>,
    /// The code of the error reply, if it was one.
    pub error: Option<Code>,
    pub what: EventKind,
}

/// What happened, without queries and results.
#[derive(Clone, Debug)]
pub enum EventKind {
    Browsed {
        query_chars: usize,
        path_depth: usize,
        ids: Vec<String>,
        /// The definitions of the tools among `ids`, which were not sent.
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
    /// A new catalog is in use.
    Published {
        generation: u64,
        /// The namespaces, each with its number of tools.
        namespaces: Vec<(String, usize)>,
        /// The definitions of all tools.
        definitions: Vec<Json>,
        /// The default surface, and the definitions that its clients see.
        surface: Surface,
        exposed: Vec<Json>,
        /// Everything that was skipped, renamed or damaged.
        findings: Vec<Finding>,
    },
}

/// A sink that takes nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoSink;

impl Sink for NoSink {
    fn put(&self, _: Record) {}

    fn takes_records(&self) -> bool {
        false
    }
}

/// A sink that holds the last records in memory.
#[derive(Debug)]
pub struct RecentRecords {
    capacity: usize,
    records: Mutex<VecDeque<Record>>,
}

impl RecentRecords {
    /// Makes a sink that holds the last `capacity` records.
    pub fn new(capacity: usize) -> RecentRecords {
        RecentRecords { capacity, records: Mutex::default() }
    }

    pub fn records(&self) -> Vec<Record> {
        let records = self.records.lock();
        records.iter().cloned().collect()
    }
}

impl Sink for RecentRecords {
    fn put(&self, record: Record) {
        let mut records = self.records.lock();
        if records.len() == self.capacity {
            records.pop_front();
        }
        records.push_back(record);
    }
}

/// Counts the tokens of a text.
pub fn tokens(text: &str) -> usize {
    tokens::count(text)
}

impl Ending {
    /// Returns a stable name for logs and metrics.
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

    /// Returns whether the caller did not get what it asked for. Hanging up is not an
    /// error.
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

    /// Returns the error code of a call that was refused, rejected or failed.
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
    /// Counts the tokens of the upstream's result.
    pub fn tokens_raw(&self) -> usize {
        let count = || self.raw.as_ref().map_or(0, |json| tokens::count(json.as_str()));
        *self.counts.raw.get_or_init(count)
    }

    /// Counts the tokens of the reply that the client got.
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

/// A record that is being written. It reaches the sink once: when it is closed, or
/// when it is dropped, because a caller who hangs up drops the whole call.
pub(crate) struct OpenRecord<'a> {
    /// `None` if the sink takes no records. Boxed to keep the future of a call small.
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
    /// Reports something that a client did, `since` a time on the recorder's clock.
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

/// How many stages a call enters that its upstream answers.
const STAGES: usize = 9;

impl OpenRecord<'_> {
    /// Notes that the call enters a stage now.
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
