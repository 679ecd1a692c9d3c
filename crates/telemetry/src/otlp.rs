//! Spans and histograms to a collector, over OTLP on HTTP with protobuf.
//!
//! The wire format is a handful of messages, written here by hand
//! ([`protobuf`]); `docs/decisions/096-otlp.md` says why. What a collector does
//! not take in time is dropped and counted; no call ever waits for it.

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

use crate::traces::{Tracer, Waiting};
use histograms::Histograms;

pub use resource::Resource;

/// Where spans and histograms go.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The collector, such as `http://127.0.0.1:4318`; the paths of OTLP are added.
    pub endpoint: Url,
    /// Sent with every request, such as a key.
    pub headers: HeaderMap,
    /// How often something is sent.
    pub interval: Duration,
    /// How long the collector may take.
    pub timeout: Duration,
    pub resource: Resource,
}

/// How often a batch is offered to a collector that is busy.
const ATTEMPTS: u32 = 4;

/// The pauses between them.
const BACKOFF: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(8));

/// The longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What became of the spans so far. Clones count the same.
#[derive(Clone, Debug, Default)]
pub struct Exported(Arc<AtomicU64>);

impl Exported {
    /// How many spans a collector took.
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
    exported: Exported,
    /// Whether the log was told that the collector takes nothing.
    has_warned: bool,
}

/// Why a collector did not take a batch.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    /// It may take the same later, perhaps after a pause that it asks for.
    #[error("{reason}")]
    Later { reason: String, pause: Option<Duration> },
    #[error("{0}")]
    Never(String),
}

/// The endpoint is no address to which paths can be added.
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
            exported: Exported::default(),
            has_warned: false,
        })
    }

    pub fn exported(&self) -> Exported {
        self.exported.clone()
    }

    /// Sends batch after batch, until `stop` is ready; then what is left, once.
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
        let waiting = self.tracer.take();
        let Waiting { operations, sessions } = &waiting;
        for operation in operations {
            self.histograms.add(operation);
        }
        for session in sessions {
            self.histograms.add_session(session);
        }
        let n_spans = operations.iter().filter(|operation| operation.span.is_some()).count() as u64;
        if n_spans != 0 {
            let body = spans::request(operations, &self.config.resource);
            match self.offer(&self.traces, body, attempts).await {
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
            // They are cumulative: the next ones say what these would have said.
            if let Err(why) = self.offer(&self.metrics, body, 1).await {
                self.warn(0, &why);
            }
        }
    }

    /// Offers a body until it is taken; how much of it was rejected.
    async fn offer(&self, url: &Url, body: Vec<u8>, attempts: u32) -> Result<u64, NotTaken> {
        let mut done = 0;
        loop {
            done += 1;
            match self.send(url, body.clone()).await {
                Err(NotTaken::Later { pause, .. }) if done < attempts => {
                    let pause = pause.unwrap_or_else(|| BACKOFF.pause_after(done, 1.0));
                    tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn send(&self, url: &Url, body: Vec<u8>) -> Result<u64, NotTaken> {
        let request = self
            .client
            .post(url.clone())
            .headers(self.config.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .timeout(self.config.timeout)
            .body(body);
        let later = |error: reqwest::Error| NotTaken::Later {
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
            return Err(NotTaken::Never(reason));
        }
        let pause = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
        let pause = pause.and_then(|after| after.parse().ok()).map(Duration::from_secs);
        Err(NotTaken::Later { reason, pause })
    }

    /// Tells the log once for as long as it lasts.
    fn warn(&mut self, n_spans: u64, why: &NotTaken) {
        if !self.has_warned {
            self.has_warned = true;
            let endpoint = self.config.endpoint.host_str().unwrap_or_default();
            tracing::warn!(endpoint, lost = n_spans, "the collector takes no traces: {why}");
        }
    }
}

#[cfg(test)]
mod tests;
