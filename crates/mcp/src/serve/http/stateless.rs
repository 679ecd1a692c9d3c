//! Requests without a session, over HTTP.
//!
//! The response stream belongs to the request: whoever drives the response
//! drives the call, and closing the connection cancels it.

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

use super::answers::AnswerMemory;
use super::post::Wants;
use super::{Body, Endpoint, body, caller, event, headers};
use crate::aside::{LONG, aside};
use crate::message::{self, Request as Question};
use crate::revision::code;
use crate::serve::channel::Outgoing;
use crate::serve::exchange::{Exchange, Step};
use crate::serve::listen::SubscriptionStream;
use crate::serve::modern::{self, ModernAnswer};

impl Endpoint {
    pub(super) async fn alone<B>(
        &self,
        request: &Request<B>,
        question: &Question,
        wants: Wants,
    ) -> Response<Body> {
        let id = &question.id;
        if let Some(answer) = Box::pin(self.carried_elsewhere(&caller(request), question)).await {
            return answer;
        }
        let begun = match self.checked(request, question) {
            Ok(mut opening) => {
                opening.trace = self.0.options.tracing.of(id, Some(request.headers()));
                modern::begin(&self.0.server, opening, question, None).await
            }
            Err(error) => return refused(id, error),
        };
        match begun {
            ModernAnswer::Now(reply) => answer(id, &reply, wants, &self.0.options.memory),
            ModernAnswer::Exchange(exchange) => self.exchange(id, exchange, wants).await,
            ModernAnswer::Listen(listening) => {
                let stopping = Box::pin(self.0.stopping.clone().cancelled_owned());
                self.events(id, Source::Subscription(listening, stopping), None)
            }
        }
    }

    fn checked<B>(
        &self,
        request: &Request<B>,
        question: &Question,
    ) -> Result<modern::Opening, RpcError> {
        let params = question.params.as_ref();
        if let Some(revision) = modern::revision_named(params) {
            headers::check(request.headers(), question, &revision)?;
        }
        let opening = modern::open(&self.0.server, params, &caller(request))?;
        headers::check_params(request.headers(), question, &opening.provider.listing())?;
        Ok(opening)
    }

    async fn exchange(&self, id: &Json, mut exchange: Exchange, wants: Wants) -> Response<Body> {
        if wants == Wants::Whole {
            exchange.channel().mute();
        }
        match exchange.step().await {
            Step::Answer(reply) => {
                let reply = body::bounded(reply, self.0.options.answer);
                let n_bytes = message::payload(&reply).as_str().len();
                if n_bytes < LONG {
                    return answer(id, &reply, wants, &self.0.options.memory);
                }
                let (id, memory) = (id.clone(), self.0.options.memory.clone());
                Box::pin(aside(n_bytes, move || answer(&id, &reply, wants, &memory))).await
            }
            Step::Message(message) => self.events(id, Source::Exchange(exchange), Some(message)),
        }
    }

    fn events(&self, id: &Json, source: Source, first: Option<Outgoing>) -> Response<Body> {
        let every = self.0.options.alive;
        let alive = Box::pin(sleep(every));
        let first = first.map(|message| event::encode(None, message.text()));
        let limit = self.0.options.answer;
        let memory = self.0.options.memory.clone();
        let events =
            Events { id: id.clone(), source: Some(source), first, alive, every, limit, memory };
        body::events(Some(id), Box::pin(events))
    }
}

/// Where the events of a response come from.
enum Source {
    Exchange(Exchange),
    /// Until the client or we have enough.
    Subscription(SubscriptionStream, Pin<Box<WaitForCancellationFutureOwned>>),
    /// A long answer that is being written.
    Writing(BoxFuture<'static, Bytes>),
}

/// The events of one response. Dropping them cancels the request.
struct Events {
    id: Json,
    /// `None` once the answer is out.
    source: Option<Source>,
    first: Option<Bytes>,
    alive: Pin<Box<Sleep>>,
    every: Duration,
    limit: usize,
    memory: AnswerMemory,
}

impl Events {
    fn poll_source(&mut self, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let step = match &mut self.source {
            None => return Poll::Ready(None),
            Some(Source::Writing(answer)) => {
                let answer = ready!(answer.as_mut().poll(task));
                self.source = None;
                return Poll::Ready(Some(answer));
            }
            Some(Source::Exchange(exchange)) => exchange.poll_step(task),
            Some(Source::Subscription(listening, stopping)) => {
                if stopping.as_mut().poll(task).is_ready() {
                    let reply = listening.final_reply();
                    self.source = None;
                    let answer = event::encode_answer(None, &self.id, &reply, &self.memory);
                    return Poll::Ready(Some(answer));
                }
                Pin::new(&mut *listening).poll_next(task).map(|message| match message {
                    Some(message) => Step::Message(Outgoing::Note(message)),
                    None => Step::Answer(listening.final_reply()),
                })
            }
        };
        match ready!(step) {
            Step::Message(message) => Poll::Ready(Some(event::encode(None, message.text()))),
            Step::Answer(reply) => {
                let reply = body::bounded(reply, self.limit);
                let n_bytes = message::payload(&reply).as_str().len();
                let (id, memory) = (self.id.clone(), self.memory.clone());
                let write = move || event::encode_answer(None, &id, &reply, &memory);
                self.source = Some(Source::Writing(Box::pin(aside(n_bytes, write))));
                // It has never been looked at, so nothing would wake us.
                self.poll_source(task)
            }
        }
    }
}

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Poll::Ready(event) = self.poll_source(task) {
            return Poll::Ready(event);
        }
        if self.alive.as_mut().poll(task).is_ready() {
            let later = Instant::now() + self.every;
            self.alive.as_mut().reset(later);
            // The timer wants to be polled again to be armed.
            task.waker().wake_by_ref();
            return Poll::Ready(Some(event::KEEP_ALIVE));
        }
        Poll::Pending
    }
}

/// An answer in the form that the client wants.
fn answer(id: &Json, reply: &Reply, wants: Wants, memory: &AnswerMemory) -> Response<Body> {
    let status = status(reply);
    match wants {
        Wants::Either | Wants::Whole => body::long_answer(status, id, reply, memory),
        Wants::Events => {
            let event = event::encode_answer(None, id, reply, memory);
            let mut response = body::events(Some(id), Box::pin(futures::stream::iter([event])));
            *response.status_mut() = status;
            response
        }
    }
}

/// A refusal of the request as such.
fn refused(id: &Json, error: RpcError) -> Response<Body> {
    body::answer(StatusCode::BAD_REQUEST, id, &Reply::Error(error))
}

/// The status that the protocol wants for an error. Everything else that a
/// provider refuses is an answer like any other.
fn status(reply: &Reply) -> StatusCode {
    match reply {
        Reply::Error(error) if error.code == code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        Reply::Error(error) if error.code == code::MISSING_CAPABILITY => StatusCode::BAD_REQUEST,
        Reply::Error(_) | Reply::Result(_) => StatusCode::OK,
    }
}
