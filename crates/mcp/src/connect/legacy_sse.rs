//! The client side of the HTTP+SSE transport of revision 2024-11-05.
//!
//! The server's messages come on one event stream; ours are posted to a URL that the
//! stream names first. Both are bridged to a pipe, so that a [`Peer`] can use them.

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

use super::credential::{self, Credential, RepeatPolicy};
use super::delivery::{self, Undelivered};
use super::error::ConnectError;
use super::http::{
    Redirects, build_client, error_body, error_failure, failure_without_response, is_event_stream,
    is_idempotent, parse_endpoint, same_origin,
};
use super::options::{Endpoint, Options};
use super::pipe;
use super::relay::Relay;
use super::sse::{Event, EventTooLong, FillError, Parser};
use crate::memory::MemoryBudget;
use crate::message::Message;
use crate::peer::pending::OpenRequests;
use crate::peer::{Line, Lines, Peer, RequestId};
use crate::revision::method;

/// The size of the in-memory pipe, in bytes.
const BUFFER: usize = 256 << 10;

/// How long posting `notifications/initialized` may take.
const INITIALIZED_TIMEOUT: Duration = Duration::from_secs(20);

/// How long posting another message may take: as long as the longest call.
const POST_TIMEOUT: Duration = Duration::from_secs(3600);

/// How many messages are posted concurrently.
const MAX_CONCURRENT: usize = 64;

/// Opens the event stream and starts the tasks that bridge it to `peer`.
pub(super) async fn start(
    endpoint: &Endpoint,
    options: &Options,
    relay: &Arc<Relay>,
    peer: &Peer,
) -> Result<(), ConnectError> {
    let (url, headers) = parse_endpoint(endpoint)?;
    let reading = build_client(&url, endpoint, Redirects::WithinOrigin)?;
    let client = build_client(&url, endpoint, Redirects::Never)?;
    let accept = HeaderValue::from_static("text/event-stream");
    let credential = options.credential.clone();
    let get = |authorization: Option<&HeaderValue>| {
        let signed = credential::with_authorization(&headers, authorization);
        reading.get(url.clone()).headers(signed).header(ACCEPT, &accept)
    };
    let response: Result<_, Failure> = credential::send_with_credential(
        credential.as_deref(),
        RepeatPolicy::Always,
        get,
        |error| failure_without_response(&error),
    )
    .await;
    let response = response.map_err(|failure| ConnectError::at_step("GET", failure))?;
    let mut stream = EventStream::new(response, options.limits.line, options.memory.clone())?;
    let post = stream.read_endpoint(&url).await?;
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
        // When the peer ends, both directions end.
        tokio::select! {
            () = conversation => {}
            never = futures::future::join(stream.forward_to(incoming), outbox.post_lines(outgoing)) => {
                tracing::trace!("{never:?}");
            }
        }
    });
    Ok(())
}

/// The stream of the server's messages.
struct EventStream {
    response: Response,
    parser: Parser,
}

impl EventStream {
    fn new(
        response: Response,
        limit: usize,
        memory: MemoryBudget,
    ) -> Result<EventStream, ConnectError> {
        let status = response.status();
        let reason = || format!("HTTP {status}");
        match status {
            StatusCode::UNAUTHORIZED => {
                return Err(ConnectError::Unauthorized { reason: reason() });
            }
            StatusCode::FORBIDDEN => return Err(ConnectError::Forbidden { reason: reason() }),
            _ => {}
        }
        if !status.is_success() || !is_event_stream(response.headers()) {
            let reason = format!("HTTP {status}, and no event stream");
            return Err(ConnectError::Unreachable { reason, status: Some(status.as_u16()) });
        }
        Ok(EventStream { response, parser: Parser::new(limit).with_memory(memory) })
    }

