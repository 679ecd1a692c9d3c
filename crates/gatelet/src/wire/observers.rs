//! Everything that observes calls: the file of records, the figures of the last hour with
//! the metrics, tracing, and the last calls for the console.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use console::calls::{CallLog, Payloads};
use gateway::record::Sink;
use gateway::{Gateway, Surface};
use parking_lot::Mutex;
use records::events::{Events, Rotation};
use telemetry::fanout::Fanout;
use telemetry::figures::{Collect, Figures, Overview};
use telemetry::metrics::{self, Readings};
use telemetry::otlp::{self, ExportCount, Exporter};
use telemetry::traces::{self, Peer, Tracer};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tool::ProviderSource;
use tool::clock::Clock;

use config::{Config, Metrics, Records, Traces};

/// How long writing the last records and spans may take at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long figures are collected after somebody read them.
const COLLECT_FOR: Duration = Duration::from_secs(15 * 60);

/// How long the trace collector may take for a batch.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a page of the console waits for an overview.
const PAGE_TIMEOUT: Duration = Duration::from_millis(100);

/// Everything that observes calls.
pub(crate) struct Observers {
    records: Option<Arc<Events>>,
    figures: Arc<Figures>,
    tracing: Option<Tracing>,
    calls: Arc<CallLog>,
}

/// How long the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// It serves clients.
    Server,
    /// It runs one command and ends, so it has no metrics and no traces.
    Command,
}

/// Tracing, and the export of its spans.
struct Tracing {
    tracer: Tracer,
    exported: ExportCount,
    /// Waits here until [`Observers::start_exporting`] runs it.
    exporter: Mutex<Option<Exporter>>,
    /// Stops the export when dropped, and the task that exports.
    exporting: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Observers {
    pub(super) fn new(
        config: &Config,
        lifetime: Lifetime,
        clock: &Arc<dyn Clock>,
        instance: &str,
    ) -> anyhow::Result<Observers> {
        let clock = || Arc::clone(clock);
        let metrics = Some(&config.metrics).filter(|metrics| metrics.is_on());
        let figures = match metrics.filter(|_| lifetime == Lifetime::Server) {
            Some(metrics) => Figures::with_metrics(clock(), &metrics_config(metrics)),
            None => Figures::new(clock(), Collect::WhileRead(COLLECT_FOR)),
        };
        let tracing = config.traces.as_ref().filter(|_| lifetime == Lifetime::Server);
        let payloads = if config.console.payloads { Payloads::Kept } else { Payloads::Dropped };
        Ok(Observers {
            records: open_records(&config.records)?.map(Arc::new),
            figures: Arc::new(figures),
            tracing: tracing.map(|traces| Tracing::new(traces, clock(), instance)).transpose()?,
            calls: Arc::new(CallLog::new(clock(), payloads)),
        })
    }

    /// One sink that passes records of calls to all observers.
    pub(super) fn sink(&self) -> Arc<dyn Sink> {
        let records = self.records.iter().map(|events| Arc::clone(events) as Arc<dyn Sink>);
        let tracer = self.tracer().map(|tracer| Arc::new(tracer.clone()) as Arc<dyn Sink>);
        let figures = Arc::clone(&self.figures) as Arc<dyn Sink>;
        let calls = Arc::clone(&self.calls) as Arc<dyn Sink>;
        Arc::new(Fanout(records.chain(tracer).chain([figures, calls]).collect()))
    }

    /// What clients see through a surface, traced if tracing is on. `transport` is the
    /// name that spans have for the connection.
    pub(crate) fn traced_surface(
        &self,
        gateway: &Gateway,
        surface: Surface,
        transport: &'static str,
    ) -> Arc<dyn ProviderSource> {
        let source = gateway.surface(surface);
        match self.tracer() {
            Some(tracer) => {
                traces::traced_source(tracer, source, Peer { transport, ..Peer::default() })
            }
            None => source,
        }
    }

    /// The last calls, for the console.
    pub(crate) fn call_log(&self) -> Arc<CallLog> {
        Arc::clone(&self.calls)
    }

    /// The figures of the last hour. Figures are collected only while somebody reads
    /// them, so the first overview shows little.
    ///
    /// Counting the definitions of thousands of tools takes a while, so it happens on a
    /// thread for blocking work.
    pub(crate) async fn overview(self: &Arc<Self>, gateway: &Gateway) -> Overview {
        let (observers, gateway) = (Arc::clone(self), gateway.clone());
        let counted =
            tokio::task::spawn_blocking(move || observers.blocking_overview(&gateway)).await;
        counted.unwrap_or_else(|_| self.figures.quick_overview())
    }

    /// The overview for a page of the console, which does not wait long: figures that
    /// are not counted in time are missing until the page is refreshed.
    pub(crate) async fn quick_overview(self: &Arc<Self>, gateway: &Gateway) -> Overview {
        let counted = tokio::time::timeout(PAGE_TIMEOUT, self.overview(gateway)).await;
        counted.unwrap_or_else(|_| self.figures.quick_overview())
    }

    fn blocking_overview(&self, gateway: &Gateway) -> Overview {
        if !self.figures.is_collecting() {
            drop(self.figures.quick_overview());
            gateway.report_catalog();
        }
        self.figures.overview()
    }

    /// The text that Prometheus scrapes, from `readings` and what the observers counted;
    /// `None` where metrics are off.
    pub(crate) fn metrics(&self, readings: Readings) -> Option<String> {
        let lost = self.records.as_ref().map_or(0, |events| events.lost());
        let spans = self.tracing.as_ref();
        self.figures.metrics(&Readings {
            records_lost: lost,
            spans_exported: spans.map_or(0, |tracing| tracing.exported.count()),
            spans_dropped: spans.map_or(0, |tracing| tracing.tracer.dropped()),
            ..readings
        })
    }

    /// The tracer; `None` where tracing is off.
    pub(super) fn tracer(&self) -> Option<&Tracer> {
        self.tracing.as_ref().map(|tracing| &tracing.tracer)
    }

    /// Whether transports add what they know to traces.
    pub(crate) fn transport_tracing(&self) -> mcp::serve::trace::Tracing {
        match self.tracer() {
            Some(_) => mcp::serve::trace::Tracing::On,
            None => mcp::serve::trace::Tracing::Off,
        }
    }

    /// Begins to export spans, where tracing is on. Needs a runtime.
    pub(crate) fn start_exporting(&self) {
        let Some(tracing) = &self.tracing else { return };
        let Some(exporter) = tracing.exporter.lock().take() else { return };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(exporter.run(async move { drop(stopped.await) }));
        *tracing.exporting.lock() = Some((stop, task));
    }

    /// Waits until every record and span is written, at the end of the process.
    pub(super) async fn close(&self) {
        let exporting = self.tracing.as_ref().and_then(|tracing| tracing.exporting.lock().take());
        if let Some((stop, task)) = exporting {
            drop(stop);
            if tokio::time::timeout(CLOSE_TIMEOUT, task).await.is_err() {
                tracing::warn!("the last traces were not sent in time");
            }
        }
        if let Some(events) = &self.records {
            events.flush(CLOSE_TIMEOUT);
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
            timeout: COLLECTOR_TIMEOUT,
            resource: otlp::Resource {
                service: traces.service.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                instance: instance.to_owned(),
            },
        };
        let exporter = Exporter::new(tracer.clone(), client, config)?;
        let exported = exporter.exported();
        let exporting = Mutex::default();
        Ok(Tracing { tracer, exported, exporter: Mutex::new(Some(exporter)), exporting })
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
