//! Handles posted messages.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Buf;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use tool::{Json, Reply, RpcError};

use super::answers::AnswerMemory;
use super::batch::{Batch, BatchEvent, DetachedBatch};
use super::body::{self, Answered, Body, Refusal, refuse};
use super::resumable::ResumableStream;
use super::sessions::HttpSession;
use super::{Endpoint, caller, request, resumes};
use crate::aside::{LONG, aside};
use crate::message::{self, Frame, Invalid, Message, Notification, Request as Question};
use crate::revision::{Revision, code, header, method};
use crate::serve::exchange::Step;
use crate::serve::{modern, roots};

/// How a client wants its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// In one piece, or as events when something flows before it.
    Either,
    Whole,
    Events,
}

impl Endpoint {
    pub(super) async fn post<B>(&self, request: Request<B>) -> Answered
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        if !request::is_json(&request) {
            let message = "post messages as `Content-Type: application/json`";
            return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let wants = wants(&request)?;
        let (head, body) = request.into_parts();
        let frame = request::frame(body, &self.0.options).await?;
        let request = Request::from_parts(head, ());
        match frame {
            Frame::One(Message::Request(question)) if is_modern(&request, &question) => {
                Ok(self.alone(&request, &question, wants).await)
            }
            Frame::One(Message::Request(question)) if question.method == method::INITIALIZE => {
                Ok(self.initialize(&request, &question, wants).await)
            }
            Frame::One(Message::Notification(_)) if says_modern(&request) => {
                Ok(body::bare(StatusCode::ACCEPTED))
            }
            Frame::One(message) => {
                let session = self.session(&request).await?;
                let headers = request.headers();
                self.in_session(&session, vec![Ok(message)], headers, wants, Shape::One).await
            }
            Frame::Batch(messages) => {
                let session = self.session(&request).await?;
                if !session.inner.revision.has_batches() {
                    let message =
                        "batches are only known in revision 2025-03-26; post one message at a time";
                    let refusal =
                        body::refusal(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message);
                    return Err(Box::new(refusal));
                }
                let headers = request.headers();
                self.in_session(&session, messages, headers, wants, Shape::Batch).await
            }
        }
    }

    async fn initialize<B>(
        &self,
        request: &Request<B>,
        question: &Question,
        wants: Wants,
    ) -> Response<Body> {
        let id: Arc<str> = format!("{:032x}", rand::random::<u128>()).into();
        let params = question.params.as_ref();
        let caller = caller(request);
        let opened = self.0.server.initialize(Arc::clone(&id), params, &caller, None);
        let reply = match opened {
            Ok((session, reply)) => {
                match self.0.sessions.add(session.asking_as(self.tag()), &caller) {
                    Ok(()) => {
                        self.note_session(&id, params, &caller.identity).await;
                        reply
                    }
                    Err(full) => {
                        let error = Reply::Error(RpcError::new(code::SERVER, full.to_string()));
                        return body::answer(StatusCode::TOO_MANY_REQUESTS, &question.id, &error);
                    }
                }
            }
            Err(error) => {
                return body::answer(StatusCode::BAD_REQUEST, &question.id, &Reply::Error(error));
            }
        };
        let mut response = match wants {
            Wants::Either | Wants::Whole => body::answer(StatusCode::OK, &question.id, &reply),
            Wants::Events => {
                let memory = &self.0.options.memory;
                let event = super::event::encode_answer(None, &question.id, &reply, memory);
                body::events(Some(&question.id), Box::pin(futures::stream::iter([event])))
            }
        };
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(header::SESSION_ID, id);
        }
        response
    }

    async fn in_session(
        &self,
        session: &Arc<HttpSession>,
        messages: Vec<Result<Message, Invalid>>,
        headers: &HeaderMap,
        wants: Wants,
        shape: Shape,
    ) -> Answered {
        let mut batch = Batch::new(&session.in_flight, self.0.options.answer);
        let mut answers = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(Question { id, method, params })) => {
                    let trace = self.0.options.tracing.of(&id, Some(headers));
                    let begin = || {
                        let exchange = self.0.server.begin(&session.inner, method, params, trace);
                        if wants == Wants::Whole {
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
            return Ok(body::bare(StatusCode::ACCEPTED));
        }
        self.answer(session, DetachedBatch::new(batch), answers, wants, shape).await
    }

    /// Answers in one piece if that can be done soon, with events otherwise.
    async fn answer(
        &self,
        session: &Arc<HttpSession>,
        mut batch: DetachedBatch,
        mut answers: Vec<(Json, Reply)>,
        wants: Wants,
        shape: Shape,
    ) -> Answered {
        let mut first = None;
        if wants != Wants::Events {
            let mut settle = self.0.timers.set(self.0.options.stream_after);
            loop {
                let turn = tokio::select! {
                    biased;
                    turn = batch.turn() => turn,
                    () = settle.elapsed(), if wants == Wants::Either => break,
                };
                match turn {
                    BatchEvent::Answer(id, reply) if shape == Shape::One => {
                        let n_bytes = message::payload(&reply).as_str().len();
                        let memory = self.0.options.memory.clone();
                        let ok = StatusCode::OK;
                        if n_bytes < LONG {
                            return Ok(body::long_answer(ok, &id, &reply, &memory));
                        }
                        let write = move || body::long_answer(ok, &id, &reply, &memory);
                        return Ok(Box::pin(aside(n_bytes, write)).await);
                    }
                    BatchEvent::Answer(id, reply) => answers.push((id, reply)),
                    BatchEvent::End => return Ok(whole(&answers, &self.0.options.memory)),
                    BatchEvent::Message(message) => {
                        first = Some(message);
                        break;
                    }
                }
            }
        }
        let replay = session.stream();
        if resumes(session) {
            replay.prime(self.0.options.retry);
        }
        if let Some(message) = first {
            replay.say(&message);
        }
        for (id, reply) in answers {
            write_answer(&replay, id, reply, &self.0.options.memory).await;
        }
        let reader = session.read(&replay, None, self.0.options.alive);
        let batch = batch.hand_over();
        let asked = batch.as_ref().filter(|_| shape == Shape::One).and_then(Batch::first);
        let response = body::events(asked, Box::pin(reader));
        if let Some(batch) = batch {
            tokio::spawn(carry(batch, replay, self.0.options.memory.clone()));
        }
        Ok(response)
    }
}

