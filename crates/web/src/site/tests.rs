use std::sync::Mutex;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use tool::FixedProvider;

use super::*;
use crate::identity::{Anonymous, key::KeyRing};
use crate::listen::Peer;
use crate::manifest::{CASH_VERSION, SuggestedNamespace};

fn manifest() -> Manifest {
    Manifest {
        cash_version: CASH_VERSION.into(),
        last_updated: "2026-11-15".into(),
        publisher: "Us".into(),
        copyright: None,
        endpoint: "https://gate.example/mcp".into(),
        cache_ttl: None,
        authentication: None,
        namespaces: vec![SuggestedNamespace { suggested: "a".into(), description: "A.".into() }],
        skills: vec![],
        signature: None,
        whole: None,
    }
}

/// A site whose endpoint has one tool that says who calls.
fn site(change: impl FnOnce(&mut Components, &mut Policy)) -> Site {
    let (mut components, mut policy) = (components(), Policy::open());
    change(&mut components, &mut policy);
    let policy = Arc::new(policy);
    components.policy = Box::new(move || Arc::clone(&policy));
    Site::new(components)
}

fn components() -> Components {
    let listing = testkit::listing(vec![testkit::tool("who", "Who.", &json!({"type": "object"}))]);
    let provider = testkit::Scripted::new(listing, |_| Ok(tool::Reply::text("it answers")));
    let endpoint =
        Endpoint::new(Arc::new(FixedProvider(provider)), mcp::serve::http::Options::default());
    Components {
        endpoints: BTreeMap::from([("/mcp".to_owned(), endpoint)]),
        legacy_sse: None,
        policy: Box::new(|| Arc::new(Policy::open())),
        manifest: Box::new(|| Some(manifest())),
        admin: Some(Box::new(Echo)),
        pages: None,
        metrics: None,
        now: Box::new(|| 1000),
        readiness: Box::new(|| Box::pin(async { Ok(()) })),
        config: Config {
            origins: vec!["https://page.example".into()],
            concurrency: 4,
            public_url: Some("https://gate.example".into()),
            authorization_servers: vec!["https://login.example".into()],
            card: None,
        },
    }
}

async fn ask(
    site: &Site,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, String, String) {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let response = site.respond(request.body(Full::new(bytes::Bytes::from(body))).unwrap()).await;
    let head = response
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()));
    let (status, head) = (response.status().as_u16(), head.collect::<String>());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, head, String::from_utf8(body.to_vec()).unwrap())
}

const CALL: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/list"),
];

#[tokio::test]
async fn an_open_site_answers_everybody() {
    let (status, _, body) = ask(&site(|_, _| ()), "POST", "/mcp", CALL).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("who"));
}

#[tokio::test]
async fn a_closed_site_wants_a_key_and_says_where_to_get_a_token() {
    let secret = Mutex::new(String::new());
    let closed = site(|_, policy| {
        let mut keys = KeyRing::default();
        *secret.lock().unwrap() = keys.create("ci", [1; 20], 0).unwrap().secret;
        (policy.anonymous, policy.keys) = (Anonymous::Refused, keys);
    });
    let (status, head, _) = ask(&closed, "POST", "/mcp", CALL).await;
    assert_eq!(status, 401);
    assert!(
        head.contains(
            "resource_metadata=\"https://gate.example/.well-known/oauth-protected-resource/mcp\""
        ),
        "{head}"
    );
    let with = |value: &'static str| [CALL, &[("authorization", value)]].concat();
    let (status, head, _) = ask(&closed, "POST", "/mcp", &with("Bearer gate_ci_wrong")).await;
    assert_eq!(status, 401);
    assert!(head.contains("invalid_token"), "{head}");
    let secret = secret.lock().unwrap().clone();
    let key = [CALL, &[("x-api-key", secret.as_str())]].concat();
    assert_eq!(ask(&closed, "POST", "/mcp", &key).await.0, 200);
}

#[tokio::test]
async fn a_scope_that_is_missing_is_forbidden_rather_than_unauthorised() {
    let scoped = site(|_, policy| {
        policy.keys.create("ci", [1; 20], 0).unwrap();
        policy.scope = Some("mcp:call".into());
    });
    let secret = KeyRing::default().create("ci", [1; 20], 0).unwrap().secret;
    let key = [CALL, &[("x-api-key", secret.as_str())]].concat();
    let (status, head, _) = ask(&scoped, "POST", "/mcp", &key).await;
    assert_eq!(status, 403);
    assert!(head.contains("insufficient_scope"), "{head}");
    let (status, head, _) = ask(&scoped, "POST", "/mcp", CALL).await;
    assert_eq!(status, 401, "who shows nothing lacks it as well");
    assert!(head.contains("scope=\"mcp:call\""), "{head}");
}

