//! Routes HTTP requests to health checks, manifest, console, admin and MCP endpoints.
//!
//! A [`Site`] is a function from a request to a response. It answers public paths itself
//! (health, manifest, OAuth metadata), authenticates the caller of any other request, and
//! passes it on with the identity in its extensions. The number of requests in progress
//! is bounded, and shared fairly between callers.

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

/// The path of the manifest.
pub const MANIFEST_PATH: &str = "/.well-known/cash-mcp.yaml";

/// The paths for the liveness and readiness probes of an orchestrator.
pub const LIVENESS_PATH: &str = "/healthz";
pub const READINESS_PATH: &str = "/readyz";

/// The path where a client learns who issues tokens for us (RFC 9728).
pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// One in so many permits is reserved for callers who hold none.
const RESERVED_SHARE: usize = 8;

/// How many requests of one session may wait for a permit.
const MAX_WAITING: usize = 256;

/// How long a request waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks whether requests can be answered now; the error says what is missing.
pub type Readiness = dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// Everything that a site consists of.
pub struct Components {
    /// The endpoints by their path, such as `/mcp`.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// The old HTTP+SSE transport: its path for GET, its path for POST, and the endpoint.
    pub legacy_sse: Option<(String, String, Endpoint)>,
    /// Returns who is accepted; asked for every request, so that new keys count at once.
    pub policy: Box<dyn Fn() -> Arc<Policy> + Send + Sync>,
    /// Returns the manifest, as an anonymous caller may see it.
    pub manifest: Box<dyn Fn() -> Option<Manifest> + Send + Sync>,
    /// Answers operators on this machine, under `/admin/`.
    pub admin: Option<Box<dyn Admin>>,
    /// The pages for people, such as the console.
    pub pages: Option<Box<dyn Pages>>,
    /// Renders the metrics for Prometheus.
    pub metrics: Option<Box<dyn MetricsPage>>,
    /// Returns the time in seconds since 1970.
    pub now: Box<dyn Fn() -> u64 + Send + Sync>,
    pub readiness: Box<Readiness>,
    pub config: Config,
}

/// The configuration of a site.
#[derive(Clone, Debug)]
pub struct Config {
    /// The origins whose web pages may call us (CORS).
    pub origins: Vec<String>,
    /// How many requests may be in progress at once; an open stream does not count.
    pub concurrency: usize,
    /// Our own URL as clients write it, such as `https://gate.example`.
    pub public_url: Option<String>,
    /// The URLs of the issuers of tokens for us.
    pub authorization_servers: Vec<String>,
    /// The server card; `None` switches cards off.
    pub card: Option<Card>,
}

/// The current load of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The number of sessions.
    pub sessions: usize,
    /// The number of requests in progress.
    pub under_way: usize,
    /// The number of requests that wait for a permit.
    pub waiting: usize,
}

/// A weak pointer to a site.
#[derive(Clone)]
pub struct WeakSite(Weak<Shared>);

impl WeakSite {
    /// The current load of the site; zero when it was dropped.
    pub fn load(&self) -> Load {
        self.0.upgrade().map_or_else(Load::default, |shared| Site(shared).load())
    }
}

/// A running site. Clones are the same site.
#[derive(Clone)]
pub struct Site(Arc<Shared>);

struct Shared {
    components: Components,
    /// One permit for each request that may be in progress.
    permits: Semaphore,
    draining: AtomicBool,
}

impl Site {
    pub fn new(components: Components) -> Site {
        let permits = components.config.concurrency;
        let limits = Limits { permits, reserved: permits / RESERVED_SHARE, waiting: MAX_WAITING };
        let permits = Semaphore::new(limits);
        Site(Arc::new(Shared { components, permits, draining: AtomicBool::new(false) }))
    }

