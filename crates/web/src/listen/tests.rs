use std::net::SocketAddr;
use std::sync::Mutex;

use rustls::pki_types::ServerName;
use testkit::tls::{Authority, Signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, oneshot};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::tls::{self, ClientCertificates, Pem};
use mcp::serve::http::AnswerTo;

/// A server that says who calls, on which connection, or a lot.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    /// Told of every request that is never answered.
    waiting: Arc<Notify>,
}

const LOT: usize = 64 << 20;

async fn run(shown: Option<TlsConfigs>, limits: Limits) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let waiting = Arc::new(Notify::new());
    let told = Arc::clone(&waiting);
    let site = move |request: Request<RequestBody>| {
        let told = Arc::clone(&told);
        async move {
            let caller = request.extensions().get::<CertificateHolder>();
            let name = caller.map_or("nobody", |holder| holder.0.subject.as_str()).to_owned();
            match request.uri().path() {
                "/known" => {
                    let connection = request.extensions().get::<Connection>().unwrap();
                    connection.learn(CallerStanding::Anonymous);
                    Response::new(Body::whole(name))
                }
                "/refused" => {
                    told.notify_one();
                    Response::new(Body::whole("refused"))
                }
                "/lot" => Response::new(Body::whole(vec![b'x'; LOT])),
                "/never" => {
                    told.notify_one();
                    std::future::pending().await
                }
                "/stream" => {
                    told.notify_one();
                    let first = futures::stream::iter([bytes::Bytes::from("first")]);
                    let events = futures::StreamExt::chain(first, futures::stream::pending());
                    let mut response = Response::new(Body::events(Box::pin(events)));
                    response.extensions_mut().insert(AnswerTo(tool::Json::encode(&7)));
                    response
                }
                _ => Response::new(Body::whole(name)),
            }
        }
    };
    tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        listen(listener, shown, limits, site, stopped).await.unwrap();
    });
    Running { address, stop, waiting }
}

impl Running {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

/// Asks for a path, and reads until the answer is whole or the other side ends.
async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_answer(stream).await
}

/// Reads until the answer is whole or the other side ends.
async fn read_answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let n_read = stream.read(&mut piece).await.unwrap_or(0);
        answer.extend_from_slice(&piece[..n_read]);
        let text = String::from_utf8_lossy(&answer);
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            length.is_some_and(|length| length.parse() == Ok(body.len()))
        });
        if n_read == 0 || whole {
            return text.into_owned();
        }
    }
}

