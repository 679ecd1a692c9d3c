//! Who is told about calls: the file of records, the figures of the last hour,
//! and the last calls.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use console::calls::{CallLog, Payloads};
use gateway::Gateway;
use gateway::record::Sink;
use store::events::Events;
use telemetry::fanout::Fanout;
use telemetry::figures::{Collect, Figures, Overview};
use tool::clock::Clock;

use config::Config;

/// How long the last records may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How long figures are collected after somebody looked at them.
const WATCHED: Duration = Duration::from_secs(15 * 60);

/// Who is told about calls.
pub(super) struct Observers {
    records: Option<Arc<Events>>,
    figures: Arc<Figures>,
    calls: Arc<CallLog>,
}

impl Observers {
    pub(super) fn new(config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Observers> {
        let records = config.records.file.as_deref().map(open_records).transpose()?;
        let figures = Figures::new(Arc::clone(clock), Collect::WhileRead(WATCHED));
        let payloads = if config.console.payloads { Payloads::Kept } else { Payloads::Dropped };
        let calls = CallLog::new(Arc::clone(clock), payloads);
        let (figures, calls) = (Arc::new(figures), Arc::new(calls));
        Ok(Observers { records: records.map(Arc::new), figures, calls })
    }

    /// All of them as one.
    pub(super) fn sink(&self) -> Arc<dyn Sink> {
        let records = self.records.iter().map(|events| Arc::clone(events) as Arc<dyn Sink>);
        let figures = Arc::clone(&self.figures) as Arc<dyn Sink>;
        let calls = Arc::clone(&self.calls) as Arc<dyn Sink>;
        Arc::new(Fanout(records.chain([figures, calls]).collect()))
    }

    /// The last calls, for whoever looks at them.
    pub(super) fn call_log(&self) -> Arc<CallLog> {
        Arc::clone(&self.calls)
    }

    /// The figures of the last hour, as far as somebody has looked at them before.
    pub(super) fn overview(&self, gateway: &Gateway) -> Overview {
        if !self.figures.is_collecting() {
            drop(self.figures.overview());
            gateway.report_catalog();
        }
        self.figures.overview()
    }

    /// Waits until every record is written, at the end of the process.
    pub(super) fn close(&self) {
        if let Some(events) = &self.records {
            events.flush(LAST_WORDS);
        }
    }
}

fn open_records(file: &Path) -> anyhow::Result<Events> {
    let opened = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => {
            std::fs::create_dir_all(parent).and_then(|()| Events::open(file))
        }
        Some(_) | None => Events::open(file),
    };
    opened.with_context(|| format!("cannot write records to `{}`", file.display()))
}
