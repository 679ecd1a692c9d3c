//! Fetches the public keys of token issuers (JWKS), at the start and every few minutes.
//!
//! During an outage the last keys hold for a day; then no token of that issuer is accepted.
//! Redirects are not followed, an address that discovery names must be https or on the
//! issuer's own host, and a private address is used only if the operator wrote it.

use std::time::Duration;

use anyhow::{Context, ensure};
use reqwest::Url;
use serde::Deserialize;
use web::identity::token::Keys;

use crate::fetch;
use config::KeySource;

/// How often keys are fetched.
const EVERY: Duration = Duration::from_secs(300);
/// How soon they are fetched again after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(15);
/// How long keys hold after the last successful fetch.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest document, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Fetches the keys of one issuer again and again, until dropped. `take` gets them after
/// each fetch, and an empty set when they are too old.
pub(super) async fn follow(source: KeySource, take: impl Fn(Keys)) {
    let mut age = Duration::ZERO;
    loop {
        let pause = match fetch_keys(&source).await {
            Ok(keys) => {
                take(keys);
                age = Duration::ZERO;
                EVERY
            }
            Err(error) => {
                tracing::warn!(%source, "the keys of an issuer cannot be fetched: {error:#}");
                RETRY_AFTER
            }
        };
        tokio::time::sleep(pause).await;
        age += pause;
        if MAX_AGE < age {
            tracing::error!(%source, "the keys of an issuer are a day old: no token of it counts");
            take(Keys::none());
        }
    }
}

async fn fetch_keys(source: &KeySource) -> anyhow::Result<Keys> {
    let url = match source {
        KeySource::Jwks(url) => url.clone(),
        KeySource::Discovery(issuer) => discover(issuer).await?,
    };
    let text = get(source.url(), &url).await?;
    Keys::from_jwks(&text).with_context(|| format!("{url} is no JWKS"))
}

/// The metadata of an issuer, as far as it is used.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: Url,
}

/// Discovers the URL of an issuer's keys, by OpenID Connect or RFC 8414.
async fn discover(issuer: &Url) -> anyhow::Result<Url> {
    let mut last = None;
    for url in metadata_urls(issuer) {
        match get(issuer, &url).await {
            Ok(text) => return jwks_uri(issuer, &text),
            Err(error) => last = Some(error),
        }
    }
    Err(last.context("an issuer has an address")?)
}

/// The URLs at which the metadata of an issuer may be, the more usual first.
fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let base = issuer.as_str().trim_end_matches('/');
    let path = issuer.path().trim_end_matches('/');
    let mut inserted = issuer.clone();
    inserted.set_path(&format!("/.well-known/oauth-authorization-server{path}"));
    let appended = Url::parse(&format!("{base}/.well-known/openid-configuration"));
    appended.into_iter().chain([inserted]).collect()
}

/// The URL of the keys in an issuer's metadata, if it is acceptable.
fn jwks_uri(issuer: &Url, text: &str) -> anyhow::Result<Url> {
    let metadata: Metadata = serde_json::from_str(text).context("its metadata cannot be read")?;
    let plain = |text: &str| text.trim_end_matches('/').to_owned();
    ensure!(
        plain(&metadata.issuer) == plain(issuer.as_str()),
        "its metadata is that of `{}`",
        metadata.issuer.chars().take(200).collect::<String>()
    );
    let url = metadata.jwks_uri;
    let own = url.origin() == issuer.origin();
    ensure!(own || url.scheme() == "https", "its keys are at {url}, which is not https");
    ensure!(url.username().is_empty() && url.password().is_none(), "its keys are behind a login");
    Ok(url)
}

/// GETs a document. Only the origin that the operator wrote (`named`) may be in a private
/// network.
async fn get(named: &Url, url: &Url) -> anyhow::Result<String> {
    let own = url.origin() == named.origin();
    let reach = if own { fetch::AllowedAddresses::Any } else { fetch::AllowedAddresses::Public };
    let fetched = fetch::get_from(reach, url, "application/json", MAX_BYTES).await?;
    ensure!(fetched.status == 200, "{url} answers with status {}", fetched.status);
    Ok(fetched.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_is_looked_for_where_both_standards_have_it() {
        let texts = |issuer: &str| -> Vec<String> {
            metadata_urls(&url(issuer)).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            texts("https://login.example/tenant/"),
            [
                "https://login.example/tenant/.well-known/openid-configuration",
                "https://login.example/.well-known/oauth-authorization-server/tenant",
            ]
        );
        assert_eq!(
            texts("https://login.example"),
            [
                "https://login.example/.well-known/openid-configuration",
                "https://login.example/.well-known/oauth-authorization-server",
            ]
        );
    }

    #[test]
    fn only_the_issuers_own_word_leads_to_keys_and_only_over_https() {
        let issuer = url("https://login.example");
        let said = |issuer_said: &str, keys: &str| {
            let text = serde_json::json!({"issuer": issuer_said, "jwks_uri": keys}).to_string();
            jwks_uri(&issuer, &text).map(|url| url.to_string()).ok()
        };
        let keys = "https://keys.example/jwks";
        assert_eq!(said("https://login.example", keys).as_deref(), Some(keys));
        assert_eq!(said("https://login.example/", keys).as_deref(), Some(keys));
        assert_eq!(said("https://evil.example", keys), None);
        assert_eq!(said("https://login.example", "http://keys.example/jwks"), None);
        assert_eq!(said("https://login.example", "http://login.example/jwks"), None);
        assert_eq!(said("https://login.example", "https://a:b@keys.example/jwks"), None);
        assert_eq!(said("https://login.example", "file:///etc/passwd"), None);
        assert!(jwks_uri(&issuer, "[]").is_err());
        let here = url("http://127.0.0.1:9000");
        let text = r#"{"issuer":"http://127.0.0.1:9000","jwks_uri":"http://127.0.0.1:9001/k"}"#;
        assert!(jwks_uri(&here, text).is_err(), "another port is another host");
    }

    #[tokio::test]
    async fn what_was_not_written_by_the_operator_is_not_asked_inside_the_network() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let inside = url(&format!("http://{}/jwks", listener.local_addr().unwrap()));
        let refused = get(&url("https://login.example"), &inside).await.unwrap_err();
        assert!(format!("{refused:#}").contains("127.0.0.1"), "{refused:#}");
    }
}
