//! A gate that takes the tokens of an authorization server, and real clients
//! that find their way there by what it says when it refuses them.

use std::net::TcpListener;

use serde_json::json;
use testkit::oauth::{Server, TokenSigner};

use crate::clients::{run, script};
use crate::kit::{Home, Served, eventually, node, tool};

const SECRET: &str = "a secret of at least thirty-two bytes";

/// A gate, and the authorization server that it believes.
struct Stage {
    server: Server,
    home: Home,
    served: Served,
    _runtime: tokio::runtime::Runtime,
}

impl Stage {
    fn new() -> Stage {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start()).unwrap();
        // The gate has to know its own address beforehand.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (base, issuer) = (format!("http://{address}"), &server.origin);
        server.book().signs = Some(TokenSigner {
            resource: format!("{base}/mcp"),
            secret: SECRET.to_owned(),
            subject: "ann".to_owned(),
            expires_at: 4_000_000_000,
        });
        let home = Home::with(&format!(
            "[builtin]\ntools = true\n[auth]\nrequired = true\nscope = \"mcp:call\"\n\
             public_url = {base:?}\n[[auth.issuer]]\nissuer = {issuer:?}\n\
             audience = [\"{base}/mcp\"]\nsecret = {SECRET:?}\n\
             [[visibility.rule]]\ncallers = [\"subject:ann\"]\nshow = [\"time\"]\n\
             [[visibility.rule]]\nhide = [\"*\"]\n"
        ));
        let served = Served::start_at(&home, &address.to_string(), &[]);
        Stage { server, home, served, _runtime: runtime }
    }

    /// What every client must have seen.
    #[track_caller]
    fn check(&self, client: &str, seen: &serde_json::Value, protocol: &str) {
        assert!(seen["text"].as_str().unwrap().contains("UTC"), "{client}: {seen}");
        assert_eq!(seen["scope"], "mcp:call", "{client} asks for what the refusal says");
        assert_eq!(seen["protocol"], protocol, "{client}");
        let asked = self.server.asked("/authorize");
        assert_eq!(asked, 1, "{client} went to the browser once");
        self.server.book().asked.clear();
    }
}

#[test]
fn the_python_sdk_logs_in_and_calls() {
    testkit::needs!(Tools);
    let stage = Stage::new();
    let python = tool("py/bin/python");
    for (mode, protocol) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let seen = run(&stage.home, &python, &[&script("oauth.py"), mode, &stage.served.url]);
        stage.check(&format!("python {mode}"), &seen, protocol);
    }
}

#[test]
fn the_typescript_sdk_of_both_generations_logs_in_and_calls() {
    testkit::needs!(Tools);
    let stage = Stage::new();
    for (generation, protocol) in [("v1", "2025-11-25"), ("v2", "2026-07-28")] {
        let words = [&script("oauth.mjs"), generation, &stage.served.url];
        let seen = run(&stage.home, &node(), &words);
        stage.check(&format!("typescript {generation}"), &seen, protocol);
    }
}

#[test]
fn a_token_for_somebody_else_or_of_somebody_else_opens_nothing() {
    let stage = Stage::new();
    let good = stage.server.book().signs.clone().unwrap();
    let status = |signs: &TokenSigner, issuer: &str, scope: &str| {
        let bearer = format!("Bearer {}", signs.token(issuer, scope));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let answer = stage.served.post(&message, &[("Authorization", &bearer)]);
        (answer.status, answer.header("www-authenticate").unwrap_or_default().to_owned())
    };
    let origin = stage.server.origin.as_str();
    let (taken, _) = status(&good, origin, "mcp:call");
    assert_ne!(taken, 401);
    assert_ne!(taken, 403);
    let (lacking, challenge) = status(&good, origin, "other");
    assert_eq!(lacking, 403);
    assert!(challenge.contains("error=\"insufficient_scope\", scope=\"mcp:call\""), "{challenge}");
    let elsewhere = TokenSigner { resource: "http://other.example/mcp".to_owned(), ..good.clone() };
    let forged =
        TokenSigner { secret: "another secret of thirty-two bytes!".to_owned(), ..good.clone() };
    let old = TokenSigner { expires_at: 1_000_000_000, ..good.clone() };
    for (signs, issuer) in
        [(&elsewhere, origin), (&forged, origin), (&old, origin), (&good, "http://mallory.example")]
    {
        let (refused, challenge) = status(signs, issuer, "mcp:call");
        assert_eq!(refused, 401, "{signs:?}");
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        assert!(challenge.contains("/.well-known/oauth-protected-resource/mcp"), "{challenge}");
    }
}

