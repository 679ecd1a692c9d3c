//! The path `/metrics`, for Prometheus, and who may read it.
//!
//! A scraper needs the scope [`SCOPE`] or that of operators. Where callers need no
//! credentials, a scraper on this machine needs none either. Web pages may not read
//! metrics, because they contain the names of tools.

use std::net::IpAddr;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use mcp::serve::http::Body;
use tool::Identity;

use super::admin;
use super::response::{full_response, json_error};
use crate::listen::Peer;

/// The path of the metrics.
pub const PATH: &str = "/metrics";

/// The scope of a caller that may read them.
pub const SCOPE: &str = "metrics";

/// Renders the metrics.
#[async_trait]
pub trait MetricsPage: Send + Sync {
    /// Returns the content type and the text.
    async fn write(&self) -> (&'static str, String);
}

/// Returns whether the `Host` of a request is `localhost` or a loopback address. By DNS
/// rebinding a web page can make its own host name lead here, but not these.
pub fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let authority = host.parse::<http::uri::Authority>();
    let name = authority.as_ref().map_or("", |authority| authority.host());
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

pub(super) async fn respond<B>(
    page: &dyn MetricsPage,
    request: &Request<B>,
    caller: &Identity,
) -> Response<Body> {
    let peer = request.extensions().get::<Peer>();
    let is_here = peer.is_some_and(|peer| peer.0.ip().to_canonical().is_loopback());
    let has_scope = [SCOPE, admin::SCOPE].into_iter().any(|scope| caller.scopes.contains(scope));
    let is_local = is_here && names_this_machine(request.headers());
    let may_read = has_scope || (caller.is_anonymous() && is_local);
    if !may_read || request.headers().contains_key(header::ORIGIN) {
        let message = format!("metrics take a key with the scope `{SCOPE}`");
        let mut response = json_error(StatusCode::FORBIDDEN, &message);
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"metrics\"";
        let challenge = HeaderValue::from_static(challenge);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        return response;
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return json_error(StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET");
    }
    let (content_type, text) = page.write().await;
    full_response(StatusCode::OK, content_type, text)
}
