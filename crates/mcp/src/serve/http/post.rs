//! Answers a POST: dispatches its messages, and responds with JSON or an event stream.

use std::fmt::Display;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use tool::{Json, Reply, RpcError};

use super::answer_memory::{AnswerMemory, AnswerRoom, BatchRoom};
use super::batch::{Batch, BatchEvent, DetachedBatch};
use super::body::{self, Body, BoxedRefusal, HttpResult, boxed_refusal};
use super::resumable::ResumableStream;
use super::sessions::HttpSession;
use super::{Endpoint, caller, request, supports_resumption};
use crate::message::{self, Frame, Invalid, Message, Notification, Request as RpcRequest};
use crate::off_thread::{LONG_MESSAGE, off_thread};
use crate::revision::{Revision, code, header, method};
use crate::serve::caller::CallerKey;
use crate::serve::exchange::Step;
use crate::serve::{modern, roots};

/// The response formats that a client accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    /// JSON, or events if other messages precede the answer.
    Either,
    JsonOnly,
    EventsOnly,
}

impl Endpoint {
    pub(super) async fn post<B>(&self, request: Request<B>) -> HttpResult
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        if !request::is_json(&request) {
            let message = "post messages as `Content-Type: application/json`";
            return Err(boxed_refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let answer_format = answer_format(&request)?;
        let key = caller(&request).key();
        let (head, body) = request.into_parts();
        let bytes = request::receive(body, key.clone(), &self.0.options).await?;
        let request = Request::from_parts(head, ());
        if !offload::is_long(bytes.len()) {
            return self.respond_to_body(&bytes, &request, answer_format).await;
        }
        let endpoint = self.clone();
        let respond =
            async move { endpoint.respond_to_body(&bytes, &request, answer_format).await };
        Box::pin(offload::aside(key, respond)).await
    }

    /// Responds to a POST whose body was received.
    async fn respond_to_body(
        &self,
        bytes: &Bytes,
        request: &Request<()>,
        answer_format: AnswerFormat,
    ) -> HttpResult {
        match request::parse_frame(bytes)? {
            Frame::One(Message::Request(rpc_request)) if is_modern(request, &rpc_request) => {
                Ok(self.respond_stateless(request, &rpc_request, answer_format).await)
            }
            Frame::One(Message::Request(rpc_request))
                if rpc_request.method == method::INITIALIZE =>
            {
                Ok(self.initialize(request, &rpc_request, answer_format).await)
            }
            Frame::One(Message::Notification(_)) if names_modern_revision(request) => {
                Ok(body::empty(StatusCode::ACCEPTED))
            }
            Frame::One(message) => {
                let session = self.session(request).await?;
                let headers = request.headers();
                self.respond_in_session(
                    &session,
                    vec![Ok(message)],
                    headers,
                    answer_format,
                    Shape::One,
                )
                .await
            }
            Frame::Batch(messages) => {
                let session = self.session(request).await?;
                if !session.inner.revision.has_batches() {
                    let message =
                        "batches are only known in revision 2025-03-26; post one message at a time";
                    let refusal =
                        body::refusal(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message);
                    return Err(Box::new(refusal));
                }
                let headers = request.headers();
                self.respond_in_session(&session, messages, headers, answer_format, Shape::Batch)
                    .await
            }
        }
    }

    async fn initialize<B>(
        &self,
        request: &Request<B>,
        rpc_request: &RpcRequest,
        answer_format: AnswerFormat,
    ) -> Response<Body> {
        let id: Arc<str> = format!("{:032x}", rand::random::<u128>()).into();
        let params = rpc_request.params.as_ref();
        let caller = caller(request);
        let opened = self.0.server.initialize(Arc::clone(&id), params, &caller, None);
        let reply = match opened {
            Ok((session, reply)) => {
                match self.0.sessions.add(session.with_replica_tag(self.replica_tag()), &caller) {
                    Ok(()) => {
                        self.record_session(&id).await;
                        reply
                    }
                    Err(full) => {
                        let error = Reply::Error(RpcError::new(code::SERVER, full.to_string()));
                        return body::answer(
                            StatusCode::TOO_MANY_REQUESTS,
                            &rpc_request.id,
                            &error,
                        );
                    }
                }
            }
            Err(error) => {
                return body::answer(
                    StatusCode::BAD_REQUEST,
                    &rpc_request.id,
                    &Reply::Error(error),
                );
            }
        };
        let mut response = match answer_format {
            AnswerFormat::Either | AnswerFormat::JsonOnly => {
                body::answer(StatusCode::OK, &rpc_request.id, &reply)
            }
            AnswerFormat::EventsOnly => {
                let room = AnswerRoom::uncounted();
                let event = super::event::encode_answer(None, &rpc_request.id, &reply, room);
                body::event_stream(Some(&rpc_request.id), Box::pin(futures::stream::iter([event])))
            }
        };
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(header::SESSION_ID, id);
        }
        response
    }

