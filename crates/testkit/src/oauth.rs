//! An MCP server that needs OAuth, with its authorization server, on loopback.
//!
//! A test can count requests, make the token endpoint fail, and revoke tokens. Everybody
//! who comes to `/authorize` is let in at once, as if a human had agreed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The id and the secret (`its secret`) of the client that may use the grant
/// `client_credentials`, encoded as in a form.
pub const MACHINE: &str = "machine:its+secret";

/// How the token endpoint answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenEndpointMode {
    #[default]
    Working,
    /// 503, always.
    Down,
    /// `invalid_grant`: the grant is dead.
    Rejecting,
}

/// The state of the server, which a test can read and change.
#[derive(Debug, Default)]
pub struct ServerState {
    pub mood: TokenEndpointMode,
    /// The lifetime of new tokens, in seconds.
    pub lifetime: u64,
    /// Valid access tokens.
    pub good: BTreeSet<String>,
    /// Whether new tokens are invalid.
    pub gives_bad_tokens: bool,
    /// How often each path was requested.
    pub asked: BTreeMap<String, usize>,
    /// The last form that was sent to the token endpoint.
    pub form: BTreeMap<String, String>,
    /// The last query of `/authorize`.
    pub wanted: BTreeMap<String, String>,
    /// The scope that tool calls need.
    pub needs: Option<String>,
    /// The authorization server that the protected server names; itself when `None`.
    pub issuer: Option<String>,
    /// Revoked tokens, each with its `token_type_hint`.
    pub revoked: Vec<(String, String)>,
    /// Signs tokens; when `None`, tokens are opaque.
    pub signs: Option<TokenSigner>,
    /// The scopes of access tokens.
    scopes: BTreeMap<String, String>,
    /// The code challenges of authorization codes.
    codes: BTreeMap<String, String>,
    /// Valid refresh tokens.
    refresh: BTreeSet<String>,
    /// Makes codes and tokens unique.
    n: usize,
}

/// Signs access tokens as JWT, for another server that verifies them.
#[derive(Clone, Debug)]
pub struct TokenSigner {
    /// The audience.
    pub resource: String,
    /// The secret of HS256.
    pub secret: String,
    pub subject: String,
    /// In seconds since 1970.
    pub expires_at: u64,
}

impl TokenSigner {
    /// Creates a token of an issuer with a scope.
    pub fn token(&self, issuer: &str, scope: &str) -> String {
        let claims = json!({"iss": issuer, "aud": self.resource, "sub": self.subject,
                            "exp": self.expires_at, "scope": scope});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(&json!({"alg": "HS256", "typ": "JWT"}));
        let text = format!("{head}.{}", part(&claims));
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes())
            .expect("a key of any length will do");
        mac.update(text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    }
}

/// The running server. It ends with the test's runtime.
#[derive(Clone)]
pub struct Server {
    pub origin: String,
    book: Arc<Mutex<ServerState>>,
}

struct Request {
    verb: String,
    path: String,
    query: BTreeMap<String, String>,
    bearer: Option<String>,
    /// The decoded `Authorization: Basic`, as `name:secret`.
    basic: Option<String>,
    body: String,
}

