//! Decides which addresses from a server's metadata may be connected to.
//!
//! An operator may name any address. A document that was fetched may not: it
//! could name this machine, or one that only this machine reaches. So a name is
//! resolved once, every address it has is looked at, and the connection is made
//! to what was looked at: a name that means something else a moment later gains
//! nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url};

/// Where a connection may lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Anywhere: the operator named it.
    #[default]
    Any,
    /// To what everybody can reach.
    Public,
}

/// An address that is not everybody's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{host}` is at {address}, which is a private address")]
pub struct Private {
    pub host: String,
    pub address: IpAddr,
}

/// Makes a client connect to public addresses only. `url` is where it goes
/// first; an address instead of a name is never resolved, so it is looked at
/// here.
pub fn guard(builder: ClientBuilder, url: &Url) -> Result<ClientBuilder, Private> {
    let host = url.host_str().unwrap_or_default();
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>()
        && !is_public(address)
    {
        return Err(Private { host: host.to_owned(), address });
    }
    // A proxy would do the resolving instead of us.
    Ok(builder.no_proxy().dns_resolver(Arc::new(Looking)))
}

/// Resolves names and looks at what they mean.
struct Looking;

impl Resolve for Looking {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            // One bad address is enough: whoever mixes them means no good.
            match found.iter().find(|found| !is_public(found.ip())) {
                Some(found) => Err(Private { host, address: found.ip() }.into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

/// Returns whether an address is one that everybody can reach.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // An IPv4 address in disguise is what it is underneath.
    if let Some(inner) = address.to_ipv4_mapped().or_else(|| embedded(address)) {
        return is_public_v4(inner);
    }
    let [first, second, ..] = address.segments();
    // Only 2000::/3 is given out; of it, documentation and tunnels are nobody's.
    let given_out = first & 0xe000 == 0x2000;
    let nobodys = first == 0x2001 && (second < 0x0200 || second == 0x0db8) || first == 0x3fff;
    given_out && !nobodys
}

/// The IPv4 address that NAT64 and 6to4 carry.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_some_can_reach_is_not_public() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.8.8.8",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "100::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn what_everybody_can_reach_is_public() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.128.0.1",
            "172.32.0.1",
            "192.1.1.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:4860:4860::8888",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[tokio::test]
    async fn a_name_that_means_a_private_address_is_not_connected_to() {
        let found = Looking.resolve("localhost".parse().unwrap()).await;
        let Err(refused) = found else { panic!("localhost is private") };
        assert!(refused.to_string().contains("private address"), "{refused}");
        let url = Url::parse("http://169.254.169.254/latest/").unwrap();
        assert!(guard(reqwest::Client::builder(), &url).is_err());
        let url = Url::parse("http://[::1]/").unwrap();
        assert!(guard(reqwest::Client::builder(), &url).is_err());
    }
}