    /// Refuses new requests from now on; requests in progress go on.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
        // A stream on which a client only listens would never end by itself.
        let Components { endpoints, legacy_sse, .. } = &self.0.components;
        let endpoints =
            endpoints.values().chain(legacy_sse.iter().map(|(_, _, endpoint)| endpoint));
        endpoints.for_each(Endpoint::stop_listening);
    }

    /// Serves this site on a socket until `shutdown` is ready ([`listen::listen`]).
    ///
    /// Boxed and not generic, so that the code for requests is compiled in this crate and
    /// not in the binary, which is compiled last and for size.
    pub fn serve(
        self,
        listener: TcpListener,
        tls: Option<TlsConfigs>,
        limits: listen::Limits,
        shutdown: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, std::io::Result<()>> {
        let answer = move |request| {
            let site = self.clone();
            async move { site.respond(request).await }
        };
        Box::pin(listen::listen(listener, tls, limits, answer, shutdown))
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
            (None, _) if self.is_other_origin_of_listed_host(&request) => foreign_origin(),
            _ => self.route(request).await,
        };
        if let Some(origin) = origin {
            add_cors_headers(&mut response, origin);
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
        // The console needs no permit, so that operators get through under any load.
        if let Some(pages) = self.0.components.pages.as_deref()
            && pages::is_below(pages, request.uri().path())
        {
            let site = self.clone();
            let identify = move |shown: &str| {
                let components = &site.0.components;
                (components.policy)().identify(Some(shown), None, (components.now)()).ok()
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
        // Operators need no permit, so that they get through under any load.
        let _permit = match self.is_admin(path) {
            true => None,
            false => match self.permit(&request, &caller).await {
                Some(permit) => Some(permit),
                None => return busy("too many requests at once; try again in a moment"),
            },
        };
        let credentials = stream_expiry::credentials(&request);
        let response = self.answer(request, caller).await;
        let site = self.clone();
        stream_expiry::end_with_credentials(response, credentials, move |head| {
            site.identify(head).is_ok()
        })
    }

    /// Waits for a permit to answer the request; `None` when that takes too long.
    async fn permit<B>(&self, request: &Request<B>, caller: &Identity) -> Option<Permit> {
        if self.0.components.config.concurrency == 0 {
            return None;
        }
        let permits = &self.0.permits;
        let key = permits.key(caller.caller_key(), caller::session(request));
        let permit = permits.acquire(key, caller::priority(request));
        timeout(PERMIT_TIMEOUT, permit).await.ok()?.ok()
    }

    /// Answers the request of an authenticated caller.
    async fn answer<B>(&self, mut request: Request<B>, identity: Arc<Identity>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        let path = request.uri().path().trim_end_matches('/');
        if let Some(endpoint) = self.0.components.endpoints.get(path) {
            request.extensions_mut().insert(identity);
            return endpoint.respond(request).await;
        }
        if let Some(admin) = self.0.components.admin.as_deref()
            && path.starts_with(admin::PATH)
        {
            return admin::respond(admin, request, &identity).await;
        }
        if let Some(page) = self.0.components.metrics.as_deref()
            && path == metrics::PATH
        {
            return metrics::respond(page, &request, &identity).await;
        }
        let is_here = |legacy: &str| legacy == path;
        match &self.0.components.legacy_sse {
            Some((get, post, endpoint)) if is_here(get) && request.method() == Method::GET => {
                request.extensions_mut().insert(identity);
                endpoint.respond_sse_get(&request, post)
            }
            Some((_, post, endpoint)) if is_here(post) => {
                request.extensions_mut().insert(identity);
                endpoint.respond_sse_post(request).await
            }
            _ => {
                let known: Vec<&str> =
                    self.0.components.endpoints.keys().map(String::as_str).collect();
                let message = format!("nothing is here; endpoints: {}", known.join(", "));
                json_error(StatusCode::NOT_FOUND, &message)
            }
        }
    }

    /// Authenticates the caller of a request.
    fn identify<B>(&self, request: &Request<B>) -> Result<Arc<Identity>, Denied> {
        // A malformed header is an invalid credential, not a missing one.
        let texts = |name: &HeaderName| {
            let values = request.headers().get_all(name).iter().map(HeaderValue::to_str);
            values.collect::<Result<Vec<_>, _>>().map_err(|_| Denied::Invalid)
        };
        let shown = credential(&texts(&header::AUTHORIZATION)?, &texts(&API_KEY)?)?;
        let holder = request.extensions().get::<CertificateHolder>().map(|holder| &*holder.0);
        let policy = (self.0.components.policy)();
        let mut caller = policy.identify(shown, holder, (self.0.components.now)())?;
        if caller.is_anonymous() {
            Arc::make_mut(&mut caller).address = caller::network(request);
        }
        // Operators need a scope of their own instead.
        if !self.is_admin(request.uri().path()) {
            policy.admit(&caller)?;
        }
        Ok(caller)
    }

    /// Returns whether a path is for operators, who need a scope of their own.
    fn is_admin(&self, path: &str) -> bool {
        let components = &self.0.components;
        components.admin.is_some() && path.starts_with(admin::PATH)
            || components.metrics.is_some() && path == metrics::PATH
    }

    /// Returns a weak pointer to the site.
    pub fn downgrade(&self) -> WeakSite {
        WeakSite(Arc::downgrade(&self.0))
    }

    /// The current load of the site.
    pub fn load(&self) -> Load {
        let Components { endpoints, config, .. } = &self.0.components;
        Load {
            sessions: endpoints.values().map(Endpoint::n_sessions).sum(),
            under_way: config.concurrency.saturating_sub(self.0.permits.free()),
            waiting: self.0.permits.waiting(),
        }
    }

    fn refuse<B>(&self, denied: &Denied, request: &Request<B>) -> Response<Body> {
        let status = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::UNAUTHORIZED);
        let mut response = json_error(status, &denied.to_string());
        let config = &self.0.components.config;
        let metadata =
            config.public_url.as_ref().filter(|_| !config.authorization_servers.is_empty());
        let url = metadata.map(|base| format!("{base}{METADATA_PATH}{}", request.uri().path()));
        let policy = (self.0.components.policy)();
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

    /// Answers the readiness probe: whether a load balancer should send requests here.
    async fn readiness(&self) -> Response<Body> {
        if self.0.draining.load(Ordering::Relaxed) {
            return busy("the gate is closing");
        }
        match (self.0.components.readiness)().await {
            Ok(()) => well("ready"),
            Err(reason) => busy(&reason),
        }
    }

    /// The endpoints by their path.
    pub fn endpoints(&self) -> &BTreeMap<String, Endpoint> {
        &self.0.components.endpoints
    }

    fn manifest<B>(&self, request: &Request<B>) -> Response<Body> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return json_error(StatusCode::METHOD_NOT_ALLOWED, "the manifest is read with GET");
        }
        let Some(manifest) = (self.0.components.manifest)() else {
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

    /// Answers a request for a server card or the catalog; `None` for other paths, and if
    /// cards are switched off.
    fn card<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let card = self.0.components.config.card.as_ref()?;
        let path = request.uri().path();
        let endpoint = path.strip_suffix(CARD_SUFFIX);
        let endpoint = endpoint.filter(|path| self.0.components.endpoints.contains_key(*path));
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

    /// Answers a request for the OAuth metadata of the resource at the path `rest`.
    fn metadata(&self, rest: &str) -> Response<Body> {
        let config = &self.0.components.config;
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
        if let Some(scope) = &(self.0.components.policy)().scope {
            document["scopes_supported"] = json!([scope]);
        }
        full_response(StatusCode::OK, "application/json", document.to_string())
    }

    /// Returns the `Origin` of a request, if the configuration lists it.
    fn listed_origin<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        let origin = request.headers().get(header::ORIGIN)?;
        let page = Url::parse(origin.to_str().ok()?).ok()?;
        let mut listed = self.listed();
        listed.any(|listed| listed.origin() == page.origin()).then(|| origin.clone())
    }

    /// Returns whether the `Origin` has the host of a listed origin, but another scheme or
    /// port: the endpoints compare only hosts. Pages of this machine are always accepted.
    fn is_other_origin_of_listed_host<B>(&self, request: &Request<B>) -> bool {
        let page = request.headers().get(header::ORIGIN).and_then(|page| page.to_str().ok());
        let Some(page) = page.and_then(|page| Url::parse(page).ok()) else { return false };
        let here = matches!(page.host_str(), Some("localhost" | "127.0.0.1" | "[::1]") | None);
        !here && self.listed().any(|listed| listed.host_str() == page.host_str())
    }

    fn listed(&self) -> impl Iterator<Item = Url> {
        self.0.components.config.origins.iter().filter_map(|origin| Url::parse(origin).ok())
    }
}

/// Returns whether an `Accept` header prefers JSON to YAML.
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

/// Adds the CORS headers that let pages of an origin use MCP.
fn add_cors_headers(response: &mut Response<Body>, origin: HeaderValue) {
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

/// Returns an error if the host or the origin of a request is ambiguous, so that two
/// checks could use different ones.
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

/// The error for a page of an origin that may not call us, in the form of the endpoints.
fn foreign_origin() -> Response<Body> {
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
