//! The server side of the HTTP+SSE transport of revision 2024-11-05: one URL for the
//! stream, another for messages.
//!
//! A client opens a stream with GET, learns from it where to post, and gets every answer on
//! that stream. An [`SseClient`] is one such client; it ends with its stream.

use std::fmt::Display;
use std::sync::{Arc, Weak};

use bytes::{Buf, Bytes};
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use parking_lot::Mutex;
use tool::{Json, Reply, RpcError};

use super::answer_memory::AnswerMemory;
use super::batch::{Batch, BatchEvent};
use super::body::{self, Body, HttpResult, boxed_refusal};
use super::resumable::{ResumableStream, StreamId};
use super::sessions::HttpSessions;
use super::sse_clients::SseClient;
use super::{Endpoint, caller, identity, request};
use crate::message::{Frame, Message, Request as RpcRequest};
use crate::revision::{code, method};

/// Held by the stream of a client; removes the client when dropped.
struct ClientPresence {
    endpoint: Weak<super::Shared>,
    id: String,
}

impl Endpoint {
    /// Answers the GET that opens a stream. `messages` is the path for posts, which must lead
    /// to [`Endpoint::respond_sse_post`].
    pub fn respond_sse_get<B>(&self, request: &Request<B>, messages: &str) -> Response<Body> {
        if let Err(foreign) = self.0.options.hosts.check(request.headers(), request.uri()) {
            return body::refusal(StatusCode::FORBIDDEN, code::SERVER, foreign.to_string());
        }
        let caller = caller(request);
        let counted = match self.0.sse_streams.acquire(&caller.key()) {
            Ok(counted) => counted,
            Err(error) => {
                let full = Reply::Error(error);
                return body::answer(StatusCode::TOO_MANY_REQUESTS, &Json::null(), &full);
            }
        };
        let id = format!("{:032x}", rand::random::<u128>());
        let client = SseClient {
            caller,
            stream: ResumableStream::new(StreamId::default()),
            session: Mutex::default(),
            _counted: counted,
        };
        let presence = ClientPresence { endpoint: Arc::downgrade(&self.0), id: id.clone() };
        let reader = client.stream.open_reader(None, self.0.options.keep_alive, Arc::new(presence));
        self.0.sse_clients.0.lock().insert(id.clone(), Arc::new(client));
        let endpoint = Bytes::from(format!("event: endpoint\ndata: {messages}?sessionId={id}\n\n"));
        body::event_stream(None, futures::stream::iter([endpoint]).chain(reader).boxed())
    }

    /// Answers a POST with a message.
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

    async fn sse_post<B>(&self, request: Request<B>) -> HttpResult
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
            return Err(boxed_refusal(
                StatusCode::NOT_FOUND,
                "no such session: open the stream again",
            ));
        };
        let key = caller(&request).key();
        let body = request.into_body();
        let bytes = request::receive(body, key.clone(), &self.0.options).await?;
        if !offload::is_long(bytes.len()) {
            return self.process_body(&client, &bytes);
        }
        let endpoint = self.clone();
        Box::pin(offload::aside(key, async move { endpoint.process_body(&client, &bytes) })).await
    }

    fn process_body(&self, client: &Arc<SseClient>, bytes: &Bytes) -> HttpResult {
        let Frame::One(message) = request::parse_frame(bytes)? else {
            return Err(boxed_refusal(StatusCode::BAD_REQUEST, "post one message at a time"));
        };
        self.process(client, message);
        Ok(body::empty(StatusCode::ACCEPTED))
    }

    fn process(&self, client: &Arc<SseClient>, message: Message) {
        let session = client.session.lock().clone();
        match (message, session) {
            (Message::Request(rpc_request), None) if rpc_request.method == method::INITIALIZE => {
                self.open_session(client, &rpc_request);
            }
            (Message::Request(RpcRequest { id, method, params }), Some(session)) => {
                let mut batch = Batch::new(&session.in_flight, self.0.options.answer);
                let trace = self.0.options.tracing.trace_for(&id, None);
                let begin = || self.0.server.begin(&session.inner, method, params, trace);
                match batch.add(id.clone(), begin) {
                    Ok(()) => drop(tokio::spawn(write_batch(
                        batch,
                        Arc::clone(client),
                        self.0.options.memory.clone(),
                    ))),
                    Err(reply) => client.send_answer(&id, &reply),
                }
            }
            (Message::Request(rpc_request), None) => {
                let error = RpcError::new(code::INVALID_REQUEST, "send `initialize` first");
                client.send_answer(&rpc_request.id, &Reply::Error(error));
            }
            (Message::Notification(notification), Some(session)) => {
                if let Some(id) = super::post::cancelled_request(&notification) {
                    session.in_flight.cancel(&id);
                }
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

    fn open_session(&self, client: &Arc<SseClient>, rpc_request: &RpcRequest) {
        let id = format!("{:032x}", rand::random::<u128>());
        let params = rpc_request.params.as_ref();
        let opened = self.0.server.initialize(id.into(), params, &client.caller, None);
        match opened {
            Ok((session, reply)) => {
                let session = HttpSessions::detached(session);
                client.send_answer(&rpc_request.id, &reply);
                session.forward_events(&client.stream);
                *client.session.lock() = Some(session);
            }
            Err(error) => client.send_answer(&rpc_request.id, &Reply::Error(error)),
        }
    }
}

/// Writes the messages and answers of a batch to the stream of its client.
async fn write_batch(mut batch: Batch, client: Arc<SseClient>, memory: AnswerMemory) {
    let stream = &client.stream;
    loop {
        match batch.next_event().await {
            BatchEvent::Message(message) => stream.push(&message),
            BatchEvent::Answer(id, reply) => {
                super::post::write_answer(stream, id, reply, client.caller.key(), &memory).await;
            }
            BatchEvent::End => return,
        }
    }
}

impl Drop for ClientPresence {
    fn drop(&mut self) {
        let Some(shared) = self.endpoint.upgrade() else { return };
        let client = shared.sse_clients.0.lock().remove(&self.id);
        let session = client.and_then(|client| client.session.lock().take());
        if let Some(session) = session {
            shared.sessions.close(&session);
        }
    }
}
