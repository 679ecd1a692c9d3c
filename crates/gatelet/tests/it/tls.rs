//! HTTPS, on both sides, with certificates that were made a moment ago.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use serde_json::json;
use testkit::tls::{Authority, Signed};

use crate::kit::{Home, PATIENCE, Served, shell};

type Secure = StreamOwned<ClientConnection, TcpStream>;

/// A certificate for the common name `name`.
fn sign(authority: &Authority, name: &str) -> Signed {
    authority.sign("localhost", name)
}

/// Puts a fresh certificate where the gate looks for it.
fn equip(authority: &Authority, home: &Home) {
    let (chain, key) = sign(authority, "the gate");
    home.write("cert.pem", &chain);
    home.write("key.pem", &key);
}

/// Puts HTTPS before a server that ends its connections by itself, at a port
/// that `behind` is told of; it says where that server is.
pub(crate) fn cover(authority: &Authority, behind: impl FnOnce(u16) -> SocketAddr) -> u16 {
    let config = authority.server();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind = behind(port);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let secure = StreamOwned::new(connection, stream);
            // Who does not believe us breaks off.
            std::thread::spawn(move || forward(secure, behind).ok());
        }
    });
    port
}

fn connect(authority: &Authority, served: &Served, own: Option<Signed>) -> Secure {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(authority.client(own), name).unwrap();
    let stream = TcpStream::connect(served.authority()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    StreamOwned::new(connection, stream)
}

/// Carries one request to a server, and its answer back.
fn forward(
    mut from: StreamOwned<ServerConnection, TcpStream>,
    to: SocketAddr,
) -> std::io::Result<()> {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let n_read = from.read(&mut piece)?;
        request.extend_from_slice(&piece[..n_read]);
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.map_or(Ok(0), |length| length.trim().parse());
            length == Ok(body.len())
        });
        if whole || n_read == 0 {
            break;
        }
    }
    let mut there = TcpStream::connect(to)?;
    there.write_all(&request)?;
    let mut answer = Vec::new();
    there.read_to_end(&mut answer)?;
    from.write_all(&answer)?;
    from.conn.send_close_notify();
    from.flush()
}

/// Sends one request and reads what comes; nothing when the other side ends it.
fn ask(stream: &mut Secure, head: &str, body: &str) -> String {
    let length = body.len();
    let request = format!("{head}\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}");
    if stream.write_all(request.as_bytes()).is_err() {
        return String::new();
    }
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let n_read = stream.read(&mut piece).unwrap_or(0);
        answer.extend_from_slice(&piece[..n_read]);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            length.is_some_and(|length| length.parse() == Ok(body.len()))
        });
        if whole || n_read == 0 {
            return text;
        }
    }
}

const HEALTH: &str = "GET /health HTTP/1.1";
const SERVE: &str =
    "[builtin]\ntools = true\n[serve.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n";

#[test]
fn the_gate_speaks_https_and_takes_up_new_certificates() {
    let (old, new) = (Authority::fresh(), Authority::fresh());
    let home = Home::with(SERVE);
    equip(&old, &home);
    let served = Served::start(&home);
    assert!(served.url.starts_with("https://"), "{}", served.url);
    let mut standing = connect(&old, &served, None);
    assert!(ask(&mut standing, HEALTH, "").contains("\"ok\""));

    // A certificate without its key changes nothing.
    let (chain, key) = sign(&new, "the gate");
    home.write("cert.pem", &chain);
    assert!(ask(&mut connect(&old, &served, None), HEALTH, "").contains("\"ok\""));
    home.write("key.pem", &key);
    assert!(ask(&mut connect(&new, &served, None), HEALTH, "").contains("\"ok\""));
    assert_eq!(ask(&mut connect(&old, &served, None), HEALTH, ""), "", "the old one is gone");
    assert!(ask(&mut standing, HEALTH, "").contains("\"ok\""), "connections that stand stay");

    // Another gate reaches this one, if it is told whom to believe.
    let url = served.url.replace("127.0.0.1", "localhost");
    let upstream = format!("[[upstream]]\nlabel = \"far\"\nurl = {url:?}\n");
    let trusting = Home::with(&format!("{upstream}ca = \"ca.pem\"\n"));
    trusting.write("ca.pem", &new.pem);
    let now = shell(&trusting, &["call", "far.time.now"]);
    assert_eq!(now.code, 0, "{} {}", now.out, now.err);
    let strict = Home::with(&upstream);
    let refused = shell(&strict, &["call", "far.time.now"]);
    assert_ne!(refused.code, 0, "{}", refused.out);
}

#[test]
fn a_caller_is_known_by_its_certificate() {
    let (own, callers) = (Authority::fresh(), Authority::fresh());
    let rules = "client_ca = \"callers.pem\"\nclient_required = true\n\
        [visibility]\ndefault = \"hide\"\n\
        [[visibility.rule]]\ncallers = [\"cert:ann\"]\nshow = [\"time\"]\n";
    let home = Home::with(&format!("{SERVE}{rules}"));
    equip(&own, &home);
    home.write("callers.pem", &callers.pem);
    let served = Served::start(&home);
    let help = |name: &str| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": "help", "arguments": {}, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let head = "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
            accept: application/json\r\nmcp-protocol-version: 2026-07-28\r\n\
            mcp-method: tools/call\r\nmcp-name: help";
        let mut stream = connect(&own, &served, Some(sign(&callers, name)));
        ask(&mut stream, head, &body.to_string())
    };
    // Another gate is a caller like any other, if it has something to show.
    let url = served.url.replace("127.0.0.1", "localhost");
    let upstream = format!("[[upstream]]\nlabel = \"far\"\nurl = {url:?}\nca = \"ca.pem\"\n");
    let gate = |more: &str| {
        let near = Home::with(&format!("{upstream}{more}"));
        let (chain, key) = sign(&callers, "ann");
        near.write("ca.pem", &own.pem);
        near.write("own.pem", &chain);
        near.write("own.key", &key);
        shell(&near, &["call", "far.time.now"])
    };
    let shown = gate("cert = \"own.pem\"\nkey = \"own.key\"\n");
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_ne!(gate("").code, 0, "who shows nothing is turned away");
    let lost = gate("cert = \"nothing.pem\"\n");
    assert!(lost.err.contains("nothing.pem` cannot be read"), "{lost:?}");

    let (ann, bob) = (help("ann"), help("bob"));
    assert!(ann.contains("**time**") && !ann.contains("**text**"), "{ann}");
    assert!(bob.starts_with("HTTP/1.1 200") && !bob.contains("**time**"), "{bob}");
    assert_eq!(ask(&mut connect(&own, &served, None), HEALTH, ""), "", "no certificate, no answer");
    let forged = sign(&Authority::fresh(), "ann");
    assert_eq!(ask(&mut connect(&own, &served, Some(forged)), HEALTH, ""), "");
}

#[test]
fn files_that_make_no_server_are_told_at_their_place() {
    let home = Home::with(SERVE);
    let missing = shell(&home, &["config", "check"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("cert.pem"), "{}", missing.err);
    equip(&Authority::fresh(), &home);
    home.write("key.pem", &sign(&Authority::fresh(), "another").1);
    let wrong = shell(&home, &["config", "check"]);
    assert!(wrong.err.contains("cannot be used"), "{}", wrong.err);
}
