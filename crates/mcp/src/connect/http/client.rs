//! Builds the HTTP client of one server: its endpoint, redirects and idle connections.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use reqwest::redirect::Policy;
use tool::{Failure, Sent};

use crate::connect::address::{self, Addresses};
use crate::connect::error::ConnectError;
use crate::connect::options::Endpoint;
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

/// Which redirects are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::connect) enum Redirects {
    /// To where the credentials already go: for requests that only read.
    WithinOrigin,
    /// None. A redirect is an answer, and what was answered may have run.
    Never,
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
            let stays = stays && redirects == Redirects::WithinOrigin;
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
    if http_client::is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| ConnectError::BadTarget {
        reason: format!("no secure connection can be made: {}", deepest(&error)),
    })
}

pub(in crate::connect) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// Returns why a request got no response.
pub(in crate::connect) fn unreachable(error: &reqwest::Error) -> Failure {
    let reason = deepest(error);
    if error.is_connect() || error.is_builder() {
        return Failure::Unavailable { reason };
    }
    let sent = if is_unwritten(error) { Sent::No } else { Sent::Perhaps };
    Failure::Lost { reason, sent }
}

/// How hyper begins to say that a request could not be written; it has no better
/// name for that.
const WRITING: &str = "error writing a body to connection";

/// Returns whether a request surely never left whole. A kept connection may be
/// closed before the request is taken up, or while it is written; half a request
/// runs nowhere. One that was written and got no word back may have run.
pub(in crate::connect) fn is_unwritten(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let unwritten =
            |error: &hyper::Error| error.is_canceled() || error.to_string().starts_with(WRITING);
        let canceled = error.downcast_ref::<hyper::Error>().is_some_and(unwritten);
        let broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
        if canceled || error.downcast_ref::<std::io::Error>().is_some_and(broken) {
            return true;
        }
        cause = error.source();
    }
    false
}
