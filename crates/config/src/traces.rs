//! `[traces]`: the OpenTelemetry collector that spans and histograms are sent to.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path as FilePath;
use std::time::Duration;

use document::tree::Path;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problems;
use super::text::{self, Environment};

/// Spans and histograms to a collector of OpenTelemetry, over OTLP on HTTP. Off without `endpoint`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Traces")]
pub(crate) struct Raw {
    /// The collector, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are added.
    endpoint: Option<String>,
    /// Sent with every request to the collector, such as a key.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The share of traces that are recorded, from 0 to 1. 1 when left out. Where a client says whether its
    /// trace is recorded, that counts.
    #[schemars(range(min = 0, max = 1))]
    sample: Option<f64>,
    /// How often something is sent. `5s` when left out.
    interval: Option<String>,
    /// The name of the service in traces. `gatelet` when left out.
    service: Option<String>,
}

/// The validated `[traces]` section.
#[derive(Clone, PartialEq)]
pub struct Traces {
    pub endpoint: Url,
    pub headers: HeaderMap,
    /// The share of traces that are recorded, from 0 to 1.
    pub sample: f64,
    /// How often spans are sent.
    pub interval: Duration,
    /// The name of the service in traces.
    pub service: String,
}

impl fmt::Debug for Traces {
    /// Leaves out the headers, which may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.endpoint.host_str();
        let mut shown = f.debug_struct("Traces");
        shown.field("host", &host).field("sample", &self.sample).finish_non_exhaustive()
    }
}

const INTERVAL: Duration = Duration::from_secs(5);

pub(crate) fn parse(
    raw: &Raw,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Option<Traces> {
    let path = Path::default().key("traces");
    let interval = raw.interval.as_deref();
    let interval =
        interval.and_then(|text| problems.parse(&path.key("interval"), text, text::parse_duration));
    let Some(endpoint) = &raw.endpoint else {
        if *raw != Raw::default() {
            let hint = "such as `endpoint = \"http://127.0.0.1:4318\"`";
            problems.missing(&path, "endpoint", "needs `endpoint` to go to", hint);
        }
        return None;
    };
    let endpoint = problems.parse(&path.key("endpoint"), endpoint, |text| {
        let filled =
            text::fill_placeholders(text, base, environment).map_err(|error| error.to_string())?;
        let url = Url::parse(&filled).map_err(|error| format!("is no URL: {error}"))?;
        let is_web = ["http", "https"].contains(&url.scheme()) && url.has_host();
        is_web.then_some(url).ok_or_else(|| "must be an http or https URL".to_owned())
    });
    let mut headers = HeaderMap::new();
    for (name, value) in &raw.headers {
        let path = path.key("headers").key(name);
        let value =
            problems.parse(&path, value, |text| text::fill_placeholders(text, base, environment));
        let name = HeaderName::from_bytes(name.as_bytes());
        match (name, value.map(|value| HeaderValue::from_str(&value))) {
            (Ok(name), Some(Ok(mut value))) => {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            (_, None) => {}
            (_, Some(_)) => problems.error(&path, "is no header", None),
        }
    }
    Some(Traces {
        endpoint: endpoint?,
        headers,
        sample: raw.sample.unwrap_or(1.0),
        interval: interval.unwrap_or(INTERVAL).max(Duration::from_millis(100)),
        service: raw.service.clone().unwrap_or_else(|| "gatelet".to_owned()),
    })
}
