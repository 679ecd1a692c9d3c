//! `[serve]`: the HTTP listener: address, surface, TLS and limits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use document::tree::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::tls::{ClientCertificates, Pem};

use super::problem::Problems;
use super::surface::SurfaceName;
use super::text;

/// Where gatelet listens and what it shows there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Serve")]
pub(crate) struct Raw {
    /// Address and port for HTTP. `127.0.0.1:4747` when left out.
    listen: Option<String>,
    /// What clients see: `cash` (call, help, skill) when left out.
    surface: Option<SurfaceName>,
    /// Host names, beside loopback, under which clients may reach us.
    #[serde(default)]
    hosts: Vec<String>,
    /// Listen on an address that other machines can reach, though nobody is asked who they are.
    open: Option<bool>,
    /// Tell anybody where this server is and what it speaks, by the drafts of MCP's server card and
    /// catalog. No when left out.
    #[serde(default)]
    card: bool,
    tls: Option<RawTls>,
    #[serde(default)]
    limits: RawLimits,
}

/// Speak HTTPS. The files are read again when they change; connections that stand are not broken.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tls")]
pub(crate) struct RawTls {
    /// Our certificate in PEM, then those between it and the root; relative to this file.
    cert: PathBuf,
    /// Its private key in PEM.
    key: PathBuf,
    /// Who signs the certificates of callers, in PEM. Nobody is asked for one when left out.
    client_ca: Option<PathBuf>,
    /// Whether a caller without a certificate is turned away. No when left out.
    client_required: Option<bool>,
}

/// What a caller may cost.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ServeLimits")]
pub(crate) struct RawLimits {
    /// Connections at once. 4096 when left out.
    connections: Option<NonZeroU32>,
    /// Requests that are worked on at once. 1024 when left out.
    requests: Option<NonZeroU32>,
    /// Bytes of the head of a request. 65536 when left out.
    head_bytes: Option<NonZeroU32>,
    /// How long the head of a request may take, and a connection may idle. `30s` when left out.
    head_time: Option<String>,
    /// Bytes of the body of a request. 16 MiB when left out.
    body_bytes: Option<NonZeroU32>,
    /// How long the body of a request may take. `60s` when left out.
    body_time: Option<String>,
    /// Bytes of one answer. 64 MiB when left out.
    answer_bytes: Option<NonZeroU32>,
    /// How long a caller may take nothing of what it is sent. `30s` when left out.
    write_time: Option<String>,
    /// How long open requests may take when gatelet is told to end. `5s` when left out.
    farewell: Option<String>,
}

/// The validated `[serve]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serve {
    pub listen: SocketAddr,
    pub surface: gateway::Surface,
    /// Host names, beside loopback, that requests may be addressed to.
    pub hosts: Vec<String>,
    /// Whether gatelet may listen beyond loopback without authentication.
    pub open: bool,
    /// Whether MCP's server card is published.
    pub card: bool,
    pub tls: Option<Tls>,
    pub limits: Limits,
}

impl Serve {
    /// Returns the URL scheme of the listener.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns the URL of the listener for programs on this machine.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.listen)
    }
}

/// The files with certificates and keys, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Who signs the certificates of callers.
    pub client_ca: Option<PathBuf>,
    /// Whether callers must show a certificate.
    pub callers: ClientCertificates,
}

/// Limits on connections, requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connection: web::listen::Limits,
    pub requests: usize,
    pub body_bytes: usize,
    pub body_time: Duration,
    pub answer_bytes: usize,
}

impl Tls {
    /// Reads the files.
    pub fn pem(&self) -> Result<Pem, String> {
        let read = |file: &PathBuf| {
            std::fs::read(file)
                .map_err(|error| format!("cannot read `{}`: {error}", file.display()))
        };
        let callers = self.client_ca.as_ref().map(read).transpose()?;
        Ok(Pem { chain: read(&self.cert)?, key: read(&self.key)?, callers })
    }

    /// Builds the TLS configuration from the files.
    pub fn server(&self) -> Result<Arc<rustls::ServerConfig>, String> {
        web::tls::server(&self.pem()?, self.callers).map_err(|unfit| {
            format!("`{}` and `{}`: {unfit}", self.cert.display(), self.key.display())
        })
    }
}

