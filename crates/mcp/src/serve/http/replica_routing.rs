//! Lets several replicas serve the same sessions behind a load balancer without sticky
//! sessions.
//!
//! A session is recorded in a shared store, under its unguessable id and bound to its
//! caller; any replica that gets a request of it can open it too. What the client changes
//! about the session later, the end of it and the cancelling of a request are told to all
//! replicas that have it. Three kinds of requests need the replica that holds the state,
//! and are forwarded to it in a message: the answer to a question that the replica asked
//! the client, a request that resumes a call that the replica has parked, and one that
//! resumes a stream. The tag of the replica is part of their ids.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tool::{Identity, Json, Reply, RpcError};

use super::body::{self, Body};
use super::replicas::{RecordError, ReplicaError, Replicas};
use super::resumable::{Piece, Position};
use super::sessions::HttpSession;
use super::shared_session::{MissingSession, SharedChange, SharedSession, UnreadableRecord};
use super::{Caller, ConnectionId, Endpoint};
use crate::message::{self, Message, Request, Response};
use crate::revision::code;
use crate::serve::exchange::{Exchange, Step};
use crate::serve::modern::{self, ModernAnswer};
use crate::serve::parked::ParkedCalls;

/// How long the other replicas of a session may take to hear what has changed, while the
/// client waits. One that does not hear it in time finds it in the record later.
const TELL_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the replica that has a stream waits for the next event, before it answers the
/// one at which the client resumes it.
pub(super) const RESUME_WAIT: Duration = Duration::from_secs(5);

/// How often a change of a record is tried when other replicas are quicker.
const MAX_SWAPS: usize = 16;

/// A message from one replica to another.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReplicaMessage {
    /// The response of a client to a question, as JSON text.
    Answer { session: String, response: String },
    /// A request that resumes a parked call.
    Request { caller: SerializedCaller, id: Json, method: String, params: Option<Json> },
    /// The client changed something about the session: see its record.
    Changed { session: String },
    /// The client cancelled a request.
    Cancelled { session: String, request: Json },
    /// The client ended the session.
    Ended { session: String },
    /// The client resumes a stream at the sender, which has it up to `position`.
    Resumed { session: String, stream: u64, position: Position, wait_ms: u64 },
}

/// The identity of a caller, for transfer.
#[derive(Serialize, Deserialize)]
struct SerializedCaller {
    subject: String,
    scopes: Vec<String>,
    roles: Vec<String>,
    groups: Vec<String>,
    /// Where an anonymous caller connects from; `None` for one with a name.
    address: Option<std::net::IpAddr>,
}

impl SerializedCaller {
    fn new(identity: &Identity) -> SerializedCaller {
        let Identity { subject, scopes, roles, groups, address } = identity;
        SerializedCaller {
            subject: subject.clone(),
            scopes: scopes.iter().cloned().collect(),
            roles: roles.iter().cloned().collect(),
            groups: groups.iter().cloned().collect(),
            address: *address,
        }
    }

    fn identity(self) -> Identity {
        let SerializedCaller { subject, scopes, roles, groups, address } = self;
        Identity {
            subject,
            scopes: scopes.into_iter().collect(),
            roles: roles.into_iter().collect(),
            groups: groups.into_iter().collect(),
            address,
        }
    }
}

impl Endpoint {
    fn replicas(&self) -> Option<&Arc<dyn Replicas>> {
        self.0.options.replicas.as_ref()
    }

    /// Returns the tag of this replica in the ids of questions and parked calls; 0 if there
    /// is only one replica.
    pub(super) fn replica_tag(&self) -> u32 {
        self.replicas().map_or(0, |replicas| replicas.tag())
    }

    /// Records a session of this replica in the shared store, before its client gets the id.
    pub(super) async fn record_session(&self, id: &str) {
        let Some(replicas) = self.replicas() else { return };
        let Some(session) = self.0.sessions.find(id) else { return };
        let record = SharedSession::new(&session.inner, replicas.tag()).encode();
        let idle = self.0.options.sessions.idle;
        if let Err(error) = replicas.swap_session(id, None, record, idle).await {
            tracing::warn!(%error, "a session is known to this replica only");
        }
    }

