//! Routes the paths of the site to their handlers, with identity and limits.
//!
//! A [`Site`] is a function from a request to a response. It knows the caller
//! before anything else looks at the request, answers what everybody may know
//! by itself (the manifest, where to get a token, whether we are well), and
//! hands the rest to the MCP endpoints with the identity beside it. How many
//! requests are worked on at once is bounded, and shared fairly between callers.

pub mod admin;
mod caller;
pub mod metrics;
pub mod pages;
mod response;
mod stream_expiry;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Buf;
use fair::{Limits, Permit, Semaphore};
use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use mcp::serve::http::{Body, Endpoint};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tool::Identity;
use url::Url;

use crate::card::{self, CARD_SUFFIX, CATALOG_PATH, Card};
use crate::identity::certificate::CertificateHolder;
use crate::identity::{Denied, Policy, credential};
use crate::listen::{self, CallerStanding, Connection, HEALTH_PATH, TlsConfigs};
use crate::manifest::Manifest;
use admin::Admin;
use caller::API_KEY;
use metrics::MetricsPage;
use pages::Pages;
use response::{full_response, json_error};

/// Where the manifest stands.
pub const MANIFEST_PATH: &str = "/.well-known/cash-mcp.yaml";

/// Whether the process lives, and whether requests should be sent to it.
pub const LIVENESS_PATH: &str = "/healthz";
pub const READINESS_PATH: &str = "/readyz";

/// Where a client learns who issues tokens for us.
pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Where a client may show its key, beside `Authorization`.
/// One of so many permits is kept for callers who hold none.
const RESERVED: usize = 8;

/// How many requests of one session wait for a permit.
const WAITING: usize = 256;

/// How long a request waits for a permit.
const TO_WAIT: Duration = Duration::from_secs(5);

/// Says whether requests can be answered in full now, or what is missing.
pub type Readiness = dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// What a site is made of.
pub struct Parts {
    /// The endpoints by their path, such as `/mcp`.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// The paths of the two-endpoint transport of old clients (GET, POST) and
    /// the endpoint that answers there.
    pub old: Option<(String, String, Endpoint)>,
    /// Who is let in; asked for every request, so that new keys count at once.
    pub policy: Box<dyn Fn() -> Arc<Policy> + Send + Sync>,
    /// The card, as an anonymous caller may see it.
    pub manifest: Box<dyn Fn() -> Option<Manifest> + Send + Sync>,
    /// Who answers operators on this machine.
    pub admin: Option<Box<dyn Admin>>,
    /// Pages for people.
    pub pages: Option<Box<dyn Pages>>,
    /// Who tells Prometheus how we fare.
    pub metrics: Option<Box<dyn MetricsPage>>,
    /// Seconds since 1970.
    pub now: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Whether requests can be answered in full now, or what is missing.
    pub readiness: Box<Readiness>,
    pub config: Config,
}

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Config {
    /// Web pages of these origins may call us.
    pub origins: Vec<String>,
    /// How many requests are worked on at once; an open stream does not count.
    pub concurrency: usize,
    /// Our own address as clients write it, such as `https://gate.example`.
    pub public_url: Option<String>,
    /// Who issues tokens for us.
    pub authorization_servers: Vec<String>,
    /// What anybody may know before they connect; nothing when `None`.
    pub card: Option<Card>,
}

/// What a site has to do at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Sessions of clients.
    pub sessions: usize,
    /// Requests that are worked on, and that wait for their turn.
    pub under_way: usize,
    pub waiting: usize,
}

/// A pointer to a site that does not keep it.
#[derive(Clone)]
pub struct WeakSite(Weak<Shared>);

impl WeakSite {
    /// What the site has to do at the moment; nothing once it is gone.
    pub fn load(&self) -> Load {
        self.0.upgrade().map_or_else(Load::default, |shared| Site(shared).load())
    }
}

/// A running site. Clones are the same site.
#[derive(Clone)]
pub struct Site(Arc<Shared>);

struct Shared {
    parts: Parts,
    /// For requests that are worked on.
    permits: Semaphore,
    draining: AtomicBool,
}

impl Site {
    pub fn new(parts: Parts) -> Site {
        let permits = parts.config.concurrency;
        let limits = Limits { permits, reserve: permits / RESERVED, waiting: WAITING };
        let permits = Semaphore::new(limits);
        Site(Arc::new(Shared { parts, permits, draining: AtomicBool::new(false) }))
    }