/// Whether the messages of a POST came alone or in an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    Batch,
}

/// Writes the rest of a batch to its stream.
async fn carry(mut batch: Batch, replay: Arc<ResumableStream>, memory: AnswerMemory) {
    loop {
        match batch.turn().await {
            BatchEvent::Message(message) => replay.say(&message),
            BatchEvent::Answer(id, reply) => write_answer(&replay, id, reply, &memory).await,
            BatchEvent::End => return replay.close(),
        }
    }
}

/// Writes one answer to a stream, however long.
async fn write_answer(
    replay: &Arc<ResumableStream>,
    id: Json,
    reply: Reply,
    memory: &AnswerMemory,
) {
    let n_bytes = message::payload(&reply).as_str().len();
    let (replay, memory) = (Arc::clone(replay), memory.clone());
    aside(n_bytes, move || replay.answer(&id, &reply, &memory)).await;
}

/// The answers of a batch; nothing when all of it was cancelled.
fn whole(answers: &[(Json, Reply)], memory: &AnswerMemory) -> Response<Body> {
    if answers.is_empty() {
        return body::bare(StatusCode::ACCEPTED);
    }
    body::long_answers(answers, memory)
}

/// Takes a notification. What the provider asks about it goes to `stream`.
pub(super) fn take_notification(
    session: &HttpSession,
    notification: &Notification,
    stream: impl Fn() -> Arc<ResumableStream> + Send + 'static,
) {
    if notification.method == method::CANCELLED {
        let id = notification.params.as_ref().and_then(|params| params.member("requestId"));
        if let Some(id) = id {
            session.in_flight.cancel(&id);
        }
    }
    if let Some(mut told) = roots::changed(&session.inner, notification) {
        session.inner.pass_on(async move {
            while let Step::Message(message) = told.step().await {
                stream().say(&message);
            }
        });
    }
}

/// Both ways of being answered, as the official SDKs write it.
const BOTH: &str = "application/json, text/event-stream";

fn wants<B>(request: &Request<B>) -> Result<Wants, Refusal> {
    if request.headers().get(ACCEPT).is_some_and(|value| value == BOTH) {
        return Ok(Wants::Either);
    }
    let whole = request::accepts(request, "application/json");
    let events = request::accepts(request, "text/event-stream");
    match (whole, events) {
        (true, true) => Ok(Wants::Either),
        (true, false) => Ok(Wants::Whole),
        (false, true) => Ok(Wants::Events),
        (false, false) => Err(refuse(
            StatusCode::NOT_ACCEPTABLE,
            "accept both `application/json` and `text/event-stream`",
        )),
    }
}

/// Returns whether a request stands alone.
fn is_modern<B>(request: &Request<B>, question: &Question) -> bool {
    question.method == method::DISCOVER
        || modern::is_modern(question.params.as_ref())
        || says_modern(request)
}

fn says_modern<B>(request: &Request<B>) -> bool {
    let revision = request::text(request, header::PROTOCOL_VERSION);
    let revision = revision.and_then(|revision| revision.parse::<Revision>().ok());
    revision.is_some_and(Revision::is_modern)
}
