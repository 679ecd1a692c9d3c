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

/// Where the usage history is kept.
pub trait UsageStore: Send + Sync {
    /// What is known now.
    fn read(&self) -> Arc<UsageHistory>;

    /// Notes that a tool (`upstream/tool`) was called after a query, on the
    /// day of that number since 1970.
    fn note(&self, query: &str, tool: &str, day: u32);

    /// Whether anything is learnt at all.
    fn learns(&self) -> bool {
        true
    }
}

/// Learns nothing.
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

/// Listens to searches and calls.
pub(crate) struct Learning {
    usage: Arc<dyn UsageStore>,
    clock: Arc<dyn Clock>,
    /// By session: what it searched for since its last call.
    asked: Mutex<HashMap<Arc<str>, String>>,
}

/// The most sessions whose last search is remembered.
const SESSIONS: usize = 1_000;
const MILLIS_PER_DAY: u64 = 24 * 60 * 60 * 1_000;

impl Learning {
    pub(crate) fn new(usage: Arc<dyn UsageStore>, clock: Arc<dyn Clock>) -> Learning {
        Learning { usage, clock, asked: Mutex::default() }
    }

    /// Notes a search, and returns what was chosen after similar ones before.
    pub(crate) fn asked(&self, context: &Context, query: &str) -> Priors {
        if !self.usage.learns() {
            return Priors::new();
        }
        let mut asked = self.asked.lock();
        if SESSIONS <= asked.len() && !asked.contains_key(&context.session) {
            asked.clear();
        }
        asked.insert(Arc::clone(&context.session), catalog::summary::cut(query, 500));
        drop(asked);
        let history = self.usage.read();
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
            self.usage.note(&query, &record.callee.path, self.day());
        }
    }

    fn day(&self) -> u32 {
        u32::try_from(self.clock.unix_millis() / MILLIS_PER_DAY).unwrap_or(u32::MAX)
    }
}

/// Learns from the records of calls, and passes them on.
pub(crate) struct LearningSink {
    pub(crate) learning: Arc<Learning>,
    pub(crate) sink: Arc<dyn Sink>,
}

impl Sink for LearningSink {
    fn put(&self, record: Record) {
        self.learning.called(&record);
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
