//! Learning from use: what was called after what was asked.
//!
//! When the operator wants it, the first call that is answered after a search
//! is noted beside the words of that search, in a [`Notebook`] that never
//! leaves the machine; later searches prefer what was chosen before, within
//! the index's own bound. It never hides or adds anything.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Priors;
use catalog::usage::UsageHistory;
use parking_lot::Mutex;
use tool::Context;

use crate::record::{Ending, Note, Record, Sink};
use roster::BUILTIN;
use tool::clock::Clock;

/// Where the usage history is kept.
pub trait Notebook: Send + Sync {
    /// What is known now.
    fn read(&self) -> Arc<UsageHistory>;

    /// Notes that a tool (`upstream/tool`) was called after a query, on the
    /// day of that number since 1970.
    fn note(&self, query: &str, tool: &str, day: u32);

    /// Whether anything is learnt at all.
    fn is_open(&self) -> bool {
        true
    }
}

/// For who learns nothing.
#[derive(Clone, Copy, Debug)]
pub struct Closed;

impl Notebook for Closed {
    fn read(&self) -> Arc<UsageHistory> {
        Arc::default()
    }

    fn note(&self, _: &str, _: &str, _: u32) {}

    fn is_open(&self) -> bool {
        false
    }
}

/// Listens to searches and calls.
pub(crate) struct Learning {
    notebook: Arc<dyn Notebook>,
    clock: Arc<dyn Clock>,
    /// By session: what it searched for since its last call.
    asked: Mutex<HashMap<Arc<str>, String>>,
}

/// The most sessions whose last search is remembered.
const SESSIONS: usize = 1_000;
const MILLIS_PER_DAY: u64 = 24 * 60 * 60 * 1_000;

impl Learning {
    pub(crate) fn new(notebook: Arc<dyn Notebook>, clock: Arc<dyn Clock>) -> Learning {
        Learning { notebook, clock, asked: Mutex::default() }
    }

    /// Hears a search, and tells what was chosen after such searches before.
    pub(crate) fn asked(&self, context: &Context, query: &str) -> Priors {
        if !self.notebook.is_open() {
            return Priors::new();
        }
        let mut asked = self.asked.lock();
        if SESSIONS <= asked.len() && !asked.contains_key(&context.session) {
            asked.clear();
        }
        asked.insert(Arc::clone(&context.session), catalog::summary::cut(query, 500));
        drop(asked);
        let history = self.notebook.read();
        let priors = history.priors(query, self.day());
        priors.into_iter().map(|(tool, share)| (tool.to_owned(), share)).collect()
    }

    fn called(&self, record: &Record) {
        if !matches!(record.ending, Ending::Answered | Ending::Gated)
            || record.callee.upstream.is_empty()
            || record.callee.upstream == BUILTIN
            // Whoever reads about a function, or a skill, has not chosen yet.
            || record.meta_tool != "tool_execute"
        {
            return;
        }
        let mut asked = self.asked.lock();
        let query = asked.remove(&record.session);
        drop(asked);
        if let Some(query) = query {
            self.notebook.note(&query, &record.callee.path, self.day());
        }
    }

    fn day(&self) -> u32 {
        u32::try_from(self.clock.unix_millis() / MILLIS_PER_DAY).unwrap_or(u32::MAX)
    }
}

/// Hears of calls from their records, and passes them on.
pub(crate) struct Listening {
    pub(crate) learning: Arc<Learning>,
    pub(crate) sink: Arc<dyn Sink>,
}

impl Sink for Listening {
    fn put(&self, record: Record) {
        self.learning.called(&record);
        self.sink.put(record);
    }

    fn takes_records(&self) -> bool {
        self.learning.notebook.is_open() || self.sink.takes_records()
    }

    fn takes_notes(&self) -> bool {
        self.sink.takes_notes()
    }

    fn note(&self, note: Note) {
        self.sink.note(note);
    }
}

#[cfg(test)]
mod tests;
