//! Decides which addresses a login may request.
//!
//! A server says where to log in, and so where we send requests: a hostile one
//! could have us ask other programs on this machine, or what stands in a network
//! that only we can reach. So it may lead to itself, to secured servers elsewhere,
//! and to what the operator names; nowhere else.

use std::net::IpAddr;

use url::{Host, Url};

/// Where the metadata of a server may lead a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To itself, to secured servers that are not on this machine, and to these
    /// addresses, of which only the origin counts.
    Guarded(Vec<Url>),
    /// Anywhere: for trials in which everything is on one machine.
    Anywhere,
}

impl Default for Reach {
    fn default() -> Reach {
        Reach::Guarded(Vec::new())
    }
}

impl Reach {
    /// Returns whether the server at one address may lead to the other.
    pub fn allows(&self, server: &Url, to: &Url) -> bool {
        match self {
            Reach::Anywhere => true,
            Reach::Guarded(named) => {
                let same = |known: &Url| known.origin() == to.origin();
                same(server) || named.iter().any(same) || (to.scheme() == "https" && !is_here(to))
            }
        }
    }
}

/// Returns whether an address is on this machine or next to it.
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => is_near(address.into()),
        Some(Host::Ipv6(address)) => {
            // An address of the older kind may be written in the newer form.
            is_near(address.to_ipv4_mapped().map_or(address.into(), IpAddr::from))
        }
        None => true,
    }
}

fn is_near(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    address.is_loopback() || address.is_unspecified() || link_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(server: &str, to: &str, expected: bool) {
        let url = |text: &str| Url::parse(text).unwrap();
        let reach = Reach::Guarded(vec![url("http://127.0.0.1:9000/realm")]);
        assert_eq!(reach.allows(&url(server), &url(to)), expected, "{server} to {to}");
    }

    #[test]
    fn a_server_leads_to_itself_to_secured_servers_and_to_what_is_named() {
        let here = "http://127.0.0.1:8080/mcp";
        check(here, "http://127.0.0.1:8080/.well-known/x", true);
        check(here, "http://127.0.0.1:9000/token", true);
        check(here, "https://login.example/token", true);
        check("https://wiki.example/mcp", "https://10.0.0.7/token", true);
        check("https://wiki.example/mcp", "https://wiki.example:8443/token", true);
    }

    #[test]
    fn a_server_leads_to_nothing_else_on_this_machine_however_that_is_spelled() {
        for server in ["http://127.0.0.1:8080/mcp", "https://evil.example/mcp"] {
            for to in [
                "http://127.0.0.1:8081/latest/meta-data/",
                "http://localhost:8080/x",
                "http://127.1:8081/",
                "http://2130706433:8081/",
                "http://0x7f.0.0.1:8081/",
                "http://[::1]:8081/",
                "http://[::ffff:127.0.0.1]:8081/",
                "http://0.0.0.0:8081/",
                "http://169.254.169.254/latest/meta-data/",
                "http://login.example/token",
                "https://127.0.0.1:8081/",
                "https://localhost/",
                "https://LOCALHOST./",
                "https://a.localhost/",
                "https://[::ffff:127.0.0.1]/",
                "https://169.254.169.254/",
                "https://[fe80::1]/",
                "ftp://login.example/",
                "file:///etc/passwd",
            ] {
                check(server, to, false);
            }
        }
    }
}
