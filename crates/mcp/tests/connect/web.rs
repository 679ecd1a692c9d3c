//! A small HTTP server that answers as a test wants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// On which connection, counted from the first.
    pub(crate) visit: usize,
    pub(crate) verb: String,
    pub(crate) path: String,
    /// By name in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The body of an answer to this request.
    pub(crate) fn answer(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.body["id"])
    }
}

/// What to send back.
pub(crate) enum Sent {
    Json(u16, String),
    /// An answer that waits to be let go.
    Held(Arc<Notify>, String),
    /// A status with headers and a plain body.
    Plain(u16, Vec<(&'static str, String)>, String),
    /// An answer; the connection is closed without a word once the first is
    /// told, and the second tells that it is.
    Last([Arc<Notify>; 2], String),
    /// The end of the connection, without a word.
    Nothing,
    /// Events, then the end of the stream.
    Events(Vec<String>),
    /// Events, then nothing, for as long as the client likes.
    Open(Vec<String>),
    /// Events as they come.
    Live(Arc<tokio::sync::Mutex<UnboundedReceiver<String>>>),
}

type Script = dyn Fn(&Seen) -> Sent + Send + Sync;

pub(crate) struct Web {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    shut: Arc<Notify>,
    serving: tokio::task::JoinHandle<()>,
}

impl Web {
    /// Serves on a free port to the end of the test.
    pub(crate) async fn serve(script: impl Fn(&Seen) -> Sent + Send + Sync + 'static) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let script: Arc<Script> = Arc::new(script);
        let (book, shut) = (Arc::clone(&seen), Arc::new(Notify::new()));
        let told = Arc::clone(&shut);
        let serving = tokio::spawn(async move {
            let mut visits = tokio::task::JoinSet::new();
            for visit in 0.. {
                let visitor = tokio::select! {
                    visitor = listener.accept() => visitor,
                    () = told.notified() => break,
                };
                let Ok((stream, _)) = visitor else { break };
                visits.spawn(converse(stream, visit, Arc::clone(&script), Arc::clone(&book)));
            }
            drop(listener);
            while visits.join_next().await.is_some() {}
        });
        Web { url, seen, shut, serving }
    }

    /// Closes the port; who is connected stays so.
    pub(crate) async fn shut(&self) {
        self.shut.notify_one();
        while TcpStream::connect(self.address()).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    fn address(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp")
    }

    /// Closes the port and every connection.
    pub(crate) async fn stop(self) {
        self.serving.abort();
        self.serving.await.ok();
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests of one method; those until now are forgotten.
    pub(crate) fn take_asked(&self, method: &str) -> Vec<Seen> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.into_iter().filter(|seen| seen.method() == method).collect()
    }

    /// The requests of one method.
    pub(crate) fn asked(&self, method: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.method() == method).collect()
    }
}

async fn converse(
    stream: TcpStream,
    visit: usize,
    script: Arc<Script>,
    book: Arc<Mutex<Vec<Seen>>>,
) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some(seen) = request(&mut read, visit).await {
        book.lock().unwrap().push(seen.clone());
        if send(&mut write, script(&seen)).await.is_none() {
            return;
        }
    }
}

async fn request(read: &mut (impl AsyncBufReadExt + Unpin), visit: usize) -> Option<Seen> {
    let mut first = String::new();
    read.read_line(&mut first).await.ok()?;
    let mut words = first.split_whitespace();
    let verb = words.next()?.to_owned();
    let path = words.next()?.to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        read.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Seen { visit, verb, path, headers, body })
}

async fn send(write: &mut OwnedWriteHalf, sent: Sent) -> Option<()> {
    let (head, events, stays_open) = match sent {
        Sent::Json(status, body) => {
            let kind = vec![("content-type", "application/json".to_owned())];
            return whole(write, status, &kind, &body).await;
        }
        Sent::Held(go, body) => {
            go.notified().await;
            let kind = vec![("content-type", "application/json".to_owned())];
            return whole(write, 200, &kind, &body).await;
        }
        Sent::Nothing => return None,
        Sent::Last([close, closed], body) => {
            let kind = vec![("content-type", "application/json".to_owned())];
            whole(write, 200, &kind, &body).await?;
            close.notified().await;
            write.shutdown().await.ok();
            closed.notify_one();
            return None;
        }
        Sent::Plain(status, headers, body) => return whole(write, status, &headers, &body).await,
        Sent::Live(events) => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            write.write_all(head.as_bytes()).await.ok()?;
            while let Some(event) = events.lock().await.recv().await {
                write.write_all(format!("{event}\n\n").as_bytes()).await.ok()?;
            }
            return None;
        }
        Sent::Events(events) => ("connection: close\r\n", events, false),
        Sent::Open(events) => ("", events, true),
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{head}\r\n");
    write.write_all(head.as_bytes()).await.ok()?;
    for event in events {
        write.write_all(format!("{event}\n\n").as_bytes()).await.ok()?;
    }
    if stays_open {
        std::future::pending::<()>().await;
    }
    None
}

async fn whole(
    write: &mut OwnedWriteHalf,
    status: u16,
    headers: &[(&str, String)],
    body: &str,
) -> Option<()> {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let text = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}");
    write.write_all(text.as_bytes()).await.ok()
}
