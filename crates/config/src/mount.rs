//! `[[mount]]`: CaSH servers that gatelet discovers through their manifests.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};

use document::tree::Path;
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::aggregate::{InsecureLoopback, PrivateAddresses, Source};
use web::manifest::sign::PublicKey;

use super::problem::Problems;
use super::text::{self, Environment};

/// A server that is found through its manifest (`/.well-known/cash-mcp.yaml`).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Mount")]
pub struct Raw {
    /// Where the manifest is: an https URL.
    pub manifest: String,
    /// The namespace under which the server is found. The manifest's suggestion when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Hosts, beside the manifest's own, that its endpoint may be on: `mcp.shop.example`,
    /// `*.shop.example`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_hosts: Vec<String>,
    /// Public keys, one of which must have signed the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<String>,
    /// Headers sent with every request to the endpoint. `${env:NAME}` is filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A file of certificates in PEM that may have signed the server's, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Whether the server may be at a private address. No when left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Whether plain http is good enough for a server on this machine. No when left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_loopback: bool,
}

/// A validated mount.
#[derive(Clone, PartialEq)]
pub struct Mount {
    pub source: Source,
    /// Headers sent to the server's endpoint.
    pub headers: BTreeMap<String, String>,
    /// Certificates in PEM that may have signed the server's.
    pub authority: Option<Vec<u8>>,
}

pub(crate) fn parse(
    raw: Vec<Raw>,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    for (at, raw) in raw.into_iter().enumerate() {
        let path = Path::default().key("mount").index(at);
        match parse_mount(&raw, base, environment) {
            Err((key, message)) => problems.error(&path.key(key), message, None),
            Ok(mount) if mounts.iter().any(|m| m.source.manifest == mount.source.manifest) => {
                problems.error(&path.key("manifest"), "is mounted by an earlier entry", None);
            }
            Ok(mount) => mounts.push(mount),
        }
    }
    mounts
}

/// Parses one entry; an error is the key that is wrong and the reason.
pub fn parse_mount(
    raw: &Raw,
    base: &FilePath,
    environment: &dyn Environment,
) -> Result<Mount, (&'static str, String)> {
    let manifest = Url::parse(&raw.manifest)
        .map_err(|error| ("manifest", format!("`{}` is no URL: {error}", raw.manifest)))?;
    let pins: Result<Vec<PublicKey>, _> =
        raw.pins.iter().map(|pin| PublicKey::parse(pin)).collect();
    let pins = pins
        .map_err(|_| ("pins", "must be keys as `gatelet manifest keygen` prints them"))
        .map_err(|(key, message)| (key, message.to_owned()))?;
    let private = if raw.private { PrivateAddresses::Trusted } else { PrivateAddresses::Refused };
    let insecure = match raw.insecure_loopback {
        true => InsecureLoopback::Allowed,
        false => InsecureLoopback::Refused,
    };
    let legal = |label: &String| {
        !catalog::name::canonical(label).is_empty() && catalog::name::canonical(label) != "gatelet"
    };
    if let Some(label) = raw.label.as_ref().filter(|label| !legal(label)) {
        return Err(("label", format!("`{label}` cannot be a namespace")));
    }
    let source = Source {
        manifest: manifest.clone(),
        label: raw.label.clone(),
        trusted_hosts: raw.trusted_hosts.clone(),
        pins,
        private,
        insecure,
    };
    source.admits(&manifest).map_err(|refused| ("manifest", refused.to_string()))?;
    let mut headers = BTreeMap::new();
    for (name, value) in &raw.headers {
        let value = text::fill_placeholders(value, base, environment);
        let value = value.map_err(|error| ("headers", error.to_string()))?;
        headers.insert(name.clone(), value);
    }
    let authority = raw.ca.as_ref().map(|file| {
        let file = base.join(file);
        std::fs::read(&file)
            .map_err(|error| ("ca", format!("`{}` cannot be read: {error}", file.display())))
    });
    Ok(Mount { source, headers, authority: authority.transpose()? })
}

/// Headers may hold secrets, so they are never printed.
impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mount").field("source", &self.source).finish_non_exhaustive()
    }
}
