//! The bodies of HTTP responses.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::BoxStream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use tool::{Json, Reply, RpcError};

use super::answers::AnswerMemory;
use super::event;
use crate::message;
use crate::revision::code;

/// The body of a response: one piece, or a stream of events.
pub struct Body(Kind);

enum Kind {
    Whole(Bytes),
    Events(BoxStream<'static, Bytes>),
}

/// The question that a stream of events answers, in the response's extensions:
/// whoever has to cut the stream short can still answer it.
#[derive(Clone, Debug)]
pub struct AnswerTo(pub Json);

impl AnswerTo {
    /// The event that answers with an error.
    pub fn refused(&self, message: &str) -> Bytes {
        let error = RpcError::new(code::SERVER, message);
        event::encode_answer(None, &self.0, &Reply::Error(error), &AnswerMemory::default())
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

/// A response, or the one that refuses. Boxed, because it is large and rare.
pub(super) type Answered = Result<Response<Body>, Refusal>;
pub(super) type Refusal = Box<Response<Body>>;

/// A response without a body.
pub(super) fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A response with a JSON body.
pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A response with the answer to one request.
pub(super) fn answer(status: StatusCode, id: &Json, reply: &Reply) -> Response<Body> {
    json(status, encode_answer(id, reply))
}

/// A response with an answer that may be long; or with what stands for it when
/// there is no memory for it.
pub(super) fn long_answer(
    status: StatusCode,
    id: &Json,
    reply: &Reply,
    memory: &AnswerMemory,
) -> Response<Body> {
    let n_bytes = message::payload(reply).as_str().len();
    match memory.hold(n_bytes, || encode_answer(id, reply).into_bytes()) {
        Ok(text) => json(status, text),
        Err(full) => answer(status, id, &Reply::Error(full)),
    }
}

/// The answers of a batch, in the same way.
pub(super) fn long_answers(answers: &[(Json, Reply)], memory: &AnswerMemory) -> Response<Body> {
    let write = |answers: &[(Json, Reply)]| {
        let mut text = String::new();
        message::write_responses(&mut text, answers);
        text.into_bytes()
    };
    let n_bytes = answers.iter().map(|(_, reply)| message::payload(reply).as_str().len()).sum();
    let text = memory.hold(n_bytes, || write(answers)).unwrap_or_else(|full| {
        let refused = |(id, _): &(Json, Reply)| (id.clone(), Reply::Error(full.clone()));
        write(&answers.iter().map(refused).collect::<Vec<_>>()).into()
    });
    json(StatusCode::OK, text)
}

/// A response that refuses a request before it was read as one.
pub(super) fn refusal(status: StatusCode, code: i64, message: impl Into<String>) -> Response<Body> {
    answer(status, &Json::null(), &Reply::Error(RpcError::new(code, message)))
}

/// Returns what refuses a request that cannot be answered.
pub(super) fn refuse(status: StatusCode, message: impl Into<String>) -> Refusal {
    Box::new(refusal(status, code::SERVER, message))
}

/// A response that streams events, to the question with this id if there is one.
pub(super) fn events(id: Option<&Json>, events: BoxStream<'static, Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::events(events));
    if let Some(id) = id {
        response.extensions_mut().insert(AnswerTo(id.clone()));
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Reverse proxies hold events back unless told not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The answer, or what stands for one that is larger than `limit` bytes.
pub(super) fn bounded(reply: Reply, limit: usize) -> Reply {
    message::within(reply, &mut 0, limit)
}

/// One answer as it goes on the wire.
pub(super) fn encode_answer(id: &Json, reply: &Reply) -> String {
    let n_payload = message::payload(reply).as_str().len();
    let mut text = String::with_capacity(n_payload + id.as_str().len() + 40);
    message::write_response(&mut text, id.as_str(), reply);
    text
}