pub(crate) const PORT: u16 = 4747;

/// The listen address when none is configured.
pub(crate) const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);

pub(crate) fn parse(raw: Raw, base: &FilePath, problems: &mut Problems) -> Serve {
    let path = Path::default().key("serve").key("listen");
    let tls = raw.tls.and_then(|raw| tls(raw, base, problems));
    let limits = limits(&raw.limits, problems);
    let listen = raw.listen.as_deref();
    let listen = listen.and_then(|text| problems.parse(&path, text, parse_address));
    Serve {
        listen: listen.unwrap_or(DEFAULT_LISTEN),
        surface: raw.surface.unwrap_or_default().0,
        hosts: raw.hosts,
        open: raw.open.unwrap_or(false),
        card: raw.card,
        tls,
        limits,
    }
}

fn tls(raw: RawTls, base: &FilePath, problems: &mut Problems) -> Option<Tls> {
    let callers = match raw.client_required {
        Some(true) => ClientCertificates::Required,
        Some(false) | None => ClientCertificates::Optional,
    };
    let path = Path::default().key("serve").key("tls");
    if callers == ClientCertificates::Required && raw.client_ca.is_none() {
        problems.error(&path.key("client_required"), "only goes with `client_ca`", None);
    }
    let client_ca = raw.client_ca.map(|file| base.join(file));
    let (cert, key) = (base.join(raw.cert), base.join(raw.key));
    let files = [("cert", Some(&cert)), ("key", Some(&key)), ("client_ca", client_ca.as_ref())];
    let mut are_there = true;
    for (name, file) in files.into_iter().filter_map(|(name, file)| Some((name, file?))) {
        if let Err(error) = std::fs::File::open(file) {
            let message = format!("`{}` cannot be read: {error}", file.display());
            problems.error(&path.key(name), message, None);
            are_there = false;
        }
    }
    if !are_there {
        return None;
    }
    let tls = Tls { cert, key, client_ca, callers };
    if let Err(unfit) = tls.server() {
        let hint = "`cert` holds the chain and `key` its private key, both in PEM";
        problems.error(&path, unfit, Some(hint));
        return None;
    }
    Some(tls)
}

fn limits(raw: &RawLimits, problems: &mut Problems) -> Limits {
    let path = Path::default().key("serve").key("limits");
    let mut time = |key: &str, text: &Option<String>, default: Duration| {
        let text = text.as_deref();
        let time = text.and_then(|text| problems.parse(&path.key(key), text, text::parse_duration));
        time.unwrap_or(default)
    };
    let count = |count: Option<NonZeroU32>, default: usize| {
        count.and_then(|count| usize::try_from(count.get()).ok()).unwrap_or(default)
    };
    let usual = web::listen::Limits::default();
    Limits {
        connection: web::listen::Limits {
            connections: count(raw.connections, usual.connections),
            head_time: time("head_time", &raw.head_time, usual.head_time),
            head_bytes: count(raw.head_bytes, usual.head_bytes),
            write_time: time("write_time", &raw.write_time, usual.write_time),
            drain_time: time("farewell", &raw.farewell, usual.drain_time),
        },
        requests: count(raw.requests, 1024),
        body_bytes: count(raw.body_bytes, 16 << 20),
        body_time: time("body_time", &raw.body_time, Duration::from_secs(60)),
        answer_bytes: count(raw.answer_bytes, 64 << 20),
    }
}

/// Parses `127.0.0.1:4747`, `[::1]:4747`, `localhost:4747`, an address alone or a port alone.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let local = IpAddr::from(Ipv4Addr::LOCALHOST);
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(SocketAddr::new(local, port));
    }
    let text = text.replacen("localhost", "127.0.0.1", 1);
    if let Ok(alone) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(alone, PORT));
    }
    text.parse().map_err(|_| format!("`{text}` is not an address such as `127.0.0.1:{PORT}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_written_short() {
        for text in ["127.0.0.1:9000", "localhost:9000", ":9000", "9000"] {
            assert_eq!(parse_address(text).unwrap().to_string(), "127.0.0.1:9000");
        }
        assert_eq!(parse_address("::1").unwrap().to_string(), "[::1]:4747");
        assert!(parse_address("example.com:80").is_err());
    }
}
