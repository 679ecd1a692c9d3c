//! How authorization servers are reached.

use std::time::Duration;

use reqwest::redirect::Policy;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};

use crate::connect::Certificates;

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

/// A body that came whole and is not too long.
pub(super) async fn body(response: reqwest::Response) -> Option<Vec<u8>> {
    crate::http_client::body(response, LARGEST).await.ok().map(Vec::from)
}

/// The way for somebody with certificates of their own.
pub(super) struct Web {
    follow: reqwest::Client,
    stop: reqwest::Client,
}

impl Web {
    pub(super) fn new(certificates: &Certificates) -> Result<Web, String> {
        let follow = build(certificates, Policy::limited(REDIRECTS))?;
        Ok(Web { follow, stop: client(certificates)? })
    }

    async fn ask(
        &self,
        asked: OAuthHttpRequest,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
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

impl OAuthHttpClient for Web {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.ask(request))
    }
}
