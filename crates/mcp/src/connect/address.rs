//! Restricts connections to public IP addresses, against server-side request forgery.
//!
//! An operator may name any address. A fetched document may not: it could name this
//! machine, or one in its private network. So a host name is resolved once, every address
//! is checked, and the connection goes to exactly the checked addresses: a DNS answer that
//! changes a moment later gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url};

/// Which IP addresses a connection may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllowedAddresses {
    /// Any address: the operator named the host.
    #[default]
    Any,
    /// Only addresses that are reachable from the whole internet.
    Public,
}

/// The error for a host with a private IP address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{host}` is at {address}, which is a private address")]
pub struct PrivateAddress {
    pub host: String,
    pub address: IpAddr,
}

/// Makes a client connect to public addresses only. If the host of `url` is an IP address,
/// it is checked here, because it is never resolved.
pub fn restrict_to_public(
    builder: ClientBuilder,
    url: &Url,
) -> Result<ClientBuilder, PrivateAddress> {
    let host = url.host_str().unwrap_or_default();
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>()
        && !is_public(address)
    {
        return Err(PrivateAddress { host: host.to_owned(), address });
    }
    // A proxy would resolve the name instead of us.
    Ok(builder.no_proxy().dns_resolver(Arc::new(PublicOnlyResolver)))
}

/// Resolves host names, and fails if one address is private.
struct PublicOnlyResolver;

impl Resolve for PublicOnlyResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            // One private address is enough to refuse the name.
            match found.iter().find(|found| !is_public(found.ip())) {
                Some(found) => Err(PrivateAddress { host, address: found.ip() }.into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

/// Returns whether an address is reachable from the whole internet.
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
    // For an IPv4 address in IPv6 form, the IPv4 address decides.
    if let Some(inner) = address.to_ipv4_mapped().or_else(|| embedded_v4(address)) {
        return is_public_v4(inner);
    }
    let [first, second, ..] = address.segments();
    // Only 2000::/3 is allocated; documentation and tunnel ranges in it are not public.
    let given_out = first & 0xe000 == 0x2000;
    let nobodys = first == 0x2001 && (second < 0x0200 || second == 0x0db8) || first == 0x3fff;
    given_out && !nobodys
}

/// Returns the IPv4 address in a NAT64 or 6to4 address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
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
        let found = PublicOnlyResolver.resolve("localhost".parse().unwrap()).await;
        let Err(refused) = found else { panic!("localhost is private") };
        assert!(refused.to_string().contains("private address"), "{refused}");
        let url = Url::parse("http://169.254.169.254/latest/").unwrap();
        assert!(restrict_to_public(reqwest::Client::builder(), &url).is_err());
        let url = Url::parse("http://[::1]/").unwrap();
        assert!(restrict_to_public(reqwest::Client::builder(), &url).is_err());
    }
}
