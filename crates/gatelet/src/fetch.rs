//! Fetching a small document over HTTP: bounded in size and time, and never
//! led to another host.

use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

/// What came back.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) vary: String,
    pub(crate) body: String,
}

/// GETs `url`; at most `limit` bytes are read.
pub(crate) async fn get(url: &Url, accept: &str, limit: usize) -> anyhow::Result<Fetched> {
    // Whoever installs a provider first wins; any is as good.
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = Client::builder()
        .user_agent(concat!("gatelet/", env!("CARGO_PKG_VERSION")))
        .timeout(Duration::from_secs(15))
        .redirect(Policy::none())
        .build()?;
    let response = client
        .get(url.clone())
        .header("accept", accept)
        .send()
        .await
        .with_context(|| format!("cannot fetch {url}"))?;
    let text = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (content_type, vary) = (text("content-type"), text("vary"));
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk?);
        if limit < body.len() {
            bail!("{url} is larger than {limit} bytes");
        }
    }
    let body = String::from_utf8(body).with_context(|| format!("{url} is not text"))?;
    Ok(Fetched { status, content_type, vary, body })
}
