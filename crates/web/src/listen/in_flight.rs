//! Counts the requests that are being answered.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use mcp::serve::http::{AnswerTo, Body};
use tokio::sync::Notify;

use super::connections::Connection;
use super::wait::until;

/// What is told to whom the server does not wait for.
const CLOSING: &str = "the gate is closing, and this took too long";

/// All requests of a server. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct InFlight(Arc<Shared>);

/// Every request counts itself in and out, so this is a number, and only who
/// waits for the last one is told.
#[derive(Default)]
struct Shared {
    now: AtomicUsize,
    none: Notify,
    /// Whether they are to end.
    is_over: AtomicBool,
}

/// Counts one request for as long as it lives, for the server and for its
/// connection.
struct Guard {
    server: Arc<Shared>,
    connection: Connection,
}

/// The body of an answer, whose request is under way until it is sent.
pub(super) struct CountedBody {
    body: Body,
    /// A stream is to end when the server does; what comes in one piece is let
    /// go on.
    is_stream: bool,
    /// What was asked, for a stream that has to end without an answer.
    asked: Option<AnswerTo>,
    has_ended: bool,
    guard: Guard,
}

impl InFlight {
    /// Waits for an answer, and goes on counting until it is sent. It is only
    /// looked at when its connection is.
    pub(super) fn track<F>(
        &self,
        connection: Connection,
        answer: F,
    ) -> impl Future<Output = Result<Response<CountedBody>, Infallible>> + use<F>
    where
        F: Future<Output = Response<Body>>,
    {
        self.0.now.fetch_add(1, Ordering::AcqRel);
        connection.begin();
        let guard = Guard { server: Arc::clone(&self.0), connection };
        // An async block would keep room for the answer's future twice.
        let mut answer = Box::pin(answer);
        async move {
            let response = poll_fn(|task| match answer.as_mut().poll(task) {
                Poll::Pending if guard.is_over() => Poll::Ready(given_up()),
                answer @ (Poll::Ready(_) | Poll::Pending) => answer,
            });
            let response = response.await;
            let is_stream = http_body::Body::size_hint(response.body()).exact().is_none();
            let asked = response.extensions().get().cloned();
            Ok(response.map(|body| CountedBody { body, is_stream, asked, has_ended: false, guard }))
        }
    }

    /// Ready when nothing is under way.
    pub(super) async fn none(&self) {
        until(&self.0.none, || self.0.now.load(Ordering::Acquire) == 0).await;
    }

    /// Ends whatever is still under way, as soon as its connection is looked at
    /// again.
    pub(super) fn end(&self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}

impl Guard {
    fn is_over(&self) -> bool {
        self.server.is_over.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.connection.end();
        if self.server.now.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.server.none.notify_waiters();
        }
    }
}

fn given_up() -> Response<Body> {
    let told = serde_json::json!({"error": CLOSING});
    let mut response = Response::new(Body::whole(told.to_string()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        if let frame @ Poll::Ready(_) = Pin::new(&mut self.body).poll_frame(task) {
            return frame;
        }
        if !self.is_stream || !self.guard.is_over() {
            return Poll::Pending;
        }
        self.has_ended = true;
        let words = self.asked.take().map(|asked| asked.refused(CLOSING));
        Poll::Ready(words.map(|words| Ok(Frame::data(words))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