    /// From now on new requests are turned away; those under way go on.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
        // Nothing is under way on a stream where a client only listens, and it
        // would keep us waiting for as long as we wait for anybody.
        let Parts { endpoints, old, .. } = &self.0.parts;
        let endpoints = endpoints.values().chain(old.iter().map(|(_, _, endpoint)| endpoint));
        endpoints.for_each(Endpoint::stop_listening);
    }

    /// Serves this site on a socket until `shutdown` is ready ([`listen::listen`]).
    ///
    /// Not generic, and boxed: so everything that a request goes through is compiled
    /// here, and not in the program, which is compiled last, alone and for size.
    pub fn serve(
        self,
        listener: TcpListener,
        shown: Option<TlsConfigs>,
        limits: listen::Limits,
        shutdown: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, std::io::Result<()>> {
        let answer = move |request| {
            let site = self.clone();
            async move { site.respond(request).await }
        };
        Box::pin(listen::listen(listener, shown, limits, answer, shutdown))
    }

    /// Answers one request.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        if let Some(why) = ambiguous_host(&request) {
            return json_error(StatusCode::BAD_REQUEST, why);
        }
        let origin = self.listed_origin(&request);
        let mut response = match (&origin, request.method()) {
            (Some(_), &Method::OPTIONS) => full_response(StatusCode::NO_CONTENT, "", ""),
            (None, _) if self.is_namesake(&request) => foreign_host(),
            _ => self.route(request).await,
        };
        if let Some(origin) = origin {
            allow(&mut response, origin);
        }
        response
    }

    async fn route<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        let path = request.uri().path();
        let metadata = path.strip_prefix(METADATA_PATH);
        if path == HEALTH_PATH {
            return self.health();
        }
        if path == LIVENESS_PATH {
            return well("alive");
        }
        if path == READINESS_PATH {
            return self.readiness().await;
        }
        if path == MANIFEST_PATH {
            return self.manifest(&request);
        }
        if let Some(response) = self.card(&request) {
            return response;
        }
        if let Some(rest) = metadata.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            return self.metadata(rest);
        }
        if self.0.draining.load(Ordering::Relaxed) {
            return busy("the gate is closing");
        }
        // An operator must come through when nobody else does.
        if let Some(pages) = self.0.parts.pages.as_deref()
            && pages::is_below(pages, request.uri().path())
        {
            let site = self.clone();
            let identify = move |shown: &str| {
                let parts = &site.0.parts;
                (parts.policy)().identify(Some(shown), None, (parts.now)()).ok()
            };
            return pages::respond(pages, request, Arc::new(identify)).await;
        }
        let caller = match self.identify(&request) {
            Ok(caller) => caller,
            Err(denied) => return self.refuse(&denied, &request),
        };
        if let Some(connection) = request.extensions().get::<Connection>() {
            connection.learn(match caller.is_anonymous() {
                true => CallerStanding::Anonymous,
                false => CallerStanding::Identified,
            });
        }
        // An operator must come through when nobody else does.
        let _permit = match self.is_admin(path) {
            true => None,
            false => match self.permit(&request, &caller).await {
                Some(permit) => Some(permit),
                None => return busy("too many requests at once; try again in a moment"),
            },
        };
        let credentials = stream_expiry::credentials(&request);
        let response = self.enter(request, caller).await;
        let site = self.clone();
        stream_expiry::watched(response, credentials, move |head| site.identify(head).is_ok())
    }

    /// The right to be worked on, when it is this caller's turn; `None` when
    /// that takes too long.
    async fn permit<B>(&self, request: &Request<B>, caller: &Identity) -> Option<Permit> {
        if self.0.parts.config.concurrency == 0 {
            return None;
        }
        let permits = &self.0.permits;
        let key = permits.key(caller.caller_key(), caller::session(request));
        let permit = permits.acquire(key, caller::urgency(request));
        timeout(TO_WAIT, permit).await.ok()?.ok()
    }

    async fn enter<B>(&self, mut request: Request<B>, identity: Arc<Identity>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        let path = request.uri().path().trim_end_matches('/');
        if let Some(endpoint) = self.0.parts.endpoints.get(path) {
            request.extensions_mut().insert(identity);
            return endpoint.respond(request).await;
        }
        if let Some(admin) = self.0.parts.admin.as_deref()
            && path.starts_with(admin::PATH)
        {
            return admin::respond(admin, request, &identity).await;
        }
        if let Some(page) = self.0.parts.metrics.as_deref()
            && path == metrics::PATH
        {
            return metrics::respond(page, &request, &identity).await;
        }
        let is_old = |old: &str| old == path;
        match &self.0.parts.old {
            Some((get, post, endpoint)) if is_old(get) && request.method() == Method::GET => {
                request.extensions_mut().insert(identity);
                endpoint.respond_sse_get(&request, post)
            }
            Some((_, post, endpoint)) if is_old(post) => {
                request.extensions_mut().insert(identity);
                endpoint.respond_sse_post(request).await
            }
            _ => {
                let known: Vec<&str> = self.0.parts.endpoints.keys().map(String::as_str).collect();
                let message = format!("nothing is here; endpoints: {}", known.join(", "));
                json_error(StatusCode::NOT_FOUND, &message)
            }
        }
    }

    fn identify<B>(&self, request: &Request<B>) -> Result<Arc<Identity>, Denied> {
        // What is shown and cannot even be read is not nothing.
        let text = |name: &HeaderName| match request.headers().get(name).map(HeaderValue::to_str) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(_)) => Err(Denied::Invalid),
        };
        let shown = credential(text(&header::AUTHORIZATION)?, text(&API_KEY)?);
        let holder = request.extensions().get::<CertificateHolder>().map(|holder| &*holder.0);
        let policy = (self.0.parts.policy)();
        let mut caller = policy.identify(shown, holder, (self.0.parts.now)())?;
        if caller.is_anonymous() {
            Arc::make_mut(&mut caller).address = caller::network(request);
        }
        // Operators need a scope of their own and no other.
        if !self.is_admin(request.uri().path()) {
            policy.admit(&caller)?;
        }
        Ok(caller)
    }

    /// Whether a path is for operators, who need a scope of their own.
    fn is_admin(&self, path: &str) -> bool {
        let parts = &self.0.parts;
        parts.admin.is_some() && path.starts_with(admin::PATH)
            || parts.metrics.is_some() && path == metrics::PATH
    }

    /// A pointer that does not keep the site.
    pub fn downgrade(&self) -> WeakSite {
        WeakSite(Arc::downgrade(&self.0))
    }

    /// What the site has to do at the moment.
    pub fn load(&self) -> Load {
        let Parts { endpoints, config, .. } = &self.0.parts;
        Load {
            sessions: endpoints.values().map(Endpoint::n_sessions).sum(),
            under_way: config.concurrency.saturating_sub(self.0.permits.free()),
            waiting: self.0.permits.waiting(),
        }
    }

    fn refuse<B>(&self, denied: &Denied, request: &Request<B>) -> Response<Body> {
        let status = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::UNAUTHORIZED);
        let mut response = json_error(status, &denied.to_string());
        let config = &self.0.parts.config;
        let metadata =
            config.public_url.as_ref().filter(|_| !config.authorization_servers.is_empty());
        let url = metadata.map(|base| format!("{base}{METADATA_PATH}{}", request.uri().path()));
        let policy = (self.0.parts.policy)();
        let challenge = denied.challenge(url.as_deref(), policy.scope.as_deref());
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    fn health(&self) -> Response<Body> {
        if self.0.draining.load(Ordering::Relaxed) {
            return busy("the gate is closing");
        }
        well("ok")
    }

    /// Whether a balancer should send requests here.
    async fn readiness(&self) -> Response<Body> {
        if self.0.draining.load(Ordering::Relaxed) {
            return busy("the gate is closing");
        }
        match (self.0.parts.readiness)().await {
            Ok(()) => well("ready"),
            Err(reason) => busy(&reason),
        }
    }

    /// The endpoints by their path.
    pub fn endpoints(&self) -> &BTreeMap<String, Endpoint> {
        &self.0.parts.endpoints
    }

    fn manifest<B>(&self, request: &Request<B>) -> Response<Body> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return json_error(StatusCode::METHOD_NOT_ALLOWED, "the manifest is read with GET");
        }
        let Some(manifest) = (self.0.parts.manifest)() else {
            return json_error(StatusCode::NOT_FOUND, "this gate publishes no manifest");
        };
        let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let mut response = if wants_json(accept.unwrap_or("*/*")) {
            full_response(StatusCode::OK, "application/json", manifest.to_json())
        } else {
            full_response(StatusCode::OK, "application/yaml", manifest.to_yaml())
        };
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
        let age = format!("public, max-age={}", manifest.ttl());
        if let Ok(age) = HeaderValue::from_str(&age) {
            response.headers_mut().insert(header::CACHE_CONTROL, age);
        }
        response
    }

    /// The server card of an endpoint, or the catalog; `None` for what is neither,
    /// and where they are switched off.
    fn card<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let card = self.0.parts.config.card.as_ref()?;
        let path = request.uri().path();
        let endpoint = path.strip_suffix(CARD_SUFFIX);
        let endpoint = endpoint.filter(|path| self.0.parts.endpoints.contains_key(*path));
        let (document, content_type) = match endpoint {
            Some(endpoint) => (card.of_endpoint(endpoint), card::MEDIA_TYPE),
            None if path == CATALOG_PATH => (card.catalog("/mcp"), "application/json"),
            None => return None,
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Some(json_error(StatusCode::METHOD_NOT_ALLOWED, "it is read with GET"));
        }
        let mut response = full_response(StatusCode::OK, content_type, document.to_string());
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type"),
            (header::CACHE_CONTROL, "public, max-age=3600"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        Some(response)
    }

    fn metadata(&self, rest: &str) -> Response<Body> {
        let config = &self.0.parts.config;
        let Some(base) =
            config.public_url.as_ref().filter(|_| !config.authorization_servers.is_empty())
        else {
            return json_error(StatusCode::NOT_FOUND, "this gate takes no tokens of others");
        };
        let resource = if rest.is_empty() { "/mcp" } else { rest };
        let mut document = json!({
            "resource": format!("{base}{resource}"),
            "authorization_servers": config.authorization_servers,
            "bearer_methods_supported": ["header"],
        });
        if let Some(scope) = &(self.0.parts.policy)().scope {
            document["scopes_supported"] = json!([scope]);
        }
        full_response(StatusCode::OK, "application/json", document.to_string())
    }

    fn listed_origin<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        let origin = request.headers().get(header::ORIGIN)?;
        let page = Url::parse(origin.to_str().ok()?).ok()?;
        let mut listed = self.listed();
        listed.any(|listed| listed.origin() == page.origin()).then(|| origin.clone())
    }

    /// Returns whether a page is on the host of a listed origin, but is another
    /// origin: the endpoints only look at hosts. Pages of this machine are always
    /// let in.
    fn is_namesake<B>(&self, request: &Request<B>) -> bool {
        let page = request.headers().get(header::ORIGIN).and_then(|page| page.to_str().ok());
        let Some(page) = page.and_then(|page| Url::parse(page).ok()) else { return false };
        let here = matches!(page.host_str(), Some("localhost" | "127.0.0.1" | "[::1]") | None);
        !here && self.listed().any(|listed| listed.host_str() == page.host_str())
    }

    fn listed(&self) -> impl Iterator<Item = Url> {
        self.0.parts.config.origins.iter().filter_map(|origin| Url::parse(origin).ok())
    }
}

