//! Requests to authorization servers.

use std::time::Duration;

use reqwest::redirect::Policy;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};

use url::Url;

use super::reach::Reach;
use crate::connect::{Certificates, Refusal};

/// How long an authorization server may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);
/// How long its answer may be.
pub(super) const LARGEST: usize = 256 << 10;
/// How often it may send us on.
const REDIRECTS: usize = 5;

/// Secrets go where they are sent and nowhere else: no redirects.
pub(super) fn client(certificates: &Certificates) -> Result<reqwest::Client, String> {
    build(certificates, Policy::none())
}

fn build(certificates: &Certificates, redirects: Policy) -> Result<reqwest::Client, String> {
    let builder = crate::http_client::builder()
        .redirect(redirects)
        .timeout(TIMEOUT)
        .connect_timeout(Duration::from_secs(10));
    let unbuilt = |_| "no secure connection can be made".to_owned();
    certificates.put_on(builder)?.build().map_err(unbuilt)
}

/// Whose tokens a server takes, as it says where its refusal points to. `None`
/// where that is not on the server itself, or says nothing.
pub(super) async fn issuers(
    refusal: &Refusal,
    server: &str,
    certificates: &Certificates,
) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Resource {
        authorization_servers: Vec<String>,
    }
    let server = Url::parse(server).ok()?;
    let metadata = server.join(&refusal.parameter("resource_metadata")?).ok()?;
    if metadata.origin() != server.origin() {
        return None;
    }
    let response = client(certificates).ok()?.get(metadata).send().await.ok()?;
    let body = body(response).await?;
    serde_json::from_slice::<Resource>(&body).ok().map(|resource| resource.authorization_servers)
}

/// A body that came whole and is not too long.
pub(super) async fn body(response: reqwest::Response) -> Option<Vec<u8>> {
    crate::http_client::body(response, LARGEST).await.ok().map(Vec::from)
}

/// The way of a login: with the operator's certificates, and only to where the
/// server may lead.
pub(super) struct Web {
    follow: reqwest::Client,
    stop: reqwest::Client,
    server: Url,
    reach: Reach,
}

impl Web {
    pub(super) fn new(
        certificates: &Certificates,
        server: Url,
        reach: Reach,
    ) -> Result<Web, String> {
        let (own, guard) = (server.clone(), reach.clone());
        let redirects = Policy::custom(move |attempt| {
            let may_follow = guard.allows(&own, attempt.url());
            let is_short = attempt.previous().len() <= REDIRECTS;
            if may_follow && is_short { attempt.follow() } else { attempt.stop() }
        });
        let follow = build(certificates, redirects)?;
        Ok(Web { follow, stop: client(certificates)?, server, reach })
    }

    /// Checks whether the server may lead there.
    fn permit(&self, address: &str) -> Result<(), String> {
        match Url::parse(address) {
            Ok(to) if self.reach.allows(&self.server, &to) => Ok(()),
            Ok(to) => Err(elsewhere(&to)),
            Err(_) => Err("it names no address".to_owned()),
        }
    }

    async fn ask(
        &self,
        asked: OAuthHttpRequest,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        self.permit(&asked.request.uri().to_string())?;
        let follows = asked.redirect_policy == OAuthHttpRedirectPolicy::Follow;
        let client = if follows { &self.follow } else { &self.stop };
        let response = client.execute(reqwest::Request::try_from(asked.request)?).await?;
        let mut answer = http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let body = body(response).await.ok_or("the answer breaks off or is too long")?;
        Ok(answer.body(body)?)
    }
}

/// Returns why an address is not asked, and what the operator can do.
pub(super) fn elsewhere(to: &Url) -> String {
    let origin = to.origin().ascii_serialization();
    format!(
        "it leads to `{origin}`, which is neither itself nor a secured server elsewhere; if you \
         trust that, log in with `--authorization-server {origin}`"
    )
}

impl OAuthHttpClient for Web {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.ask(request))
    }
}
