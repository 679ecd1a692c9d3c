//! The context of a request: the client and its capabilities, the caller, the
//! timeout, and the handle that reaches the client while the request is answered.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::trace::Trace;
use crate::{Failure, Json, Object, Reply};

/// Everything that a provider gets beside the request itself. There is no
/// cancellation token: dropping the future that answers cancels the request.
#[derive(Clone)]
pub struct Context {
    pub client: Arc<Client>,
    pub caller: Arc<Identity>,
    /// The id of the session that the request came on, empty where there are no
    /// sessions. For a client that opened none it is a substitute that begins with
    /// [`CONNECTION_PREFIX`] or [`SUBJECT_PREFIX`].
    pub session: Arc<str>,
    /// How long the caller waits; the provider's own limit when `None`.
    pub timeout: Option<Duration>,
    pub client_handle: Arc<dyn ClientHandle>,
    /// The trace that the request belongs to, if tracing is on.
    pub trace: Option<Arc<Trace>>,
}

/// Begins the substitute for the session of an anonymous caller that opened none.
/// The connection, a space and the client's name follow.
pub const CONNECTION_PREFIX: &str = "visit:";

/// Begins the substitute for the session of an identified caller that opened
/// none. The subject and the client's name follow.
pub const SUBJECT_PREFIX: &str = "implied:";

/// The program that a caller uses, as it describes itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    pub name: String,
    pub version: String,
    /// The whole `clientInfo`.
    pub raw: Json,
    pub capabilities: Json,
    /// The protocol revision it speaks.
    pub protocol: String,
}

/// The caller, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Empty for an anonymous caller.
    pub subject: String,
    pub scopes: BTreeSet<String>,
    pub roles: BTreeSet<String>,
    pub groups: BTreeSet<String>,
    /// The address that an anonymous caller connects from, if it is known. It is
    /// ignored when two identities are compared.
    pub address: Option<IpAddr>,
}

/// The key under which limits count a caller: the subject, or the address of an
/// anonymous one. A value and not a joined text, so no subject can pass for an
/// address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerKey<'a> {
    Subject(&'a str),
    Address(Option<IpAddr>),
}

/// A JSON-RPC notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub method: String,
    pub params: Object,
}

/// Reaches the client whose request is being answered.
#[async_trait]
pub trait ClientHandle: Send + Sync {
    /// Passes on progress, a log line or another notification of this call.
    /// Never blocks.
    fn notify(&self, notification: Notification);

    /// Asks the client something (sampling, elicitation, roots).
    async fn request(&self, method: &str, params: Json) -> Result<Reply, Failure>;
}

/// The handle of a client that cannot be reached: notifications are dropped and
/// requests fail.
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
    /// Creates the context of an anonymous caller, for tests and for requests of
    /// gatelet's own commands.
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

    /// Returns whether nothing but the connection is known of the caller.
    pub fn is_connection_only(&self) -> bool {
        self.session.starts_with(CONNECTION_PREFIX)
    }

    /// Returns whether there is a session, and not only a substitute for one.
    pub fn has_session(&self) -> bool {
        !self.session.is_empty()
            && !self.is_connection_only()
            && !self.session.starts_with(SUBJECT_PREFIX)
    }

    /// Returns the session, or the client's name if only the connection is known.
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
    /// Creates a client without capabilities.
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

    /// Returns the key under which limits count this caller.
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
