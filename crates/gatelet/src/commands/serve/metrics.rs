//! Serves `/metrics` for Prometheus: on the main address, or on one of its own.

use std::sync::{Arc, OnceLock};

use anyhow::Context;
use async_trait::async_trait;
use gateway::Gateway;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use mcp::serve::http::Body;
use subtle::ConstantTimeEq;
use telemetry::metrics::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use web::listen::RequestBody;
use web::site::metrics::{MetricsPage, PATH, names_this_machine};
use web::site::{Site, WeakSite};

use super::readings;
use super::serving::Serving;
use crate::wire::Wiring;

/// Renders the metrics of this gatelet.
pub(super) struct Metrics {
    wiring: Wiring,
    gateway: Gateway,
    /// The HTTP site, once it exists, for its load.
    site: Arc<OnceLock<WeakSite>>,
}

impl Metrics {
    pub(super) fn new(
        wiring: &Wiring,
        gateway: &Gateway,
        site: Arc<OnceLock<WeakSite>>,
    ) -> Metrics {
        Metrics { wiring: wiring.clone(), gateway: gateway.clone(), site }
    }
}

#[async_trait]
impl MetricsPage for Metrics {
    async fn write(&self) -> (&'static str, String) {
        let load = self.site.get().map(WeakSite::load).unwrap_or_default();
        let readings = readings::read(&self.gateway, load).await;
        (CONTENT_TYPE, self.wiring.observers().metrics(readings).unwrap_or_default())
    }
}

/// Listens for scrapers on the configured address, if there is one, until dropped.
///
/// Several gatelets over stdio may share one configuration, and only one gets the port; the
/// others log a warning and go on.
pub(super) async fn listen(
    serving: &Serving<'_>,
    site: Option<Site>,
) -> anyhow::Result<Option<AbortOnDropHandle<()>>> {
    let metrics = &serving.config().metrics;
    let Some(address) = metrics.listen else { return Ok(None) };
    let bound = TcpListener::bind(address).await;
    let listener = match bound.with_context(|| format!("cannot serve metrics on {address}")) {
        Ok(listener) => listener,
        Err(error) if serving.args.stdio => {
            tracing::warn!("there are no metrics: {error:#}");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let weak = Arc::new(OnceLock::new());
    if let Some(site) = site {
        weak.set(site.downgrade()).ok();
    }
    let page = Arc::new(Metrics::new(&serving.wiring, &serving.gateway, weak));
    let token = metrics.token.clone().map(|token| Arc::from(format!("Bearer {token}")));
    let answer = move |request: Request<RequestBody>| {
        let (page, token) = (Arc::clone(&page), token.clone());
        async move { answer(&page, &request, token.as_deref()).await }
    };
    let serving = async move {
        if let Err(error) = web::listen::listen_plain(listener, answer).await {
            tracing::warn!(%error, "metrics are served no more");
        }
    };
    tracing::info!("metrics are served on {address}");
    Ok(Some(AbortOnDropHandle::new(tokio::spawn(serving))))
}

async fn answer<B>(page: &Metrics, request: &Request<B>, token: Option<&str>) -> Response<Body> {
    let refusal = if request.uri().path() != PATH {
        Some((StatusCode::NOT_FOUND, "there is /metrics"))
    } else if !matches!(*request.method(), Method::GET | Method::HEAD) {
        Some((StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET"))
    } else if !may_read(request.headers(), token) {
        Some((StatusCode::UNAUTHORIZED, "show the token of `[metrics]`, and come from no web page"))
    } else {
        None
    };
    let (status, content_type, text) = match refusal {
        Some((status, message)) => (status, "text/plain", format!("{message}\n")),
        None => {
            let (content_type, text) = page.write().await;
            (StatusCode::OK, content_type, text)
        }
    };
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Whether a request has the token. If none is configured, its host must be this machine, so
/// that no web page can read the metrics by DNS rebinding.
fn may_read(headers: &HeaderMap, token: Option<&str>) -> bool {
    if headers.contains_key(header::ORIGIN) {
        return false;
    }
    match token {
        Some(token) => headers
            .get(header::AUTHORIZATION)
            .is_some_and(|shown| shown.as_bytes().ct_eq(token.as_bytes()).into()),
        None => names_this_machine(headers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shown: &[(&'static str, &str)], token: Option<&str>, expected: bool) {
        let named = shown.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        assert_eq!(may_read(&named.collect(), token), expected, "{shown:?}");
    }

    #[test]
    fn a_scraper_shows_the_token_or_is_on_this_machine() {
        check(&[("host", "127.0.0.1:9464")], None, true);
        check(&[("host", "evil.example:9464")], None, false);
        check(&[("host", "127.0.0.1"), ("origin", "http://127.0.0.1")], None, false);
        check(&[("host", "gate.example")], Some("Bearer abc"), false);
        check(&[("authorization", "Bearer abd")], Some("Bearer abc"), false);
        check(&[("authorization", "Bearer abc")], Some("Bearer abc"), true);
        check(&[("authorization", "Bearer abc"), ("origin", "null")], Some("Bearer abc"), false);
    }
}
