use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use web::aggregate::InsecureLoopback;

use super::*;

/// A server that gives one answer to everybody, and counts them.
struct Server {
    url: Url,
    n_asked: Arc<AtomicUsize>,
}

async fn serve(answer: String) -> Server {
    serve_bytes(answer.into_bytes()).await
}

async fn serve_bytes(answer: Vec<u8>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/m.yaml", listener.local_addr().unwrap()).parse().unwrap();
    let n_asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&n_asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let mut request = [0; 4096];
            let _some_of_it = stream.read(&mut request).await;
            stream.write_all(&answer).await.ok();
            stream.shutdown().await.ok();
        }
    });
    Server { url, n_asked }
}

impl Server {
    fn source(&self) -> Source {
        Source { insecure: InsecureLoopback::Allowed, ..Source::new(self.url.clone()) }
    }

    fn was_asked(&self) -> bool {
        self.n_asked.load(Ordering::Relaxed) != 0
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

#[tokio::test]
async fn a_manifest_comes_as_it_is() {
    let server = serve(ok("a: b\n")).await;
    assert_eq!(manifest(&server.source(), None).await.unwrap(), "a: b\n");
    assert!(server.was_asked());
}

#[tokio::test]
async fn a_redirect_is_looked_at_like_the_address_it_comes_from() {
    let target = serve(ok("stolen")).await;
    let server = serve(redirect(target.url.as_str())).await;
    let refused = manifest(&server.source(), None).await.unwrap_err();
    assert!(matches!(refused, FetchError::Refused(SourceError::OtherHost { .. })), "{refused}");
    assert!(!target.was_asked(), "nobody is asked whom the source does not admit");
    let trusting = Source { trusted_hosts: vec!["127.0.0.1".into()], ..server.source() };
    assert_eq!(manifest(&trusting, None).await.unwrap(), "stolen");
    for place in ["http://shop.example/", "file:///etc/passwd", "http://169.254.169.254/"] {
        let server = serve(redirect(place)).await;
        let refused = manifest(&server.source(), None).await.unwrap_err();
        assert!(
            matches!(refused, FetchError::Refused(SourceError::NotHttps(_))),
            "{place}: {refused}"
        );
    }
}

#[tokio::test]
async fn what_leads_in_circles_is_too_large_or_no_manifest_is_given_up() {
    let circle = serve(redirect("/m.yaml")).await;
    let told = manifest(&circle.source(), None).await.unwrap_err().to_string();
    assert!(told.contains("from one place to the next"), "{told}");
    let large = serve(ok(&"x".repeat(MAX_BYTES + 1))).await;
    let told = manifest(&large.source(), None).await.unwrap_err();
    assert!(told.is_final() && told.to_string().contains("larger than"), "{told}");
    let odd = serve(ok("caf\u{e9}")).await;
    assert!(manifest(&odd.source(), None).await.is_ok());
    let odd = serve_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\xff\xfe".to_vec()).await;
    let told = manifest(&odd.source(), None).await.unwrap_err();
    assert!(told.is_final() && told.to_string().contains("not text"), "{told}");
    let gone = serve("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let told = manifest(&gone.source(), None).await.unwrap_err();
    assert!(matches!(told, FetchError::Failed(_)), "an outage passes: {told}");
}

#[tokio::test]
async fn nothing_leaves_for_what_may_not_be_asked() {
    let server = serve(ok("secret")).await;
    let refused = manifest(&Source::new(server.url.clone()), None).await.unwrap_err();
    assert!(matches!(refused, FetchError::Refused(SourceError::NotHttps(_))));
    let mut https = server.url.clone();
    https.set_scheme("https").unwrap();
    let refused = manifest(&Source::new(https), None).await.unwrap_err();
    assert!(matches!(refused, FetchError::Private(_)), "{refused}");
    let mut named = server.url.clone();
    named.set_host(Some("localhost")).unwrap();
    named.set_scheme("https").unwrap();
    let refused = manifest(&Source::new(named), None).await.unwrap_err();
    assert!(matches!(refused, FetchError::Private(_)), "a name is looked up first: {refused}");
    assert!(!server.was_asked());
}

#[tokio::test]
async fn a_download_is_not_led_into_a_private_network() {
    let inside = serve(ok("secret")).await;
    let port = inside.url.port().unwrap();
    for place in [
        format!("https://127.0.0.1:{port}/x"),
        format!("https://localhost:{port}/x"),
        format!("https://[::1]:{port}/x"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        "https://10.0.0.1/x".to_owned(),
    ] {
        let server = serve(redirect(&place)).await;
        let error = download(&server.url, 1000).await.unwrap_err();
        let why = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
        assert!(why.contains("private"), "{place}: {why}");
    }
    assert!(!inside.was_asked());
    // What the user named is fetched, wherever it is.
    assert_eq!(download(&inside.url, 1000).await.unwrap(), b"secret");
}
