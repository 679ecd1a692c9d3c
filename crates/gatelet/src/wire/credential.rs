//! The credentials that gatelet shows to upstreams: fixed headers of the configuration,
//! tokens that somebody logged in for, or tokens as an OAuth client.

use std::sync::Arc;

use mcp::connect::credential::{FixedHeaders, MillisClock};
use mcp::connect::{Certificates, Credential};
use mcp::oauth::{Grant, GrantStore, InMemoryGrant, LoginReach, LoginRequest, OAuthCredential};
use store::clock::System;
use store::vault::Vault;
use tool::clock::Clock;

pub(crate) use crate::secret::vault;
use config::{GrantType, Oauth, Reach, Upstream};

/// The name in the vault of the token for an upstream, or for one caller (`subject`)
/// there.
pub(crate) fn vault_entry(label: &str, subject: Option<&str>) -> String {
    subject.map_or_else(|| label.to_owned(), |subject| format!("{label}/{subject}"))
}

/// The credential for an upstream at an address, shared or of one caller (`subject`):
/// the `Authorization` of the configuration, else an OAuth token. Programs get none.
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
        let remedy =
            format!("its `Authorization`{whose} in the configuration is refused: change it");
        return Some(Arc::new(FixedHeaders::new(&remedy, now)));
    }
    let oauth = &upstream.access.oauth;
    if oauth.grant == GrantType::ClientCredentials {
        return Some(Arc::new(client_credentials(url, oauth, certificates, now)));
    }
    let remedy = login_hint(label, subject);
    let grant = VaultEntry { vault: vault.clone(), name: vault_entry(label, subject) };
    let credential = OAuthCredential::new(&remedy, url, Arc::new(grant), now, rand::random);
    let credential = credential.only_for_issuer(upstream.access.oauth.issuer.clone());
    Some(Arc::new(credential.with_certificates(certificates.clone())))
}

/// A credential of a registered OAuth client (grant type `client_credentials`), for
/// which nobody has to log in.
fn client_credentials(
    url: &str,
    oauth: &Oauth,
    certificates: &Certificates,
    now: MillisClock,
) -> OAuthCredential {
    let remedy =
        "its `client_id` and `client_secret` in the configuration are refused: change them";
    // An issuer that the operator names may be in a private network.
    let issuer = oauth.issuer.iter().filter_map(|issuer| issuer.parse().ok());
    let request = LoginRequest {
        url: url.to_owned(),
        issuer: oauth.issuer.clone(),
        client_id: oauth.client_id.clone(),
        client_secret: oauth.client_secret.clone(),
        scopes: oauth.scopes.clone(),
        certificates: certificates.clone(),
        reach: LoginReach::Guarded(issuer.collect()),
        ..LoginRequest::default()
    };
    let grants = Arc::new(InMemoryGrant::default());
    OAuthCredential::new(remedy, url, grants, now, rand::random)
        .only_for_issuer(oauth.issuer.clone())
        .with_client_credentials(Some(request))
        .with_certificates(certificates.clone())
}

/// One line that says how a human logs in. Labels may come from mounted manifests and
/// subjects from tokens, so either is quoted only if it is harmless in a shell.
pub(super) fn login_hint(label: &str, subject: Option<&str>) -> String {
    let caller =
        subject.map(|subject| tool::shell::word(subject).map(|word| format!(" --as {word}")));
    match (tool::shell::word(label), caller.unwrap_or_else(|| Some(String::new()))) {
        (Some(label), Some(caller)) => format!("run `gatelet login {label}{caller}`"),
        _ => "log in to it with `gatelet login`".to_owned(),
    }
}

fn now() -> MillisClock {
    let clock = System::start();
    Arc::new(move || clock.unix_millis())
}

/// One OAuth grant in the vault.
struct VaultEntry {
    vault: Vault,
    name: String,
}

/// Loads the grant that is stored under a [`vault_entry`] name.
pub(crate) fn load_grant(vault: &Vault, name: &str) -> Result<Option<Grant>, String> {
    VaultEntry { vault: vault.clone(), name: name.to_owned() }.load()
}

impl GrantStore for VaultEntry {
    fn load(&self) -> Result<Option<Grant>, String> {
        let bytes = self.vault.load(&self.name).map_err(|error| error.to_string())?;
        let parse = |bytes: Vec<u8>| serde_json::from_slice(&bytes);
        bytes
            .map(parse)
            .transpose()
            .map_err(|_| format!("what is kept for `{}` is damaged: log in again", self.name))
    }

    fn save(&self, grant: &Grant) -> Result<(), String> {
        let bytes = serde_json::to_vec(grant).map_err(|error| error.to_string())?;
        self.vault.save(&self.name, &bytes).map_err(|error| error.to_string())
    }
}