#[test]
fn the_same_subject_of_two_issuers_is_two_callers() {
    let issuers = [
        ("https://a.example", SECRET),
        ("https://b.example", "b secret of at least thirty-two bytes!"),
    ];
    let audience = "https://gate.example/mcp";
    let entry = |(issuer, secret): &(&str, &str)| {
        format!(
            "[[auth.issuer]]\nissuer = {issuer:?}\naudience = [{audience:?}]\nsecret = {secret:?}\n"
        )
    };
    let rules = "[[visibility.rule]]\ncallers = [\"subject:https://a.example#ann\"]\nshow = [\"*\"]\n\
                 [[visibility.rule]]\nhide = [\"units\"]\n";
    let entries: String = issuers.iter().map(entry).collect();
    let home = Home::with(&format!("[builtin]\ntools = true\n{entries}{rules}"));
    let served = Served::start(&home);
    let bearer = |(issuer, secret): (&str, &str)| {
        let signs = TokenSigner {
            resource: audience.to_owned(),
            secret: secret.to_owned(),
            subject: "ann".to_owned(),
            expires_at: 4_000_000_000,
        };
        format!("Bearer {}", signs.token(issuer, ""))
    };
    let [one, other] = issuers.map(bearer);
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "it", "version": "1"}}});
    let opened = served.post(&open, &[("Authorization", &one)]);
    let session = opened.header("mcp-session-id").unwrap();
    let help = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "help", "arguments": {}}});
    let as_who = |bearer: &str, session: &str| {
        served.post(&help, &[("Authorization", bearer), ("Mcp-Session-Id", session)])
    };
    let own = as_who(&one, session);
    assert!(own.body.contains("**units**"), "the rule is about this one: {}", own.body);
    assert_eq!(as_who(&other, session).status, 404, "it is somebody else's session");
    let opened = served.post(&open, &[("Authorization", &other)]);
    let theirs = as_who(&other, opened.header("mcp-session-id").unwrap());
    assert!(!theirs.body.contains("**units**"), "{}", theirs.body);
}

/// A key, and a token that is signed with it.
const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"one","x":"6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw"}]}"#;
const SIGNED: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6Im9uZSJ9.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJodHRwczovL2dhdGUuZXhhbXBsZS9tY3AiLCJzdWIiOiJhbm4iLCJleHAiOjQwMDAwMDAwMDB9.ae1Uh4BDnST4wfxRmBawZNJ_Mcwm1PAfHpJLy8ZpMzeVhbaPAcH6mLJfygdBRxIONS-4eTx-5q-nITfOW0AbDg";

#[test]
fn a_key_that_is_taken_out_of_the_jwks_is_good_for_nothing() {
    let home = Home::with(
        "[builtin]\ntools = true\n[[auth.issuer]]\nissuer = \"https://login.example\"\n\
         audience = [\"https://gate.example/mcp\"]\njwks = \"keys.json\"\n",
    );
    home.write("keys.json", KEYS);
    let served = Served::start(&home);
    let bearer = format!("Bearer {SIGNED}");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let status = || served.post(&ping, &[("Authorization", &bearer)]).status;
    assert_ne!(status(), 401);
    home.write("keys.json", "{\"keys\": []}");
    eventually("the key is gone", || status() == 401);
    home.write("keys.json", KEYS);
    eventually("the key is back", || status() != 401);
}

/// Answers every request with what `answer` says for its path.
fn publishing(answer: impl Fn(&str) -> Option<String> + Send + 'static) -> String {
    use std::io::{BufRead, BufReader, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let path = first.split(' ').nth(1).unwrap_or_default();
            let (status, body) = match answer(path) {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", String::new()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    origin
}

#[test]
fn the_keys_of_an_issuer_are_fetched_from_where_it_publishes_them() {
    let origin = publishing(|path| (path == "/keys").then(|| KEYS.to_owned()));
    let home = Home::with(&format!(
        "[builtin]\ntools = true\n[[auth.issuer]]\nissuer = \"https://login.example\"\n\
         audience = [\"https://gate.example/mcp\"]\njwks_url = \"{origin}/keys\"\n",
    ));
    let served = Served::start(&home);
    let bearer = format!("Bearer {SIGNED}");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    eventually("the keys came", || served.post(&ping, &[("Authorization", &bearer)]).status != 401);
    let broken = format!("{}x", &bearer[..bearer.len() - 1]);
    assert_eq!(served.post(&ping, &[("Authorization", &broken)]).status, 401);
}
