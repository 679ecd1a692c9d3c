//! Decides which manifests of other servers are trusted, so that the servers are mounted.
//!
//! A [`Source`] is the URL of a manifest and what makes it trusted: HTTPS, an endpoint on
//! the manifest's own host or on one that the operator trusts, a signature by a pinned
//! key. [`label`] chooses a namespace for every server, the same in every run; [`refresh`]
//! says when to fetch again. Nothing here fetches anything: documents are passed in as
//! text, and the time as a number.

pub mod label;
pub mod refresh;

use url::{Host, Url};

use crate::manifest::sign::{PublicKey, SignatureError, verify};
use crate::manifest::{Manifest, Problem, parse};

/// The URL of a manifest, and the conditions under which it is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub manifest: Url,
    /// The namespace that the operator chose; when `None`, the one that the manifest
    /// suggests.
    pub label: Option<String>,
    /// Hosts that are trusted besides the manifest's own, such as `mcp.shop.example` or
    /// `*.shop.example`, with or without a port.
    pub trusted_hosts: Vec<String>,
    /// The keys of which one must have signed the manifest; if empty, no signature is
    /// needed.
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

/// Whether plain HTTP is allowed to servers on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InsecureLoopback {
    #[default]
    Refused,
    Allowed,
}

/// Why a URL may not be fetched, or a manifest is not trusted. Nothing is mounted then.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
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
    /// A source that trusts only the manifest's own host.
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

    /// Checks that a URL may be requested: the manifest's own, one to which it redirects,
    /// or the endpoint that it names.
    pub fn admits(&self, url: &Url) -> Result<(), SourceError> {
        let shown = || url.to_string();
        let secure = match url.scheme() {
            "https" => true,
            "http" => self.insecure == InsecureLoopback::Allowed && is_this_machine(url),
            _ => false,
        };
        if !secure {
            return Err(SourceError::NotHttps(shown()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(SourceError::Credentials(redacted(url)));
        }
        let host = url.host_str().ok_or_else(|| SourceError::NoHost(shown()))?;
        let port = url.port_or_known_default();
        let own =
            self.manifest.host_str() == Some(host) && self.manifest.port_or_known_default() == port;
        if own || self.trusted_hosts.iter().any(|trusted| host_matches(trusted, host, port)) {
            return Ok(());
        }
        let own = self.manifest.host_str().unwrap_or_default().to_owned();
        Err(SourceError::OtherHost { url: shown(), own })
    }

    /// Returns whether a connection to this URL may go to a private address.
    pub fn reaches_private(&self, url: &Url) -> bool {
        let loopback = self.insecure == InsecureLoopback::Allowed && is_this_machine(url);
        self.private == PrivateAddresses::Trusted || loopback
    }

    /// Parses a fetched manifest and checks that it is trusted; returns it with its endpoint.
    pub fn accept(&self, text: &str) -> Result<(Manifest, Url), SourceError> {
        let (manifest, _) = parse(text).map_err(SourceError::NoManifest)?;
        if !self.pins.is_empty() {
            verify(&manifest, &self.pins)?;
        }
        let endpoint = Url::parse(&manifest.endpoint)
            .map_err(|_| SourceError::NoUrl(manifest.endpoint.clone()))?;
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

/// Returns whether the pattern of a trusted host matches a host and port.
fn host_matches(trusted: &str, host: &str, port: Option<u16>) -> bool {
    let (name, wanted) = match trusted.rsplit_once(':') {
        Some((name, digits)) if digits.parse::<u16>().is_ok() => (name, digits.parse().ok()),
        Some(_) | None => (trusted, None),
    };
    let fits_port = wanted.is_none() || wanted == port;
    // A wildcard stands for one label or more, never for none.
    let below = name.strip_prefix("*.").and_then(|above| {
        let rest = host.to_ascii_lowercase();
        let rest = rest.strip_suffix(&above.to_ascii_lowercase())?.to_owned();
        rest.strip_suffix('.').map(|rest| !rest.is_empty())
    });
    fits_port && (name.eq_ignore_ascii_case(host) || below == Some(true))
}

/// Renders a URL without its user name and password.
fn redacted(url: &Url) -> String {
    let mut shown = url.clone();
    // Neither can fail on a URL that has them.
    let _ = shown.set_username("…");
    let _ = shown.set_password(None);
    shown.to_string()
}

#[cfg(test)]
mod tests;
