//! A stream that a client resumes at another replica than the one that has it.
//!
//! The events stay where they are. This replica asks for what comes after the last event
//! that the client has, and passes it on, piece by piece, until the stream ends. If the
//! replica that has the stream is gone, so are its events: the request that it was to answer
//! gets an error that says so, and a client that only listens goes on with this replica.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use http::StatusCode;
use tool::{Json, Reply, RpcError, Sent};

use super::answer_memory::AnswerRoom;
use super::body::{self, HttpResult, boxed_refusal};
use super::replica_routing::RESUME_WAIT;
use super::replicas::ReplicaError;
use super::resumable::{Piece, Position, StreamId};
use super::sessions::{HttpSession, STANDALONE_STREAM};
use super::{Endpoint, event};
use crate::message;
use crate::revision::{code, method};

/// A stream of another replica.
struct RemoteStream {
    endpoint: Endpoint,
    /// Keeps the session in use while its client is connected here.
    session: Arc<HttpSession>,
    id: StreamId,
}

/// What comes next on a remote stream.
enum Next {
    Piece(Piece),
    Ask(Position),
    End,
}

impl Endpoint {
    /// Answers a GET that resumes a stream of another replica after the event `after`.
    pub(super) async fn resume_elsewhere(
        &self,
        session: &Arc<HttpSession>,
        id: StreamId,
        after: u64,
    ) -> HttpResult {
        let (is_standalone, request) = (id.number == STANDALONE_STREAM, id.request.clone());
        let remote = RemoteStream { endpoint: self.clone(), session: Arc::clone(session), id };
        let first = remote.read(Position { after, offset: 0 }, Duration::ZERO).await;
        let events: BoxStream<'static, Bytes> = match first {
            Ok(Some(piece)) if is_standalone => {
                // That replica has nothing more to say from now on; this one goes on.
                remote.events(piece).chain(self.own_events(session)).boxed()
            }
            Ok(None) if is_standalone => self.own_events(session),
            Ok(Some(piece)) => remote.events(piece).boxed(),
            Ok(None) => {
                let message = "that stream is not kept any more; ask again what you asked";
                return Err(boxed_refusal(StatusCode::BAD_REQUEST, message));
            }
            Err(ReplicaError::Gone) if is_standalone => {
                futures::stream::iter([missed_events()]).chain(self.own_events(session)).boxed()
            }
            Err(ReplicaError::Gone) => match &request {
                Some(request) => futures::stream::iter([lost_answer(request)]).boxed(),
                None => return Err(boxed_refusal(StatusCode::BAD_REQUEST, GONE)),
            },
            Err(ReplicaError::NoAnswer | ReplicaError::Refused) => {
                let message =
                    "the replica that has that stream does not answer now; resume it again";
                return Err(boxed_refusal(StatusCode::SERVICE_UNAVAILABLE, message));
            }
        };
        Ok(body::event_stream(request.as_ref(), events))
    }

    /// Returns what this replica has to say to a client that listens.
    fn own_events(&self, session: &Arc<HttpSession>) -> BoxStream<'static, Bytes> {
        let stream = session.standalone();
        session.open_reader(&stream, stream.last_read(), self.0.options.keep_alive).boxed()
    }
}

impl RemoteStream {
    async fn read(
        &self,
        position: Position,
        wait: Duration,
    ) -> Result<Option<Piece>, ReplicaError> {
        let StreamId { number, replica, .. } = self.id;
        let read = || self.endpoint.read_stream_of(replica, &self.session, number, position, wait);
        match read().await {
            // To read again does no harm, and tells a replica that has died from a slow one.
            Err(ReplicaError::NoAnswer) => read().await,
            read => read,
        }
    }

    /// Returns the events from this piece on.
    fn events(self, first: Piece) -> impl futures::Stream<Item = Bytes> + Send + 'static {
        futures::stream::unfold((self, Next::Piece(first)), |(remote, next)| async move {
            let piece = match next {
                Next::Piece(piece) => piece,
                Next::Ask(position) => match remote.read(position, RESUME_WAIT).await {
                    Ok(Some(piece)) => piece,
                    Err(ReplicaError::Gone) => {
                        let lost =
                            remote.id.request.as_ref().map_or_else(missed_events, lost_answer);
                        return Some((lost, (remote, Next::End)));
                    }
                    // The client comes back with the last event that it got.
                    Ok(None) | Err(ReplicaError::NoAnswer | ReplicaError::Refused) => return None,
                },
                Next::End => return None,
            };
            let next = if piece.is_last { Next::End } else { Next::Ask(piece.end) };
            match (piece.text.is_empty(), piece.is_last) {
                (false, _) => Some((Bytes::from(piece.text), (remote, next))),
                (true, false) => Some((event::KEEP_ALIVE, (remote, next))),
                (true, true) => None,
            }
        })
    }
}

const GONE: &str = "the replica that ran this request is gone, and what it had to answer with it; the \
                    request may have run: look before you make it again";

/// Returns the event that answers a request whose replica is gone.
fn lost_answer(request: &Json) -> Bytes {
    let error = RpcError::unanswered(code::SERVER, GONE, Sent::Perhaps);
    event::encode_answer(None, request, &Reply::Error(error), AnswerRoom::uncounted())
}

/// Returns the event for a client whose events are lost.
fn missed_events() -> Bytes {
    let data = "the replica that this stream was read from is gone: what happened between the last \
                event and now was left out; list again what you keep";
    let params = serde_json::json!({"level": "warning", "logger": "gatelet", "data": data});
    let mut text = String::new();
    message::write_notification(&mut text, method::MESSAGE, Some(&params.into()));
    event::encode(None, text.as_bytes())
}
