//! Derives the network, session and priority of a request, for fair sharing of permits.
//!
//! A caller with credentials is one caller, whatever it connects from. Anonymous callers
//! are told apart by their network. The sessions of a caller share its permits equally.

use std::net::{IpAddr, Ipv6Addr};

use fair::Priority;
use http::{HeaderName, Method, Request};
use mcp::revision::{header, method};

use crate::listen::Peer;

/// The header for an API key, besides `Authorization`.
pub(super) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Returns the session id that a request names. It may not exist; then the endpoint
/// refuses the request.
pub(super) fn session<B>(request: &Request<B>) -> Option<&[u8]> {
    let headers = request.headers();
    // Requests of the stateless protocol have no session, and must not invent one.
    if headers.contains_key(header::METHOD) {
        return None;
    }
    headers.get(header::SESSION_ID).map(|session| session.as_bytes())
}

/// Returns `Handshake` for the first request of a client, which comes before others.
pub(super) fn priority<B>(request: &Request<B>) -> Priority {
    let asked = request.headers().get(header::METHOD);
    let is_handshake =
        asked.is_none_or(|asked| asked == method::INITIALIZE || asked == method::DISCOVER);
    match request.method() == Method::POST && session(request).is_none() && is_handshake {
        true => Priority::Handshake,
        false => Priority::Normal,
    }
}

/// Returns the network that a request comes from: the IPv4 address, or the first 64 bits
/// of an IPv6 address, because a client usually has all addresses below them.
pub(super) fn network<B>(request: &Request<B>) -> Option<IpAddr> {
    let Peer(peer) = request.extensions().get::<Peer>()?;
    Some(match peer.ip().to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)], peer: &str) -> Request<()> {
        let mut request = Request::builder().method("POST").uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).unwrap();
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        request
    }

    #[test]
    fn an_anonymous_caller_is_its_network() {
        let at = |peer: &str| network(&request(&[], peer));
        assert_eq!(at("1.2.3.4:5"), at("1.2.3.4:6"));
        assert_eq!(at("1.2.3.4:5"), at("[::ffff:1.2.3.4]:5"));
        assert_ne!(at("1.2.3.4:5"), at("1.2.3.5:5"));
        assert_eq!(at("[2001:db8::1]:5"), at("[2001:db8::ffff:1]:5"));
        assert_ne!(at("[2001:db8::1]:5"), at("[2001:db8:0:1::1]:5"));
    }

    #[test]
    fn a_greeting_has_no_session_and_asks_for_nothing_else() {
        let priority = |headers: &[(&str, &str)]| priority(&request(headers, "1.2.3.4:5"));
        assert_eq!(priority(&[]), Priority::Handshake);
        assert_eq!(priority(&[("mcp-method", "server/discover")]), Priority::Handshake);
        assert_eq!(priority(&[("mcp-method", "tools/call")]), Priority::Normal);
        assert_eq!(priority(&[("mcp-session-id", "1")]), Priority::Normal);
    }

    #[test]
    fn a_request_without_sessions_cannot_invent_one() {
        let named = [("mcp-session-id", "1")];
        assert_eq!(session(&request(&named, "1.2.3.4:5")), Some(&b"1"[..]));
        let stateless = [("mcp-session-id", "1"), ("mcp-method", "tools/call")];
        assert_eq!(session(&request(&stateless, "1.2.3.4:5")), None);
    }
}