#[tokio::test]
async fn a_credential_that_is_no_text_is_not_nothing() {
    let open = site(|_, _| ());
    for (name, value) in [("authorization", "Bearer \u{ff}"), ("x-api-key", "\u{e4}")] {
        let bytes: Vec<u8> = value.chars().map(|c| c as u8).collect();
        let mut request = Request::builder().method("POST").uri("/mcp").header("host", "localhost");
        for (name, value) in CALL {
            request = request.header(*name, *value);
        }
        let request = request.header(name, HeaderValue::from_bytes(&bytes).unwrap());
        let request = request.body(Full::new(bytes::Bytes::from("{}"))).unwrap();
        assert_eq!(open.respond(request).await.status(), StatusCode::UNAUTHORIZED, "{name}");
    }
}

#[tokio::test]
async fn the_manifest_is_yaml_unless_json_is_preferred() {
    let site = site(|_, _| ());
    for (accept, kind) in [
        ("*/*", "application/yaml"),
        ("application/yaml", "application/yaml"),
        ("application/json", "application/json"),
        ("application/json;q=0.5, application/yaml", "application/yaml"),
    ] {
        let (status, head, body) = ask(&site, "GET", MANIFEST_PATH, &[("accept", accept)]).await;
        assert_eq!(status, 200);
        assert!(head.contains(&format!("content-type: {kind}")), "{accept}: {head}");
        assert!(head.contains("vary: Accept"));
        assert_eq!(crate::manifest::parse(&body).unwrap().0, manifest());
    }
    assert_eq!(ask(&site, "POST", MANIFEST_PATH, &[]).await.0, 405);
}

#[tokio::test]
async fn a_client_learns_who_issues_tokens() {
    let (status, _, body) = ask(&site(|_, _| ()), "GET", METADATA_PATH, &[]).await;
    let document: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200);
    assert_eq!(document["resource"], "https://gate.example/mcp");
    assert!(document.get("scopes_supported").is_none());
    let scoped = site(|_, policy| policy.scope = Some("mcp:call".into()));
    let (_, _, body) = ask(&scoped, "GET", METADATA_PATH, &[]).await;
    assert!(body.contains("\"scopes_supported\":[\"mcp:call\"]"), "{body}");
    let without = site(|components, _| components.config.authorization_servers.clear());
    assert_eq!(ask(&without, "GET", METADATA_PATH, &[]).await.0, 404);
}

#[tokio::test]
async fn only_pages_of_listed_origins_are_let_in() {
    let site = site(|_, _| ());
    let listed = [("origin", "https://page.example")];
    let (status, head, _) = ask(&site, "OPTIONS", "/mcp", &listed).await;
    assert_eq!(status, 204);
    assert!(head.contains("access-control-allow-origin: https://page.example"), "{head}");
    let other = [("origin", "https://evil.example")];
    let (status, head, _) = ask(&site, "OPTIONS", "/mcp", &other).await;
    assert_ne!(status, 204);
    assert!(!head.contains("access-control"), "{head}");
    for namesake in ["http://page.example", "https://page.example:8443"] {
        let (status, head, body) = ask(&site, "POST", "/mcp", &[("origin", namesake)]).await;
        assert_eq!(status, 403, "{namesake}");
        assert!(body.contains("-32000") && !head.contains("access-control"), "{head}{body}");
    }
    let (status, _, _) =
        ask(&site, "OPTIONS", "/mcp", &[("origin", "https://PAGE.example:443")]).await;
    assert_eq!(status, 204, "the same origin in other words");
}

