//! Answers modern requests, which have no session, over HTTP.
//!
//! Polling the response body drives the call, and closing the connection cancels it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tool::{Json, Reply, RpcError};

use super::answer_memory::{AnswerMemory, AnswerRoom};
use super::post::AnswerFormat;
use super::{Body, Endpoint, body, caller, event, headers};
use crate::message::{self, Request as RpcRequest};
use crate::off_thread::{LONG_MESSAGE, off_thread};
use crate::revision::code;
use crate::serve::caller::CallerKey;
use crate::serve::channel::Outgoing;
use crate::serve::exchange::{Exchange, Step};
use crate::serve::listen::SubscriptionStream;
use crate::serve::modern::{self, ModernAnswer};

impl Endpoint {
    /// Answers a modern request.
    pub(super) async fn respond_stateless<B>(
        &self,
        request: &Request<B>,
        rpc_request: &RpcRequest,
        answer_format: AnswerFormat,
    ) -> Response<Body> {
        let id = &rpc_request.id;
        if let Some(answer) = Box::pin(self.forward_to_replica(&caller(request), rpc_request)).await
        {
            return answer;
        }
        let begun = match self.check_and_parse(request, rpc_request) {
            Ok(mut parsed) => {
                parsed.trace = self.0.options.tracing.trace_for(id, Some(request.headers()));
                modern::begin(&self.0.server, parsed, rpc_request, None).await
            }
            Err(error) => return refusal_response(id, error),
        };
        match begun {
            ModernAnswer::Immediate(reply) => {
                let key = caller(request).key();
                let (reply, room) = self.0.options.memory.make_room(key, reply).await;
                answer(id, &reply, answer_format, room)
            }
            ModernAnswer::Exchange(exchange) => {
                self.answer_exchange(id, exchange, caller(request).key(), answer_format).await
            }
            ModernAnswer::Listen(listening) => {
                let stopping = Box::pin(self.0.stopping.clone().cancelled_owned());
                let source = EventSource::Subscription(listening, stopping);
                self.stream_events(id, source, caller(request).key(), None)
            }
        }
    }

    fn check_and_parse<B>(
        &self,
        request: &Request<B>,
        rpc_request: &RpcRequest,
    ) -> Result<modern::ParsedRequest, RpcError> {
        let params = rpc_request.params.as_ref();
        if let Some(revision) = modern::revision_named(params) {
            headers::check(request.headers(), rpc_request, &revision)?;
        }
        let parsed = modern::parse_request(&self.0.server, params, &caller(request))?;
        headers::check_params(request.headers(), rpc_request, &parsed.provider.listing())?;
        Ok(parsed)
    }

    async fn answer_exchange(
        &self,
        id: &Json,
        mut exchange: Exchange,
        caller: CallerKey,
        answer_format: AnswerFormat,
    ) -> Response<Body> {
        if answer_format == AnswerFormat::JsonOnly {
            exchange.channel().mute();
        }
        match exchange.step().await {
            Step::Answer(reply) => {
                let reply = body::limit_reply(reply, self.0.options.answer);
                let (reply, room) = self.0.options.memory.make_room(caller, reply).await;
                let n_bytes = message::payload(&reply).as_str().len();
                if n_bytes < LONG_MESSAGE {
                    return answer(id, &reply, answer_format, room);
                }
                let id = id.clone();
                Box::pin(off_thread(n_bytes, move || answer(&id, &reply, answer_format, room)))
                    .await
            }
            Step::Message(message) => {
                self.stream_events(id, EventSource::Exchange(exchange), caller, Some(message))
            }
        }
    }

    fn stream_events(
        &self,
        id: &Json,
        source: EventSource,
        caller: CallerKey,
        first: Option<Outgoing>,
    ) -> Response<Body> {
        let keep_alive = self.0.options.keep_alive;
        let keep_alive_timer = Box::pin(sleep(keep_alive));
        let first = first.map(|message| event::encode(None, message.text()));
        let limit = self.0.options.answer;
        let memory = self.0.options.memory.clone();
        let events = EventStream {
            id: id.clone(),
            caller,
            source: Some(source),
            first,
            keep_alive_timer,
            keep_alive,
            limit,
            memory,
        };
        body::event_stream(Some(id), Box::pin(events))
    }
}