    async fn respond_in_session(
        &self,
        session: &Arc<HttpSession>,
        messages: Vec<Result<Message, Invalid>>,
        headers: &HeaderMap,
        answer_format: AnswerFormat,
        shape: Shape,
    ) -> HttpResult {
        let mut batch = Batch::new(&session.in_flight, self.0.options.answer);
        let mut answers = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(RpcRequest { id, method, params })) => {
                    let trace = self.0.options.tracing.trace_for(&id, Some(headers));
                    let change = self.shared_change(&method, params.as_ref());
                    let begin = || {
                        let exchange = self.0.server.begin(&session.inner, method, params, trace);
                        let exchange = self.share_after(exchange, session, change);
                        if answer_format == AnswerFormat::JsonOnly {
                            exchange.channel().mute();
                        }
                        exchange
                    };
                    match batch.add(id.clone(), begin) {
                        Ok(()) => {}
                        Err(reply) if shape == Shape::One => {
                            return Ok(body::answer(StatusCode::BAD_REQUEST, &id, &reply));
                        }
                        Err(reply) => answers.push((id, reply)),
                    }
                }
                Ok(Message::Notification(notification)) => {
                    if let Some(id) = cancelled_request(&notification)
                        && !session.in_flight.cancel(&id)
                    {
                        Box::pin(self.cancel_elsewhere(session, id)).await;
                    }
                    let own = Arc::clone(session);
                    take_notification(session, &notification, move || own.standalone());
                }
                Ok(Message::Response(response)) => {
                    Box::pin(self.complete_question(session, response)).await;
                }
                Err(invalid) => {
                    let id = invalid.id.clone().unwrap_or_else(Json::null);
                    answers.push((id, Reply::Error(invalid.to_error())));
                }
            }
        }
        if batch.is_empty() && answers.is_empty() {
            return Ok(body::empty(StatusCode::ACCEPTED));
        }
        self.answer(session, DetachedBatch::new(batch), answers, answer_format, shape).await
    }

    /// Responds with JSON if the answers come soon, otherwise with an event stream.
    async fn answer(
        &self,
        session: &Arc<HttpSession>,
        mut batch: DetachedBatch,
        mut answers: Vec<(Json, Reply)>,
        answer_format: AnswerFormat,
        shape: Shape,
    ) -> HttpResult {
        let memory = &self.0.options.memory;
        let mut room = memory.batch_room(session.inner.caller_key().clone());
        let mut first = None;
        if answer_format != AnswerFormat::EventsOnly {
            let mut stream_timer = self.0.timers.set(self.0.options.stream_after);
            loop {
                let event = tokio::select! {
                    biased;
                    event = batch.next_event() => event,
                    () = stream_timer.elapsed(), if answer_format == AnswerFormat::Either => break,
                };
                match event {
                    BatchEvent::Answer(id, reply) if shape == Shape::One => {
                        let caller = session.inner.caller_key().clone();
                        let (reply, room) = memory.make_room(caller, reply).await;
                        let n_bytes = message::payload(&reply).as_str().len();
                        let ok = StatusCode::OK;
                        if n_bytes < LONG_MESSAGE {
                            return Ok(body::long_answer(ok, &id, &reply, room));
                        }
                        let write = move || body::long_answer(ok, &id, &reply, room);
                        return Ok(Box::pin(off_thread(n_bytes, write)).await);
                    }
                    BatchEvent::Answer(id, reply) => {
                        let added = room.add(&reply).await;
                        answers.push((id, added.map_or_else(Reply::Error, |()| reply)));
                        if room.is_full() {
                            batch.start_no_more();
                        }
                    }
                    BatchEvent::End => {
                        let n_bytes = room.n_bytes();
                        let write = move || batch_response(answers, room.into_room());
                        return Ok(Box::pin(off_thread(n_bytes, write)).await);
                    }
                    BatchEvent::Message(message) => {
                        first = Some(message);
                        break;
                    }
                }
            }
        }
        let request_id = batch.first_id().filter(|_| shape == Shape::One).cloned();
        let stream = session.open_stream(request_id.as_ref());
        if supports_resumption(session) {
            stream.push_priming_event(self.0.options.retry);
        }
        if let Some(message) = first {
            stream.push(&message);
        }
        let reader = session.open_reader(&stream, None, self.0.options.keep_alive);
        let response = body::event_stream(request_id.as_ref(), Box::pin(reader));
        if let Some(batch) = batch.into_batch() {
            let caller = session.inner.caller_key().clone();
            tokio::spawn(write_batch(answers, room, batch, stream, caller, memory.clone()));
        }
        Ok(response)
    }
}