impl Server {
    pub async fn start() -> std::io::Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let origin = format!("http://{}", listener.local_addr()?);
        Ok(Server::serve(listener, origin))
    }

    /// Starts a server with another public origin; returns the address where it listens.
    pub async fn start_behind(origin: &str) -> std::io::Result<(Server, SocketAddr)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        Ok((Server::serve(listener, origin.to_owned()), address))
    }

    fn serve(listener: TcpListener, origin: String) -> Server {
        let book = Arc::new(Mutex::new(ServerState { lifetime: 3600, ..ServerState::default() }));
        let server = Server { origin, book };
        let answering = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = answering.clone();
                tokio::spawn(async move { server.answer_connection(stream).await });
            }
        });
        server
    }

    /// Returns the URL of the protected server.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Locks and returns the state of the server.
    pub fn book(&self) -> MutexGuard<'_, ServerState> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how often a path was requested.
    pub fn asked(&self, path: &str) -> usize {
        self.book().asked.get(path).copied().unwrap_or_default()
    }

    async fn answer_connection(&self, mut stream: TcpStream) -> Option<()> {
        let request = read_request(&mut stream).await?;
        *self.book().asked.entry(request.path.clone()).or_default() += 1;
        let (status, headers, body) = self.answer(&request);
        let text = format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).await.ok()?;
        stream.shutdown().await.ok()
    }

    /// Answers a request; returns status, headers and body.
    fn answer(&self, request: &Request) -> (&'static str, String, String) {
        let origin = &self.origin;
        let ok = |value: Value| {
            ("200 OK", "content-type: application/json\r\n".to_owned(), value.to_string())
        };
        match request.path.as_str() {
            "/mcp" => self.protected(request),
            "/.well-known/oauth-protected-resource/mcp" => ok(json!({
                "resource": self.url(),
                "authorization_servers": [self.book().issuer.as_ref().unwrap_or(origin)],
                "scopes_supported": ["read", "write"],
            })),
            "/.well-known/oauth-authorization-server" => ok(json!({
                "issuer": origin,
                "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "revocation_endpoint": format!("{origin}/revoke"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true,
            })),
            "/register" => {
                let mut client: Value = serde_json::from_str(&request.body).unwrap_or_default();
                client["client_id"] = json!("registered");
                ok(client)
            }
            "/authorize" => self.authorize(&request.query),
            "/token" => self.token(request),
            "/revoke" => self.revoke(request),
            _ => ("404 Not Found", String::new(), String::new()),
        }
    }

    fn authorize(&self, query: &BTreeMap<String, String>) -> (&'static str, String, String) {
        let get = |key: &str| query.get(key).cloned().unwrap_or_default();
        let mut book = self.book();
        book.n += 1;
        let code = format!("code-{}", book.n);
        book.codes.insert(code.clone(), get("code_challenge"));
        book.wanted = query.clone();
        let mut back = url::form_urlencoded::Serializer::new(String::new());
        back.append_pair("code", &code).append_pair("state", &get("state"));
        back.append_pair("iss", &self.origin);
        let to = format!("location: {}?{}\r\n", get("redirect_uri"), back.finish());
        ("302 Found", to, String::new())
    }

    fn token(&self, request: &Request) -> (&'static str, String, String) {
        let kind = "content-type: application/json\r\n".to_owned();
        let no =
            |error: &str| ("400 Bad Request", kind.clone(), json!({"error": error}).to_string());
        let form: BTreeMap<String, String> =
            url::form_urlencoded::parse(request.body.as_bytes()).into_owned().collect();
        let get = |key: &str| form.get(key).cloned().unwrap_or_default();
        let mut book = self.book();
        book.form = form.clone();
        if get("grant_type") == "authorization_code" {
            let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(get("code_verifier")));
            if book.codes.remove(&get("code")) != Some(digest) {
                return no("invalid_grant");
            }
        } else if get("grant_type") == "client_credentials" {
            match book.mood {
                TokenEndpointMode::Working if request.basic.as_deref() == Some(MACHINE) => {}
                TokenEndpointMode::Down => {
                    return ("503 Service Unavailable", String::new(), String::new());
                }
                TokenEndpointMode::Working | TokenEndpointMode::Rejecting => {
                    let told = json!({"error": "invalid_client"}).to_string();
                    return ("401 Unauthorized", kind, told);
                }
            }
            book.wanted = BTreeMap::from([("scope".to_owned(), get("scope"))]);
        } else {
            match book.mood {
                TokenEndpointMode::Working if book.refresh.contains(&get("refresh_token")) => {}
                TokenEndpointMode::Down => {
                    return ("503 Service Unavailable", String::new(), String::new());
                }
                TokenEndpointMode::Working | TokenEndpointMode::Rejecting => {
                    return no("invalid_grant");
                }
            }
            // A refresh token works once.
            book.refresh.remove(&get("refresh_token"));
        }
        let resource = book.signs.as_ref().map_or_else(|| self.url(), |s| s.resource.clone());
        if get("resource") != resource {
            return no("invalid_target");
        }
        book.n += 1;
        let (mut access, refresh) = (format!("access-{}", book.n), format!("refresh-{}", book.n));
        if !book.gives_bad_tokens {
            book.good.insert(access.clone());
        }
        book.refresh.insert(refresh.clone());
        let scope = book.wanted.get("scope").cloned().unwrap_or_default();
        if let Some(signs) = &book.signs {
            access = signs.token(&self.origin, &scope);
        }
        book.scopes.insert(access.clone(), scope.clone());
        let answer = json!({
            "access_token": access, "refresh_token": refresh, "token_type": "Bearer",
            "expires_in": book.lifetime, "scope": scope,
        });
        ("200 OK", kind, answer.to_string())
    }

    fn revoke(&self, request: &Request) -> (&'static str, String, String) {
        let form: BTreeMap<String, String> =
            url::form_urlencoded::parse(request.body.as_bytes()).into_owned().collect();
        let get = |key: &str| form.get(key).cloned().unwrap_or_default();
        let mut book = self.book();
        if get("client_id") != "registered" {
            return ("401 Unauthorized", String::new(), String::new());
        }
        book.good.remove(&get("token"));
        book.refresh.remove(&get("token"));
        book.revoked.push((get("token"), get("token_type_hint")));
        ("200 OK", String::new(), String::new())
    }

    /// Returns the scope that a token lacks for tool calls; `None` when it is sufficient.
    fn missing_scope(&self, token: Option<&String>) -> Option<String> {
        let book = self.book();
        let has = token.and_then(|token| book.scopes.get(token)).cloned().unwrap_or_default();
        let needs = book.needs.clone()?;
        (!has.split(' ').any(|scope| scope == needs)).then_some(needs)
    }

    fn protected(&self, request: &Request) -> (&'static str, String, String) {
        let good = request.bearer.as_ref().is_some_and(|token| self.book().good.contains(token));
        if !good {
            let challenge = format!(
                "www-authenticate: Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\", scope=\"read\"\r\n",
                self.origin
            );
            return ("401 Unauthorized", challenge, String::new());
        }
        if request.verb != "POST" {
            return ("405 Method Not Allowed", String::new(), String::new());
        }
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            }),
            "tools/list" => json!({"tools": [
                {"name": "whoami", "description": "Who asks.", "inputSchema": {"type": "object"}},
            ]}),
            "tools/call" => {
                if let Some(scope) = self.missing_scope(request.bearer.as_ref()) {
                    let challenge = format!(
                        "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"{scope}\"\r\n"
                    );
                    return ("403 Forbidden", challenge, String::new());
                }
                let token = request.bearer.clone().unwrap_or_default();
                json!({"content": [{"type": "text", "text": token}]})
            }
            _ if message["id"].is_null() => return ("202 Accepted", String::new(), String::new()),
            _ => {
                let error = json!({"code": -32601, "message": "no such method"});
                let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                return (
                    "200 OK",
                    "content-type: application/json\r\n".to_owned(),
                    body.to_string(),
                );
            }
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        ("200 OK", "content-type: application/json\r\n".to_owned(), body.to_string())
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).await.ok()?;
    let verb = line.split(' ').next()?.to_owned();
    let target = line.split(' ').nth(1)?.to_owned();
    let (mut length, mut bearer, mut basic) = (0_u64, None, None);
    loop {
        line.clear();
        if reader.read_line(&mut line).await.ok()? == 0 || line.trim().is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => {
                bearer = value.trim().strip_prefix("Bearer ").map(str::to_owned);
                let pair = value.trim().strip_prefix("Basic ");
                let pair = pair.and_then(|pair| STANDARD.decode(pair).ok());
                basic = pair.and_then(|pair| String::from_utf8(pair).ok());
            }
            _ => {}
        }
    }
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body).await.ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    Some(Request { verb, path: path.to_owned(), query, bearer, basic, body })
}