/// Sends this, and reads until the other side ends.
async fn told(server: &Running, text: &str) -> String {
    let mut stream = server.connect().await;
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_head_that_is_too_large_or_no_head_is_refused_in_words() {
    let server = run(None, Limits { head_bytes: 8 << 10, ..Limits::default() }).await;
    let fits = ask(&mut server.connect().await, &format!("/{}", "x".repeat(4 << 10))).await;
    assert!(fits.starts_with("HTTP/1.1 200"), "{fits}");
    let many: String = (0..120).map(|n| format!("x{n}: y\r\n")).collect();
    let long = format!("x: {}\r\n", "y".repeat(20 << 10));
    for (head, status) in [(many.as_str(), 431), (&long, 431), ("no header\r\n", 400)] {
        let answer = told(&server, &format!("GET / HTTP/1.1\r\nhost: x\r\n{head}\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {answer}");
    }
    let answer = told(&server, "NONSENSE\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[tokio::test]
async fn while_something_is_under_way_whoever_comes_is_answered() {
    let server =
        run(None, Limits { drain_time: Duration::from_secs(2), ..Limits::default() }).await;
    let mut standing = server.connect().await;
    assert!(ask(&mut standing, "/").await.ends_with("nobody"));
    let mut slow = server.connect().await;
    slow.write_all(b"GET /never HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    server.waiting.notified().await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    server.waiting.notified().await;
    let (address, stop) = (server.address, server.stop);
    drop(stop);
    tokio::task::yield_now().await;
    assert!(ask(&mut standing, "/").await.ends_with("nobody"), "on a connection that stood");
    let mut fresh = TcpStream::connect(address).await.unwrap();
    assert!(ask(&mut fresh, "/").await.ends_with("nobody"), "and on a new one");
    // What takes longer than the drain time is told so.
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: 1"), "{answer}");
    // A stream ends like one that is whole, and with an answer.
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("first") && answer.ends_with("0\r\n\r\n"), "{answer}");
    assert!(answer.contains("\"id\":7,") && answer.contains("closing"), "{answer}");
    assert!(TcpStream::connect(address).await.is_err(), "then nobody listens any more");
}

/// The head of a request with a body that the site does not read.
const REFUSED: &str = "POST /refused HTTP/1.1\r\nhost: x\r\n";

#[tokio::test]
async fn a_connection_outlives_an_answer_that_came_before_its_request_was_read() {
    let server = run(None, Limits::default()).await;
    for (length, body) in
        [("content-length: 5", "hello"), ("transfer-encoding: chunked", "5\r\nhello\r\n0\r\n\r\n")]
    {
        let mut stream = server.connect().await;
        stream.write_all(format!("{REFUSED}{length}\r\n\r\n").as_bytes()).await.unwrap();
        server.waiting.notified().await;
        stream.write_all(body.as_bytes()).await.unwrap();
        let answer = read_answer(&mut stream).await;
        assert!(answer.ends_with("refused") && !answer.contains("connection"), "{answer}");
        assert!(ask(&mut stream, "/").await.ends_with("nobody"), "the next request is answered");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_cannot_be_used_again_is_said_to_close() {
    let server = run(None, Limits::default()).await;
    let long = "x".repeat(2 << 20);
    for (headers, body) in [
        ("content-length: 5\r\n", "hell"),
        ("content-length: 2097152\r\n", long.as_str()),
        ("content-length: 5\r\nexpect: 100-continue\r\n", ""),
    ] {
        let mut stream = server.connect().await;
        stream.write_all(format!("{REFUSED}{headers}\r\n{body}").as_bytes()).await.unwrap();
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{headers}: {answer}");
        assert!(answer.contains("connection: close"), "{headers}: {answer}");
    }
}

#[tokio::test]
async fn a_server_with_nothing_to_do_ends_at_once() {
    let forever = Limits { drain_time: Duration::from_secs(100_000), ..Limits::default() };
    let server = run(None, forever).await;
    let mut standing = server.connect().await;
    assert!(ask(&mut standing, "/").await.ends_with("nobody"));
    drop(server);
    let mut rest = Vec::new();
    standing.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_finishes_its_head_is_let_go() {
    let server = run(None, Limits::default()).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: local").await.unwrap();
    let mut rest = Vec::new();
    // The clock runs by itself, so this only ends because the server ended it.
    stream.read_to_end(&mut rest).await.ok();
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_take_its_answer_is_let_go() {
    let server = run(None, Limits::default()).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /lot HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let mut taken = Vec::new();
    stream.read_to_end(&mut taken).await.ok();
    assert!(taken.len() < LOT, "everything came: {}", taken.len());
}

#[tokio::test]
async fn one_connection_too_many_is_told_to_come_back() {
    let server = run(None, Limits { connections: 1, ..Limits::default() }).await;
    let mut first = server.connect().await;
    first.write_all(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    server.waiting.notified().await;
    let told = ask(&mut server.connect().await, "/").await;
    assert!(told.starts_with("HTTP/1.1 503"), "{told}");
    assert!(told.contains("retry-after: 1"), "{told}");
    assert!(told.ends_with("moment\"}"), "{told}");
    let well = ask(&mut server.connect().await, HEALTH_PATH).await;
    assert!(well.starts_with("HTTP/1.1 200"), "how we are is always told: {well}");
    let mut head = [0; 15];
    first.read_exact(&mut head).await.unwrap();
    assert_eq!(head, *b"HTTP/1.1 200 OK", "who is in stays in");
    drop(first);
    while ask(&mut server.connect().await, "/").await.starts_with("HTTP/1.1 503") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn idle_connections_make_room_and_who_says_nothing_goes_first() {
    let server = run(None, Limits { connections: 8, ..Limits::default() }).await;
    let mut busy = server.connect().await;
    busy.write_all(b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    server.waiting.notified().await;
    let mut known = server.connect().await;
    assert!(ask(&mut known, "/known").await.starts_with("HTTP/1.1 200"));
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(server.connect().await);
        tokio::task::yield_now().await;
    }
    let mut half = server.connect().await;
    half.write_all(b"GET / HTTP/1.1\r\nhost: ").await.unwrap();
    assert!(ask(&mut server.connect().await, "/").await.starts_with("HTTP/1.1 200"));
    assert!(ask(&mut known, "/").await.starts_with("HTTP/1.1 200"), "a caller we know stays");
    let mut first = [0; 1];
    assert_eq!(silent[0].read(&mut first).await.unwrap(), 0, "who says nothing is let go");
    busy.read_exact(&mut first).await.unwrap();
}

/// Returns how an authority's server is configured, and whom it lets in.
fn configured(
    own: &Authority,
    callers: Option<&Authority>,
    must: ClientCertificates,
) -> Arc<ServerConfig> {
    let (chain, key) = own.sign("localhost", "the server");
    let callers = callers.map(|authority| authority.pem.clone().into_bytes());
    let pem = Pem { chain: chain.into_bytes(), key: key.into_bytes(), callers };
    tls::server(&pem, must).unwrap()
}

/// Shakes hands as a client that believes an authority.
async fn greet(
    authority: &Authority,
    server: &Running,
    own: Option<Signed>,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(authority.client(own)).connect(name, server.connect().await).await
}

#[tokio::test]
async fn a_new_certificate_counts_for_the_next_connection_and_breaks_none() {
    let (old, new) = (Authority::fresh(), Authority::fresh());
    let shown = Arc::new(Mutex::new(configured(&old, None, ClientCertificates::Optional)));
    let asked = Arc::clone(&shown);
    let server =
        run(Some(Arc::new(move || asked.lock().unwrap().clone())), Limits::default()).await;
    let mut standing = greet(&old, &server, None).await.unwrap();
    assert!(ask(&mut standing, "/").await.ends_with("nobody"));
    *shown.lock().unwrap() = configured(&new, None, ClientCertificates::Optional);
    assert!(greet(&old, &server, None).await.is_err(), "the old certificate is not shown any more");
    let mut fresh = greet(&new, &server, None).await.unwrap();
    assert!(ask(&mut fresh, "/").await.ends_with("nobody"));
    assert!(ask(&mut standing, "/").await.ends_with("nobody"), "a standing connection goes on");
}

#[tokio::test]
async fn a_caller_is_who_its_certificate_says() {
    let (own, callers, stranger) = (Authority::fresh(), Authority::fresh(), Authority::fresh());
    let config = configured(&own, Some(&callers), ClientCertificates::Optional);
    let server = run(Some(Arc::new(move || Arc::clone(&config))), Limits::default()).await;
    let mut known = greet(&own, &server, Some(callers.sign("ann.example", "ann"))).await.unwrap();
    assert!(ask(&mut known, "/").await.ends_with("cert:ann"));
    let mut nobody = greet(&own, &server, None).await.unwrap();
    assert!(ask(&mut nobody, "/").await.ends_with("nobody"));
    // With TLS 1.3 a client learns of the refusal when it first reads.
    let forged = greet(&own, &server, Some(stranger.sign("ann.example", "ann"))).await;
    let told = match forged {
        Err(_) => String::new(),
        Ok(mut stream) => {
            match stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await {
                Err(_) => String::new(),
                Ok(()) => {
                    let mut answer = Vec::new();
                    stream.read_to_end(&mut answer).await.ok();
                    String::from_utf8(answer).unwrap()
                }
            }
        }
    };
    assert_eq!(told, "", "a forged certificate gets no answer");
}

#[tokio::test]
async fn where_a_certificate_is_a_must_nobody_comes_in_without() {
    let (own, callers) = (Authority::fresh(), Authority::fresh());
    let config = configured(&own, Some(&callers), ClientCertificates::Required);
    let server = run(Some(Arc::new(move || Arc::clone(&config))), Limits::default()).await;
    if let Ok(mut stream) = greet(&own, &server, None).await {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok();
        assert!(answer.is_empty());
    }
    let mut known = greet(&own, &server, Some(callers.sign("bob.example", "bob"))).await.unwrap();
    assert!(ask(&mut known, "/").await.ends_with("cert:bob"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_shakes_hands_is_let_go() {
    let own = Authority::fresh();
    let config = configured(&own, None, ClientCertificates::Optional);
    let server = run(Some(Arc::new(move || Arc::clone(&config))), Limits::default()).await;
    let mut silent = server.connect().await;
    let mut nothing = Vec::new();
    silent.read_to_end(&mut nothing).await.ok();
    assert!(nothing.is_empty());
}
