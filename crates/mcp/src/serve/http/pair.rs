//! The pair of addresses of revision 2024-11-05.
//!
//! Old clients open a stream with GET, are told on it where to post, and get
//! every answer on that stream. A pair is one such client; it is gone when its
//! stream is.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::{Buf, Bytes};
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use tool::{Identity, Json, Reply, RpcError};

use super::group::{Group, Turn};
use super::replay::Replay;
use super::seat::{Seat, Seats};
use super::{Answered, Body, Endpoint, body, caller, read, refuse};
use crate::message::{Frame, Message, Request as Question};
use crate::revision::{code, method};

/// The open pairs, by id.
#[derive(Default)]
pub(super) struct Pairs(Mutex<HashMap<String, Arc<Pair>>>);

struct Pair {
    caller: Arc<Identity>,
    stream: Arc<Replay>,
    seat: Mutex<Option<Arc<Seat>>>,
}

/// Held by the stream of a pair; when it is dropped, the pair is gone.
struct Presence {
    endpoint: Weak<super::Shared>,
    id: String,
}

impl Endpoint {
    /// Answers the GET of an old client; it is told to post to `messages`, a
    /// path that leads to [`Endpoint::respond_old_post`].
    pub fn respond_old_get<B>(&self, request: &Request<B>, messages: &str) -> Response<Body> {
        if let Err(stranger) = self.0.options.hosts.check(request.headers(), request.uri()) {
            return body::refusal(StatusCode::FORBIDDEN, code::SERVER, stranger.to_string());
        }
        let id = format!("{:032x}", rand::random::<u128>());
        let pair = Pair { caller: caller(request), stream: Replay::new(0), seat: Mutex::default() };
        let presence = Presence { endpoint: Arc::downgrade(&self.0), id: id.clone() };
        let reader = pair.stream.read(None, self.0.options.alive, Arc::new(presence));
        self.0.pairs.lock().insert(id.clone(), Arc::new(pair));
        let endpoint = Bytes::from(format!("event: endpoint\ndata: {messages}?sessionId={id}\n\n"));
        body::events(None, futures::stream::iter([endpoint]).chain(reader).boxed())
    }

    /// Answers a POST of an old client.
    pub async fn respond_old_post<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        if let Err(stranger) = self.0.options.hosts.check(request.headers(), request.uri()) {
            return body::refusal(StatusCode::FORBIDDEN, code::SERVER, stranger.to_string());
        }
        self.old_post(request).await.unwrap_or_else(|refusal| *refusal)
    }

    async fn old_post<B>(&self, request: Request<B>) -> Answered
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        let query = request.uri().query().unwrap_or_default();
        let id = query.split('&').find_map(|part| part.strip_prefix("sessionId="));
        let pair = id.and_then(|id| self.0.pairs.lock().get(id).cloned());
        let pair = pair.filter(|pair| pair.caller == caller(&request));
        let Some(pair) = pair else {
            return Err(refuse(StatusCode::NOT_FOUND, "no such session: open the stream again"));
        };
        let Frame::One(message) = read::frame(request.into_body(), &self.0.options).await? else {
            return Err(refuse(StatusCode::BAD_REQUEST, "post one message at a time"));
        };
        self.take(&pair, message);
        Ok(body::bare(StatusCode::ACCEPTED))
    }

    fn take(&self, pair: &Arc<Pair>, message: Message) {
        let seat = pair.seat().clone();
        match (message, seat) {
            (Message::Request(question), None) if question.method == method::INITIALIZE => {
                self.open(pair, &question);
            }
            (Message::Request(Question { id, method, params }), Some(seat)) => {
                let mut group = Group::new(&seat.in_flight, self.0.options.answer);
                let begin = || self.0.desk.begin(&seat.session, method, params);
                match group.add(id.clone(), begin) {
                    Ok(()) => drop(tokio::spawn(carry(group, Arc::clone(&pair.stream)))),
                    Err(reply) => pair.tell(&id, &reply),
                }
            }
            (Message::Request(question), None) => {
                let error = RpcError::new(code::INVALID_REQUEST, "send `initialize` first");
                pair.tell(&question.id, &Reply::Error(error));
            }
            (Message::Notification(notification), Some(seat)) => {
                let stream = Arc::clone(&pair.stream);
                super::post::notice(&seat, &notification, move || Arc::clone(&stream));
            }
            (Message::Response(response), Some(seat)) => seat.session.settle(response),
            (Message::Notification(_) | Message::Response(_), None) => {}
        }
    }

    fn open(&self, pair: &Arc<Pair>, question: &Question) {
        let id = format!("{:032x}", rand::random::<u128>());
        let params = question.params.as_ref();
        let opened = self.0.desk.initialize(id.into(), params, &pair.caller, None);
        match opened {
            Ok((session, reply)) => {
                let seat = Seats::detached(session);
                pair.tell(&question.id, &reply);
                seat.tell_news(&pair.stream);
                *pair.seat() = Some(seat);
            }
            Err(error) => pair.tell(&question.id, &Reply::Error(error)),
        }
    }
}

/// Writes the answers of a group to the stream of its client.
async fn carry(mut group: Group, stream: Arc<Replay>) {
    loop {
        match group.turn().await {
            Turn::Message(message) => stream.push(&message),
            Turn::Answer(id, reply) => stream.push(body::written(&id, &reply).as_bytes()),
            Turn::End => return,
        }
    }
}

impl Pairs {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Pair>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pair {
    fn tell(&self, id: &Json, reply: &Reply) {
        self.stream.push(body::written(id, reply).as_bytes());
    }

    fn seat(&self) -> MutexGuard<'_, Option<Arc<Seat>>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let Some(shared) = self.endpoint.upgrade() else { return };
        let pair = shared.pairs.lock().remove(&self.id);
        let seat = pair.and_then(|pair| pair.seat().take());
        if let Some(seat) = seat {
            shared.seats.close(&seat);
        }
    }
}
