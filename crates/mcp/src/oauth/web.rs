//! HTTP requests to authorization servers.

use std::time::Duration;

use reqwest::redirect::Policy;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};

use url::Url;

use super::reach::LoginReach;
use crate::connect::{Certificates, Refusal};

/// The timeout of a request.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);
/// The longest response body, in bytes.
pub(super) const MAX_BODY: usize = 256 << 10;
/// The maximum number of redirects.
const REDIRECTS: usize = 5;

/// Builds a client that follows no redirects, for requests with secrets.
pub(super) fn client(certificates: &Certificates) -> Result<reqwest::Client, String> {
    build_client(certificates, Policy::none())
}

fn build_client(certificates: &Certificates, redirects: Policy) -> Result<reqwest::Client, String> {
    let builder = crate::http_client::builder()
        .redirect(redirects)
        .timeout(TIMEOUT)
        .connect_timeout(Duration::from_secs(10));
    let unbuilt = |_| "no secure connection can be made".to_owned();
    certificates.apply_to(builder)?.build().map_err(unbuilt)
}

/// Fetches the issuers whose tokens a server accepts, from the resource metadata that its
/// refusal names. `None` if that is not on the server itself, or not usable.
pub(super) async fn fetch_issuers(
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

/// Reads a response body; `None` if it breaks off or is too long.
pub(super) async fn body(response: reqwest::Response) -> Option<Vec<u8>> {
    crate::http_client::body(response, MAX_BODY).await.ok().map(Vec::from)
}

/// The HTTP client of a login: uses the operator's certificates, and sends requests only
/// to addresses that `reach` allows.
pub(super) struct GuardedHttpClient {
    following: reqwest::Client,
    not_following: reqwest::Client,
    server: Url,
    reach: LoginReach,
}

impl GuardedHttpClient {
    pub(super) fn new(
        certificates: &Certificates,
        server: Url,
        reach: LoginReach,
    ) -> Result<GuardedHttpClient, String> {
        let (own, guard) = (server.clone(), reach.clone());
        let redirects = Policy::custom(move |attempt| {
            let may_follow = guard.allows(&own, attempt.url());
            let is_short = attempt.previous().len() <= REDIRECTS;
            if may_follow && is_short { attempt.follow() } else { attempt.stop() }
        });
        let following = build_client(certificates, redirects)?;
        Ok(GuardedHttpClient { following, not_following: client(certificates)?, server, reach })
    }

    /// Checks that the server may name this address.
    fn check_reach(&self, address: &str) -> Result<(), String> {
        match Url::parse(address) {
            Ok(target) if self.reach.allows(&self.server, &target) => Ok(()),
            Ok(target) => Err(why_out_of_reach(&target)),
            Err(_) => Err("it names no address".to_owned()),
        }
    }

    async fn send(
        &self,
        request: OAuthHttpRequest,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        self.check_reach(&request.request.uri().to_string())?;
        let follows = request.redirect_policy == OAuthHttpRedirectPolicy::Follow;
        let client = if follows { &self.following } else { &self.not_following };
        let response = client.execute(reqwest::Request::try_from(request.request)?).await?;
        let mut answer = http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let body = body(response).await.ok_or("the answer breaks off or is too long")?;
        Ok(answer.body(body)?)
    }
}

/// Returns why an address is refused, and how the operator can allow it.
pub(super) fn why_out_of_reach(target: &Url) -> String {
    let origin = target.origin().ascii_serialization();
    format!(
        "it leads to `{origin}`, which is neither itself nor a secured server elsewhere; if you \
         trust that, log in with `--authorization-server {origin}`"
    )
}

impl OAuthHttpClient for GuardedHttpClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}
