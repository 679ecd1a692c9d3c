//! The HTTP+SSE transport of revision 2024-11-05: one address for the stream,
//! another for messages.
//!
//! Old clients open a stream with GET, are told on it where to post, and get
//! every answer on that stream. An [`SseClient`] is one such client; it is gone when its
//! stream is.

use std::fmt::Display;
use std::sync::{Arc, Weak};

use bytes::{Buf, Bytes};
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use parking_lot::Mutex;
use tool::{Json, Reply, RpcError};

use super::answers::AnswerMemory;
use super::batch::{Batch, BatchEvent};
use super::body::{self, Answered, Body, refuse};
use super::resumable::ResumableStream;
use super::sessions::HttpSessions;
use super::sse_clients::SseClient;
use super::{Endpoint, caller, identity, request};
use crate::message::{Frame, Message, Request as Question};
use crate::revision::{code, method};

/// Held by the stream of a client; when it is dropped, the client is gone.
struct Presence {
    endpoint: Weak<super::Shared>,
    id: String,
}

impl Endpoint {
    /// Answers the GET of an old client; it is told to post to `messages`, a
    /// path that leads to [`Endpoint::respond_sse_post`].
    pub fn respond_sse_get<B>(&self, request: &Request<B>, messages: &str) -> Response<Body> {
        if let Err(foreign) = self.0.options.hosts.check(request.headers(), request.uri()) {
            return body::refusal(StatusCode::FORBIDDEN, code::SERVER, foreign.to_string());
        }
        let caller = caller(request);
        let counted = match self.0.sse_streams.count(&caller.key()) {
            Ok(counted) => counted,
            Err(error) => {
                let full = Reply::Error(error);
                return body::answer(StatusCode::TOO_MANY_REQUESTS, &Json::null(), &full);
            }
        };
        let id = format!("{:032x}", rand::random::<u128>());
        let client = SseClient {
            caller,
            stream: ResumableStream::new(0),
            session: Mutex::default(),
            _counted: counted,
        };
        let presence = Presence { endpoint: Arc::downgrade(&self.0), id: id.clone() };
        let reader = client.stream.read(None, self.0.options.alive, Arc::new(presence));
        self.0.sse_clients.0.lock().insert(id.clone(), Arc::new(client));
        let endpoint = Bytes::from(format!("event: endpoint\ndata: {messages}?sessionId={id}\n\n"));
        body::events(None, futures::stream::iter([endpoint]).chain(reader).boxed())
    }

    /// Answers a POST of an old client.
    pub async fn respond_sse_post<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        if let Err(foreign) = self.0.options.hosts.check(request.headers(), request.uri()) {
            return body::refusal(StatusCode::FORBIDDEN, code::SERVER, foreign.to_string());
        }
        self.sse_post(request).await.unwrap_or_else(|refusal| *refusal)
    }

    async fn sse_post<B>(&self, request: Request<B>) -> Answered
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Display,
    {
        let query = request.uri().query().unwrap_or_default();
        let id = query.split('&').find_map(|part| part.strip_prefix("sessionId="));
        let client = id.and_then(|id| self.0.sse_clients.0.lock().get(id).cloned());
        let client = client.filter(|client| client.caller.identity == identity(&request));
        let Some(client) = client else {
            return Err(refuse(StatusCode::NOT_FOUND, "no such session: open the stream again"));
        };
        let Frame::One(message) = request::frame(request.into_body(), &self.0.options).await?
        else {
            return Err(refuse(StatusCode::BAD_REQUEST, "post one message at a time"));
        };
        self.take(&client, message);
        Ok(body::bare(StatusCode::ACCEPTED))
    }

    fn take(&self, client: &Arc<SseClient>, message: Message) {
        let session = client.session.lock().clone();
        match (message, session) {
            (Message::Request(question), None) if question.method == method::INITIALIZE => {
                self.open(client, &question);
            }
            (Message::Request(Question { id, method, params }), Some(session)) => {
                let mut batch = Batch::new(&session.in_flight, self.0.options.answer);
                let trace = self.0.options.tracing.of(&id, None);
                let begin = || self.0.server.begin(&session.inner, method, params, trace);
                match batch.add(id.clone(), begin) {
                    Ok(()) => drop(tokio::spawn(carry(
                        batch,
                        Arc::clone(&client.stream),
                        self.0.options.memory.clone(),
                    ))),
                    Err(reply) => client.tell(&id, &reply),
                }
            }
            (Message::Request(question), None) => {
                let error = RpcError::new(code::INVALID_REQUEST, "send `initialize` first");
                client.tell(&question.id, &Reply::Error(error));
            }
            (Message::Notification(notification), Some(session)) => {
                let stream = Arc::clone(&client.stream);
                super::post::take_notification(&session, &notification, move || {
                    Arc::clone(&stream)
                });
            }
            (Message::Response(response), Some(session)) => {
                session.inner.complete_question(response)
            }
            (Message::Notification(_) | Message::Response(_), None) => {}
        }
    }

    fn open(&self, client: &Arc<SseClient>, question: &Question) {
        let id = format!("{:032x}", rand::random::<u128>());
        let params = question.params.as_ref();
        let opened = self.0.server.initialize(id.into(), params, &client.caller, None);
        match opened {
            Ok((session, reply)) => {
                let session = HttpSessions::detached(session);
                client.tell(&question.id, &reply);
                session.forward_events(&client.stream);
                *client.session.lock() = Some(session);
            }
            Err(error) => client.tell(&question.id, &Reply::Error(error)),
        }
    }
}

/// Writes the answers of a batch to the stream of its client.
async fn carry(mut batch: Batch, stream: Arc<ResumableStream>, memory: AnswerMemory) {
    loop {
        match batch.turn().await {
            BatchEvent::Message(message) => stream.say(&message),
            BatchEvent::Answer(id, reply) => stream.answer(&id, &reply, &memory),
            BatchEvent::End => return,
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let Some(shared) = self.endpoint.upgrade() else { return };
        let client = shared.sse_clients.0.lock().remove(&self.id);
        let session = client.and_then(|client| client.session.lock().take());
        if let Some(session) = session {
            shared.sessions.close(&session);
        }
    }
}
