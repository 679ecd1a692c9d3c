//! Opens a session: negotiates the revision, learns the server's identity and
//! requests its lists.

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
use super::relay::{Relay, Wire};
use super::request::{Payload, Question, RequestMode};
use super::steps::Steps;
use super::transport::Transport;
use super::upstream::Upstream;
use super::{headers, legacy, listen, params, pipe, refresh};
use crate::peer::pending::PendingRequests;
use crate::peer::{Peer, Timeouts};
use crate::revision::{Revision, code, meta, method};

type Answer = Result<Reply, Failure>;

/// How long a server may take to open its event stream.
const EVENT_STREAM_WAIT: Duration = Duration::from_secs(2);

/// Reaches the target, opens a session and reads its lists.
pub(super) async fn open(
    target: &Target,
    options: &Options,
    client: &Arc<Client>,
    steps: &Steps,
) -> Result<Arc<Upstream>, ConnectError> {
    let (transport, relay) = reach(target, options, client, steps).await?;
    let mut opening = Opening { transport: Some(transport), relay, options, client, steps };
    match opening.finish().await {
        Ok(upstream) => Ok(upstream),
        Err(error) => Err(opening.explain(error).await),
    }
}

async fn reach(
    target: &Target,
    options: &Options,
    client: &Arc<Client>,
    steps: &Steps,
) -> Result<(Arc<Transport>, Arc<Relay>), ConnectError> {
    let home = ClientRef { client_handle: Arc::clone(&options.home), client: Arc::clone(client) };
    let relay = |open, wire| Arc::new(Relay::new(options, home, open, wire));
    Ok(match target {
        Target::Stdio(program) => {
            let peer = Peer::within(options.limits, options.memory.clone());
            let relay = relay(Arc::new(peer.clone()), Wire::Pipe);
            pipe::start(program, options, &relay, &peer, steps.stderr.clone()).await?;
            (Arc::new(Transport::Pipe(peer)), relay)
        }
        Target::Sse(endpoint) => {
            let peer = Peer::within(options.limits, options.memory.clone());
            let relay = relay(Arc::new(peer.clone()), Wire::Pipe);
            legacy::start(endpoint, options, &relay, &peer).await?;
            (Arc::new(Transport::Pipe(peer)), relay)
        }
        Target::Pipes(pipes) => {
            let peer = Peer::within(options.limits, options.memory.clone());
            let relay = relay(Arc::new(peer.clone()), Wire::Pipe);
            let (reader, writer) = tokio::io::split(pipes.open());
            let (ours, shutdown) = (Arc::clone(&relay), options.shutdown.clone());
            let talking = pipe::converse(reader, writer, ours, peer.clone(), shutdown);
            options.shutdown.spawn(talking);
            (Arc::new(Transport::Pipe(peer)), relay)
        }
        Target::Http(endpoint) => {
            let relay = relay(Arc::new(PendingRequests::default()), Wire::Http);
            let http = Http::new(endpoint, options, Arc::clone(&relay))?;
            (Arc::new(Transport::Http(http)), relay)
        }
    })
}

