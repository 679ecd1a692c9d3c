//! What upstreams are shown, and where it is kept.

use std::sync::Arc;

use mcp::connect::credential::{FixedHeaders, Now};
use mcp::connect::{Certificates, Credential};
use mcp::oauth::{Grant, GrantStore, InMemory, LoginRequest, OAuthCredential, Reach as LoginReach};
use store::clock::System;
use store::vault::Vault;
use tool::clock::Clock;

pub(crate) use crate::secret::vault;
use config::{GrantType, Oauth, Reach, Upstream};

/// What the token of an upstream, or of one caller there, is called.
pub(crate) fn entry(label: &str, subject: Option<&str>) -> String {
    subject.map_or_else(|| label.to_owned(), |subject| format!("{label}/{subject}"))
}

/// What an address is shown, for everybody or for one caller. A token that
/// somebody logged in for, unless there is an `Authorization` in the
/// configuration.
pub(super) fn for_upstream(
    upstream: &Upstream,
    subject: Option<&str>,
    vault: &Vault,
) -> Option<Arc<dyn Credential>> {
    let Reach::Address { url, headers, certificates, .. } = &upstream.reach else { return None };
    let label = &upstream.label;
    let now = now();
    if headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        let whose = subject.map(|subject| format!(" of `{subject}`")).unwrap_or_default();
        let todo = format!("its `Authorization`{whose} in the configuration is refused: change it");
        return Some(Arc::new(FixedHeaders::new(&todo, now)));
    }
    let oauth = &upstream.access.oauth;
    if oauth.grant == GrantType::ClientCredentials {
        return Some(Arc::new(as_client(url, oauth, certificates, now)));
    }
    let todo = login(label, subject);
    let keep = VaultEntry { vault: vault.clone(), name: entry(label, subject) };
    let keeper = OAuthCredential::new(&todo, url, Arc::new(keep), now, rand::random);
    let keeper = keeper.of_issuer(upstream.access.oauth.issuer.clone());
    Some(Arc::new(keeper.with_certificates(certificates.clone())))
}

/// A token that is had as a registered client, without a human.
fn as_client(url: &str, oauth: &Oauth, certificates: &Certificates, now: Now) -> OAuthCredential {
    let todo = "its `client_id` and `client_secret` in the configuration are refused: change them";
    // What the operator names may be anywhere.
    let issuer = oauth.issuer.iter().filter_map(|issuer| issuer.parse().ok());
    let wanted = LoginRequest {
        url: url.to_owned(),
        issuer: oauth.issuer.clone(),
        client_id: oauth.client_id.clone(),
        client_secret: oauth.client_secret.clone(),
        scopes: oauth.scopes.clone(),
        certificates: certificates.clone(),
        reach: LoginReach::Guarded(issuer.collect()),
        ..LoginRequest::default()
    };
    let keep = Arc::new(InMemory::default());
    OAuthCredential::new(todo, url, keep, now, rand::random)
        .of_issuer(oauth.issuer.clone())
        .as_machine(Some(wanted))
        .with_certificates(certificates.clone())
}

/// What a human does to log in, in one line. Labels come from mounted manifests
/// and callers' names from their tokens, so neither is pasted unless it is plain.
pub(super) fn login(label: &str, subject: Option<&str>) -> String {
    let caller =
        subject.map(|subject| tool::shell::word(subject).map(|word| format!(" --as {word}")));
    match (tool::shell::word(label), caller.unwrap_or_else(|| Some(String::new()))) {
        (Some(label), Some(caller)) => format!("run `gatelet login {label}{caller}`"),
        _ => "log in to it with `gatelet login`".to_owned(),
    }
}

fn now() -> Now {
    let clock = System::start();
    Arc::new(move || clock.unix_millis())
}

/// One grant in the vault.
struct VaultEntry {
    vault: Vault,
    name: String,
}

/// What is kept for an upstream, or for one caller there.
pub(crate) fn kept(vault: &Vault, name: &str) -> Result<Option<Grant>, String> {
    VaultEntry { vault: vault.clone(), name: name.to_owned() }.load()
}

impl GrantStore for VaultEntry {
    fn load(&self) -> Result<Option<Grant>, String> {
        let bytes = self.vault.load(&self.name).map_err(|error| error.to_string())?;
        let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes);
        bytes
            .map(read)
            .transpose()
            .map_err(|_| format!("what is kept for `{}` is damaged: log in again", self.name))
    }

    fn save(&self, grant: &Grant) -> Result<(), String> {
        let bytes = serde_json::to_vec(grant).map_err(|error| error.to_string())?;
        self.vault.save(&self.name, &bytes).map_err(|error| error.to_string())
    }
}
