//! Lets several replicas serve the same sessions behind a load balancer without sticky
//! sessions.
//!
//! A session is recorded in a shared store, under its unguessable id and bound to its
//! caller; any replica that gets a request of it can open it too. Two kinds of requests
//! need the replica that holds the state, and are forwarded to it in a message: the answer
//! to a question that the replica asked the client, and a request that resumes a call that
//! the replica has parked. The tag of the replica is part of their ids.
//!
//! Streams are not shared: resuming one at another replica is refused.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tool::{Identity, Json, Reply, RpcError};

use super::body::{self, Body};
use super::replicas::{ReplicaError, Replicas};
use super::sessions::HttpSession;
use super::{Caller, ConnectionId, Endpoint};
use crate::message::{self, Message, Request, Response};
use crate::revision::code;
use crate::serve::exchange::Step;
use crate::serve::modern::{self, ModernAnswer};
use crate::serve::parked::ParkedCalls;

/// The record of a session in the shared store.
#[derive(Serialize, Deserialize)]
struct SharedSession {
    /// The params of `initialize`.
    params: Option<Json>,
    /// The fingerprint of the caller.
    caller: String,
}

/// A message from one replica to another.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReplicaMessage {
    /// The response of a client to a question, as JSON text.
    Answer { session: String, response: String },
    /// A request that resumes a parked call.
    Request { caller: SerializedCaller, id: Json, method: String, params: Option<Json> },
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

    /// Records a new session in the shared store, before its client gets the id.
    pub(super) async fn note_session(&self, id: &str, params: Option<&Json>, caller: &Identity) {
        let Some(replicas) = self.replicas() else { return };
        let note = SharedSession { params: params.cloned(), caller: fingerprint(caller) };
        let note = Json::encode(&note).as_str().to_owned();
        if let Err(error) = replicas.note_session(id, note, self.0.options.sessions.idle).await {
            tracing::warn!(error, "a session is known to this replica only");
        }
    }

    /// Returns the session with this id: a local one, or one that another replica recorded.
    pub(super) async fn find_session(&self, id: &str, caller: &Caller) -> Option<Arc<HttpSession>> {
        let idle = self.0.options.sessions.idle;
        if let Some(session) = self.0.sessions.find(id) {
            if let Some(replicas) = self.replicas()
                && session.is_note_due(idle / 4)
            {
                replicas.touch_session(id, idle).await;
            }
            return Some(session);
        }
        let note = self.replicas()?.find_session(id).await?;
        let note: SharedSession = serde_json::from_str(&note).ok()?;
        if note.caller != fingerprint(&caller.identity) {
            return None;
        }
        let opened = self.0.server.initialize(id.into(), note.params.as_ref(), caller, None);
        let (session, _) = opened.ok()?;
        self.0.sessions.adopt(session.with_replica_tag(self.replica_tag()), caller).ok()
    }

    pub(super) async fn forget_session(&self, id: &str) {
        if let Some(replicas) = self.replicas() {
            replicas.forget_session(id).await;
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
            Err(error @ ReplicaError::NoAnswer) => {
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
            Err(error) => {
                let message = format!("the message of another replica cannot be read: {error}");
                encode_reply(&Reply::Error(RpcError::new(code::SERVER, message)))
            }
        }
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

/// Returns a hash that is the same for the same subject with the same rights only.
fn fingerprint(caller: &Identity) -> String {
    let Identity { subject, scopes, roles, groups, address: _ } = caller;
    let text = Json::encode(&(subject, scopes, roles, groups));
    tool::hex::encode(&Sha256::digest(text.as_bytes()))
}