    /// Returns the session with this id: a local one, or one that another replica recorded.
    pub(super) async fn find_session(
        &self,
        id: &str,
        caller: &Caller,
    ) -> Result<Arc<HttpSession>, MissingSession> {
        let Some(session) = self.0.sessions.find(id) else {
            return self.adopt_session(id, caller).await;
        };
        if self.replicas().is_some() && session.is_record_due(self.0.options.sessions.idle / 4) {
            self.check_record(&session).await?;
        }
        Ok(session)
    }

    /// Opens a session that another replica recorded.
    async fn adopt_session(
        &self,
        id: &str,
        caller: &Caller,
    ) -> Result<Arc<HttpSession>, MissingSession> {
        let replicas = self.replicas().ok_or(MissingSession::Unknown)?;
        let join = |record: &mut SharedSession| {
            let is_own = record.belongs_to(&caller.identity);
            if is_own {
                record.join(replicas.tag());
            }
            is_own
        };
        let record = self.change_record(id, join).await?.ok_or(MissingSession::Unknown)?;
        let opened = self.0.server.initialize(id.into(), record.params.as_ref(), caller, None);
        let (session, _) = opened.map_err(|_| MissingSession::Unknown)?;
        let session = session.with_replica_tag(replicas.tag());
        if let Some(level) = record.level() {
            session.set_level(level);
        }
        let adopted = self.0.sessions.adopt(session, caller);
        let session = adopted.map_err(|_| MissingSession::Unknown)?;
        // The request does not wait until upstreams know of subscriptions.
        let (server, inner) = (Arc::clone(&self.0.server), Arc::clone(&session.inner));
        tokio::spawn(async move {
            server.adjust(&inner, record.level(), &record.subscriptions).await;
        });
        Ok(session)
    }

    /// Keeps the record of a session alive and the session like its record. A record that
    /// the store has lost is written again.
    async fn check_record(&self, session: &Arc<HttpSession>) -> Result<(), MissingSession> {
        let Some(replicas) = self.replicas() else { return Ok(()) };
        let id = &session.inner.id;
        let Ok(found) = replicas.read_session(id).await else { return Ok(()) };
        let Some(text) = found else {
            self.record_session(id).await;
            return Ok(());
        };
        let record = SharedSession::parse(&text)?;
        if record.ended {
            self.0.sessions.end(id);
            return Err(MissingSession::Unknown);
        }
        replicas.touch_session(id, self.0.options.sessions.idle).await;
        self.0.server.adjust(&session.inner, record.level(), &record.subscriptions).await;
        Ok(())
    }

    /// Changes the record of a session, unless `change` returns `false`; then, and if there
    /// is none, returns `None`.
    async fn change_record(
        &self,
        id: &str,
        change: impl Fn(&mut SharedSession) -> bool,
    ) -> Result<Option<SharedSession>, UnreadableRecord> {
        let Some(replicas) = self.replicas() else { return Ok(None) };
        for _ in 0..MAX_SWAPS {
            let before = match replicas.read_session(id).await {
                Ok(Some(before)) => before,
                Ok(None) => return Ok(None),
                Err(error) => {
                    tracing::warn!(%error, "cannot read the record of a session");
                    return Ok(None);
                }
            };
            let mut record = SharedSession::parse(&before)?;
            if record.ended || !change(&mut record) {
                return Ok(None);
            }
            let next = record.encode();
            if next == before {
                return Ok(Some(record));
            }
            let idle = self.0.options.sessions.idle;
            match replicas.swap_session(id, Some(before), next, idle).await {
                Ok(()) => return Ok(Some(record)),
                Err(RecordError::Conflict) => {}
                Err(error @ RecordError::Unavailable(_)) => {
                    tracing::warn!(%error, "cannot change the record of a session");
                    return Ok(None);
                }
            }
        }
        tracing::warn!("the record of a session changes too quickly");
        Ok(None)
    }

    /// Tells the other replicas that have a session, and waits until they know.
    async fn tell_others(&self, record: &SharedSession, message: &ReplicaMessage) {
        let Some(replicas) = self.replicas() else { return };
        let message = Json::encode(message);
        let others = record.replicas.iter().filter(|tag| **tag != replicas.tag());
        let tell =
            |tag: &u32| tokio::time::timeout(TELL_TIMEOUT, replicas.ask(*tag, message.clone()));
        for told in futures::future::join_all(others.map(tell)).await {
            match told {
                Ok(Ok(_) | Err(ReplicaError::Gone)) => {}
                Ok(Err(ReplicaError::NoAnswer | ReplicaError::Refused)) | Err(_) => {
                    tracing::warn!("another replica was not told in time what a client changed");
                }
            }
        }
    }