/// A session in the making. Dropped before it is finished, it is closed.
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
        let session = self.agree().await?;
        let transport = Arc::clone(self.transport());
        let mut listening = None;
        match &*transport {
            Transport::Http(http) if !session.revision.is_modern() => {
                http.agreed(session.revision);
                http.opened().await;
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
        let refused = read_all(&connection, self.steps).await?;
        if let Some(listening) = listening {
            // What a server asks during a call may come on the event stream,
            // and is lost when nobody listens there yet.
            timeout(EVENT_STREAM_WAIT, listening).await.ok();
        }
        self.transport = None;
        let upstream = Arc::new(Upstream::new(Arc::clone(&connection)));
        // A list that was refused just now may be there in a moment.
        connection.relay.stale.mark(&refused);
        tokio::spawn(refresh::keep_fresh(Arc::clone(&connection)));
        if connection.session.revision.is_modern() {
            listen::renew(&connection).await;
        }
        Ok(upstream)
    }

    /// Finds out which revision to speak, and opens the session with it.
    async fn agree(&self) -> Result<Session, ConnectError> {
        match self.options.revision {
            KnownRevision::Pinned(revision) if !revision.is_modern() => {
                self.initialize(revision).await
            }
            KnownRevision::Remembered(revision) if !revision.is_modern() => {
                self.initialize_as_remembered(revision).await
            }
            KnownRevision::Pinned(_) => self.discovered(self.discover().await)?.ok_or_else(|| {
                ConnectError::NoCommonRevision { theirs: "no modern revision".to_owned() }
            }),
            // One question is enough for who answered it the last time, however
            // long starting takes.
            KnownRevision::Remembered(_) => self.probe(self.options.opening / 2).await,
            KnownRevision::Unknown => self.probe(self.options.probe).await,
        }
    }

    /// Opens the session as the last time. A server that refuses is asked what
    /// it speaks: it may be another by now.
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
                    Transport::Http(http) => matches!(http.turned_away(), Some(400..500)),
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
        match self.discovered(self.discover().await) {
            Ok(Some(session)) => Ok(session),
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// Asks which revision it is; `alone` is how long that is the only question.
    async fn probe(&self, alone: Duration) -> Result<Session, ConnectError> {
        let discover = Box::pin(self.discover());
        let answer = match select(discover, Box::pin(sleep(alone))).await {
            Either::Left((answer, _)) => Some(answer),
            // Nobody answers yet: it may be starting, or never answer. Ask the
            // other way too, and take what comes first.
            Either::Right(((), discover)) if !self.transport().is_http() => {
                let initialize = Box::pin(self.initialize(Revision::LATEST_LEGACY));
                match select(discover, initialize).await {
                    Either::Left((answer, initialize)) => match self.discovered(answer) {
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
            Either::Right(((), discover)) => timeout(self.options.probe * 4, discover).await.ok(),
        };
        match answer {
            Some(answer) => match self.discovered(answer)? {
                Some(session) => Ok(session),
                None => self.initialize(Revision::LATEST_LEGACY).await,
            },
            None => self.initialize(Revision::LATEST_LEGACY).await,
        }
    }

    /// Asks who is there, and once more when the server says that it does speak
    /// our revision although it just refused it.
    async fn discover(&self) -> Answer {
        let answer = self.discover_once().await;
        match &answer {
            Ok(Reply::Error(error))
                if error.code == code::UNSUPPORTED_VERSION
                    && supported(error).iter().any(|v| v == Revision::LATEST.as_str()) =>
            {
                self.discover_once().await
            }
            Ok(_) | Err(_) => answer,
        }
    }

    async fn discover_once(&self) -> Answer {
        let params = params::modern(&Object::new(), self.client);
        let mode = RequestMode::Stateless(headers::plain(method::DISCOVER, None));
        self.request(method::DISCOVER, params, mode).await
    }

    /// Returns what an answer to `server/discover` says: a modern server, an older
    /// one (`None`), or that there is no use in going on.
    fn discovered(&self, answer: Answer) -> Result<Option<Session>, ConnectError> {
        let result = match answer {
            Ok(Reply::Result(result)) => result,
            Ok(Reply::Error(error)) if error.code == code::UNSUPPORTED_VERSION => {
                return older(&error).map(|()| None);
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
        let who = tags.and_then(|tags| tags.member(meta::SERVER_INFO));
        let who = who.or_else(|| result.member("serverInfo"));
        Ok(Some(Session {
            revision: Revision::LATEST,
            server: server(&result, who, Revision::LATEST),
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
            http.remember_opening(&params);
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
        let who = result.member("serverInfo");
        Ok(Session { revision, server: server(&result, who, revision) })
    }

    async fn request(&self, method: &'static str, params: Json, mode: RequestMode) -> Answer {
        let _step = self.steps.enter(method);
        let transport = self.transport();
        let question = Question {
            request_id: transport.next_request_id(),
            payload: Payload::Internal { method, params: Some(params) },
            timeouts: Timeouts::same(self.options.opening),
            mode,
            trace: None,
        };
        transport.request(question).await
    }

    /// A program that ended has more to say than its pipe: wait for that. A
    /// server at an address did not end: it was not reached, or said it with a
    /// status.
    async fn explain(&self, error: ConnectError) -> ConnectError {
        if let (
            ConnectError::Unreachable { reason, .. } | ConnectError::Ended { reason },
            Transport::Http(http),
        ) = (&error, &**self.transport())
        {
            let (reason, status) = (reason.clone(), http.turned_away());
            return ConnectError::Unreachable { reason, status };
        }
        let ConnectError::Ended { .. } = error else { return error };
        let told = async {
            while self.relay.why_gone().is_none() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(self.options.grace * 4, told).await.ok();
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

/// Reads every list, side by side, and says which are missing.
async fn read_all(connection: &Arc<Connection>, steps: &Steps) -> Result<Vec<Kind>, ConnectError> {
    let mut refused = Vec::new();
    let lists = join_all(Kind::ALL.map(|kind| async move {
        let _step = steps.enter(lists::list_method(kind));
        lists::read(connection, kind).await
    }))
    .await;
    for (kind, list) in Kind::ALL.into_iter().zip(lists) {
        match list {
            Ok(list) => lists::place(connection, kind, list).await,
            // A list that is refused is missing; a server that is gone is gone.
            Err(why @ ListError::Refused(_)) => {
                connection.replace(|listing| lists::unread(listing, kind, &why));
                refused.push(kind);
            }
            Err(ListError::Failed(failure)) => return Err(ConnectError::at_step("list", failure)),
        }
    }
    Ok(refused)
}

/// Checks whether a server that does not speak the latest revision speaks another
/// of ours.
fn older(error: &RpcError) -> Result<(), ConnectError> {
    let theirs = supported(error);
    let ours = |version: &String| version.parse::<Revision>().is_ok();
    if theirs.is_empty() || theirs.iter().any(ours) {
        return Ok(());
    }
    Err(ConnectError::NoCommonRevision { theirs: theirs.join(", ") })
}

/// Returns which revisions an error says are spoken there.
pub(super) fn supported(error: &RpcError) -> Vec<String> {
    error.data().and_then(|data| data.member_as("supported")).unwrap_or_default()
}

fn server(result: &Json, who: Option<Json>, revision: Revision) -> Server {
    let who = who.unwrap_or_else(|| json!({"name": "", "version": ""}).into());
    let capabilities = result.member("capabilities").filter(Json::is_object);
    Server {
        name: who.member_as("name").unwrap_or_default(),
        version: who.member_as("version").unwrap_or_default(),
        capabilities: capabilities.unwrap_or_else(Json::empty_object),
        instructions: result.member_as("instructions"),
        protocol: revision.as_str().to_owned(),
        raw: who,
    }
}
