#![expect(clippy::disallowed_methods, reason = "a test supervises what it starts")]

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tool::clock::Fake;
use tool::trace::SpanContext;

use super::protobuf::{Field, Fields};
use super::*;
use crate::semantics::{Outcome, Side, Target};
use crate::traces::{Operation, Peer, RecordedSpan};

/// A request to the collector: its path, its head and its body.
type Taken = (String, String, Vec<u8>);

/// A collector that answers with these statuses and bodies, then with 200.
async fn collector(answers: Vec<(u16, &'static [u8])>) -> (Url, mpsc::UnboundedReceiver<Taken>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (send, taken) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut answers = answers.into_iter();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let (head, body) = loop {
                let mut part = [0; 4096];
                let n_bytes = stream.read(&mut part).await.unwrap();
                bytes.extend(&part[..n_bytes]);
                let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
                let Some(end) = text.find("\r\n\r\n") else { continue };
                let length =
                    text[..end].lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.unwrap().parse().unwrap();
                if end + 4 + length <= bytes.len() {
                    break (text[..end].to_owned(), bytes[end + 4..].to_vec());
                }
            };
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let (status, answer) = match path.as_str() {
                "/v1/traces" => answers.next().unwrap_or((200, b"")),
                _ => (200, &b""[..]),
            };
            send.send((path, head, body)).ok();
            let told = format!(
                "HTTP/1.1 {status} X\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            stream.write_all(&[told.as_bytes(), answer].concat()).await.unwrap();
        }
    });
    (url, taken)
}

fn exporter(endpoint: Url) -> (Exporter, Tracer) {
    rustls::crypto::ring::default_provider().install_default().ok();
    let tracer = Tracer::new(1.0, Arc::new(Fake::default()));
    let mut headers = HeaderMap::new();
    headers.insert("x-key", "secret".parse().unwrap());
    let config = Config {
        endpoint,
        headers,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(10),
        resource: Resource { service: "gate".to_owned(), ..Resource::default() },
    };
    let client = Client::builder().no_proxy().build().unwrap();
    (Exporter::new(tracer.clone(), client, config).unwrap(), tracer)
}

fn operation() -> Operation {
    let context = SpanContext::new([1; 16], [2; 8], true).unwrap();
    let (parent, link, notes) = (Some([3; 8]), None, Vec::new());
    let (request_id, session_id) = (Some("7".to_owned()), None);
    let span = RecordedSpan { context, parent, link, request_id, session_id, events: notes };
    Operation {
        side: Side::Server,
        method: "tools/call",
        target: Target::Tool("read".to_owned()),
        outcome: Outcome { error_type: Some("tool_error".to_owned()), ..Outcome::default() },
        protocol: "2025-11-25".to_owned(),
        peer: Arc::new(Peer { transport: "pipe", ..Peer::default() }),
        start: 1_000,
        took: Duration::from_millis(3),
        span: Some(Box::new(span)),
    }
}

/// What stands in a message at a path of fields.
fn at<'a>(bytes: &'a [u8], path: &[u32]) -> Vec<Field<'a>> {
    let (first, rest) = path.split_first().unwrap();
    let found = Fields(bytes).filter(|(field, _)| field == first).map(|(_, value)| value);
    match rest.is_empty() {
        true => found.collect(),
        false => found
            .flat_map(|value| match value {
                Field::Bytes(inner) => at(inner, rest),
                Field::Number(_) => Vec::new(),
            })
            .collect(),
    }
}

#[tokio::test]
async fn spans_and_histograms_reach_the_collector() {
    let (url, mut taken) = collector(Vec::new()).await;
    let (mut exporter, tracer) = exporter(url);
    tracer.push_for_test(operation());
    exporter.export(1).await;
    let (path, head, body) = taken.recv().await.unwrap();
    assert_eq!(path, "/v1/traces");
    assert!(
        head.contains("x-key: secret") && head.contains("content-type: application/x-protobuf")
    );
    // resource_spans, scope_spans, span: its name, parent, kind, and status.
    let span = |field| at(&body, &[1, 2, 2, field]);
    assert_eq!(span(5), [Field::Bytes(b"tools/call read")]);
    assert_eq!((span(4), span(6)), (vec![Field::Bytes(&[3; 8])], vec![Field::Number(2)]));
    assert_eq!((span(7), span(8)), (vec![Field::Number(1_000)], vec![Field::Number(3_001_000)]));
    assert_eq!(at(&body, &[1, 2, 2, 15, 3]), [Field::Number(2)]);
    assert_eq!(at(&body, &[1, 1, 1, 2, 1])[0], Field::Bytes(b"gate"));
    let (path, _, body) = taken.recv().await.unwrap();
    assert_eq!(path, "/v1/metrics");
    assert_eq!(at(&body, &[1, 2, 2, 1]), [Field::Bytes(b"mcp.server.operation.duration")]);
    assert_eq!(at(&body, &[1, 2, 2, 9, 1, 4]), [Field::Number(1)]);
    assert_eq!((exporter.exported().count(), tracer.dropped()), (1, 0));
}

#[tokio::test]
async fn a_busy_collector_is_asked_again_and_a_refusal_is_counted() {
    let (url, _taken) = collector(vec![(503, b""), (429, b""), (200, b""), (400, b"")]).await;
    let (mut exporter, tracer) = exporter(url);
    tracer.push_for_test(operation());
    exporter.export(ATTEMPTS).await;
    assert_eq!((exporter.exported().count(), tracer.dropped()), (1, 0));
    tracer.push_for_test(operation());
    exporter.export(ATTEMPTS).await;
    assert_eq!((exporter.exported().count(), tracer.dropped()), (1, 1));
}

#[tokio::test]
async fn what_a_collector_rejects_of_a_batch_is_counted() {
    let (url, _taken) = collector(vec![(200, b"\x0a\x02\x08\x01")]).await;
    let (mut exporter, tracer) = exporter(url);
    tracer.push_for_test(operation());
    tracer.push_for_test(operation());
    exporter.export(1).await;
    assert_eq!((exporter.exported().count(), tracer.dropped()), (1, 1));
}

#[tokio::test]
async fn without_a_collector_spans_are_dropped_and_counted() {
    let (mut exporter, tracer) = exporter(Url::parse("http://127.0.0.1:1").unwrap());
    tracer.push_for_test(operation());
    exporter.export(1).await;
    assert_eq!((exporter.exported().count(), tracer.dropped()), (0, 1));
}

#[test]
fn thousands_of_names_make_no_more_series_than_allowed() {
    let mut histograms = Histograms::new(0);
    for n in 0..5_000 {
        histograms.add(&Operation { target: Target::Tool(n.to_string()), ..operation() });
    }
    assert_eq!(histograms.series.len(), 2_001);
    let counted: u64 = histograms.series.values().flat_map(|series| series.counts).sum();
    assert_eq!(counted, 5_000);
}

#[test]
fn an_address_that_is_none_is_refused() {
    let tracer = Tracer::new(1.0, Arc::new(Fake::default()));
    rustls::crypto::ring::default_provider().install_default().ok();
    let config = Config {
        endpoint: Url::parse("mailto:somebody@example.com").unwrap(),
        headers: HeaderMap::new(),
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(10),
        resource: Resource::default(),
    };
    let refused = Exporter::new(tracer, Client::builder().no_proxy().build().unwrap(), config);
    assert!(refused.is_err_and(|error| error.to_string().contains("http://host:4318")));
}
