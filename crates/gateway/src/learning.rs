//! Learns from use which tool is called after which search.
//!
//! When the operator wants it, the first answered call after a search is noted
//! with the words of that search, in a [`UsageStore`] that never leaves the
//! machine. Later searches prefer what was chosen before, within the limit that
//! the index sets. Nothing is ever hidden or added.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Priors;
use catalog::usage::UsageHistory;
use parking_lot::Mutex;
use tool::Context;

use crate::record::{Ending, GatewayEvent, Record, Sink};
use roster::BUILTIN;
use tool::clock::Clock;

/// Stores which tool was called after which query.
pub trait UsageStore: Send + Sync {
    /// Returns the usage history.
    fn read(&self) -> Arc<UsageHistory>;

    /// Notes that a tool (`upstream/tool`) was called after a query. `day` counts
    /// from 1970-01-01.
    fn note(&self, query: &str, tool: &str, day: u32);

    /// Returns whether anything is learnt at all.
    fn learns(&self) -> bool {
        true
    }
}

/// A store that learns nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoLearning;

impl UsageStore for NoLearning {
    fn read(&self) -> Arc<UsageHistory> {
        Arc::default()
    }

    fn note(&self, _: &str, _: &str, _: u32) {}

    fn learns(&self) -> bool {
        false
    }
}

/// Connects calls with the searches before them.
pub(crate) struct Learning {
    usage: Arc<dyn UsageStore>,
    clock: Arc<dyn Clock>,
    /// The last query of each session that has not called anything since.
    last_queries: Mutex<HashMap<Arc<str>, String>>,
}

/// The most sessions whose last query is remembered.
const MAX_SESSIONS: usize = 1_000;
const MILLIS_PER_DAY: u64 = 24 * 60 * 60 * 1_000;

impl Learning {
    pub(crate) fn new(usage: Arc<dyn UsageStore>, clock: Arc<dyn Clock>) -> Learning {
        Learning { usage, clock, last_queries: Mutex::default() }
    }

    /// Notes a query, and returns how often each tool was called after similar ones.
    pub(crate) fn note_query(&self, context: &Context, query: &str) -> Priors {
        if !self.usage.learns() {
            return Priors::new();
        }
        let mut last_queries = self.last_queries.lock();
        if MAX_SESSIONS <= last_queries.len() && !last_queries.contains_key(&context.session) {
            last_queries.clear();
        }
        last_queries.insert(Arc::clone(&context.session), catalog::summary::cut(query, 500));
        drop(last_queries);
        let history = self.usage.read();
        let priors = history.priors(query, self.day());
        priors.into_iter().map(|(tool, share)| (tool.to_owned(), share)).collect()
    }

    fn note_call(&self, record: &Record) {
        if !matches!(record.ending, Ending::Answered | Ending::Gated)
            || record.callee.upstream.is_empty()
            || record.callee.upstream == BUILTIN
            // Reading about a function or a skill is not choosing it.
            || record.meta_tool != "tool_execute"
        {
            return;
        }
        let query = self.last_queries.lock().remove(&record.session);
        if let Some(query) = query {
            self.usage.note(&query, &record.callee.path, self.day());
        }
    }

    fn day(&self) -> u32 {
        u32::try_from(self.clock.unix_millis() / MILLIS_PER_DAY).unwrap_or(u32::MAX)
    }
}

/// A sink that learns from records and passes them on to another sink.
pub(crate) struct LearningSink {
    pub(crate) learning: Arc<Learning>,
    pub(crate) sink: Arc<dyn Sink>,
}

impl Sink for LearningSink {
    fn put(&self, record: Record) {
        self.learning.note_call(&record);
        self.sink.put(record);
    }

    fn takes_records(&self) -> bool {
        self.learning.usage.learns() || self.sink.takes_records()
    }

    fn takes_events(&self) -> bool {
        self.sink.takes_events()
    }

    fn event(&self, event: GatewayEvent) {
        self.sink.event(event);
    }
}

#[cfg(test)]
mod tests;
