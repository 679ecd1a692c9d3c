//! Decides which addresses a login may send requests to.
//!
//! A server's metadata names where to log in. A hostile server could make us send requests
//! to other programs on this machine or in our private network. So it may name itself,
//! `https:` servers on other machines, and addresses that the operator allowed.

use std::net::IpAddr;

use url::{Host, Url};

/// Which addresses the metadata of a server may name for a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginReach {
    /// The server itself, `https:` servers that are not on this machine, and the origins of
    /// these URLs.
    Guarded(Vec<Url>),
    /// Any address: for tests in which everything is on one machine.
    Anywhere,
}

impl Default for LoginReach {
    fn default() -> LoginReach {
        LoginReach::Guarded(Vec::new())
    }
}

impl LoginReach {
    /// Returns whether the server at `server` may name the address `target`.
    pub fn allows(&self, server: &Url, target: &Url) -> bool {
        match self {
            LoginReach::Anywhere => true,
            LoginReach::Guarded(named) => {
                let same = |known: &Url| known.origin() == target.origin();
                same(server)
                    || named.iter().any(same)
                    || (target.scheme() == "https" && !is_local(target))
            }
        }
    }
}

/// Returns whether a URL is on this machine or its local link.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => is_local_address(address.into()),
        Some(Host::Ipv6(address)) => {
            // An IPv4 address may be written in IPv6 form.
            is_local_address(address.to_ipv4_mapped().map_or(address.into(), IpAddr::from))
        }
        None => true,
    }
}

fn is_local_address(address: IpAddr) -> bool {
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
    fn check(server: &str, target: &str, expected: bool) {
        let url = |text: &str| Url::parse(text).unwrap();
        let reach = LoginReach::Guarded(vec![url("http://127.0.0.1:9000/realm")]);
        assert_eq!(reach.allows(&url(server), &url(target)), expected, "{server} to {target}");
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
            for target in [
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
                check(server, target, false);
            }
        }
    }
}