    /// Returns what a request changes for all replicas, if there are several.
    pub(super) fn shared_change(
        &self,
        method: &str,
        params: Option<&Json>,
    ) -> Option<SharedChange> {
        self.replicas().and_then(|_| SharedChange::of(method, params))
    }

    /// Has the change that a request makes shared before its reply goes out.
    pub(super) fn share_after(
        &self,
        exchange: Exchange,
        session: &Arc<HttpSession>,
        change: Option<SharedChange>,
    ) -> Exchange {
        let Some(change) = change else { return exchange };
        let (endpoint, id) = (self.clone(), Arc::clone(&session.inner.id));
        exchange.then(|reply| async move {
            if !matches!(reply, Reply::Error(_)) {
                endpoint.share(&id, &change).await;
            }
            reply
        })
    }

    async fn share(&self, id: &str, change: &SharedChange) {
        let changed = self.change_record(id, |record| {
            record.change(change);
            true
        });
        if let Ok(Some(record)) = changed.await {
            self.tell_others(&record, &ReplicaMessage::Changed { session: id.to_owned() }).await;
        }
    }

    /// Cancels a request that does not run here at the other replicas of its session.
    pub(super) async fn cancel_elsewhere(&self, session: &Arc<HttpSession>, request: Json) {
        let Some(replicas) = self.replicas() else { return };
        let session = session.inner.id.to_string();
        let Ok(Some(text)) = replicas.read_session(&session).await else { return };
        if let Ok(record) = SharedSession::parse(&text) {
            self.tell_others(&record, &ReplicaMessage::Cancelled { session, request }).await;
        }
    }

    /// Ends a session at all replicas.
    pub(super) async fn end_session(&self, id: &str) {
        self.0.sessions.end(id);
        let ended = self.change_record(id, |record| {
            record.end();
            true
        });
        if let Ok(Some(record)) = ended.await {
            self.tell_others(&record, &ReplicaMessage::Ended { session: id.to_owned() }).await;
        }
    }

    /// Delivers the response of a client to the replica that asked the question.
    pub(super) async fn complete_question(&self, session: &Arc<HttpSession>, response: Response) {
        let asked_by = response
            .id
            .parse_as::<u64>()
            .map(crate::serve::session::replica_of_question)
            .unwrap_or(0);
        let elsewhere = self.replicas().filter(|replicas| ![0, replicas.tag()].contains(&asked_by));
        let Some(replicas) = elsewhere else {
            return session.inner.complete_question(response);
        };
        let mut text = String::new();
        message::write_response(&mut text, response.id.as_str(), &response.reply);
        let session = session.inner.id.to_string();
        let message = Json::encode(&ReplicaMessage::Answer { session, response: text });
        if let Err(error) = replicas.ask(asked_by, message).await {
            tracing::info!(%error, "an answer of a client came too late");
        }
    }

    /// Forwards a request that resumes a call of another replica, and returns the answer;
    /// `None` if the request is for this replica.
    pub(super) async fn forward_to_replica(
        &self,
        caller: &Caller,
        rpc_request: &Request,
    ) -> Option<http::Response<Body>> {
        let replicas = self.replicas()?;
        let state = rpc_request.params.as_ref()?.member_as::<String>("requestState")?;
        let replica = ParkedCalls::replica_of(&state)?;
        if replica == replicas.tag() {
            return None;
        }
        let message = ReplicaMessage::Request {
            caller: SerializedCaller::new(&caller.identity),
            id: rpc_request.id.clone(),
            method: rpc_request.method.clone(),
            params: rpc_request.params.clone(),
        };
        let reply = match replicas.ask(replica, Json::encode(&message)).await {
            Ok(answer) => decode_reply(&answer),
            Err(ReplicaError::Gone) => {
                let message = "the replica that held this call is gone, and the call with it: it may \
                               have run in part; make it again without `requestState` and \
                               `inputResponses` if that does no harm";
                Reply::Error(RpcError::new(code::INVALID_PARAMS, message))
            }
            Err(error @ (ReplicaError::NoAnswer | ReplicaError::Refused)) => {
                Reply::Error(RpcError::new(code::SERVER, error.to_string()))
            }
        };
        Some(body::answer(StatusCode::OK, &rpc_request.id, &reply))
    }

