//! The body of a request, whose unread rest is discarded after the answer.
//!
//! A request may be answered before its body was read, for example if it is refused by
//! its head. If a part of the body stays unread, hyper closes the connection without
//! telling the client, who loses the next request. So the rest is read and discarded; if
//! it is too long or does not come, the answer says `Connection: close`.

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

/// How many bytes of a body are discarded at most, to keep a connection.
const MAX_DISCARDED_BYTES: usize = 1 << 20;

/// How long discarding may take.
const MAX_DISCARD_TIME: Duration = Duration::from_millis(500);

/// The body of a request. When it is dropped before its end, the rest is moved to
/// [`UnreadBody`].
pub struct RequestBody {
    incoming: Option<Incoming>,
    unread: Option<UnreadBody>,
    /// Whether the client waits to be asked for the body (`Expect: 100-continue`).
    is_held_back: bool,
}

/// The unread rest of a request's body, once the body was dropped.
#[derive(Clone, Default)]
pub(super) struct UnreadBody(Arc<Mutex<Option<Rest>>>);

/// Whether the connection can be used for another request.
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
    /// Wraps the body of a request, and returns where its unread rest will be, if the
    /// request has a body.
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
    /// Reads and discards the rest, within bounds.
    pub(super) async fn discard(self) -> Reuse {
        let rest = self.0.lock().take();
        let Some(Rest { mut incoming, is_held_back }) = rest else { return Reuse::Possible };
        if is_held_back {
            // Reading would make the client send the body.
            return Reuse::Impossible;
        }
        let mut n_read = 0;
        let to_the_end = async {
            while let Some(frame) = incoming.frame().await {
                let Ok(frame) = frame else { return Reuse::Impossible };
                n_read += frame.data_ref().map_or(0, Bytes::len);
                if MAX_DISCARDED_BYTES < n_read {
                    return Reuse::Impossible;
                }
            }
            Reuse::Possible
        };
        timeout(MAX_DISCARD_TIME, to_the_end).await.unwrap_or(Reuse::Impossible)
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
