//! Fetches documents over HTTP, with limits for size and time. Redirects are followed only
//! for downloads and manifests, and there every address is checked.

use std::error::Error as _;
use std::time::Duration;

use anyhow::Context;
use mcp::connect::address::{self, PrivateAddress};
use mcp::http_client::{self, BodyError, root_cause};
use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Response, Url};
use web::aggregate::{Source, SourceError};
use web::manifest::MAX_BYTES;

/// A response whose body was read.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) vary: String,
    pub(crate) body: String,
}

/// Why a document could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The source must not be asked or not be believed; trying again would not help.
    #[error(transparent)]
    Refused(#[from] SourceError),
    /// The address is inside a private network.
    #[error(transparent)]
    Private(#[from] PrivateAddress),
    /// The response is too long or is not text.
    #[error("{0}")]
    Unusable(String),
    /// It may work later.
    #[error("{0}")]
    Failed(String),
}

impl FetchError {
    /// Whether an earlier document of the source must not be used any more either; an
    /// outage passes.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            FetchError::Refused(_) | FetchError::Private(_) | FetchError::Unusable(_) => true,
            FetchError::Failed(_) => false,
        }
    }
}

/// How long a request may take as a whole.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 4;

/// GETs `url`, at most `limit` bytes. `authority` is one more certificate authority to
/// trust, in PEM.
pub(crate) async fn get(
    url: &Url,
    accept: &str,
    limit: usize,
    authority: Option<&[u8]>,
) -> anyhow::Result<Fetched> {
    send(with_authority(builder(), authority).build()?, url, accept, limit).await
}

async fn send(
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
        .map_err(|error| anyhow::anyhow!("cannot fetch {url}: {}", root_cause(&error)))?;
    let text = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (content_type, vary) = (text("content-type"), text("vary"));
    let status = response.status().as_u16();
    let body = body(response, url, limit).await?;
    Ok(Fetched { status, content_type, vary, body })
}

/// Which addresses a request may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedAddresses {
    Any,
    /// Only those outside of private networks.
    Public,
}

/// GETs `url` like [`get`], if it has an allowed address.
pub(crate) async fn get_from(
    allowed: AllowedAddresses,
    url: &Url,
    accept: &str,
    limit: usize,
) -> anyhow::Result<Fetched> {
    let builder = match allowed {
        AllowedAddresses::Any => builder(),
        AllowedAddresses::Public => address::restrict_to_public(builder(), url)?,
    };
    send(builder.build()?, url, accept, limit).await
}

/// How long a download may take.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(300);

/// Downloads a file of at most `limit` bytes. Redirects must lead to the origin of `url`, or
/// to https outside of private networks: what was asked for is the user's word, and where it
/// leads is that of a server.
pub(crate) async fn download(url: &Url, limit: usize) -> anyhow::Result<Vec<u8>> {
    let mut at = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let builder = match at.origin() == url.origin() {
            true => builder(),
            false => address::restrict_to_public(builder(), &at)?,
        };
        let client = builder.timeout(DOWNLOAD_TIMEOUT).build()?;
        let response =
            client.get(at.clone()).send().await.map_err(|error| match private_address(&error) {
                Some(private) => anyhow::Error::from(private),
                None => error.into(),
            });
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
            BodyError::Broken(error) => anyhow::anyhow!("{at} breaks off: {}", root_cause(&error)),
            BodyError::TooLong { limit } => anyhow::anyhow!("{at} is larger than {limit} bytes"),
            BodyError::OutOfMemory(error) => anyhow::anyhow!("{at}: {error}"),
        })?;
        return Ok(body.into());
    }
    anyhow::bail!("{url} leads from one place to the next")
}

/// Fetches the manifest of a source. Every address is checked: the named one, and each
/// that it redirects to.
pub(crate) async fn manifest(
    source: &Source,
    authority: Option<&[u8]>,
) -> Result<String, FetchError> {
    let mut url = source.manifest.clone();
    for _ in 0..=MAX_REDIRECTS {
        source.admits(&url)?;
        let response = request_manifest(source, &url, authority).await?;
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

async fn request_manifest(
    source: &Source,
    url: &Url,
    authority: Option<&[u8]>,
) -> Result<Response, FetchError> {
    let mut builder = builder();
    if source.reaches_private(url) {
        builder = builder.no_proxy();
    } else {
        builder = address::restrict_to_public(builder, url)?;
    }
    let client = with_authority(builder, authority)
        .build()
        .map_err(|error| FetchError::Failed(error.to_string()))?;
    let accept = "application/yaml, application/json;q=0.9";
    let sent = client.get(url.clone()).header("accept", accept).send().await;
    sent.map_err(|error| match private_address(&error) {
        Some(private) => FetchError::Private(private),
        None => FetchError::Failed(format!("{url} cannot be reached: {}", root_cause(&error))),
    })
}

/// Makes a client trust one more certificate authority, in PEM.
pub(crate) fn with_authority(builder: ClientBuilder, authority: Option<&[u8]>) -> ClientBuilder {
    let Some(pem) = authority else { return builder };
    builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(pem).unwrap_or_default())
}

fn builder() -> ClientBuilder {
    http_client::builder().timeout(TIMEOUT).redirect(Policy::none())
}

/// Reads the body of a response as text, at most `limit` bytes.
async fn body(response: Response, url: &Url, limit: usize) -> Result<String, FetchError> {
    let body = http_client::body(response, limit).await.map_err(|unread| match unread {
        BodyError::Broken(error) => {
            FetchError::Failed(format!("{url} breaks off: {}", root_cause(&error)))
        }
        // Others' long messages end, so an earlier document stays in use.
        BodyError::OutOfMemory(full) => {
            FetchError::Failed(format!("{url} is too long for now: {full}"))
        }
        BodyError::TooLong { limit } => {
            FetchError::Unusable(format!("{url} is larger than {limit} bytes"))
        }
    })?;
    String::from_utf8(body.into()).map_err(|_| FetchError::Unusable(format!("{url} is not text")))
}

/// The refused private address among the causes of an error, if there is one.
fn private_address(error: &reqwest::Error) -> Option<PrivateAddress> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(private) = inner.downcast_ref::<PrivateAddress>() {
            return Some(private.clone());
        }
        cause = inner.source();
    }
    None
}

#[cfg(test)]
mod tests;
