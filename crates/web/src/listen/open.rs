//! Requests that are under way.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use mcp::serve::http::Body;
use tokio::sync::{Notify, watch};

use super::Heard;

/// All requests of a server. Clones are the same.
#[derive(Clone)]
pub(super) struct Open {
    count: Arc<Count>,
    /// Whether they are to end.
    ended: Arc<watch::Sender<bool>>,
}

/// How many there are. Every request counts itself in and out, so this is a
/// number, and only who waits for the last one is told.
#[derive(Default)]
struct Count {
    now: AtomicUsize,
    none: Notify,
}

/// Counts one request for as long as it lives.
struct Mark(Arc<Count>);

/// The body of an answer, whose request is under way until it is sent.
pub(super) struct Held {
    body: Body,
    /// Ready when a stream is to end; what comes in one piece is let go on.
    end: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// What was asked, for a stream that has to end without an answer.
    heard: Option<Heard>,
    is_over: bool,
    _mark: Mark,
}

impl Default for Open {
    fn default() -> Open {
        Open { count: Arc::default(), ended: Arc::new(watch::Sender::new(false)) }
    }
}

impl Open {
    /// Waits for an answer, and goes on counting until it is sent.
    pub(super) fn hold<F>(
        &self,
        answer: F,
    ) -> impl Future<Output = Result<Response<Held>, Infallible>> + use<F>
    where
        F: Future<Output = Response<Body>>,
    {
        self.count.now.fetch_add(1, Ordering::AcqRel);
        let mark = Mark(Arc::clone(&self.count));
        let mut ended = self.ended.subscribe();
        // An async block would keep room for the answer's future twice.
        let answer = Box::pin(answer);
        async move {
            let response = tokio::select! {
                biased;
                response = answer => response,
                () = is_over(&mut ended) => given_up(),
            };
            let is_stream = http_body::Body::size_hint(response.body()).exact().is_none();
            let heard = response.extensions().get().filter(|_| is_stream).cloned();
            Ok(response.map(|body| Held {
                body,
                end: is_stream.then(|| Box::pin(async move { is_over(&mut ended).await }) as _),
                heard,
                is_over: false,
                _mark: mark,
            }))
        }
    }

    /// Ready when nothing is under way.
    pub(super) async fn none(&self) {
        let mut told = pin!(self.count.none.notified());
        loop {
            // Before the look, so that whoever ends in between is heard.
            told.as_mut().enable();
            if self.count.now.load(Ordering::Acquire) == 0 {
                return;
            }
            told.as_mut().await;
            told.set(self.count.none.notified());
        }
    }

    /// Ends whatever is still under way.
    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if self.0.now.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

async fn is_over(ended: &mut watch::Receiver<bool>) {
    // Whoever could end it is gone: that is no reason to end.
    if ended.wait_for(|ended| *ended).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What is told to whom the server did not wait for.
fn given_up() -> Response<Body> {
    let told = r#"{"error":"the gate is closing, and this took too long"}"#;
    let mut response = Response::new(Body::whole(told));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let frame @ Poll::Ready(_) = Pin::new(&mut self.body).poll_frame(task) {
            return frame;
        }
        match self.end.as_mut().map(|end| end.as_mut().poll(task)) {
            Some(Poll::Ready(())) => {
                self.is_over = true;
                let words = self.heard.take().and_then(|heard| heard.last_words());
                Poll::Ready(words.map(|words| Ok(Frame::data(words))))
            }
            Some(Poll::Pending) | None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
