//! Requests that are under way.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use mcp::serve::http::Body;
use tokio::sync::watch;

use super::Heard;

/// All requests of a server. Clones are the same.
#[derive(Clone)]
pub(super) struct Open {
    /// How many there are.
    number: Arc<watch::Sender<usize>>,
    /// Whether they are to end.
    ended: Arc<watch::Sender<bool>>,
}

/// Counts one request for as long as it lives.
struct Mark(Arc<watch::Sender<usize>>);

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
        Open { number: Arc::new(watch::Sender::new(0)), ended: Arc::new(watch::Sender::new(false)) }
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
        self.number.send_modify(|number| *number += 1);
        let mark = Mark(Arc::clone(&self.number));
        let ended = self.ended.subscribe();
        // An async block would keep room for the answer's future twice.
        let answer = Box::pin(answer);
        async move {
            let response = tokio::select! {
                biased;
                response = answer => response,
                () = is_over(ended.clone()) => given_up(),
            };
            let is_stream = http_body::Body::size_hint(response.body()).exact().is_none();
            let heard = response.extensions().get().filter(|_| is_stream).cloned();
            Ok(response.map(|body| Held {
                body,
                end: is_stream.then(|| Box::pin(is_over(ended)) as _),
                heard,
                is_over: false,
                _mark: mark,
            }))
        }
    }

    /// Ready when nothing is under way.
    pub(super) async fn none(&self) {
        let mut number = self.number.subscribe();
        // The sender is here, so it cannot be gone.
        drop(number.wait_for(|number| *number == 0).await);
    }

    /// Ends whatever is still under way.
    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.send_modify(|number| *number -= 1);
    }
}

async fn is_over(mut ended: watch::Receiver<bool>) {
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
