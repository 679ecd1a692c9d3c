//! Opens a connection: negotiates the revision, learns the server's identity and fetches
//! its lists.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, join_all, select};
use serde_json::json;
use tokio::time::{sleep, timeout};
use tool::{Client, Failure, Json, Kind, Object, Reply, RpcError, Server};

use super::calls::ClientRef;
use super::connection::{Connection, Session};
use super::error::ConnectError;
use super::http::Http;
use super::launcher::CANNOT_RUN;
use super::lists::{self, ListError};
use super::options::{KnownRevision, Options, Target};
use super::relay::{Relay, TransportKind};
use super::request::{OutgoingRequest, Payload, RequestMode};
use super::steps::Steps;
use super::transport::Transport;
use super::upstream::Upstream;
use super::{headers, legacy_sse, listen, params, pipe, refresh};
use crate::peer::pending::PendingRequests;
use crate::peer::{Peer, Timeouts};
use crate::revision::{Revision, code, meta, method};

/// The reply to a request, or why there is none.
type RequestResult = Result<Reply, Failure>;

/// How long to wait for the event stream of a legacy server.
const EVENT_STREAM_WAIT: Duration = Duration::from_secs(2);

/// Connects to the target, opens a session and fetches its lists.
pub(super) async fn open(
    target: &Target,
    options: &Options,
    client: &Arc<Client>,
    steps: &Steps,
) -> Result<Arc<Upstream>, ConnectError> {
    let (transport, relay) = connect_transport(target, options, client, steps).await?;
    let mut opening = Opening { transport: Some(transport), relay, options, client, steps };
    match opening.finish().await {
        Ok(upstream) => Ok(upstream),
        Err(error) => Err(opening.explain(error).await),
    }
}

/// Starts the program, or prepares the HTTP client, for a target.
async fn connect_transport(
    target: &Target,
    options: &Options,
    client: &Arc<Client>,
    steps: &Steps,
) -> Result<(Arc<Transport>, Arc<Relay>), ConnectError> {
    let fallback_client = ClientRef {
        client_handle: Arc::clone(&options.fallback_client),
        client: Arc::clone(client),
    };
    let relay = |open_requests, transport_kind| {
        Arc::new(Relay::new(options, fallback_client, open_requests, transport_kind))
    };
    Ok(match target {
        Target::Stdio(program) => {
            let peer = Peer::with_memory(options.limits, options.memory.clone());
            let relay = relay(Arc::new(peer.clone()), TransportKind::Pipe);
            pipe::start(program, options, &relay, &peer, steps.stderr.clone()).await?;
            (Arc::new(Transport::Pipe(peer)), relay)
        }
        Target::Sse(endpoint) => {
            let peer = Peer::with_memory(options.limits, options.memory.clone());
            let relay = relay(Arc::new(peer.clone()), TransportKind::Pipe);
            legacy_sse::start(endpoint, options, &relay, &peer).await?;
            (Arc::new(Transport::Pipe(peer)), relay)
        }
        Target::Pipes(pipes) => {
            let peer = Peer::with_memory(options.limits, options.memory.clone());
            let relay = relay(Arc::new(peer.clone()), TransportKind::Pipe);
            let (reader, writer) = tokio::io::split(pipes.open());
            let (ours, shutdown) = (Arc::clone(&relay), options.shutdown.clone());
            let talking = pipe::converse(reader, writer, ours, peer.clone(), shutdown);
            options.shutdown.spawn(talking);
            (Arc::new(Transport::Pipe(peer)), relay)
        }
        Target::Http(endpoint) => {
            let relay = relay(Arc::new(PendingRequests::default()), TransportKind::Http);
            let http = Http::new(endpoint, options, Arc::clone(&relay))?;
            (Arc::new(Transport::Http(http)), relay)
        }
    })
}

/// A session that is being opened. Closes the transport if dropped before it is finished.
struct Opening<'a> {
    transport: Option<Arc<Transport>>,
    relay: Arc<Relay>,
    options: &'a Options,
    client: &'a Arc<Client>,
    steps: &'a Steps,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(transport) = &self.transport {
            self.relay.expect_end();
            transport.close("the session was not opened");
        }
    }
}

