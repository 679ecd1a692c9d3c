//! Exports spans and histograms to an OpenTelemetry collector, by OTLP over HTTP with
//! protobuf.
//!
//! The few messages are encoded by hand ([`protobuf`]); `docs/decisions/096-otlp.md` says
//! why. What the collector does not accept in time is dropped and counted; no call ever
//! waits for it.

mod histograms;
mod metrics;
mod protobuf;
mod resource;
mod response;
mod spans;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, StatusCode, Url};
use tool::Backoff;

use crate::traces::{PendingExports, Tracer};
use histograms::Histograms;

pub use resource::Resource;

/// The collector, and how data is sent to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The collector, such as `http://127.0.0.1:4318`; the paths of OTLP are added.
    pub endpoint: Url,
    /// Sent with every request, such as a key.
    pub headers: HeaderMap,
    /// How often data is sent.
    pub interval: Duration,
    /// How long a request to the collector may take.
    pub timeout: Duration,
    pub resource: Resource,
}

/// How often a batch is sent to a collector that is busy.
const ATTEMPTS: u32 = 4;

/// The pauses between attempts.
const BACKOFF: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(8));

/// The longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The number of spans that were exported. Clones share one counter.
#[derive(Clone, Debug, Default)]
pub struct ExportCount(Arc<AtomicU64>);

impl ExportCount {
    /// Returns how many spans the collector accepted.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sends what a [`Tracer`] collects.
pub struct Exporter {
    tracer: Tracer,
    client: Client,
    config: Config,
    traces: Url,
    metrics: Url,
    histograms: Histograms,
    exported: ExportCount,
    /// Whether the current failure of the collector was logged.
    has_warned: bool,
}

/// Why a collector did not accept a batch.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    /// A later attempt may succeed, perhaps after a pause that the collector asks for.
    #[error("{reason}")]
    Retryable { reason: String, pause: Option<Duration> },
    #[error("{0}")]
    Permanent(String),
}

/// The endpoint is not a URL to which paths can be added.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` cannot be the address of a collector: write it as `http://host:4318`")]
pub struct InvalidEndpoint(String);

impl Exporter {
    pub fn new(
        tracer: Tracer,
        client: Client,
        config: Config,
    ) -> Result<Exporter, InvalidEndpoint> {
        let below = |path: &str| {
            let base = config.endpoint.as_str().trim_end_matches('/');
            let url = Url::parse(&format!("{base}/v1/{path}")).ok();
            let url = url.filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
            url.ok_or_else(|| InvalidEndpoint(config.endpoint.to_string()))
        };
        Ok(Exporter {
            traces: below("traces")?,
            metrics: below("metrics")?,
            histograms: Histograms::new(tracer.now_unix_nanos()),
            tracer,
            client,
            config,
            exported: ExportCount::default(),
            has_warned: false,
        })
    }

    pub fn exported(&self) -> ExportCount {
        self.exported.clone()
    }

    /// Sends batches until `stop` is ready; then sends the rest, once.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let is_last = tokio::select! {
                () = &mut stop => true,
                () = tokio::time::sleep(self.config.interval) => false,
                () = self.tracer.batch() => false,
            };
            let attempts = if is_last { 1 } else { ATTEMPTS };
            self.export(attempts).await;
            if is_last {
                return;
            }
        }
    }

    async fn export(&mut self, attempts: u32) {
        let pending = self.tracer.take();
        let PendingExports { operations, sessions } = &pending;
        for operation in operations {
            self.histograms.add(operation);
        }
        for session in sessions {
            self.histograms.add_session(session);
        }
        let n_spans = operations.iter().filter(|operation| operation.span.is_some()).count() as u64;
        if n_spans != 0 {
            let body = spans::request(operations, &self.config.resource);
            match self.send_with_retries(&self.traces, body, attempts).await {
                Ok(rejected) => {
                    let rejected = rejected.min(n_spans);
                    self.tracer.drop_spans(rejected);
                    self.exported.0.fetch_add(n_spans - rejected, Ordering::Relaxed);
                    self.has_warned = false;
                }
                Err(why) => {
                    self.tracer.drop_spans(n_spans);
                    self.warn(n_spans, &why);
                }
            }
        }
        if !operations.is_empty() || !sessions.is_empty() {
            let now = self.tracer.now_unix_nanos();
            let body = metrics::request(&self.histograms, now, &self.config.resource);
            // Histograms are cumulative, so the next ones make up for a lost batch.
            if let Err(why) = self.send_with_retries(&self.metrics, body, 1).await {
                self.warn(0, &why);
            }
        }
    }

    /// Sends a body until it is accepted; returns how many of its items were rejected.
    async fn send_with_retries(
        &self,
        url: &Url,
        body: Vec<u8>,
        attempts: u32,
    ) -> Result<u64, ExportError> {
        let mut done = 0;
        loop {
            done += 1;
            match self.send(url, body.clone()).await {
                Err(ExportError::Retryable { pause, .. }) if done < attempts => {
                    let pause = pause.unwrap_or_else(|| BACKOFF.pause_after(done, 1.0));
                    tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn send(&self, url: &Url, body: Vec<u8>) -> Result<u64, ExportError> {
        let request = self
            .client
            .post(url.clone())
            .headers(self.config.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .timeout(self.config.timeout)
            .body(body);
        let later = |error: reqwest::Error| ExportError::Retryable {
            reason: error.without_url().to_string(),
            pause: None,
        };
        let response = request.send().await.map_err(later)?;
        let status = response.status();
        if status.is_success() {
            let body = response.bytes().await.map_err(later)?;
            return Ok(response::rejected(&body));
        }
        let reason = format!("it answers {status}");
        let may_retry = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        if !may_retry.contains(&status) {
            return Err(ExportError::Permanent(reason));
        }
        let pause = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
        let pause = pause.and_then(|after| after.parse().ok()).map(Duration::from_secs);
        Err(ExportError::Retryable { reason, pause })
    }

    /// Logs a failure once, until a batch is accepted again.
    fn warn(&mut self, n_spans: u64, why: &ExportError) {
        if !self.has_warned {
            self.has_warned = true;
            let endpoint = self.config.endpoint.host_str().unwrap_or_default();
            tracing::warn!(endpoint, lost = n_spans, "the collector takes no traces: {why}");
        }
    }
}

#[cfg(test)]
mod tests;