/// A ring that somebody may change.
type Changing = Arc<Mutex<Policy>>;

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_key_that_opened_it() {
    let policy: Changing = Arc::new(Mutex::new(Policy::open()));
    let secret = policy.lock().unwrap().keys.create("ci", [1; 20], 0).unwrap().secret;
    let known = Arc::clone(&policy);
    let mut components = components();
    components.policy = Box::new(move || Arc::new(known.lock().unwrap().clone()));
    let site = Site::new(components);
    let request = Request::builder().method("GET").uri("/mcp").header("x-api-key", &secret);
    let credentials = stream_expiry::credentials(&request.body(()).unwrap());
    let events = futures::StreamExt::chain(
        futures::stream::iter([bytes::Bytes::from("first")]),
        futures::stream::pending(),
    );
    let response = Response::new(Body::events(Box::pin(events)));
    let is_good = {
        let site = site.clone();
        move |head: &Request<()>| site.identify(head).is_ok()
    };
    let mut body = stream_expiry::end_with_credentials(response, credentials, is_good).into_body();
    assert!(body.frame().await.is_some());
    let quiet = tokio::time::timeout(Duration::from_secs(60), body.frame()).await;
    assert!(quiet.is_err(), "a good key is no reason to end");
    policy.lock().unwrap().keys.revoke("ci", 5).unwrap();
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn a_closing_site_turns_new_requests_away() {
    let site = site(|_, _| ());
    assert_eq!(ask(&site, "GET", "/health", &[]).await.0, 200);
    assert_eq!(ask(&site, "GET", "/readyz", &[]).await.0, 200);
    site.drain();
    assert_eq!(ask(&site, "POST", "/mcp", CALL).await.0, 503);
    assert_eq!(ask(&site, "GET", "/health", &[]).await.0, 503);
    assert_eq!(ask(&site, "GET", "/readyz", &[]).await.0, 503);
    assert_eq!(ask(&site, "GET", "/healthz", &[]).await.0, 200, "nobody needs to restart it");
}

#[tokio::test]
async fn a_site_that_lacks_something_is_alive_and_not_ready() {
    let lacking = site(|components, _| {
        components.readiness = Box::new(|| Box::pin(async { Err("the store is away".to_owned()) }));
    });
    let (status, _, body) = ask(&lacking, "GET", "/readyz", &[]).await;
    assert!(status == 503 && body.contains("the store is away"), "{status} {body}");
    assert_eq!(ask(&lacking, "GET", "/healthz", &[]).await.0, 200);
    assert_eq!(ask(&lacking, "POST", "/mcp", CALL).await.0, 200, "it answers what it can");
}

#[tokio::test]
async fn too_many_requests_at_once_are_told_to_come_back() {
    let full = site(|components, _| components.config.concurrency = 0);
    let (status, head, _) = ask(&full, "POST", "/mcp", CALL).await;
    assert_eq!(status, 503);
    assert!(head.contains("retry-after: 1"));
}

#[test]
fn a_listening_stream_is_known_however_its_header_is_written() {
    let watched = |method: &str| {
        let request = Request::builder().method("POST").uri("/mcp").header("x-api-key", "k");
        let request = request.header("mcp-method", method).body(()).unwrap();
        stream_expiry::credentials(&request).is_some()
    };
    let base64 = "=?base64?c3Vic2NyaXB0aW9ucy9saXN0ZW4=?=";
    for method in ["subscriptions/listen", base64, "=?base64?!?=", "Subscriptions/Listen", ""] {
        assert!(watched(method), "{method}");
    }
    assert!(!watched("tools/call"), "a call is let finish");
}

/// A site with one tool that waits until it is told to go on, and who waits.
fn slow(concurrency: usize) -> (Site, Arc<tokio::sync::Notify>) {
    let go_on = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&go_on);
    let site = site(|components, policy| {
        policy.keys.create("heavy", [1; 20], 0).unwrap();
        policy.keys.create("light", [2; 20], 0).unwrap();
        let slow = Slow(told);
        let endpoint = Endpoint::new(
            Arc::new(FixedProvider(Arc::new(slow))),
            mcp::serve::http::Options::default(),
        );
        components.endpoints.insert("/mcp".to_owned(), endpoint);
        components.config.concurrency = concurrency;
    });
    (site, go_on)
}

/// A provider that answers nothing before it is told to go on.
struct Slow(Arc<tokio::sync::Notify>);

#[async_trait::async_trait]
impl tool::Provider for Slow {
    fn listing(&self) -> Arc<tool::Listing> {
        let tool = testkit::tool("wait", "Waits.", &json!({"type": "object"}));
        Arc::new(testkit::listing(vec![tool]))
    }

    fn events(&self) -> futures::stream::BoxStream<'static, tool::Event> {
        Box::pin(futures::stream::pending())
    }

    async fn ask(&self, _: tool::Ask, _: &tool::Context) -> Result<tool::Reply, tool::Failure> {
        self.0.notified().await;
        Ok(tool::Reply::text("done"))
    }
}