/// Whether a POST has one message or an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    Batch,
}

/// Writes the answers that are there and the rest of a batch to its stream, and closes the
/// stream.
async fn write_batch(
    answers: Vec<(Json, Reply)>,
    mut room: BatchRoom,
    mut batch: Batch,
    stream: Arc<ResumableStream>,
    caller: CallerKey,
    memory: AnswerMemory,
) {
    for (id, reply) in answers {
        let room = room.take(&reply);
        push_answer(&stream, id, reply, room).await;
    }
    loop {
        match batch.next_event().await {
            BatchEvent::Message(message) => stream.push(&message),
            BatchEvent::Answer(id, reply) => {
                write_answer(&stream, id, reply, caller.clone(), &memory).await;
            }
            BatchEvent::End => return stream.close(),
        }
    }
}

/// Writes one answer to a stream when there is memory for it; a long one on a blocking
/// thread.
pub(super) async fn write_answer(
    stream: &Arc<ResumableStream>,
    id: Json,
    reply: Reply,
    caller: CallerKey,
    memory: &AnswerMemory,
) {
    let (reply, room) = memory.make_room(caller, reply).await;
    push_answer(stream, id, reply, room).await;
}

async fn push_answer(stream: &Arc<ResumableStream>, id: Json, reply: Reply, room: AnswerRoom) {
    let n_bytes = message::payload(&reply).as_str().len();
    let stream = Arc::clone(stream);
    off_thread(n_bytes, move || stream.push_answer(&id, &reply, room)).await;
}

/// Makes the response with the answers of a batch; empty if all were cancelled.
fn batch_response(answers: Vec<(Json, Reply)>, room: AnswerRoom) -> Response<Body> {
    if answers.is_empty() {
        return body::empty(StatusCode::ACCEPTED);
    }
    body::long_answers(answers, room)
}

/// Returns the id of the request that a notification cancels.
pub(super) fn cancelled_request(notification: &Notification) -> Option<Json> {
    let params = notification.params.as_ref().filter(|_| notification.method == method::CANCELLED);
    params.and_then(|params| params.member("requestId"))
}

/// Processes a notification about roots. Questions of the provider about it go to `stream`.
pub(super) fn take_notification(
    session: &HttpSession,
    notification: &Notification,
    stream: impl Fn() -> Arc<ResumableStream> + Send + 'static,
) {
    if let Some(mut exchange) = roots::notify_provider(&session.inner, notification) {
        session.inner.run_roots_task(async move {
            while let Step::Message(message) = exchange.step().await {
                stream().push(&message);
            }
        });
    }
}

/// The `Accept` header of the official SDKs: both formats.
const BOTH: &str = "application/json, text/event-stream";

fn answer_format<B>(request: &Request<B>) -> Result<AnswerFormat, BoxedRefusal> {
    if request.headers().get(ACCEPT).is_some_and(|value| value == BOTH) {
        return Ok(AnswerFormat::Either);
    }
    let whole = request::accepts(request, "application/json");
    let events = request::accepts(request, "text/event-stream");
    match (whole, events) {
        (true, true) => Ok(AnswerFormat::Either),
        (true, false) => Ok(AnswerFormat::JsonOnly),
        (false, true) => Ok(AnswerFormat::EventsOnly),
        (false, false) => Err(boxed_refusal(
            StatusCode::NOT_ACCEPTABLE,
            "accept both `application/json` and `text/event-stream`",
        )),
    }
}

/// Returns whether a request is of a modern (stateless) revision.
fn is_modern<B>(request: &Request<B>, rpc_request: &RpcRequest) -> bool {
    rpc_request.method == method::DISCOVER
        || modern::is_modern(rpc_request.params.as_ref())
        || names_modern_revision(request)
}

fn names_modern_revision<B>(request: &Request<B>) -> bool {
    let revision = request::header_text(request, header::PROTOCOL_VERSION);
    let revision = revision.and_then(|revision| revision.parse::<Revision>().ok());
    revision.is_some_and(Revision::is_modern)
}
