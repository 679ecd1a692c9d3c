//! Mounts servers that are found through their manifests.
//!
//! A [`Source`] says where a manifest is and what it takes to believe it: HTTPS,
//! an endpoint on the manifest's own host or one that the operator trusts, a
//! signature by a pinned key. [`label`] gives every server a namespace of its
//! own, the same in every run; [`refresh`] says when to look again. Nothing here
//! fetches anything: documents come in as text, and the time as a number.

pub mod label;
pub mod refresh;

use url::{Host, Url};

use crate::manifest::sign::{PublicKey, SignatureError, verify};
use crate::manifest::{Manifest, Problem, read};

/// Where a manifest is, and what it takes to believe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub manifest: Url,
    /// The namespace that the operator wants; the manifest's own suggestion
    /// when `None`.
    pub label: Option<String>,
    /// Hosts beside the manifest's own: `mcp.shop.example`, `*.shop.example`,
    /// with a port or without.
    pub trusted_hosts: Vec<String>,
    /// One of these keys must have signed, if there are any.
    pub pins: Vec<PublicKey>,
    pub private: PrivateAddresses,
    pub insecure: InsecureLoopback,
}

/// Whether a server may be at a private address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrivateAddresses {
    #[default]
    Refused,
    Trusted,
}

/// Whether plain HTTP is good enough on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InsecureLoopback {
    #[default]
    Refused,
    Allowed,
}

/// Why a manifest is not believed. Nothing is mounted.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("`{0}` is not https; plain http is for this machine only, and has to be allowed")]
    NotHttps(String),
    #[error("`{0}` has a user name or a password in it")]
    Credentials(String),
    #[error("`{0}` names no host")]
    NoHost(String),
    #[error("`{url}` is not on `{own}`; trust its host if you do")]
    OtherHost { url: String, own: String },
    #[error("the endpoint `{0}` is no URL")]
    NoUrl(String),
    #[error("it is no manifest: {}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))]
    NoManifest(Vec<Problem>),
    #[error(transparent)]
    Distrusted(#[from] SignatureError),
}

impl Source {
    /// A source with nothing trusted beside its own host.
    pub fn new(manifest: Url) -> Source {
        Source {
            manifest,
            label: None,
            trusted_hosts: Vec::new(),
            pins: Vec::new(),
            private: PrivateAddresses::default(),
            insecure: InsecureLoopback::default(),
        }
    }

    /// Checks whether a URL may be asked at all: the manifest's own, where it is
    /// redirected to, and the endpoint that it names.
    pub fn admits(&self, url: &Url) -> Result<(), Refused> {
        let shown = || url.to_string();
        let secure = match url.scheme() {
            "https" => true,
            "http" => self.insecure == InsecureLoopback::Allowed && is_this_machine(url),
            _ => false,
        };
        if !secure {
            return Err(Refused::NotHttps(shown()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials(redacted(url)));
        }
        let host = url.host_str().ok_or_else(|| Refused::NoHost(shown()))?;
        let port = url.port_or_known_default();
        let own =
            self.manifest.host_str() == Some(host) && self.manifest.port_or_known_default() == port;
        if own || self.trusted_hosts.iter().any(|trusted| fits(trusted, host, port)) {
            return Ok(());
        }
        let own = self.manifest.host_str().unwrap_or_default().to_owned();
        Err(Refused::OtherHost { url: shown(), own })
    }

    /// Returns whether a connection may lead to a private address.
    pub fn reaches_private(&self, url: &Url) -> bool {
        let loopback = self.insecure == InsecureLoopback::Allowed && is_this_machine(url);
        self.private == PrivateAddresses::Trusted || loopback
    }

    /// Reads a manifest that was fetched, and believes it or not.
    pub fn accept(&self, text: &str) -> Result<(Manifest, Url), Refused> {
        let (manifest, _) = read(text).map_err(Refused::NoManifest)?;
        if !self.pins.is_empty() {
            verify(&manifest, &self.pins)?;
        }
        let endpoint = Url::parse(&manifest.endpoint)
            .map_err(|_| Refused::NoUrl(manifest.endpoint.clone()))?;
        self.admits(&endpoint)?;
        Ok((manifest, endpoint))
    }
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns whether a trusted host means this one.
fn fits(trusted: &str, host: &str, port: Option<u16>) -> bool {
    let (name, wanted) = match trusted.rsplit_once(':') {
        Some((name, digits)) if digits.parse::<u16>().is_ok() => (name, digits.parse().ok()),
        Some(_) | None => (trusted, None),
    };
    let fits_port = wanted.is_none() || wanted == port;
    // A wildcard stands for one name or more, never for none.
    let below = name.strip_prefix("*.").and_then(|above| {
        let rest = host.to_ascii_lowercase();
        let rest = rest.strip_suffix(&above.to_ascii_lowercase())?.to_owned();
        rest.strip_suffix('.').map(|rest| !rest.is_empty())
    });
    fits_port && (name.eq_ignore_ascii_case(host) || below == Some(true))
}

/// A URL without what may be a secret in it.
fn redacted(url: &Url) -> String {
    let mut shown = url.clone();
    // Neither can fail on a URL that has them.
    let _ = shown.set_username("…");
    let _ = shown.set_password(None);
    shown.to_string()
}

#[cfg(test)]
mod tests;
