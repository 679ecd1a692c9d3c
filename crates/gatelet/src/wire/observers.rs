//! Who is told about calls: the file of records, the figures of the last hour with
//! the metrics, whoever traces, and the last calls for the console.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use console::calls::{CallLog, Payloads};
use gateway::Gateway;
use gateway::record::Sink;
use parking_lot::Mutex;
use records::events::{Events, Rotation};
use telemetry::fanout::Fanout;
use telemetry::figures::{Collect, Figures, Overview};
use telemetry::metrics::{self, Readings};
use telemetry::otlp::{self, Exported, Exporter};
use telemetry::traces::Tracer;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tool::clock::Clock;

use config::{Config, Metrics, Records, Traces};

/// How long the last records and spans may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How long figures are collected after somebody looked at them.
const WATCHED: Duration = Duration::from_secs(15 * 60);

/// How long a collector may take for a batch.
const COLLECTOR: Duration = Duration::from_secs(10);

/// Who is told about calls.
pub(super) struct Observers {
    records: Option<Arc<Events>>,
    figures: Arc<Figures>,
    tracing: Option<Tracing>,
    calls: Arc<CallLog>,
}

/// How long a gate lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// It serves clients.
    Stays,
    /// It does one thing and ends: nobody scrapes it, and it is not traced.
    Command,
}

/// Traces, and what sends them.
struct Tracing {
    tracer: Tracer,
    exported: Exported,
    /// Not sent before there is a runtime.
    exporter: Mutex<Option<Exporter>>,
    sending: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Observers {
    pub(super) fn new(
        config: &Config,
        life: Life,
        clock: &Arc<dyn Clock>,
        instance: &str,
    ) -> anyhow::Result<Observers> {
        let clock = || Arc::clone(clock);
        let metrics = Some(&config.metrics).filter(|metrics| metrics.is_on());
        let figures = match metrics.filter(|_| life == Life::Stays) {
            Some(metrics) => Figures::with_metrics(clock(), &metrics_config(metrics)),
            None => Figures::new(clock(), Collect::WhileRead(WATCHED)),
        };
        let tracing = config.traces.as_ref().filter(|_| life == Life::Stays);
        let payloads = if config.console.payloads { Payloads::Kept } else { Payloads::Dropped };
        Ok(Observers {
            records: open_records(&config.records)?.map(Arc::new),
            figures: Arc::new(figures),
            tracing: tracing.map(|traces| Tracing::new(traces, clock(), instance)).transpose()?,
            calls: Arc::new(CallLog::new(clock(), payloads)),
        })
    }

    /// All of them as one.
    pub(super) fn sink(&self) -> Arc<dyn Sink> {
        let records = self.records.iter().map(|events| Arc::clone(events) as Arc<dyn Sink>);
        let tracer = self.tracer().map(|tracer| Arc::new(tracer.clone()) as Arc<dyn Sink>);
        let figures = Arc::clone(&self.figures) as Arc<dyn Sink>;
        let calls = Arc::clone(&self.calls) as Arc<dyn Sink>;
        Arc::new(Fanout(records.chain(tracer).chain([figures, calls]).collect()))
    }

    /// The last calls, for whoever looks at them.
    pub(super) fn call_log(&self) -> Arc<CallLog> {
        Arc::clone(&self.calls)
    }

    /// The figures of the last hour, as far as somebody has looked at them before.
    pub(super) fn overview(&self, gateway: &Gateway) -> Overview {
        if !self.figures.is_collecting() {
            drop(self.figures.glance());
            gateway.report_catalog();
        }
        self.figures.overview()
    }

    /// The same, without what is not counted yet.
    pub(super) fn glance(&self) -> Overview {
        self.figures.glance()
    }

    /// Everything for Prometheus, with what only the observers know filled in;
    /// `None` where there are no metrics.
    pub(super) fn metrics(&self, readings: Readings) -> Option<String> {
        let lost = self.records.as_ref().map_or(0, |events| events.lost());
        let spans = self.tracing.as_ref();
        self.figures.metrics(&Readings {
            records_lost: lost,
            spans_exported: spans.map_or(0, |tracing| tracing.exported.count()),
            spans_dropped: spans.map_or(0, |tracing| tracing.tracer.dropped()),
            ..readings
        })
    }

    /// Who traces, if anybody does.
    pub(super) fn tracer(&self) -> Option<&Tracer> {
        self.tracing.as_ref().map(|tracing| &tracing.tracer)
    }

    /// Begins to send spans, where somebody traces.
    pub(super) fn start(&self) {
        let Some(tracing) = &self.tracing else { return };
        let Some(exporter) = tracing.exporter.lock().take() else { return };
        let (stop, stopped) = oneshot::channel();
        // The sender is dropped only when everything ends.
        let sending = tokio::spawn(exporter.run(async move { drop(stopped.await) }));
        *tracing.sending.lock() = Some((stop, sending));
    }

    /// Waits until every record and span is written, at the end of the process.
    pub(super) async fn close(&self) {
        let sending = self.tracing.as_ref().and_then(|tracing| tracing.sending.lock().take());
        if let Some((stop, sending)) = sending {
            drop(stop);
            if tokio::time::timeout(LAST_WORDS, sending).await.is_err() {
                tracing::warn!("the last traces were not sent in time");
            }
        }
        if let Some(events) = &self.records {
            events.flush(LAST_WORDS);
        }
    }
}

impl Tracing {
    fn new(traces: &Traces, clock: Arc<dyn Clock>, instance: &str) -> anyhow::Result<Tracing> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .context("cannot make a client for the collector of traces")?;
        let tracer = Tracer::new(traces.sample, clock);
        let config = otlp::Config {
            endpoint: traces.endpoint.clone(),
            headers: traces.headers.clone(),
            interval: traces.interval,
            timeout: COLLECTOR,
            resource: otlp::Resource {
                service: traces.service.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                instance: instance.to_owned(),
            },
        };
        let exporter = Exporter::new(tracer.clone(), client, config)?;
        let exported = exporter.exported();
        let sending = Mutex::default();
        Ok(Tracing { tracer, exported, exporter: Mutex::new(Some(exporter)), sending })
    }
}

fn metrics_config(metrics: &Metrics) -> metrics::Config {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    metrics::Config { n_tools: metrics.n_tools, version }
}

fn open_records(records: &Records) -> anyhow::Result<Option<Events>> {
    let Some(file) = &records.file else { return Ok(None) };
    let rotation = Rotation { bytes: records.rotate_bytes, keep: records.keep };
    let opened = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => {
            std::fs::create_dir_all(parent).and_then(|()| Events::open(file, rotation))
        }
        Some(_) | None => Events::open(file, rotation),
    };
    opened.map(Some).with_context(|| format!("cannot write records to `{}`", file.display()))
}
