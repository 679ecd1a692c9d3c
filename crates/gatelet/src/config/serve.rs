//! `[serve]`: where gatelet listens and what it shows there.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::Path;
use super::problem::Problems;

/// Where gatelet listens and what it shows there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Serve")]
pub(crate) struct Raw {
    /// Address and port for HTTP. `127.0.0.1:4747` when left out.
    listen: Option<String>,
    /// What clients see: `cash` (call, help, skill) when left out.
    surface: Option<Surface>,
    /// Host names, beside loopback, under which clients may reach us.
    #[serde(default)]
    hosts: Vec<String>,
    /// Listen on an address that other machines can reach, though nobody is asked who they are.
    open: Option<bool>,
}

/// What clients see of everything behind the gate.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Surface {
    /// `call`, `help` and `skill`
    #[default]
    Cash,
    /// `tool_browse`, `tool_execute` and `tool_view`
    Gateway,
    /// Every tool by name, its definition on request
    Proxy,
    /// Every tool, whole
    Direct,
    /// Chosen by what the client says of itself
    Auto,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Serve {
    pub(crate) listen: SocketAddr,
    pub(crate) surface: Surface,
    pub(crate) hosts: Vec<String>,
    /// Whether we may listen beyond loopback.
    pub(crate) open: bool,
}

pub(crate) const PORT: u16 = 4747;

pub(super) fn parse(raw: Raw, problems: &mut Problems) -> Serve {
    let path = Path::default().key("serve").key("listen");
    let listen = raw.listen.as_deref();
    let listen = listen.and_then(|text| problems.parse(&path, text, address));
    Serve {
        listen: listen.unwrap_or(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)),
        surface: raw.surface.unwrap_or_default(),
        hosts: raw.hosts,
        open: raw.open.unwrap_or(false),
    }
}

/// Reads `127.0.0.1:4747`, `[::1]:4747`, `localhost:4747`, an address alone or a port alone.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
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
            assert_eq!(address(text).unwrap().to_string(), "127.0.0.1:9000");
        }
        assert_eq!(address("::1").unwrap().to_string(), "[::1]:4747");
        assert!(address("example.com:80").is_err());
    }
}
