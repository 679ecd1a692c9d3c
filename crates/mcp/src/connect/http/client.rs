//! Addresses and connections.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use reqwest::redirect::Policy;
use tool::{Failure, Sent};

use crate::connect::address::{self, Addresses};
use crate::connect::{ConnectError, Endpoint};
use crate::http_client::{self, deepest};

/// Reads an endpoint as an operator wrote it.
pub(in crate::connect) fn parse(endpoint: &Endpoint) -> Result<(Url, HeaderMap), ConnectError> {
    let bad = |reason| ConnectError::BadTarget { reason };
    let url = Url::parse(&endpoint.url)
        .map_err(|error| bad(format!("`{}` is no URL: {error}", endpoint.url)))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(format!("`{}` is neither http nor https", endpoint.url)));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| bad(format!("`{name}` is no header name")))?;
        // The value may be a secret, so it is not repeated.
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| bad(format!("the value of header `{name}` has illegal characters")))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok((url, headers))
}

/// Which redirects are followed, to where the credentials already go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::connect) enum Redirects {
    All,
    /// Only those that leave a POST a POST. The others would ask for something
    /// else, and get something else.
    Faithful,
}

/// How long a connection that nobody uses is kept. Servers close theirs without
/// a word, many after five seconds; a question that leaves at that moment is
/// lost, and nobody can say whether it ran. Whoever asks often keeps it open.
const KEPT: Duration = Duration::from_secs(2);

/// A client for one server: connections are kept for a moment, small messages leave at
/// once, and a redirect is followed only where the credentials already go.
pub(in crate::connect) fn client(
    url: &Url,
    endpoint: &Endpoint,
    redirects: Redirects,
) -> Result<reqwest::Client, ConnectError> {
    let mut builder = http_client::builder()
        .tcp_nodelay(true)
        .pool_idle_timeout(KEPT)
        .connect_timeout(Duration::from_secs(10))
        .redirect(Policy::custom(move |attempt| {
            let origin = attempt.previous().first().cloned();
            let stays = origin.is_some_and(|origin| same_origin(&origin, attempt.url()));
            let is_faithful = matches!(attempt.status().as_u16(), 307 | 308);
            let stays = stays && (is_faithful || redirects == Redirects::All);
            if stays && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
        }));
    if url.scheme() == "http" {
        // Reading the system's certificates takes longer than everything else.
        let roots = rustls::RootCertStore::empty();
        let config = rustls::ClientConfig::builder().with_root_certificates(roots);
        builder = builder.tls_backend_preconfigured(config.with_no_client_auth());
    }
    builder = endpoint
        .certificates
        .put_on(builder)
        .map_err(|reason| ConnectError::BadTarget { reason })?;
    if endpoint.addresses == Addresses::Public {
        let private = |private: address::Private| private.to_string();
        builder = address::guard(builder, url)
            .map_err(private)
            .map_err(|reason| ConnectError::BadTarget { reason })?;
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| ConnectError::BadTarget {
        reason: format!("no secure connection can be made: {}", deepest(&error)),
    })
}

pub(in crate::connect) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// Why a request got no response.
pub(in crate::connect) fn unreachable(error: &reqwest::Error) -> Failure {
    let reason = deepest(error);
    if error.is_connect() || error.is_builder() {
        return Failure::Unavailable { reason };
    }
    Failure::Lost { reason, sent: Sent::Perhaps }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
