//! Fetching a small document over HTTP: bounded in size and time, and never
//! led to another host.

use std::error::Error as _;
use std::time::Duration;

use anyhow::Context;
use mcp::connect::address::{self, Private};
use mcp::http_client::{self, BodyError, deepest};
use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Response, Url};
use web::aggregate::{Refused, Source};
use web::manifest::MAX_BYTES;

/// What came back.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) vary: String,
    pub(crate) body: String,
}

/// Why a manifest did not come.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// It must not be asked for, or not be believed: trying again is no use.
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Private(#[from] Private),
    /// It came, and can be no manifest.
    #[error("{0}")]
    TlsError(String),
    /// It may come later.
    #[error("{0}")]
    Failed(String),
}

impl FetchError {
    /// Whether what is at the source must not be believed, whatever was there
    /// before; an outage passes.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            FetchError::Refused(_) | FetchError::Private(_) | FetchError::TlsError(_) => true,
            FetchError::Failed(_) => false,
        }
    }
}

/// How long everything may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How often a manifest may be somewhere else.
const REDIRECTS: usize = 4;

/// GETs `url`; at most `limit` bytes are read. The `authority`, in PEM, may
/// have signed the certificate of the host.
pub(crate) async fn get(
    url: &Url,
    accept: &str,
    limit: usize,
    authority: Option<&[u8]>,
) -> anyhow::Result<Fetched> {
    read(trusting(builder(), authority).build()?, url, accept, limit).await
}

async fn read(
    client: reqwest::Client,
    url: &Url,
    accept: &str,
    limit: usize,
) -> anyhow::Result<Fetched> {
    let response = client
        .get(url.clone())
        .header("accept", accept)
        .send()
        .await
        .map_err(|error| anyhow::anyhow!("cannot fetch {url}: {}", deepest(&error)))?;
    let text = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (content_type, vary) = (text("content-type"), text("vary"));
    let status = response.status().as_u16();
    let body = body(response, url, limit).await?;
    Ok(Fetched { status, content_type, vary, body })
}

/// Which addresses may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Anywhere,
    /// None inside a network.
    Public,
}

/// GETs `url` like [`get`], within a reach.
pub(crate) async fn within(
    reach: Reach,
    url: &Url,
    accept: &str,
    limit: usize,
) -> anyhow::Result<Fetched> {
    let builder = match reach {
        Reach::Anywhere => builder(),
        Reach::Public => address::guard(builder(), url)?,
    };
    read(builder.build()?, url, accept, limit).await
}

/// How long a large file may take.
const LONG_PATIENCE: Duration = Duration::from_secs(300);

/// GETs a file that may be somewhere else by now, over https unless it was named
/// otherwise; at most `limit` bytes are read.
pub(crate) async fn bytes(url: &Url, limit: usize) -> anyhow::Result<Vec<u8>> {
    let client = builder().timeout(LONG_PATIENCE).build()?;
    let mut at = url.clone();
    for _ in 0..=REDIRECTS {
        let response = client.get(at.clone()).send().await;
        let response = response.with_context(|| format!("cannot fetch {at}"))?;
        let status = response.status();
        if let Some(place) = response.headers().get(LOCATION).filter(|_| status.is_redirection()) {
            let next = place.to_str().ok().and_then(|place| at.join(place).ok());
            let next = next.with_context(|| format!("{at} leads nowhere"))?;
            let is_same = next.origin() == url.origin();
            anyhow::ensure!(
                next.scheme() == "https" || is_same,
                "{at} leads to {next}, which is not https"
            );
            at = next;
            continue;
        }
        anyhow::ensure!(status.is_success(), "{at} answers with status {status}");
        let body = http_client::body(response, limit).await.map_err(|unread| match unread {
            BodyError::Broken(error) => anyhow::anyhow!("{at} breaks off: {}", deepest(&error)),
            BodyError::TooLong { limit } => anyhow::anyhow!("{at} is larger than {limit} bytes"),
            BodyError::OutOfMemory(error) => anyhow::anyhow!("{at}: {error}"),
        })?;
        return Ok(body.into());
    }
    anyhow::bail!("{url} leads from one place to the next")
}

/// Fetches the manifest of a source. Every address on the way is looked at:
/// the one that was named, and each that it is redirected to.
pub(crate) async fn manifest(
    source: &Source,
    authority: Option<&[u8]>,
) -> Result<String, FetchError> {
    let mut url = source.manifest.clone();
    for _ in 0..=REDIRECTS {
        source.admits(&url)?;
        let response = ask(source, &url, authority).await?;
        let status = response.status();
        let place = response.headers().get(LOCATION).filter(|_| status.is_redirection());
        if let Some(place) = place {
            let next = place.to_str().ok().and_then(|place| url.join(place).ok());
            url = next.ok_or_else(|| FetchError::Failed(format!("{url} leads nowhere")))?;
            continue;
        }
        if !status.is_success() {
            return Err(FetchError::Failed(format!("{url} answers with status {status}")));
        }
        return body(response, &url, MAX_BYTES).await;
    }
    Err(FetchError::Failed(format!("{} leads from one place to the next", source.manifest)))
}

async fn ask(source: &Source, url: &Url, authority: Option<&[u8]>) -> Result<Response, FetchError> {
    let mut builder = builder();
    if source.reaches_private(url) {
        builder = builder.no_proxy();
    } else {
        builder = address::guard(builder, url)?;
    }
    let client = trusting(builder, authority)
        .build()
        .map_err(|error| FetchError::Failed(error.to_string()))?;
    let accept = "application/yaml, application/json;q=0.9";
    let sent = client.get(url.clone()).header("accept", accept).send().await;
    sent.map_err(|error| match private(&error) {
        Some(private) => FetchError::Private(private),
        None => FetchError::Failed(format!("{url} cannot be reached: {}", deepest(&error))),
    })
}

/// A client that also trusts what an authority signed, in PEM.
pub(crate) fn trusting(builder: ClientBuilder, authority: Option<&[u8]>) -> ClientBuilder {
    let Some(pem) = authority else { return builder };
    builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(pem).unwrap_or_default())
}

fn builder() -> ClientBuilder {
    http_client::builder().timeout(TIMEOUT).redirect(Policy::none())
}

async fn body(response: Response, url: &Url, limit: usize) -> Result<String, FetchError> {
    let body = http_client::body(response, limit).await.map_err(|unread| match unread {
        BodyError::Broken(error) => {
            FetchError::Failed(format!("{url} breaks off: {}", deepest(&error)))
        }
        BodyError::OutOfMemory(full) => FetchError::TlsError(format!("{url} is too long: {full}")),
        BodyError::TooLong { limit } => {
            FetchError::TlsError(format!("{url} is larger than {limit} bytes"))
        }
    })?;
    String::from_utf8(body.into()).map_err(|_| FetchError::TlsError(format!("{url} is not text")))
}

/// The private address among the causes, if that was it.
fn private(error: &reqwest::Error) -> Option<Private> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(private) = inner.downcast_ref::<Private>() {
            return Some(private.clone());
        }
        cause = inner.source();
    }
    None
}

#[cfg(test)]
mod tests;
