//! The last calls, for whoever looks at them.
//!
//! Nothing is noted before somebody looks for the first time, and no longer than a
//! while after somebody looked last; so a gate that nobody watches pays nothing.
//! What was said in a call is noted only where the operator wants it kept.

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
use tool::text::spelt_out_line;
use tool::{Json, Object};

/// Whether what was said in calls is kept to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payloads {
    Kept,
    Dropped,
}

/// How many calls are kept.
const ROOM: usize = 2_000;
/// How long calls are noted after somebody looked.
const WATCHED: Duration = Duration::from_secs(15 * 60);
/// What is longer is not kept.
const LONGEST: usize = 32 << 10;

/// The last calls.
pub struct CallLog {
    payloads: Payloads,
    clock: Arc<dyn Clock>,
    /// Until when calls are noted, by the clock's elapsed time in milliseconds; 0
    /// before anybody looked.
    watched_until: AtomicU64,
    last_number: AtomicU64,
    calls: Mutex<VecDeque<Arc<NotedCall>>>,
    changed: watch::Sender<u64>,
}

/// One call that is over.
pub(crate) struct NotedCall {
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
    /// The code of the taxonomy, for what did not end well.
    pub(crate) code: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) took: Duration,
    pub(crate) stages: Vec<StageEntry>,
    /// Which arguments were given.
    pub(crate) argument_names: Vec<String>,
    pub(crate) arguments: Option<Json>,
    pub(crate) answer: Option<Json>,
    /// How long the answer was, in bytes.
    pub(crate) n_bytes: usize,
    pub(crate) artifact: Option<NotedArtifact>,
}

/// A stored answer.
#[derive(Clone)]
pub(crate) struct NotedArtifact {
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

    /// The last calls, latest first. Whoever looks has calls noted from now on.
    pub(crate) fn look(&self) -> Vec<Arc<NotedCall>> {
        let until = self.elapsed().saturating_add(millis(WATCHED));
        self.watched_until.store(until, Ordering::Relaxed);
        self.calls.lock().iter().rev().cloned().collect()
    }

    pub(crate) fn payloads(&self) -> Payloads {
        self.payloads
    }

    /// Says when a call was noted.
    pub(crate) fn watch(&self) -> BoxStream<'static, ()> {
        let next = |mut changed: watch::Receiver<u64>| async move {
            changed.changed().await.ok().map(|()| ((), changed))
        };
        futures::stream::unfold(self.changed.subscribe(), next).boxed()
    }

    fn elapsed(&self) -> u64 {
        // One more, so that nobody looked at 0.
        millis(self.clock.elapsed()).saturating_add(1)
    }

    fn note(&self, record: Record) -> NotedCall {
        let keeps = |json: Option<Json>| {
            let is_short = |json: &Json| json.as_bytes().len() <= LONGEST;
            json.filter(|json| self.payloads == Payloads::Kept && is_short(json))
        };
        let names = record.arguments.as_ref().filter(|given| given.as_bytes().len() <= LONGEST);
        let names = names.and_then(|given| Object::parse(given).ok());
        let artifact = record.artifact.map(|artifact| NotedArtifact {
            handle: artifact.handle.clone(),
            owner: artifact.owner.clone(),
            chars: artifact.chars,
        });
        NotedCall {
            number: self.last_number.fetch_add(1, Ordering::Relaxed) + 1,
            at: record.at,
            surface: record.surface.name(),
            session: record.session,
            client: spelt_out_line(&record.client.name).into_owned(),
            caller: spelt_out_line(&record.caller.subject).into_owned(),
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
        let noted = Arc::new(self.note(record));
        let mut calls = self.calls.lock();
        if calls.len() == ROOM {
            calls.pop_front();
        }
        calls.push_back(noted);
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
        log.look();
        assert!(log.takes_records());
        clock.advance(WATCHED + Duration::from_secs(1));
        assert!(!log.takes_records());
    }
}
