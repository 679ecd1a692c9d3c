//! A server reached over HTTP with server-sent events, as in 2024-11-05.
//!
//! The server's messages come on one event stream; ours go to an address
//! that the stream names first. Together they behave like a pair of pipes, and
//! are treated as one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::{Response, Url};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tool::{Failure, Reply};

use super::credential::{self, Credential, Repeat};
use super::delivery::{self, Undelivered};
use super::error::ConnectError;
use super::http::{
    Redirects, client, is_harmless, is_stream, parse, refusal, refusal_body, same_origin,
    unreachable,
};
use super::options::{Endpoint, Options};
use super::pipe;
use super::relay::Relay;
use super::sse::{Event, Parser};
use crate::memory::MemoryBudget;
use crate::message::Message;
use crate::peer::pending::OpenRequests;
use crate::peer::{Line, Lines, Peer, RequestId};
use crate::revision::method;

/// What may wait between the streams and the conversation.
const BUFFER: usize = 256 << 10;

/// How long the word that the session is open may be on its way.
const OPENING: Duration = Duration::from_secs(20);

/// How long any other may: as long as the longest call.
const LONGEST: Duration = Duration::from_secs(3600);

/// How many messages may be on their way at once.
const AT_ONCE: usize = 64;

/// Opens the stream and converses until it ends.
pub(super) async fn start(
    endpoint: &Endpoint,
    options: &Options,
    relay: &Arc<Relay>,
    peer: &Peer,
) -> Result<(), ConnectError> {
    let (url, headers) = parse(endpoint)?;
    let reading = client(&url, endpoint, Redirects::WithinOrigin)?;
    let client = client(&url, endpoint, Redirects::Never)?;
    let accept = HeaderValue::from_static("text/event-stream");
    let credential = options.credential.clone();
    let get = |shown: Option<&HeaderValue>| {
        let signed = credential::signed(&headers, shown);
        reading.get(url.clone()).headers(signed).header(ACCEPT, &accept)
    };
    let response: Result<_, Failure> =
        credential::send_with_credential(credential.as_deref(), Repeat::Always, get, |error| {
            unreachable(&error)
        })
        .await;
    let response = response.map_err(|failure| ConnectError::at_step("GET", failure))?;
    let mut stream = Stream::new(response, options.limits.line, options.memory.clone())?;
    let post = stream.endpoint(&url).await?;
    let (ours, theirs) = duplex(BUFFER);
    let (read, write) = tokio::io::split(ours);
    let (outgoing, incoming) = tokio::io::split(theirs);
    let shutdown = options.shutdown.clone();
    let conversation =
        pipe::converse(read, write, Arc::clone(relay), peer.clone(), shutdown.clone());
    let outbox = Outbox {
        client,
        url: post,
        headers,
        credential,
        limit: options.limits.line,
        label: options.label.clone(),
        relay: Arc::clone(relay),
        peer: peer.clone(),
    };
    shutdown.spawn(async move {
        // When the conversation ends, so do both directions.
        tokio::select! {
            () = conversation => {}
            never = futures::future::join(stream.pour(incoming), outbox.drain(outgoing)) => {
                tracing::trace!("{never:?}");
            }
        }
    });
    Ok(())
}

/// The server's messages.
struct Stream {
    response: Response,
    parser: Parser,
}

impl Stream {
    fn new(response: Response, limit: usize, memory: MemoryBudget) -> Result<Stream, ConnectError> {
        let status = response.status();
        let reason = || format!("HTTP {status}");
        match status {
            StatusCode::UNAUTHORIZED => {
                return Err(ConnectError::Unauthorized { reason: reason() });
            }
            StatusCode::FORBIDDEN => return Err(ConnectError::Forbidden { reason: reason() }),
            _ => {}
        }
        if !status.is_success() || !is_stream(response.headers()) {
            let reason = format!("HTTP {status}, and no event stream");
            return Err(ConnectError::Unreachable { reason, status: Some(status.as_u16()) });
        }
        Ok(Stream { response, parser: Parser::new(limit).within(memory) })
    }

