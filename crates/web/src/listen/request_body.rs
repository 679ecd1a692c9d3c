//! The body of a request, whose unread rest is taken off the connection.
//!
//! A request may be answered before its body was read, because its head is enough
//! to refuse it. What the client still sends then stands in the way of its next
//! request: hyper closes such a connection without telling the client, who
//! loses whatever it sends there next. So the rest is read and thrown away, and where
//! it is too long or does not come, the answer says that the connection closes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::timeout;

/// How many bytes are read to keep a connection.
const UNWANTED_BYTES: usize = 1 << 20;

/// How long is waited for them.
const UNWANTED_TIME: Duration = Duration::from_millis(500);

/// The body of a request. When it is dropped before its end, what is left of it
/// goes to [`UnreadBody`].
pub struct RequestBody {
    incoming: Option<Incoming>,
    unread: Option<UnreadBody>,
    /// Whether the client sends nothing before somebody reads (`Expect: 100-continue`).
    is_held_back: bool,
}

/// What is left of a request's body, once its answer is known.
#[derive(Clone, Default)]
pub(super) struct UnreadBody(Arc<Mutex<Option<Rest>>>);

/// Whether the next request can come on the same connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    Possible,
    Impossible,
}

struct Rest {
    incoming: Incoming,
    is_held_back: bool,
}

impl RequestBody {
    /// Wraps the body of a request; what is left of it can be had when there is one.
    pub(super) fn wrap(request: Request<Incoming>) -> (Request<RequestBody>, Option<UnreadBody>) {
        let is_held_back = request.headers().contains_key(header::EXPECT);
        let has_body = !http_body::Body::is_end_stream(request.body());
        let unread = has_body.then(UnreadBody::default);
        let given = unread.clone();
        let wrap = |incoming| RequestBody { incoming: Some(incoming), unread, is_held_back };
        (request.map(wrap), given)
    }
}

impl UnreadBody {
    /// Reads what is left, within bounds.
    pub(super) async fn discard(self) -> Reuse {
        let rest = self.0.lock().take();
        let Some(Rest { mut incoming, is_held_back }) = rest else { return Reuse::Possible };
        if is_held_back {
            // Reading would ask the client for what nobody wants.
            return Reuse::Impossible;
        }
        let mut n_read = 0;
        let to_the_end = async {
            while let Some(frame) = incoming.frame().await {
                let Ok(frame) = frame else { return Reuse::Impossible };
                n_read += frame.data_ref().map_or(0, Bytes::len);
                if UNWANTED_BYTES < n_read {
                    return Reuse::Impossible;
                }
            }
            Reuse::Possible
        };
        timeout(UNWANTED_TIME, to_the_end).await.unwrap_or(Reuse::Impossible)
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_held_back = false;
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        let frame = Pin::new(incoming).poll_frame(task);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.incoming = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Some(unread) = &self.unread else { return };
        let left = self.incoming.take().filter(|left| !http_body::Body::is_end_stream(left));
        let rest = left.map(|incoming| Rest { incoming, is_held_back: self.is_held_back });
        *unread.0.lock() = rest;
    }
}
