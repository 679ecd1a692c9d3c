//! Builds the HTTP client for one server, and classifies its errors.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use reqwest::redirect::Policy;
use tool::{Failure, Sent};

use crate::connect::address::{self, AllowedAddresses};
use crate::connect::error::ConnectError;
use crate::connect::options::Endpoint;
use crate::http_client::{self, root_cause};

/// Parses the URL and headers that the operator configured.
pub(in crate::connect) fn parse_endpoint(
    endpoint: &Endpoint,
) -> Result<(Url, HeaderMap), ConnectError> {
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
    /// Redirects within the origin: for requests without side effects.
    WithinOrigin,
    /// None: the request may have run before the redirect.
    Never,
}

/// How long an idle connection is kept. Many servers close idle connections after five
/// seconds; a request that is sent at that moment is lost, and it is unknown whether it
/// ran.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Builds the HTTP client for one server: short idle timeout, no Nagle delay, and no
/// redirects outside of the origin.
pub(in crate::connect) fn build_client(
    url: &Url,
    endpoint: &Endpoint,
    redirects: Redirects,
) -> Result<reqwest::Client, ConnectError> {
    let mut builder = http_client::builder()
        .tcp_nodelay(true)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .connect_timeout(Duration::from_secs(10))
        .redirect(Policy::custom(move |attempt| {
            let origin = attempt.previous().first().cloned();
            let stays = origin.is_some_and(|origin| same_origin(&origin, attempt.url()));
            let stays = stays && redirects == Redirects::WithinOrigin;
            if stays && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
        }));
    if url.scheme() == "http" {
        // Loading the system's certificates takes longer than everything else.
        let roots = rustls::RootCertStore::empty();
        let config = rustls::ClientConfig::builder().with_root_certificates(roots);
        builder = builder.tls_backend_preconfigured(config.with_no_client_auth());
    }
    builder = endpoint
        .certificates
        .apply_to(builder)
        .map_err(|reason| ConnectError::BadTarget { reason })?;
    if endpoint.addresses == AllowedAddresses::Public {
        let private = |private: address::PrivateAddress| private.to_string();
        builder = address::restrict_to_public(builder, url)
            .map_err(private)
            .map_err(|reason| ConnectError::BadTarget { reason })?;
    }
    if http_client::is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| ConnectError::BadTarget {
        reason: format!("no secure connection can be made: {}", root_cause(&error)),
    })
}

pub(in crate::connect) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// Converts the error of a request that got no response.
pub(in crate::connect) fn failure_without_response(error: &reqwest::Error) -> Failure {
    let reason = root_cause(error);
    if error.is_connect() || error.is_builder() {
        return Failure::Unavailable { reason };
    }
    let sent = if was_not_written(error) { Sent::No } else { Sent::Perhaps };
    Failure::Lost { reason, sent }
}

/// The start of hyper's error message for a failed write; hyper has no error kind for it.
const WRITE_ERROR_PREFIX: &str = "error writing a body to connection";

/// Returns whether a request certainly was not sent completely: the connection was closed
/// before or while it was written. A request that was written completely may have run.
pub(in crate::connect) fn was_not_written(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let unwritten = |error: &hyper::Error| {
            error.is_canceled() || error.to_string().starts_with(WRITE_ERROR_PREFIX)
        };
        let canceled = error.downcast_ref::<hyper::Error>().is_some_and(unwritten);
        let broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
        if canceled || error.downcast_ref::<std::io::Error>().is_some_and(broken) {
            return true;
        }
        cause = error.source();
    }
    false
}
