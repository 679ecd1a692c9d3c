//! Finds out to whom a request belongs, so that callers share the site fairly.
//!
//! A caller with credentials is one caller, whatever it connects from and
//! however often. Of an anonymous one only the address is known. Within each,
//! sessions share alike.

use std::net::{IpAddr, Ipv6Addr};

use fair::Urgency;
use http::{HeaderName, Method, Request};
use mcp::revision::{header, method};

use crate::listen::Peer;

/// Where an API key may stand, beside `Authorization`.
pub(super) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The session that a request says it belongs to. Whether there is one is known
/// later: what names one that does not exist is refused at once.
pub(super) fn session<B>(request: &Request<B>) -> Option<&[u8]> {
    let headers = request.headers();
    // Whoever says so belongs to none, and must not be able to invent any.
    if headers.contains_key(header::METHOD) {
        return None;
    }
    headers.get(header::SESSION_ID).map(|session| session.as_bytes())
}

/// Returns whether a request is the first of a client.
pub(super) fn urgency<B>(request: &Request<B>) -> Urgency {
    let asked = request.headers().get(header::METHOD);
    let greets = asked.is_none_or(|asked| asked == method::INITIALIZE || asked == method::DISCOVER);
    match request.method() == Method::POST && session(request).is_none() && greets {
        true => Urgency::Greeting,
        false => Urgency::Ordinary,
    }
}

/// Returns where a request comes from: whoever has one address of version 6 has
/// very many.
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
        let urgency = |headers: &[(&str, &str)]| urgency(&request(headers, "1.2.3.4:5"));
        assert_eq!(urgency(&[]), Urgency::Greeting);
        assert_eq!(urgency(&[("mcp-method", "server/discover")]), Urgency::Greeting);
        assert_eq!(urgency(&[("mcp-method", "tools/call")]), Urgency::Ordinary);
        assert_eq!(urgency(&[("mcp-session-id", "1")]), Urgency::Ordinary);
    }

    #[test]
    fn a_request_without_sessions_cannot_invent_one() {
        let named = [("mcp-session-id", "1")];
        assert_eq!(session(&request(&named, "1.2.3.4:5")), Some(&b"1"[..]));
        let stateless = [("mcp-session-id", "1"), ("mcp-method", "tools/call")];
        assert_eq!(session(&request(&stateless, "1.2.3.4:5")), None);
    }
}