/// A call of the tool that waits, by the holder of a key.
fn wait_call(key: &str) -> Request<Full<bytes::Bytes>> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = Request::builder().method("POST").uri("/mcp").header("host", "localhost");
    let request = request
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "wait")
        .header("x-api-key", key);
    request.body(Full::new(bytes::Bytes::from(body))).unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_callers_slow_calls_lock_nobody_out() {
    let (site, _go_on) = slow(16);
    let secret = |name: &str, random| KeyRing::default().create(name, random, 0).unwrap().secret;
    let (heavy, light) = (secret("heavy", [1; 20]), secret("light", [2; 20]));
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let (site, request) = (site.clone(), wait_call(&heavy));
            tokio::spawn(async move { site.respond(request).await.status() })
        })
        .collect();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // One who shows another key is let in, and whether we are well is told.
    let request = [CALL, &[("x-api-key", light.as_str())]].concat();
    assert_eq!(ask(&site, "POST", "/mcp", &request).await.0, 200);
    assert_eq!(ask(&site, "GET", "/health", &[]).await.0, 200);
    // A greeting of the same caller is let in as well.
    let hello = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("x-api-key", heavy.as_str()),
    ];
    assert_ne!(ask(&site, "POST", "/mcp", &hello).await.0, 503);
    // Whoever waits too long is told.
    let told = futures::future::select_all(calls).await.0.unwrap();
    assert_eq!(told, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn an_unknown_path_names_the_endpoints() {
    let (status, _, body) = ask(&site(|_, _| ()), "POST", "/nope", CALL).await;
    assert_eq!(status, 404);
    assert!(body.contains("/mcp"), "{body}");
}

/// A body that begins and then never goes on.
struct Stuck(bool);

impl http_body::Body for Stuck {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        match std::mem::replace(&mut self.0, true) {
            false => std::task::Poll::Ready(Some(Ok(http_body::Frame::data("{\"jsonrpc".into())))),
            true => std::task::Poll::Pending,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_in_time_is_given_up() {
    let mut request = Request::builder().method("POST").uri("/mcp").header("host", "localhost");
    for (name, value) in CALL {
        request = request.header(*name, *value);
    }
    let site = site(|_, _| ());
    let response = site.respond(request.body(Stuck(false)).unwrap()).await;
    assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
    let free = site.0.permits.free();
    assert_eq!(free, 4, "the place of a slow client is free again");
}

#[tokio::test]
async fn a_request_that_asks_for_two_hosts_is_answered_for_none() {
    let site = site(|_, _| {});
    let ask = async |target: &str, headers: &[(&str, &str)]| {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(bytes::Bytes::new())).unwrap();
        site.respond(request).await.status().as_u16()
    };
    let host = ("host", "127.0.0.1:4747");
    assert_eq!(ask("/health", &[host]).await, 200);
    assert_eq!(ask("http://127.0.0.1:4747/health", &[host]).await, 200);
    assert_eq!(ask("http://127.0.0.1:4747/health", &[]).await, 200);
    let origin = ("origin", "http://127.0.0.1:4747");
    for (target, headers) in [
        ("http://evil.example/health", vec![host]),
        ("http://127.0.0.1:4748/health", vec![host]),
        ("http://user@127.0.0.1:4747/health", vec![host]),
        ("/health", vec![host, host]),
        ("/health", vec![host, ("host", "evil.example")]),
        ("/health", vec![host, origin, ("origin", "http://evil.example")]),
        ("/health", vec![host, origin, origin]),
    ] {
        assert_eq!(ask(target, &headers).await, 400, "{target} {headers:?}");
    }
}

/// An admin that repeats what it is asked.
struct Echo;

#[async_trait::async_trait]
impl Admin for Echo {
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        body: &[u8],
    ) -> (StatusCode, serde_json::Value) {
        let body = String::from_utf8_lossy(body).len();
        (StatusCode::OK, json!(format!("{method} {path} {query} {body}")))
    }
}

#[tokio::test]
async fn only_an_operator_on_this_machine_reaches_the_admin() {
    let mut ring = KeyRing::default();
    let operator = ring.create("op", [1; 20], 0).unwrap().secret;
    ring.keys[0].scopes.insert(admin::SCOPE.to_owned());
    let caller = ring.create("ci", [2; 20], 0).unwrap().secret;
    let site = site(|_, policy| {
        (policy.keys, policy.scope) = (ring, Some("mcp:call".into()));
    });
    let ask = async |key: Option<&str>, peer: Option<&str>, origin: Option<&str>| {
        let mut request = Request::builder().method("DELETE").uri("/admin/mounts/x?y=z");
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let mut request = request.body(Full::new(bytes::Bytes::from("abc"))).unwrap();
        if let Some(peer) = peer {
            request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        }
        let response = site.respond(request).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    let here = Some("127.0.0.1:5000");
    let done = ask(Some(&operator), here, None).await;
    assert_eq!(done, (200, "\"DELETE /mounts/x y=z 3\"".to_owned()));
    assert_eq!(ask(Some(&operator), Some("[::1]:5"), None).await.0, 200);
    assert_eq!(ask(None, here, None).await.0, 403, "nobody in particular is no operator");
    assert_eq!(ask(Some(&caller), here, None).await.0, 403);
    assert_eq!(ask(Some("gate_op_wrong"), here, None).await.0, 401);
    let page = Some("https://page.example");
    assert_eq!(ask(Some(&operator), here, page).await.0, 403, "a web page is no operator");
    for elsewhere in [None, Some("192.168.0.7:5000"), Some("8.8.8.8:1")] {
        assert_eq!(ask(Some(&operator), elsewhere, None).await.0, 404, "{elsewhere:?}");
    }
}

#[tokio::test]
async fn the_card_is_there_for_everybody_when_it_is_switched_on() {
    let card = crate::card::Card {
        base: "https://gate.example".into(),
        title: "Us".into(),
        version: "1".into(),
    };
    let site = |card: Option<crate::card::Card>| {
        site(move |components, policy| {
            components.config.card = card;
            policy.anonymous = Anonymous::Refused;
        })
    };
    let get = async |site: &Site, path: &str| {
        let request = Request::get(path).header("host", "gate.example");
        let response = site.respond(request.body(Full::<bytes::Bytes>::default()).unwrap()).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head, serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default())
    };
    let on = site(Some(card));
    let (head, catalog) = get(&on, "/.well-known/mcp/catalog.json").await;
    assert_eq!(head.status, StatusCode::OK);
    assert_eq!(head.headers["access-control-allow-origin"], "*");
    let url = catalog["entries"][0]["url"].as_str().unwrap();
    let (head, own) = get(&on, url.strip_prefix("https://gate.example").unwrap()).await;
    assert_eq!(head.status, StatusCode::OK);
    assert_eq!(head.headers["content-type"], "application/mcp-server+json");
    assert_eq!(own["remotes"][0]["url"], "https://gate.example/mcp");
    assert!(own.get("tools").is_none(), "{own}");
    assert_ne!(get(&on, "/other/server-card").await.0.status, StatusCode::OK);
    let off = site(None);
    for path in ["/.well-known/mcp/catalog.json", "/mcp/server-card"] {
        assert_ne!(get(&off, path).await.0.status, StatusCode::OK, "{path}");
    }
}

struct Figures;

#[async_trait::async_trait]
impl metrics::MetricsPage for Figures {
    async fn write(&self) -> (&'static str, String) {
        ("text/plain", "figures".to_owned())
    }
}

#[tokio::test]
async fn metrics_are_for_scrapers_with_the_scope_and_for_this_machine() {
    let mut ring = KeyRing::default();
    let scraper = ring.create("prometheus", [1; 20], 0).unwrap().secret;
    ring.keys[0].scopes.insert(metrics::SCOPE.to_owned());
    let caller = ring.create("ci", [2; 20], 0).unwrap().secret;
    let with = |anonymous: Anonymous| {
        let ring = ring.clone();
        site(move |components, policy| {
            components.metrics = Some(Box::new(Figures));
            (policy.keys, policy.scope, policy.anonymous) =
                (ring, Some("mcp:call".into()), anonymous);
        })
    };
    let ask = async |site: &Site, key: &str, peer: &str, host: &str| {
        let mut request = Request::builder().uri("/metrics").header("host", host);
        if !key.is_empty() {
            request = request.header("x-api-key", key);
        }
        let mut request = request.body(Full::new(bytes::Bytes::new())).unwrap();
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        site.respond(request).await.status().as_u16()
    };
    let (here, elsewhere) = ("127.0.0.1:5", "192.168.0.7:5");
    let (open, closed) = (with(Anonymous::Allowed), with(Anonymous::Refused));
    assert_eq!(ask(&open, "", here, "localhost:4747").await, 200);
    assert_eq!(ask(&open, "", here, "evil.example").await, 403, "a name that leads here");
    assert_eq!(ask(&open, "", elsewhere, "localhost").await, 403);
    assert_eq!(ask(&open, &caller, here, "localhost").await, 403, "a caller without the scope");
    assert_eq!(ask(&closed, "", here, "localhost").await, 401);
    assert_eq!(ask(&closed, &scraper, elsewhere, "gate.example").await, 200);
    assert_eq!(ask(&closed, &caller, here, "localhost").await, 403);
    let without = site(|_, _| ());
    assert_eq!(ask(&without, "", here, "localhost").await, 404);
}