    /// Processes a message from another replica, and returns the answer to it.
    pub async fn answer_replica_message(&self, message: &Json) -> Json {
        match message.parse_as::<ReplicaMessage>() {
            Ok(ReplicaMessage::Answer { session, response }) => {
                if let Some(session) = self.0.sessions.find(&session)
                    && let Ok(Message::Response(response)) = Message::parse(&Bytes::from(response))
                {
                    session.inner.complete_question(response);
                }
                Json::empty_object()
            }
            Ok(ReplicaMessage::Request { caller, id, method, params }) => {
                let caller = Caller {
                    identity: Arc::new(caller.identity()),
                    address: None,
                    connection: ConnectionId::unique(),
                };
                let reply = self.answer_forwarded(&caller, &Request { id, method, params }).await;
                encode_reply(&reply)
            }
            Ok(ReplicaMessage::Changed { session }) => {
                if let Some(session) = self.0.sessions.find(&session) {
                    // A session that has ended is gone, which is as good.
                    let _ = self.check_record(&session).await;
                }
                Json::empty_object()
            }
            Ok(ReplicaMessage::Cancelled { session, request }) => {
                if let Some(session) = self.0.sessions.find(&session) {
                    session.in_flight.cancel(&request);
                }
                Json::empty_object()
            }
            Ok(ReplicaMessage::Ended { session }) => {
                self.0.sessions.end(&session);
                Json::empty_object()
            }
            Ok(ReplicaMessage::Resumed { session, stream, position, wait_ms }) => {
                let wait = Duration::from_millis(wait_ms).min(RESUME_WAIT);
                Json::encode(&self.read_stream(&session, stream, position, wait).await)
            }
            Err(error) => {
                let message = format!("the message of another replica cannot be read: {error}");
                encode_reply(&Reply::Error(RpcError::new(code::SERVER, message)))
            }
        }
    }

    /// Reads some of a stream for the replica at which the client resumes it; `None` if it
    /// is not kept.
    async fn read_stream(
        &self,
        session: &str,
        stream: u64,
        position: Position,
        wait: Duration,
    ) -> Option<Piece> {
        let session = self.0.sessions.find(session)?;
        let stream = session.hand_over(stream)?;
        if !stream.has_event(position.after) {
            return None;
        }
        stream.read_piece(position, wait, Arc::new(session)).await
    }

    /// Asks the replica that has a stream for the events after a position; `None` if they
    /// are not kept.
    pub(super) async fn read_stream_of(
        &self,
        replica: u32,
        session: &HttpSession,
        stream: u64,
        position: Position,
        wait: Duration,
    ) -> Result<Option<Piece>, ReplicaError> {
        let replicas = self.replicas().ok_or(ReplicaError::Gone)?;
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let session = session.inner.id.to_string();
        let message = ReplicaMessage::Resumed { session, stream, position, wait_ms };
        let answer = replicas.ask(replica, Json::encode(&message)).await?;
        answer.parse_as().map_err(|_| ReplicaError::NoAnswer)
    }

    async fn answer_forwarded(&self, caller: &Caller, rpc_request: &Request) -> Reply {
        let parsed =
            match modern::parse_request(&self.0.server, rpc_request.params.as_ref(), caller) {
                Ok(parsed) => parsed,
                Err(error) => return Reply::Error(error),
            };
        match modern::begin(&self.0.server, parsed, rpc_request, None).await {
            ModernAnswer::Immediate(reply) => reply,
            ModernAnswer::Exchange(mut exchange) => {
                // Nobody listens here: messages are dropped, questions refused.
                exchange.channel().mute();
                loop {
                    if let Step::Answer(reply) = exchange.step().await {
                        return body::limit_reply(reply, self.0.options.answer);
                    }
                }
            }
            ModernAnswer::Listen(_) => {
                let message = "a subscription is not carried to another replica";
                Reply::Error(RpcError::new(code::SERVER, message))
            }
        }
    }
}

fn encode_reply(reply: &Reply) -> Json {
    let mut text = String::new();
    message::write_response(&mut text, "0", reply);
    Json::encode(&text)
}

fn decode_reply(answer: &Json) -> Reply {
    let response =
        answer.string_value().map(Bytes::from).and_then(|text| Message::parse(&text).ok());
    match response {
        Some(Message::Response(response)) => response.reply,
        Some(Message::Request(_) | Message::Notification(_)) | None => {
            let message = "the answer of another replica cannot be read; the call may have run";
            Reply::Error(RpcError::new(code::SERVER, message))
        }
    }
}