/// Returns whether JSON is asked for rather than YAML. YAML wins when both are
/// equal.
fn wants_json(accept: &str) -> bool {
    let weight = |wanted: &str| {
        accept
            .split(',')
            .filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let kind = parts.next()?;
                let q = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
                (kind == wanted).then_some(q.unwrap_or(1.0))
            })
            .fold(0.0, f32::max)
    };
    weight("application/yaml") < weight("application/json")
}

/// Lets a listed origin's pages read the response and send what MCP needs.
fn allow(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    let fixed = [
        ("access-control-allow-methods", "GET, POST, DELETE, OPTIONS"),
        (
            "access-control-allow-headers",
            "authorization, content-type, last-event-id, mcp-method, mcp-name, \
             mcp-protocol-version, mcp-session-id, x-api-key",
        ),
        ("access-control-expose-headers", "mcp-session-id, www-authenticate"),
        ("access-control-max-age", "600"),
    ];
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Why it is not clear by which name a request asks for us, or which page it
/// comes from. Whoever looks at one of two answers could look at the wrong one.
fn ambiguous_host<B>(request: &Request<B>) -> Option<&'static str> {
    let headers = request.headers();
    let is_given_twice = |name| 1 < headers.get_all(name).iter().count();
    if is_given_twice(header::HOST) || is_given_twice(header::ORIGIN) {
        return Some("`Host` and `Origin` may be given once");
    }
    let (host, target) = (headers.get(header::HOST)?, request.uri().authority()?);
    let is_same = target.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes());
    (!is_same).then_some("`Host` and the request's target name different hosts")
}

/// Returns what a page gets that may not call us, as the endpoints say it.
fn foreign_host() -> Response<Body> {
    let message = "pages of this origin may not talk to this server: another scheme or port is \
                   another origin";
    let error =
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": message}});
    full_response(StatusCode::FORBIDDEN, "application/json", error.to_string())
}

fn busy(message: &str) -> Response<Body> {
    let mut response = json_error(StatusCode::SERVICE_UNAVAILABLE, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn well(status: &str) -> Response<Body> {
    full_response(StatusCode::OK, "application/json", json!({ "status": status }).to_string())
}

#[cfg(test)]
mod tests;
