//! Counts the requests in flight, so that a server can finish them before it stops.

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

/// The message for requests that the server does not wait for any longer.
const CLOSING: &str = "the gate is closing, and this took too long";

/// The requests in flight of a server. Clones share the count.
#[derive(Clone, Default)]
pub(super) struct InFlight(Arc<Shared>);

#[derive(Default)]
struct Shared {
    n_requests: AtomicUsize,
    /// Notified when the last request ended.
    none_left: Notify,
    /// Whether all requests have to end now.
    is_over: AtomicBool,
}

/// Counts one request for as long as it lives, for the server and for its
/// connection.
struct Guard {
    server: Arc<Shared>,
    connection: Connection,
}

/// The body of an answer, whose request counts as in flight until the body is sent.
pub(super) struct CountedBody {
    body: Body,
    /// Whether the body is a stream, which is cut when the server ends; other bodies are
    /// sent to their end.
    is_stream: bool,
    /// The request, for a stream that has to end without an answer.
    asked: Option<AnswerTo>,
    has_ended: bool,
    guard: Guard,
}

impl InFlight {
    /// Counts a request from now until its answer is sent. When the server ends before
    /// there is an answer, the answer is an error.
    pub(super) fn track<F>(
        &self,
        connection: Connection,
        answer: F,
    ) -> impl Future<Output = Result<Response<CountedBody>, Infallible>> + use<F>
    where
        F: Future<Output = Response<Body>>,
    {
        self.0.n_requests.fetch_add(1, Ordering::AcqRel);
        connection.begin();
        let guard = Guard { server: Arc::clone(&self.0), connection };
        // Boxed, because an async block would reserve space for the future twice.
        let mut answer = Box::pin(answer);
        async move {
            let response = poll_fn(|task| match answer.as_mut().poll(task) {
                Poll::Pending if guard.is_over() => Poll::Ready(closing_response()),
                answer @ (Poll::Ready(_) | Poll::Pending) => answer,
            });
            let response = response.await;
            let is_stream = http_body::Body::size_hint(response.body()).exact().is_none();
            let asked = response.extensions().get().cloned();
            Ok(response.map(|body| CountedBody { body, is_stream, asked, has_ended: false, guard }))
        }
    }

    /// Waits until no request is in flight.
    pub(super) async fn none(&self) {
        until(&self.0.none_left, || self.0.n_requests.load(Ordering::Acquire) == 0).await;
    }

    /// Ends all requests in flight, each when its connection is polled next.
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
        if self.server.n_requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.server.none_left.notify_waiters();
        }
    }
}

fn closing_response() -> Response<Body> {
    let error = serde_json::json!({"error": CLOSING});
    let mut response = Response::new(Body::whole(error.to_string()));
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
        let error = self.asked.take().map(|asked| asked.refused(CLOSING));
        Poll::Ready(error.map(|error| Ok(Frame::data(error))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