    /// Reads the URL to post to. It must have the origin of the stream: a server must not
    /// direct our messages and credentials to another one.
    async fn read_endpoint(&mut self, base: &Url) -> Result<Url, ConnectError> {
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

    /// Reads the next event; `None` when the stream ends or breaks.
    async fn next(&mut self) -> Option<Event> {
        loop {
            match self.parser.next_event() {
                Ok(Some(event)) => return Some(event),
                Ok(None) => {}
                Err(error) => return drop_stream(error),
            }
            match self.parser.fill(self.response.chunk()).await {
                Ok(true) => {}
                Ok(false) | Err(FillError::Broken(_)) => return None,
                Err(FillError::TooLong(error)) => return drop_stream(error),
            }
        }
    }

    /// Writes every message to the pipe, one per line.
    async fn forward_to(mut self, mut into: tokio::io::WriteHalf<DuplexStream>) {
        while let Some(event) = self.next().await {
            if !matches!(event.name.as_str(), "" | "message") {
                continue;
            }
            let mut line = event.data.to_vec();
            // The other end of the pipe takes memory for the line: to hold some meanwhile
            // could be to wait for itself.
            drop(event);
            crate::message::replace_line_breaks(&mut line, 0);
            line.push(b'\n');
            if into.write_all(&line).await.is_err() {
                return;
            }
        }
        into.shutdown().await.ok();
    }
}

fn drop_stream(error: EventTooLong) -> Option<Event> {
    tracing::warn!(target: "upstream", %error, "the stream is dropped");
    None
}

/// Posts our messages.
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
    /// Posts each line from the pipe in its own request, because a server may keep a POST
    /// open until the call is done.
    async fn post_lines(self, from: tokio::io::ReadHalf<DuplexStream>) {
        let mut lines = Lines::new(from, self.limit.max(BUFFER) * 4);
        let outbox = Arc::new(self);
        let mut posts = JoinSet::new();
        while let Ok(more) = lines.fill().await {
            while let Some(Line::Whole(line)) = lines.next_line() {
                while posts.try_join_next().is_some() {}
                if MAX_CONCURRENT <= posts.len() {
                    posts.join_next().await;
                }
                let post = Arc::clone(&outbox).deliver(line.clone());
                // Later messages must find the session open.
                match is_initialized_notification(&line) {
                    true => drop(timeout(INITIALIZED_TIMEOUT, post).await),
                    false => drop(posts.spawn(timeout(POST_TIMEOUT, post))),
                }
            }
            if !more {
                return;
            }
        }
    }

    /// Posts one line. If a request cannot be sent it fails; if an answer cannot be sent the
    /// call that it belongs to fails. Other errors are only logged: the stream shows when
    /// the server is gone.
    async fn deliver(self: Arc<Outbox>, line: Bytes) {
        let post = self.post_request(&line);
        let message = Message::parse(&line);
        if let Ok(Message::Request(request)) = &message {
            let repeat = match is_idempotent(&request.method) {
                true => RepeatPolicy::Always,
                false => RepeatPolicy::IfNotRun,
            };
            if let (Err(failure), Ok(request_id)) =
                (self.send_request(post, repeat).await, request.id.parse_as())
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
                    self.relay.question_unanswered(&answer.id, why);
                }
            }
            Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => {
                tracing::debug!(target: "upstream", upstream = self.label, "a message was not sent: {why}");
            }
        }
    }

    fn post_request(
        &self,
        line: &Bytes,
    ) -> impl Fn(Option<&HeaderValue>) -> reqwest::RequestBuilder + use<'_> {
        let line = line.clone();
        move |authorization| {
            let headers = credential::with_authorization(&self.headers, authorization);
            let post = self.client.post(self.url.clone()).headers(headers);
            let kind = HeaderValue::from_static("application/json");
            post.header(CONTENT_TYPE, kind).body(line.clone())
        }
    }

    async fn send_request(
        &self,
        post: impl Fn(Option<&HeaderValue>) -> reqwest::RequestBuilder,
        repeat: RepeatPolicy,
    ) -> Result<(), Failure> {
        let to_failure = |error| failure_without_response(&error);
        let sent =
            credential::send_with_credential(self.credential.as_deref(), repeat, post, to_failure);
        let response = sent.await?;
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_success() {
            return Ok(());
        }
        let body = error_body(response).await;
        Err(error_failure(status, &headers, &body))
    }
}

/// Returns whether a line is `notifications/initialized`.
fn is_initialized_notification(line: &Bytes) -> bool {
    let word = method::INITIALIZED;
    // The text search avoids parsing most lines.
    memchr::memmem::find(line, word.as_bytes()).is_some()
        && matches!(Message::parse(line), Ok(Message::Notification(notification)) if notification.method == word)
}
