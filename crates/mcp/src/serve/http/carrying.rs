//! Several replicas behind a load balancer that knows nothing of sessions.
//!
//! A session is noted where all replicas find it, under its unguessable id and
//! bound to its caller; a request that lands elsewhere is carried on there. What
//! cannot move stays with the replica that holds it and is reached by a message:
//! the answer to a question that another replica asked the client, and a request
//! that takes up a call which another replica has parked. Both say in themselves
//! which replica that is.
//!
//! Streams do not move: whoever comes back for one to another replica is told so.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tool::{Identity, Json, Reply, RpcError};

use super::body::{self, Body};
use super::replicas::{NotCarried, Replicas};
use super::sessions::HttpSession;
use super::{Caller, ConnectionId, Endpoint};
use crate::message::{self, Message, Request, Response};
use crate::revision::code;
use crate::serve::exchange::Step;
use crate::serve::modern::{self, ModernAnswer};
use crate::serve::parked::ParkedCalls;

/// What is noted of a session.
#[derive(Serialize, Deserialize)]
struct SessionNote {
    /// What the client said when it opened the session.
    params: Option<Json>,
    /// Whose it is.
    caller: String,
}

/// What one replica sends to another.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Carried {
    /// The answer of a client to a question.
    Answer { session: String, response: String },
    /// A request that takes up a parked call.
    Request { caller: CarriedCaller, id: Json, method: String, params: Option<Json> },
}

#[derive(Serialize, Deserialize)]
struct CarriedCaller {
    subject: String,
    scopes: Vec<String>,
    roles: Vec<String>,
    groups: Vec<String>,
    address: Option<std::net::IpAddr>,
}

impl CarriedCaller {
    fn new(identity: &Identity) -> CarriedCaller {
        let Identity { subject, scopes, roles, groups, address } = identity;
        CarriedCaller {
            subject: subject.clone(),
            scopes: scopes.iter().cloned().collect(),
            roles: roles.iter().cloned().collect(),
            groups: groups.iter().cloned().collect(),
            address: *address,
        }
    }

