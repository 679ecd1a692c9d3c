//! Checks the `Host` and `Origin` headers of requests.
//!
//! A hostile web page could send requests to a server on the user's machine (DNS
//! rebinding). So the host of a request, and its origin if it has one, must be allowed.

use http::{HeaderMap, Uri, header};

/// The allowed hosts and origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Only this machine, on any port.
    Loopback,
    /// This machine, and these names, on any port.
    Named(Vec<String>),
    /// All hosts: for a server behind a proxy that checks.
    Any,
}

/// Why a request is refused: the host or origin that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ForeignHost {
    #[error("the host `{0}` is not served here; add it to the allowed hosts")]
    Host(String),
    #[error("pages of `{0}` may not talk to this server; add the origin to the allowed hosts")]
    Origin(String),
}

impl Hosts {
    pub(super) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ForeignHost> {
        if *self == Hosts::Any {
            return Ok(());
        }
        let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let host = text(header::HOST);
        let host = host.or_else(|| uri.authority().map(|authority| authority.as_str().into()));
        let host = host.unwrap_or_default();
        if !self.allows(&host) {
            return Err(ForeignHost::Host(host.into_owned()));
        }
        match text(header::ORIGIN) {
            Some(origin) if !self.allows_origin(&origin) => {
                Err(ForeignHost::Origin(origin.into_owned()))
            }
            _ => Ok(()),
        }
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let after = |scheme: &str| origin.strip_prefix(scheme);
        let authority = after("http://").or_else(|| after("https://"));
        authority.is_some_and(|authority| self.allows(authority))
    }

    fn allows(&self, authority: &str) -> bool {
        let name = without_port(authority);
        if matches!(name, "localhost" | "127.0.0.1" | "[::1]") {
            return true;
        }
        match self {
            Hosts::Loopback => false,
            Hosts::Named(names) => names.iter().any(|known| {
                known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(authority)
            }),
            Hosts::Any => true,
        }
    }
}

/// Returns the authority without its port.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hosts: &Hosts, host: &str, origin: Option<&str>, allowed: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let checked = hosts.check(&headers, &Uri::from_static("/mcp"));
        assert_eq!(checked.is_ok(), allowed, "{host} {origin:?}: {checked:?}");
    }

    #[test]
    fn a_local_server_is_only_reached_by_local_names() {
        for host in ["localhost", "localhost:80", "127.0.0.1:8080", "[::1]:1", "[::1]"] {
            check(&Hosts::Loopback, host, None, true);
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil:80", "", "192.168.0.1"]
        {
            check(&Hosts::Loopback, host, None, false);
        }
    }

    #[test]
    fn a_page_from_elsewhere_is_turned_away() {
        check(&Hosts::Loopback, "localhost", Some("http://localhost:3000"), true);
        check(&Hosts::Loopback, "localhost", Some("https://evil.example"), false);
        check(&Hosts::Loopback, "localhost", Some("null"), false);
    }

    #[test]
    fn named_hosts_are_let_in_beside_the_local_ones() {
        let hosts = Hosts::Named(vec!["gate.example".into()]);
        check(&hosts, "GATE.example:443", Some("https://gate.example"), true);
        check(&hosts, "localhost", None, true);
        check(&hosts, "other.example", None, false);
        check(&Hosts::Any, "other.example", Some("null"), true);
    }
}