    /// Returns where our messages go. It must be where the stream came from: a
    /// server must not send our words, and our credentials, to somebody else.
    async fn endpoint(&mut self, base: &Url) -> Result<Url, ConnectError> {
        let unusable =
            |reason: String| ConnectError::Unusable { step: "endpoint".to_owned(), reason };
        let Some(event) = self.next().await else {
            return Err(unusable("the stream ended before it named an address".to_owned()));
        };
        let text = String::from_utf8_lossy(&event.data).trim().to_owned();
        if event.name != "endpoint" {
            return Err(unusable(format!("the stream begins with `{}`", event.name)));
        }
        let url = base.join(&text).map_err(|error| unusable(format!("`{text}`: {error}")))?;
        if !same_origin(base, &url) {
            return Err(unusable(format!("`{text}` is on another server")));
        }
        Ok(url)
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            match self.parser.next_event() {
                Ok(Some(event)) => return Some(event),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(target: "upstream", %error, "the stream is dropped");
                    return None;
                }
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.parser.push(&chunk),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Hands every message to the conversation, one per line.
    async fn pour(mut self, mut into: tokio::io::WriteHalf<DuplexStream>) {
        while let Some(event) = self.next().await {
            if !matches!(event.name.as_str(), "" | "message") {
                continue;
            }
            let mut line = event.data.to_vec();
            crate::message::unbreak(&mut line, 0);
            line.push(b'\n');
            if into.write_all(&line).await.is_err() {
                return;
            }
        }
        into.shutdown().await.ok();
    }
}

/// Our messages.
struct Outbox {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    credential: Option<Arc<dyn Credential>>,
    limit: usize,
    label: String,
    relay: Arc<Relay>,
    peer: Peer,
}

impl Outbox {
    /// Sends the lines as they come. Each has a request of its own, because a
    /// server may keep one open until it has done what it was asked.
    async fn drain(self, from: tokio::io::ReadHalf<DuplexStream>) {
        let mut lines = Lines::new(from, self.limit.max(BUFFER) * 4);
        let outbox = Arc::new(self);
        let mut posts = JoinSet::new();
        while let Ok(more) = lines.fill().await {
            while let Some(Line::Whole(line)) = lines.take() {
                while posts.try_join_next().is_some() {}
                if AT_ONCE <= posts.len() {
                    posts.join_next().await;
                }
                let post = Arc::clone(&outbox).deliver(line.clone());
                // What comes after the opening must find it opened.
                match opens(&line) {
                    true => drop(timeout(OPENING, post).await),
                    false => drop(posts.spawn(timeout(LONGEST, post))),
                }
            }
            if !more {
                return;
            }
        }
    }

    /// Sends one line. A question that does not arrive fails, and so does the
    /// call that waits for an answer of ours; nothing else does: the stream
    /// tells when the server is gone.
    async fn deliver(self: Arc<Outbox>, line: Bytes) {
        let post = self.posting(&line);
        let message = Message::parse(&line);
        if let Ok(Message::Request(request)) = &message {
            let repeat = match is_harmless(&request.method) {
                true => Repeat::Always,
                false => Repeat::IfUnrun,
            };
            if let (Err(failure), Ok(request_id)) =
                (self.ask(post, repeat).await, request.id.parse_as())
            {
                self.peer.fail(RequestId(request_id), failure);
            }
            return;
        }
        let Err(undelivered) = delivery::deliver(self.credential.as_deref(), post).await else {
            return;
        };
        let why = undelivered.failure();
        match message {
            Ok(Message::Response(answer)) => {
                tracing::warn!(target: "upstream", upstream = self.label, "it did not get an answer that it asked for: {why}");
                if !matches!(
                    (&undelivered, answer.reply),
                    (Undelivered::Refused(_), Reply::Error(_))
                ) {
                    self.relay.unanswered(&answer.id, why);
                }
            }
            Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => {
                tracing::debug!(target: "upstream", upstream = self.label, "a message was not sent: {why}");
            }
        }
    }

    fn posting(
        &self,
        line: &Bytes,
    ) -> impl Fn(Option<&HeaderValue>) -> reqwest::RequestBuilder + use<'_> {
        let line = line.clone();
        move |shown| {
            let headers = credential::signed(&self.headers, shown);
            let post = self.client.post(self.url.clone()).headers(headers);
            let kind = HeaderValue::from_static("application/json");
            post.header(CONTENT_TYPE, kind).body(line.clone())
        }
    }

    async fn ask(
        &self,
        post: impl Fn(Option<&HeaderValue>) -> reqwest::RequestBuilder,
        repeat: Repeat,
    ) -> Result<(), Failure> {
        let lost = |error| unreachable(&error);
        let sent = credential::send_with_credential(self.credential.as_deref(), repeat, post, lost);
        let response = sent.await?;
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_success() {
            return Ok(());
        }
        let body = refusal_body(response).await;
        Err(refusal(status, &headers, &body))
    }
}

/// Returns whether a line says that the session is open.
fn opens(line: &Bytes) -> bool {
    let word = method::INITIALIZED;
    // What does not mention the word need not be read.
    memchr::memmem::find(line, word.as_bytes()).is_some()
        && matches!(Message::parse(line), Ok(Message::Notification(news)) if news.method == word)
}
