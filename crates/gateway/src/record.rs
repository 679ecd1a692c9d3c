//! What is remembered of a call: exactly one [`Record`] each, however it ended.
//!
//! Logs, counters, audit and the dashboard are views of records. A record
//! carries the payloads by reference, so whoever wants their cost in tokens
//! counts it off the path of the call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catalog::tokens;
use tool::{Client, Context, Identity, Json};

use crate::surface::Surface;

/// One call, from its arrival to its end.
#[derive(Clone, Debug)]
pub struct Record {
    /// Milliseconds since 1970 at the call's arrival.
    pub at: u64,
    pub surface: Surface,
    pub session: Arc<str>,
    pub client: Arc<Client>,
    pub caller: Arc<Identity>,
    /// The operator's label for the upstream, empty when none was reached.
    pub upstream: String,
    /// The tool's name at the upstream; a URI or a prompt's name likewise.
    pub tool: String,
    /// The canonical id, empty when nothing was found.
    pub id: String,
    pub ending: Ending,
    /// How often the upstream was asked.
    pub attempts: u32,
    pub took: Duration,
    /// The upstream's result.
    pub raw: Option<Json>,
    /// What the client got.
    pub sent: Option<Json>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The gate did not let it through; a stable word for why.
    Refused(&'static str),
    /// No answer came, and why.
    Failed(String),
    /// The caller no longer waited.
    Cancelled,
}

/// Where records go.
pub trait Sink: Send + Sync {
    /// Takes a record. Never blocks.
    fn put(&self, record: Record);
}

/// For who keeps no records.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Sink for Nowhere {
    fn put(&self, _: Record) {}
}

/// The last records, in memory.
#[derive(Debug)]
pub struct Ledger {
    room: usize,
    records: Mutex<VecDeque<Record>>,
}

impl Ledger {
    /// Keeps the last `room` records.
    pub fn new(room: usize) -> Ledger {
        Ledger { room, records: Mutex::default() }
    }

    pub fn records(&self) -> Vec<Record> {
        let records = self.records.lock().expect("nothing panics while it holds this");
        records.iter().cloned().collect()
    }
}

impl Sink for Ledger {
    fn put(&self, record: Record) {
        let mut records = self.records.lock().expect("nothing panics while it holds this");
        if records.len() == self.room {
            records.pop_front();
        }
        records.push_back(record);
    }
}

impl Record {
    /// What the upstream's result would have cost the model.
    pub fn tokens_raw(&self) -> usize {
        self.raw.as_ref().map_or(0, |json| tokens::count(json.as_str()))
    }

    /// What the client's answer costs the model.
    pub fn tokens_sent(&self) -> usize {
        self.sent.as_ref().map_or(0, |json| tokens::count(json.as_str()))
    }
}

/// A record being written. It reaches the sink once: when it is closed, or,
/// because a caller who hangs up drops the whole call, when it is dropped.
pub(crate) struct Open {
    record: Option<Record>,
    since: Duration,
    desk: Arc<Desk>,
}

/// What every open record needs.
pub(crate) struct Desk {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) clock: Arc<dyn crate::clock::Clock>,
}

impl Desk {
    pub(crate) fn open(self: &Arc<Self>, surface: Surface, context: &Context) -> Open {
        let record = Record {
            at: self.clock.unix_millis(),
            surface,
            session: Arc::clone(&context.session),
            client: Arc::clone(&context.client),
            caller: Arc::clone(&context.caller),
            upstream: String::new(),
            tool: String::new(),
            id: String::new(),
            ending: Ending::Cancelled,
            attempts: 0,
            took: Duration::ZERO,
            raw: None,
            sent: None,
        };
        Open { record: Some(record), since: self.clock.elapsed(), desk: Arc::clone(self) }
    }
}

impl Open {
    pub(crate) fn note(&mut self, write: impl FnOnce(&mut Record)) {
        if let Some(record) = &mut self.record {
            write(record);
        }
    }

    pub(crate) fn close(mut self, sent: &Json) {
        self.note(|record| record.sent = Some(sent.clone()));
        self.put();
    }

    fn put(&mut self) {
        if let Some(mut record) = self.record.take() {
            record.took = self.desk.clock.elapsed().saturating_sub(self.since);
            self.desk.sink.put(record);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.put();
    }
}