/// The source of the events of a response.
enum EventSource {
    Exchange(Exchange),
    /// A subscription, until the client disconnects or the server stops.
    Subscription(SubscriptionStream, Pin<Box<WaitForCancellationFutureOwned>>),
    /// A long answer that is being serialized.
    Writing(BoxFuture<'static, Bytes>),
}

/// The events of one response. Dropping them cancels the request.
struct EventStream {
    id: Json,
    caller: CallerKey,
    /// `None` once the answer is sent.
    source: Option<EventSource>,
    first: Option<Bytes>,
    keep_alive_timer: Pin<Box<Sleep>>,
    keep_alive: Duration,
    limit: usize,
    memory: AnswerMemory,
}

impl EventStream {
    fn poll_source(&mut self, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let step = match &mut self.source {
            None => return Poll::Ready(None),
            Some(EventSource::Writing(answer)) => {
                let answer = ready!(answer.as_mut().poll(task));
                self.source = None;
                return Poll::Ready(Some(answer));
            }
            Some(EventSource::Exchange(exchange)) => exchange.poll_step(task),
            Some(EventSource::Subscription(listening, stopping)) => {
                if stopping.as_mut().poll(task).is_ready() {
                    let reply = listening.final_reply();
                    self.source = None;
                    let answer =
                        event::encode_answer(None, &self.id, &reply, AnswerRoom::uncounted());
                    return Poll::Ready(Some(answer));
                }
                Pin::new(&mut *listening).poll_next(task).map(|message| match message {
                    Some(message) => Step::Message(Outgoing::Notification(message)),
                    None => Step::Answer(listening.final_reply()),
                })
            }
        };
        match ready!(step) {
            Step::Message(message) => Poll::Ready(Some(event::encode(None, message.text()))),
            Step::Answer(reply) => {
                let reply = body::limit_reply(reply, self.limit);
                let (id, caller) = (self.id.clone(), self.caller.clone());
                let memory = self.memory.clone();
                self.source = Some(EventSource::Writing(Box::pin(async move {
                    let (reply, room) = memory.make_room(caller, reply).await;
                    let n_bytes = message::payload(&reply).as_str().len();
                    let write = move || event::encode_answer(None, &id, &reply, room);
                    off_thread(n_bytes, write).await
                })));
                // The new future must be polled once to be woken.
                self.poll_source(task)
            }
        }
    }
}

impl Stream for EventStream {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Poll::Ready(event) = self.poll_source(task) {
            return Poll::Ready(event);
        }
        if self.keep_alive_timer.as_mut().poll(task).is_ready() {
            let later = Instant::now() + self.keep_alive;
            self.keep_alive_timer.as_mut().reset(later);
            // The timer must be polled again to be armed.
            task.waker().wake_by_ref();
            return Poll::Ready(Some(event::KEEP_ALIVE));
        }
        Poll::Pending
    }
}

/// Makes the response with an answer, in a format that the client accepts.
fn answer(
    id: &Json,
    reply: &Reply,
    answer_format: AnswerFormat,
    room: AnswerRoom,
) -> Response<Body> {
    let status = status(reply);
    match answer_format {
        AnswerFormat::Either | AnswerFormat::JsonOnly => body::long_answer(status, id, reply, room),
        AnswerFormat::EventsOnly => {
            let event = event::encode_answer(None, id, reply, room);
            let mut response =
                body::event_stream(Some(id), Box::pin(futures::stream::iter([event])));
            *response.status_mut() = status;
            response
        }
    }
}

/// Makes the response that refuses an invalid request.
fn refusal_response(id: &Json, error: RpcError) -> Response<Body> {
    body::answer(StatusCode::BAD_REQUEST, id, &Reply::Error(error))
}

/// Returns the HTTP status that the protocol defines for an error; 200 for all others.
fn status(reply: &Reply) -> StatusCode {
    match reply {
        Reply::Error(error) if error.code == code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        Reply::Error(error) if error.code == code::MISSING_CAPABILITY => StatusCode::BAD_REQUEST,
        Reply::Error(_) | Reply::Result(_) => StatusCode::OK,
    }
}
