//! The context of a request: the client and its capabilities, the caller, the
//! timeout, and the handle that reaches the client meanwhile.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::trace::Trace;
use crate::{Failure, Json, Object, Reply};

/// Everything beside the question itself. Dropping the future that answers
/// cancels the question; there is no separate token for that.
#[derive(Clone)]
pub struct Context {
    pub client: Arc<Client>,
    pub caller: Arc<Identity>,
    /// The session the question came on, empty where there are none. Where a
    /// client opened none, a text that begins with [`CONNECTION_PREFIX`] or
    /// [`SUBJECT_PREFIX`] stands for it.
    pub session: Arc<str>,
    /// How long the caller waits; the provider's own limit when `None`.
    pub timeout: Option<Duration>,
    pub client_handle: Arc<dyn ClientHandle>,
    /// The trace that the question belongs to, where somebody traces.
    pub trace: Option<Arc<Trace>>,
}

/// Stands for the session of an anonymous caller that opened none: followed by
/// the connection, a space, and the client's name.
pub const CONNECTION_PREFIX: &str = "visit:";

/// Stands for the session of an identified caller that opened none: followed by
/// the subject and the client's name.
pub const SUBJECT_PREFIX: &str = "implied:";

/// What a client says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    pub name: String,
    pub version: String,
    /// `clientInfo`, whole.
    pub raw: Json,
    pub capabilities: Json,
    /// The protocol revision it speaks.
    pub protocol: String,
}

/// Who is calling, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Empty for an anonymous caller.
    pub subject: String,
    pub scopes: BTreeSet<String>,
    pub roles: BTreeSet<String>,
    pub groups: BTreeSet<String>,
    /// Where an anonymous caller connects from, where that is known. It says
    /// nothing about who it is, so it does not make two identities differ.
    pub address: Option<IpAddr>,
}

/// Whom a limit counts: who it is, or where it is when nobody knows. Compared as
/// a value, never as a text that names are joined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerKey<'a> {
    Subject(&'a str),
    Address(Option<IpAddr>),
}

/// A notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub method: String,
    pub params: Object,
}

/// Reaches the client whose question is being answered.
#[async_trait]
pub trait ClientHandle: Send + Sync {
    /// Passes on progress, a log line or another notification of this call.
    /// Never blocks.
    fn notify(&self, notification: Notification);

    /// Asks the client something (sampling, elicitation, roots).
    async fn request(&self, method: &str, params: Json) -> Result<Reply, Failure>;
}

/// A client that cannot be asked and does not listen.
#[derive(Clone, Copy, Debug)]
pub struct NoClient;

#[async_trait]
impl ClientHandle for NoClient {
    fn notify(&self, _: Notification) {}

    async fn request(&self, method: &str, _: Json) -> Result<Reply, Failure> {
        Err(Failure::Unsupported { feature: format!("`{method}` by this client") })
    }
}

impl Context {
    /// A question by nobody in particular, as tests and our own commands ask.
    pub fn anonymous() -> Context {
        Context {
            client: Arc::new(Client::named("gatelet", "")),
            caller: Arc::new(Identity::default()),
            session: "".into(),
            timeout: None,
            client_handle: Arc::new(NoClient),
            trace: None,
        }
    }

    /// Returns whether nothing is known of the caller but the connection.
    pub fn is_connection_only(&self) -> bool {
        self.session.starts_with(CONNECTION_PREFIX)
    }

    /// Returns whether there is a session, and not only what stands for one.
    pub fn has_session(&self) -> bool {
        !self.session.is_empty()
            && !self.is_connection_only()
            && !self.session.starts_with(SUBJECT_PREFIX)
    }

    /// The session, or the client's name where the session is only a connection.
    pub fn session_or_client(&self) -> &str {
        let connection = self.session.strip_prefix(CONNECTION_PREFIX);
        connection
            .map_or(&self.session, |rest| rest.split_once(' ').map_or("", |(_, client)| client))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("client", &self.client)
            .field("caller", &self.caller)
            .field("session", &self.session)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client with no capabilities.
    pub fn named(name: &str, protocol: &str) -> Client {
        Client {
            name: name.to_owned(),
            version: String::new(),
            raw: serde_json::json!({"name": name, "version": ""}).into(),
            capabilities: Json::empty_object(),
            protocol: protocol.to_owned(),
        }
    }

    /// Returns whether the client declared a capability, such as `sampling`.
    pub fn has_capability(&self, capability: &str) -> bool {
        self.capabilities.member(capability).is_some_and(|value| !value.is_null())
    }
}

impl Identity {
    pub fn is_anonymous(&self) -> bool {
        self.subject.is_empty()
    }

    /// Whom limits count.
    pub fn caller_key(&self) -> CallerKey<'_> {
        match self.is_anonymous() {
            true => CallerKey::Address(self.address),
            false => CallerKey::Subject(&self.subject),
        }
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        let Identity { subject, scopes, roles, groups, address: _ } = self;
        *subject == other.subject
            && *scopes == other.scopes
            && *roles == other.roles
            && *groups == other.groups
    }
}

impl Eq for Identity {}
