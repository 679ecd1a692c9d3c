//! Messages that are posted.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Buf;
use http::header::ACCEPT;
use http::{HeaderValue, Request, Response, StatusCode};
use tool::{Json, Reply};

use super::group::{Carried, Group, Turn};
use super::replay::Replay;
use super::seat::Seat;
use super::{Answered, Body, Endpoint, body, caller, read, refuse, resumes};
use crate::message::{self, Frame, Invalid, Message, Notification, Request as Question};
use crate::revision::{Revision, code, header, method};
use crate::serve::exchange::Step;
use crate::serve::{modern, news};

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
        if !read::is_json(&request) {
            let message = "post messages as `Content-Type: application/json`";
            return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let wants = wants(&request)?;
        let (head, body) = request.into_parts();
        let frame = read::frame(body, &self.0.options).await?;
        let request = Request::from_parts(head, ());
        match frame {
            Frame::One(Message::Request(question)) if is_modern(&request, &question) => {
                Ok(self.alone(&request, &question, wants).await)
            }
            Frame::One(Message::Request(question)) if question.method == method::INITIALIZE => {
                Ok(self.initialize(&request, &question, wants))
            }
            Frame::One(Message::Notification(_)) if says_modern(&request) => {
                Ok(body::bare(StatusCode::ACCEPTED))
            }
            Frame::One(message) => {
                let seat = self.seat(&request)?;
                self.in_session(&seat, vec![Ok(message)], wants, Shape::One).await
            }
            Frame::Batch(messages) => {
                let seat = self.seat(&request)?;
                if !seat.session.revision.has_batches() {
                    let message =
                        "batches are only known in revision 2025-03-26; post one message at a time";
                    let refusal =
                        body::refusal(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message);
                    return Err(Box::new(refusal));
                }
                self.in_session(&seat, messages, wants, Shape::Batch).await
            }
        }
    }

    fn initialize<B>(
        &self,
        request: &Request<B>,
        question: &Question,
        wants: Wants,
    ) -> Response<Body> {
        let id: Arc<str> = format!("{:032x}", rand::random::<u128>()).into();
        let params = question.params.as_ref();
        let opened = self.0.desk.initialize(Arc::clone(&id), params, &caller(request), None);
        let reply = match opened {
            Ok((session, reply)) => {
                self.0.seats.add(session);
                reply
            }
            Err(error) => {
                return body::answer(StatusCode::BAD_REQUEST, &question.id, &Reply::Error(error));
            }
        };
        let mut response = match wants {
            Wants::Either | Wants::Whole => body::answer(StatusCode::OK, &question.id, &reply),
            Wants::Events => {
                let event = super::event::of(None, body::written(&question.id, &reply).as_bytes());
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
        seat: &Arc<Seat>,
        messages: Vec<Result<Message, Invalid>>,
        wants: Wants,
        shape: Shape,
    ) -> Answered {
        let mut group = Group::new(&seat.in_flight, self.0.options.answer);
        let mut answers = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(Question { id, method, params })) => {
                    let begin = || {
                        let exchange = self.0.desk.begin(&seat.session, method, params);
                        if wants == Wants::Whole {
                            exchange.line().mute();
                        }
                        exchange
                    };
                    match group.add(id.clone(), begin) {
                        Ok(()) => {}
                        Err(reply) if shape == Shape::One => {
                            return Ok(body::answer(StatusCode::BAD_REQUEST, &id, &reply));
                        }
                        Err(reply) => answers.push((id, reply)),
                    }
                }
                Ok(Message::Notification(notification)) => {
                    let own = Arc::clone(seat);
                    notice(seat, &notification, move || own.standalone());
                }
                Ok(Message::Response(response)) => seat.session.settle(response),
                Err(invalid) => {
                    let id = invalid.id.clone().unwrap_or_else(Json::null);
                    answers.push((id, Reply::Error(invalid.to_error())));
                }
            }
        }
        if group.is_empty() && answers.is_empty() {
            return Ok(body::bare(StatusCode::ACCEPTED));
        }
        self.answer(seat, Carried::new(group), answers, wants, shape).await
    }

    /// Answers in one piece if that can be done soon, with events otherwise.
    async fn answer(
        &self,
        seat: &Arc<Seat>,
        mut group: Carried,
        mut answers: Vec<(Json, Reply)>,
        wants: Wants,
        shape: Shape,
    ) -> Answered {
        let mut first = None;
        if wants != Wants::Events {
            let mut settle = self.0.alarms.set(self.0.options.settle);
            loop {
                let turn = tokio::select! {
                    biased;
                    turn = group.turn() => turn,
                    () = settle.rings(), if wants == Wants::Either => break,
                };
                match turn {
                    Turn::Answer(id, reply) if shape == Shape::One => {
                        return Ok(body::answer(StatusCode::OK, &id, &reply));
                    }
                    Turn::Answer(id, reply) => answers.push((id, reply)),
                    Turn::End => return Ok(whole(&answers)),
                    Turn::Message(message) => {
                        first = Some(message);
                        break;
                    }
                }
            }
        }
        let replay = seat.stream();
        if resumes(seat) {
            replay.prime(self.0.options.retry);
        }
        if let Some(message) = first {
            replay.push(&message);
        }
        for (id, reply) in answers {
            replay.push(body::written(&id, &reply).as_bytes());
        }
        let reader = seat.read(&replay, None, self.0.options.alive);
        let group = group.hand_over();
        let asked = group.as_ref().filter(|_| shape == Shape::One).and_then(Group::first);
        let response = body::events(asked, Box::pin(reader));
        if let Some(group) = group {
            tokio::spawn(carry(group, replay));
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

/// Writes the rest of a group to its stream.
async fn carry(mut group: Group, replay: Arc<Replay>) {
    loop {
        match group.turn().await {
            Turn::Message(message) => replay.push(&message),
            Turn::Answer(id, reply) => replay.push(body::written(&id, &reply).as_bytes()),
            Turn::End => return replay.close(),
        }
    }
}

/// The answers of a batch; nothing when all of it was cancelled.
fn whole(answers: &[(Json, Reply)]) -> Response<Body> {
    if answers.is_empty() {
        return body::bare(StatusCode::ACCEPTED);
    }
    let mut text = String::new();
    message::write_responses(&mut text, answers);
    body::json(StatusCode::OK, text)
}

/// Takes a notification. What the provider asks about it goes to `stream`.
pub(super) fn notice(
    seat: &Seat,
    notification: &Notification,
    stream: impl Fn() -> Arc<Replay> + Send + 'static,
) {
    if notification.method == method::CANCELLED {
        let id = notification.params.as_ref().and_then(|params| params.member("requestId"));
        if let Some(id) = id {
            seat.in_flight.cancel(&id);
        }
    }
    if let Some(mut told) = news::roots_changed(&seat.session, notification) {
        seat.session.pass_on(async move {
            while let Step::Message(message) = told.step().await {
                stream().push(&message);
            }
        });
    }
}

/// Both ways of being answered, as the official SDKs write it.
const BOTH: &str = "application/json, text/event-stream";

fn wants<B>(request: &Request<B>) -> Result<Wants, super::Refusal> {
    if request.headers().get(ACCEPT).is_some_and(|value| value == BOTH) {
        return Ok(Wants::Either);
    }
    let whole = read::accepts(request, "application/json");
    let events = read::accepts(request, "text/event-stream");
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

/// Whether a request stands alone.
fn is_modern<B>(request: &Request<B>, question: &Question) -> bool {
    question.method == method::DISCOVER
        || modern::is_modern(question.params.as_ref())
        || says_modern(request)
}

fn says_modern<B>(request: &Request<B>) -> bool {
    let revision = read::text(request, header::PROTOCOL_VERSION);
    let revision = revision.and_then(|revision| revision.parse::<Revision>().ok());
    revision.is_some_and(Revision::is_modern)
}