impl Opening<'_> {
    async fn finish(&mut self) -> Result<Arc<Upstream>, ConnectError> {
        let session = self.negotiate().await?;
        let transport = Arc::clone(self.transport());
        let mut listening = None;
        match &*transport {
            Transport::Http(http) if !session.revision.is_modern() => {
                http.set_revision(session.revision);
                http.send_initialized().await;
                listening = http.listen(session.revision);
            }
            Transport::Pipe(_) if !session.revision.is_modern() => {
                transport.notify(method::INITIALIZED, None);
            }
            Transport::Http(_) | Transport::Pipe(_) => {}
        }
        let client = Arc::clone(self.client);
        let connection =
            Connection::new(transport, Arc::clone(&self.relay), session, client, self.options);
        let connection = Arc::new(connection);
        let refused = fetch_all_lists(&connection, self.steps).await?;
        if let Some(listening) = listening {
            // Questions during a call may come on the event stream, and are lost when it
            // is not open yet.
            timeout(EVENT_STREAM_WAIT, listening).await.ok();
        }
        self.transport = None;
        let upstream = Arc::new(Upstream::new(Arc::clone(&connection)));
        // A list that was refused now may be available later.
        connection.relay.stale.mark(&refused);
        tokio::spawn(refresh::keep_fresh(Arc::clone(&connection)));
        if connection.session.revision.is_modern() {
            listen::renew(&connection).await;
        }
        Ok(upstream)
    }

    /// Negotiates the revision and opens the session.
    async fn negotiate(&self) -> Result<Session, ConnectError> {
        match self.options.revision {
            KnownRevision::Pinned(revision) if !revision.is_modern() => {
                self.initialize(revision).await
            }
            KnownRevision::Remembered(revision) if !revision.is_modern() => {
                self.initialize_as_remembered(revision).await
            }
            KnownRevision::Pinned(_) => {
                self.parse_discovery(self.discover().await)?.ok_or_else(|| {
                    ConnectError::NoCommonRevision { theirs: "no modern revision".to_owned() }
                })
            }
            // A server that answered `server/discover` last time gets more time for it.
            KnownRevision::Remembered(_) => self.probe(self.options.opening_timeout / 2).await,
            KnownRevision::Unknown => self.probe(self.options.probe_timeout).await,
        }
    }

    /// Opens the session with the revision of the last time. If the server refuses, asks
    /// which revisions it speaks: it may have been upgraded.
    async fn initialize_as_remembered(&self, revision: Revision) -> Result<Session, ConnectError> {
        let error = match self.initialize(revision).await {
            Ok(session) => return Ok(session),
            Err(error) => error,
        };
        let doubtful = match &error {
            ConnectError::Refused { .. }
            | ConnectError::Unusable { .. }
            | ConnectError::NoCommonRevision { .. } => true,
            ConnectError::Unreachable { .. } | ConnectError::Ended { .. } => {
                match &**self.transport() {
                    Transport::Http(http) => matches!(http.last_error_status(), Some(400..500)),
                    Transport::Pipe(_) => false,
                }
            }
            ConnectError::BadTarget { .. }
            | ConnectError::Start { .. }
            | ConnectError::Silent { .. }
            | ConnectError::Unauthorized { .. }
            | ConnectError::Forbidden { .. }
            | ConnectError::RateLimited { .. } => false,
        };
        if !doubtful {
            return Err(error);
        }
        match self.parse_discovery(self.discover().await) {
            Ok(Some(session)) => Ok(session),
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// Finds out whether the server is modern or legacy. After `discover_only` without an
    /// answer to `server/discover`, `initialize` is sent too.
    async fn probe(&self, discover_only: Duration) -> Result<Session, ConnectError> {
        let discover = Box::pin(self.discover());
        let answer = match select(discover, Box::pin(sleep(discover_only))).await {
            Either::Left((answer, _)) => Some(answer),
            // No answer yet: the server may be starting, or never answer. Send the legacy
            // request too, and use the first answer.
            Either::Right(((), discover)) if !self.transport().is_http() => {
                let initialize = Box::pin(self.initialize(Revision::LATEST_LEGACY));
                match select(discover, initialize).await {
                    Either::Left((answer, initialize)) => match self.parse_discovery(answer) {
                        Ok(Some(session)) => return Ok(session),
                        Ok(None) | Err(_) => return initialize.await,
                    },
                    Either::Right((Ok(session), _)) => return Ok(session),
                    Either::Right((Err(ConnectError::Refused { .. }), discover)) => {
                        Some(discover.await)
                    }
                    Either::Right((Err(error), _)) => return Err(error),
                }
            }
            Either::Right(((), discover)) => {
                timeout(self.options.probe_timeout * 4, discover).await.ok()
            }
        };
        match answer {
            Some(answer) => match self.parse_discovery(answer)? {
                Some(session) => Ok(session),
                None => self.initialize(Revision::LATEST_LEGACY).await,
            },
            None => self.initialize(Revision::LATEST_LEGACY).await,
        }
    }

    /// Sends `server/discover`, and once more if the server refuses our revision although
    /// it lists it as supported.
    async fn discover(&self) -> RequestResult {
        let answer = self.discover_once().await;
        match &answer {
            Ok(Reply::Error(error))
                if error.code == code::UNSUPPORTED_VERSION
                    && supported_versions(error).iter().any(|v| v == Revision::LATEST.as_str()) =>
            {
                self.discover_once().await
            }
            Ok(_) | Err(_) => answer,
        }
    }

    async fn discover_once(&self) -> RequestResult {
        let params = params::with_modern_meta(&Object::new(), self.client);
        let mode = RequestMode::Stateless(headers::for_method(method::DISCOVER, None));
        self.request(method::DISCOVER, params, mode).await
    }

    /// Evaluates the answer to `server/discover`: the session of a modern server, `None` for
    /// a legacy server, or an error if going on is useless.
    fn parse_discovery(&self, answer: RequestResult) -> Result<Option<Session>, ConnectError> {
        let result = match answer {
            Ok(Reply::Result(result)) => result,
            Ok(Reply::Error(error)) if error.code == code::UNSUPPORTED_VERSION => {
                return check_common_revision(&error).map(|()| None);
            }
            Ok(Reply::Error(_)) => return Ok(None),
            Err(
                failure @ (Failure::Unauthorized { .. }
                | Failure::Forbidden { .. }
                | Failure::RateLimited { .. }),
            ) => {
                return Err(ConnectError::at_step(method::DISCOVER, failure));
            }
            Err(failure @ Failure::Lost { .. }) if !self.transport().is_http() => {
                return Err(ConnectError::at_step(method::DISCOVER, failure));
            }
            Err(_) => return Ok(None),
        };
        let versions: Vec<String> = result.member_as("supportedVersions").unwrap_or_default();
        if !versions.iter().any(|version| version == Revision::LATEST.as_str()) {
            return Ok(None);
        }
        let tags = result.member("_meta");
        let server_info = tags.and_then(|tags| tags.member(meta::SERVER_INFO));
        let server_info = server_info.or_else(|| result.member("serverInfo"));
        Ok(Some(Session {
            revision: Revision::LATEST,
            server: parse_server(&result, server_info, Revision::LATEST),
        }))
    }

    async fn initialize(&self, revision: Revision) -> Result<Session, ConnectError> {
        let step = method::INITIALIZE;
        let mut params = Object::new();
        params.push("protocolVersion", Json::encode(revision.as_str()));
        params.push("capabilities", self.client.capabilities.clone());
        params.push("clientInfo", self.client.raw.clone());
        let params = params.to_json();
        if let Transport::Http(http) = &**self.transport() {
            http.remember_initialize(&params);
        }
        let result = match self.request(step, params, RequestMode::InSession).await {
            Ok(Reply::Result(result)) => result,
            Ok(Reply::Error(error)) => {
                return Err(ConnectError::Refused { step: step.to_owned(), error });
            }
            Err(failure) => return Err(ConnectError::at_step(step, failure)),
        };
        let version: String = result.member_as("protocolVersion").unwrap_or_default();
        let agreed = version.parse::<Revision>().ok().filter(|revision| !revision.is_modern());
        let pinned = self.options.revision.pinned();
        let agreed = agreed.filter(|agreed| pinned.is_none_or(|pinned| pinned == *agreed));
        let Some(revision) = agreed else {
            return Err(ConnectError::NoCommonRevision { theirs: format!("`{version}`") });
        };
        let server_info = result.member("serverInfo");
        Ok(Session { revision, server: parse_server(&result, server_info, revision) })
    }

    async fn request(
        &self,
        method: &'static str,
        params: Json,
        mode: RequestMode,
    ) -> RequestResult {
        let _step = self.steps.enter(method);
        let transport = self.transport();
        let request = OutgoingRequest {
            request_id: transport.next_request_id(),
            payload: Payload::Internal { method, params: Some(params) },
            timeouts: Timeouts::same(self.options.opening_timeout),
            mode,
            trace: None,
        };
        transport.request(request).await
    }

    /// Makes an error more precise: waits for the exit status and stderr of a program that
    /// ended; for HTTP, adds the status of the last response.
    async fn explain(&self, error: ConnectError) -> ConnectError {
        if let (
            ConnectError::Unreachable { reason, .. } | ConnectError::Ended { reason },
            Transport::Http(http),
        ) = (&error, &**self.transport())
        {
            let (reason, status) = (reason.clone(), http.last_error_status());
            return ConnectError::Unreachable { reason, status };
        }
        let ConnectError::Ended { .. } = error else { return error };
        let ended = async {
            while self.relay.why_gone().is_none() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(self.options.grace * 4, ended).await.ok();
        match self.relay.why_gone() {
            Some(reason) if reason.starts_with(CANNOT_RUN) => ConnectError::BadTarget { reason },
            Some(reason) => ConnectError::Ended { reason },
            None => error,
        }
    }

    fn transport(&self) -> &Arc<Transport> {
        self.transport.as_ref().expect("the transport is only given away at the very end")
    }
}

/// Fetches all lists concurrently, and returns the kinds that the server refused.
async fn fetch_all_lists(
    connection: &Arc<Connection>,
    steps: &Steps,
) -> Result<Vec<Kind>, ConnectError> {
    let mut refused = Vec::new();
    let lists = join_all(Kind::ALL.map(|kind| async move {
        let _step = steps.enter(lists::list_method(kind));
        lists::fetch(connection, kind).await
    }))
    .await;
    for (kind, list) in Kind::ALL.into_iter().zip(lists) {
        match list {
            Ok(list) => lists::store(connection, kind, list).await,
            // A refused list is skipped; any other failure ends the opening.
            Err(why @ ListError::Refused(_)) => {
                connection.update_listing(|listing| lists::mark_failed(listing, kind, &why));
                refused.push(kind);
            }
            Err(ListError::Failed(failure)) => return Err(ConnectError::at_step("list", failure)),
        }
    }
    Ok(refused)
}

/// Checks that the revisions in the error of a server include one that we support.
fn check_common_revision(error: &RpcError) -> Result<(), ConnectError> {
    let theirs = supported_versions(error);
    let ours = |version: &String| version.parse::<Revision>().is_ok();
    if theirs.is_empty() || theirs.iter().any(ours) {
        return Ok(());
    }
    Err(ConnectError::NoCommonRevision { theirs: theirs.join(", ") })
}

/// Returns the revisions that an "unsupported version" error lists.
pub(super) fn supported_versions(error: &RpcError) -> Vec<String> {
    error.data().and_then(|data| data.member_as("supported")).unwrap_or_default()
}

/// Builds the server description from an opening result.
fn parse_server(result: &Json, server_info: Option<Json>, revision: Revision) -> Server {
    let server_info = server_info.unwrap_or_else(|| json!({"name": "", "version": ""}).into());
    let capabilities = result.member("capabilities").filter(Json::is_object);
    Server {
        name: server_info.member_as("name").unwrap_or_default(),
        version: server_info.member_as("version").unwrap_or_default(),
        capabilities: capabilities.unwrap_or_else(Json::empty_object),
        instructions: result.member_as("instructions"),
        protocol: revision.as_str().to_owned(),
        raw: server_info,
    }
}
