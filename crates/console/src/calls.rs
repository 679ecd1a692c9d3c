//! A log of the last calls in memory, for the console's pages.
//!
//! Calls are logged only while somebody watches: from the first [`CallLog::recent`] until
//! a while after the last one. So a gatelet that nobody watches pays nothing. Arguments
//! and answers are stored only when the operator has configured it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use artifacts::Owner;
use futures::StreamExt;
use futures::stream::BoxStream;
use gateway::record::{Record, Sink, StageEntry};
use parking_lot::Mutex;
use tokio::sync::watch;
use tool::clock::Clock;
use tool::text::escape_invisible_line;
use tool::{Json, Object};

/// Whether arguments and answers of calls are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payloads {
    Kept,
    Dropped,
}

/// How many calls are stored.
const MAX_CALLS: usize = 2_000;
/// How long calls are logged after the log was last read.
const WATCH_TIME: Duration = Duration::from_secs(15 * 60);
/// Longer arguments and answers are not stored.
const MAX_PAYLOAD_BYTES: usize = 32 << 10;

/// The last calls.
pub struct CallLog {
    payloads: Payloads,
    clock: Arc<dyn Clock>,
    /// Until when calls are logged, by the clock's elapsed time in milliseconds; 0 before
    /// the log was first read.
    watched_until: AtomicU64,
    last_number: AtomicU64,
    calls: Mutex<VecDeque<Arc<LoggedCall>>>,
    changed: watch::Sender<u64>,
}

/// One finished call.
pub(crate) struct LoggedCall {
    pub(crate) number: u64,
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) surface: &'static str,
    pub(crate) session: Arc<str>,
    pub(crate) client: String,
    /// Empty for an anonymous caller.
    pub(crate) caller: String,
    pub(crate) upstream: String,
    pub(crate) tool: String,
    /// How it ended, in a word.
    pub(crate) ending: &'static str,
    pub(crate) is_error: bool,
    /// The error code, for a call that did not end well.
    pub(crate) code: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) took: Duration,
    pub(crate) stages: Vec<StageEntry>,
    /// The names of the arguments.
    pub(crate) argument_names: Vec<String>,
    pub(crate) arguments: Option<Json>,
    pub(crate) answer: Option<Json>,
    /// How long the answer was, in bytes.
    pub(crate) n_bytes: usize,
    pub(crate) artifact: Option<LoggedArtifact>,
}

/// A stored answer.
#[derive(Clone)]
pub(crate) struct LoggedArtifact {
    pub(crate) handle: String,
    pub(crate) owner: Owner,
    pub(crate) chars: usize,
}

impl CallLog {
    pub fn new(clock: Arc<dyn Clock>, payloads: Payloads) -> CallLog {
        CallLog {
            payloads,
            clock,
            watched_until: AtomicU64::new(0),
            last_number: AtomicU64::new(0),
            calls: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// Returns the last calls, latest first, and switches logging on for a while.
    pub(crate) fn recent(&self) -> Vec<Arc<LoggedCall>> {
        let until = self.elapsed().saturating_add(millis(WATCH_TIME));
        self.watched_until.store(until, Ordering::Relaxed);
        self.calls.lock().iter().rev().cloned().collect()
    }

    pub(crate) fn payloads(&self) -> Payloads {
        self.payloads
    }

    /// Yields an item whenever a call was logged.
    pub(crate) fn watch(&self) -> BoxStream<'static, ()> {
        let next = |mut changed: watch::Receiver<u64>| async move {
            changed.changed().await.ok().map(|()| ((), changed))
        };
        futures::stream::unfold(self.changed.subscribe(), next).boxed()
    }

    fn elapsed(&self) -> u64 {
        // Never 0, which means that the log was not read yet.
        millis(self.clock.elapsed()).saturating_add(1)
    }

    fn logged_call(&self, record: Record) -> LoggedCall {
        let keeps = |json: Option<Json>| {
            let is_short = |json: &Json| json.as_bytes().len() <= MAX_PAYLOAD_BYTES;
            json.filter(|json| self.payloads == Payloads::Kept && is_short(json))
        };
        let names =
            record.arguments.as_ref().filter(|given| given.as_bytes().len() <= MAX_PAYLOAD_BYTES);
        let names = names.and_then(|given| Object::parse(given).ok());
        let artifact = record.artifact.map(|artifact| LoggedArtifact {
            handle: artifact.handle.clone(),
            owner: artifact.owner.clone(),
            chars: artifact.chars,
        });
        LoggedCall {
            number: self.last_number.fetch_add(1, Ordering::Relaxed) + 1,
            at: record.at,
            surface: record.surface.name(),
            session: record.session,
            client: escape_invisible_line(&record.client.name).into_owned(),
            caller: escape_invisible_line(&record.caller.subject).into_owned(),
            upstream: record.callee.upstream.clone(),
            tool: record.callee.tool.clone(),
            ending: record.ending.as_str(),
            is_error: record.ending.is_error(),
            code: record.ending.code().map(|code| code.as_str()),
            attempts: record.attempts,
            took: record.took,
            stages: record.stages,
            argument_names: names
                .iter()
                .flat_map(|names| names.keys())
                .map(str::to_owned)
                .collect(),
            n_bytes: record.sent.as_ref().map_or(0, |sent| sent.as_bytes().len()),
            arguments: keeps(record.arguments),
            answer: keeps(record.sent).map(|sent| sent.copied_out()),
            artifact,
        }
    }
}

impl Sink for CallLog {
    fn put(&self, record: Record) {
        let call = Arc::new(self.logged_call(record));
        let mut calls = self.calls.lock();
        if calls.len() == MAX_CALLS {
            calls.pop_front();
        }
        calls.push_back(call);
        drop(calls);
        self.changed.send_modify(|n_calls| *n_calls += 1);
    }

    fn takes_records(&self) -> bool {
        let until = self.watched_until.load(Ordering::Relaxed);
        until != 0 && self.elapsed() < until
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tool::clock::Fake;

    use super::*;

    #[test]
    fn calls_are_noted_only_while_somebody_looks() {
        let clock: Arc<Fake> = Arc::default();
        let log = CallLog::new(Arc::clone(&clock) as _, Payloads::Dropped);
        assert!(!log.takes_records());
        log.recent();
        assert!(log.takes_records());
        clock.advance(WATCH_TIME + Duration::from_secs(1));
        assert!(!log.takes_records());
    }
}
