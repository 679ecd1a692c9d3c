//! HTTP responses and their bodies: JSON, event streams and refusals.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::BoxStream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use tool::{Json, Reply, RpcError};

use super::answer_memory::AnswerRoom;
use super::event;
use crate::message;
use crate::revision::code;

/// The body of a response: complete bytes, or a stream of events.
pub struct Body(Kind);

enum Kind {
    Whole(Bytes),
    Events(BoxStream<'static, Bytes>),
}

/// The id of the request that an event stream answers, in the response's extensions: code
/// that has to end the stream early can still answer the request.
#[derive(Clone, Debug)]
pub struct AnswerTo(pub Json);

impl AnswerTo {
    /// Returns the event that answers the request with an error.
    pub fn refused(&self, message: &str) -> Bytes {
        let error = RpcError::new(code::SERVER, message);
        event::encode_answer(None, &self.0, &Reply::Error(error), AnswerRoom::uncounted())
    }
}

impl Body {
    pub fn empty() -> Body {
        Body(Kind::Whole(Bytes::new()))
    }

    pub fn whole(bytes: impl Into<Bytes>) -> Body {
        Body(Kind::Whole(bytes.into()))
    }

    pub fn events(events: BoxStream<'static, Bytes>) -> Body {
        Body(Kind::Events(events))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Events(events) => {
                let next = events.as_mut().poll_next(task);
                next.map(|event| event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

/// A response, or a refusal of the request.
pub(super) type HttpResult = Result<Response<Body>, BoxedRefusal>;
/// A response that refuses a request. Boxed, because it is large and rare.
pub(super) type BoxedRefusal = Box<Response<Body>>;

/// Makes a response without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Makes a response with a JSON body.
pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Makes the response with the answer to one request.
pub(super) fn answer(status: StatusCode, id: &Json, reply: &Reply) -> Response<Body> {
    json(status, encode_answer(id, reply))
}

/// Makes the response with an answer that may be long.
pub(super) fn long_answer(
    status: StatusCode,
    id: &Json,
    reply: &Reply,
    room: AnswerRoom,
) -> Response<Body> {
    json(status, room.hold(encode_answer(id, reply).into_bytes()))
}

/// Makes the response with the answers of a batch.
pub(super) fn long_answers(answers: Vec<(Json, Reply)>, room: AnswerRoom) -> Response<Body> {
    let n_bytes = |(id, reply): &(Json, Reply)| {
        id.as_str().len() + message::payload(reply).as_str().len() + 40
    };
    let mut text = String::with_capacity(answers.iter().map(n_bytes).sum::<usize>() + 2);
    // Each answer is dropped when it is written, so that they are not all there twice.
    message::write_responses(&mut text, answers);
    json(StatusCode::OK, room.hold(text.into_bytes()))
}

/// Makes the response that refuses an HTTP request before its JSON-RPC id is known.
pub(super) fn refusal(status: StatusCode, code: i64, message: impl Into<String>) -> Response<Body> {
    answer(status, &Json::null(), &Reply::Error(RpcError::new(code, message)))
}

/// Makes such a refusal with the general error code.
pub(super) fn boxed_refusal(status: StatusCode, message: impl Into<String>) -> BoxedRefusal {
    Box::new(refusal(status, code::SERVER, message))
}

/// Makes a response that streams events; `id` is that of the request it answers, if any.
pub(super) fn event_stream(id: Option<&Json>, events: BoxStream<'static, Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::events(events));
    if let Some(id) = id {
        response.extensions_mut().insert(AnswerTo(id.clone()));
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Reverse proxies buffer events unless told not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Returns the reply, or an error in its place if it has more than `limit` bytes.
pub(super) fn limit_reply(reply: Reply, limit: usize) -> Reply {
    message::limit_reply(reply, &mut 0, limit)
}

/// Serializes an answer.
pub(super) fn encode_answer(id: &Json, reply: &Reply) -> String {
    let n_payload = message::payload(reply).as_str().len();
    let mut text = String::with_capacity(n_payload + id.as_str().len() + 40);
    message::write_response(&mut text, id.as_str(), reply);
    text
}