    fn identity(self) -> Identity {
        let CarriedCaller { subject, scopes, roles, groups, address } = self;
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

    /// The tag that questions to clients and parked calls carry; 0 for one replica.
    pub(super) fn tag(&self) -> u32 {
        self.replicas().map_or(0, |replicas| replicas.tag())
    }

    /// Notes a session before its client hears of it.
    pub(super) async fn note_session(&self, id: &str, params: Option<&Json>, caller: &Identity) {
        let Some(replicas) = self.replicas() else { return };
        let note = SessionNote { params: params.cloned(), caller: fingerprint(caller) };
        let note = Json::encode(&note).as_str().to_owned();
        if let Err(error) = replicas.note_session(id, note, self.0.options.sessions.idle).await {
            tracing::warn!(error, "a session is known to this replica only");
        }
    }

    /// The session with this id, here or noted by another replica.
    pub(super) async fn find_session(&self, id: &str, caller: &Caller) -> Option<Arc<HttpSession>> {
        let idle = self.0.options.sessions.idle;
        if let Some(session) = self.0.sessions.find(id) {
            if let Some(replicas) = self.replicas()
                && session.is_note_old(idle / 4)
            {
                replicas.touch_session(id, idle).await;
            }
            return Some(session);
        }
        let note = self.replicas()?.find_session(id).await?;
        let note: SessionNote = serde_json::from_str(&note).ok()?;
        if note.caller != fingerprint(&caller.identity) {
            return None;
        }
        let opened = self.0.server.initialize(id.into(), note.params.as_ref(), caller, None);
        let (session, _) = opened.ok()?;
        self.0.sessions.adopt(session.asking_as(self.tag()), caller).ok()
    }

    pub(super) async fn forget_session(&self, id: &str) {
        if let Some(replicas) = self.replicas() {
            replicas.forget_session(id).await;
        }
    }

    /// Hands the answer of a client to whoever asked, wherever that is.
    pub(super) async fn complete_question(&self, session: &Arc<HttpSession>, response: Response) {
        let asked_by =
            response.id.parse_as::<u64>().map(crate::serve::session::asked_by).unwrap_or(0);
        let elsewhere = self.replicas().filter(|replicas| ![0, replicas.tag()].contains(&asked_by));
        let Some(replicas) = elsewhere else {
            return session.inner.complete_question(response);
        };
        let mut text = String::new();
        message::write_response(&mut text, response.id.as_str(), &response.reply);
        let session = session.inner.id.to_string();
        let carried = Json::encode(&Carried::Answer { session, response: text });
        if let Err(error) = replicas.ask(asked_by, carried).await {
            tracing::info!(%error, "an answer of a client came too late");
        }
    }

    /// The answer to a request that takes up a call of another replica.
    pub(super) async fn carried_elsewhere(
        &self,
        caller: &Caller,
        question: &Request,
    ) -> Option<http::Response<Body>> {
        let replicas = self.replicas()?;
        let state = question.params.as_ref()?.member_as::<String>("requestState")?;
        let replica = ParkedCalls::replica(&state)?;
        if replica == replicas.tag() {
            return None;
        }
        let carried = Carried::Request {
            caller: CarriedCaller::new(&caller.identity),
            id: question.id.clone(),
            method: question.method.clone(),
            params: question.params.clone(),
        };
        let reply = match replicas.ask(replica, Json::encode(&carried)).await {
            Ok(answer) => read_reply(&answer),
            Err(NotCarried::Gone) => {
                let message = "the replica that held this call is gone, and the call with it: it may \
                               have run in part; make it again without `requestState` and \
                               `inputResponses` if that does no harm";
                Reply::Error(RpcError::new(code::INVALID_PARAMS, message))
            }
            Err(error @ NotCarried::NoAnswer) => {
                Reply::Error(RpcError::new(code::SERVER, error.to_string()))
            }
        };
        Some(body::answer(StatusCode::OK, &question.id, &reply))
    }

    /// Takes a message that another replica sent to this endpoint, and answers it.
    pub async fn take_carried(&self, message: &Json) -> Json {
        match message.parse_as::<Carried>() {
            Ok(Carried::Answer { session, response }) => {
                if let Some(session) = self.0.sessions.find(&session)
                    && let Ok(Message::Response(response)) = Message::parse(&Bytes::from(response))
                {
                    session.inner.complete_question(response);
                }
                Json::empty_object()
            }
            Ok(Carried::Request { caller, id, method, params }) => {
                let caller = Caller {
                    identity: Arc::new(caller.identity()),
                    address: None,
                    connection: ConnectionId::unique(),
                };
                let reply = self.answer_carried(&caller, &Request { id, method, params }).await;
                write_reply(&reply)
            }
            Err(error) => {
                let message = format!("the message of another replica cannot be read: {error}");
                write_reply(&Reply::Error(RpcError::new(code::SERVER, message)))
            }
        }
    }

    async fn answer_carried(&self, caller: &Caller, question: &Request) -> Reply {
        let opening = match modern::open(&self.0.server, question.params.as_ref(), caller) {
            Ok(opening) => opening,
            Err(error) => return Reply::Error(error),
        };
        match modern::begin(&self.0.server, opening, question, None).await {
            ModernAnswer::Now(reply) => reply,
            ModernAnswer::Exchange(mut exchange) => {
                exchange.channel().mute();
                loop {
                    if let Step::Answer(reply) = exchange.step().await {
                        return body::bounded(reply, self.0.options.answer);
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

fn write_reply(reply: &Reply) -> Json {
    let mut text = String::new();
    message::write_response(&mut text, "0", reply);
    Json::encode(&text)
}

fn read_reply(answer: &Json) -> Reply {
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

/// What two identities with the same rights have in common, and nobody else has.
fn fingerprint(caller: &Identity) -> String {
    let Identity { subject, scopes, roles, groups, address: _ } = caller;
    let text = Json::encode(&(subject, scopes, roles, groups));
    tool::hex::encode(&Sha256::digest(text.as_bytes()))
}
