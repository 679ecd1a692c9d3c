//! The connection to the server, made anew when it is lost.
//!
//! All requests share one connection and are told apart by their order on it. A
//! request is sent once: whether a lost one was carried out is for its caller to
//! judge. While the server is away requests fail at once, except for the one that
//! tries to reach it.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue,
    IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, RedisFuture, RedisResult,
    Script, TlsCertificates, TlsMode, Value,
};
use store::state::StateError;
use tokio::time::Instant;

use crate::address::{Address, Form, Node, Tls};
use crate::server::Server;
use crate::settings::{Eviction, OpenError};

/// How long making a connection may take.
const CONNECTING: Duration = Duration::from_secs(2);
/// How long requests fail at once after no connection could be made.
const PAUSE: Duration = Duration::from_millis(200);
/// What the driver waits for an answer; callers wait as long as they want.
const ANSWERING: Duration = Duration::from_secs(60);

/// A connection that is made when it is needed.
pub(crate) struct Link {
    address: Address,
    eviction: Eviction,
    state: Mutex<State>,
    /// Held by the one who connects.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// Grows with every connection that is made.
    generation: u64,
    failed: Option<(Instant, OpenError)>,
}

/// A connection of either kind.
#[derive(Clone)]
pub(crate) enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Link {
    pub(crate) fn new(address: Address, eviction: Eviction) -> Link {
        Link { address, eviction, state: Mutex::default(), connecting: Default::default() }
    }

    /// Sends a request and waits for its answer.
    async fn ask<T, F: Future<Output = RedisResult<T>>>(
        &self,
        within: Duration,
        request: impl FnOnce(Connection) -> F,
    ) -> Result<T, StateError> {
        let mut used = 0;
        let asked = async {
            let (connection, generation) = self.connection().await?;
            used = generation;
            request(connection).await.map_err(|error| {
                if is_lost(&error) {
                    self.drop_connection(generation);
                }
                StateError::unavailable(reason(&error))
            })
        };
        if let Ok(answer) = tokio::time::timeout(within, asked).await {
            return answer;
        }
        // A link that was cut looks just like a server that is slow.
        self.drop_connection(used);
        Err(StateError::unavailable(format!("the store did not answer within {within:?}")))
    }

    /// Sends one command.
    pub(crate) async fn command<T: FromRedisValue>(
        &self,
        within: Duration,
        command: &Cmd,
    ) -> Result<T, StateError> {
        let request = |mut connection| async move { command.query_async(&mut connection).await };
        self.ask(within, request).await
    }

    /// Runs a script, which the server keeps from then on.
    pub(crate) async fn script<T: FromRedisValue>(
        &self,
        within: Duration,
        script: &Script,
        keys: &[String],
        arguments: &[&[u8]],
    ) -> Result<T, StateError> {
        let mut call = script.prepare_invoke();
        for key in keys {
            call.key(key);
        }
        for argument in arguments {
            call.arg(*argument);
        }
        let call = &call;
        let request = |mut connection| async move { call.invoke_async(&mut connection).await };
        self.ask(within, request).await
    }

    pub(crate) async fn check(&self, within: Duration) -> Result<(), OpenError> {
        match tokio::time::timeout(within, self.reach()).await {
            Ok(reached) => reached.map(drop),
            Err(_) => Err(OpenError::Away(format!("no connection within {within:?}"))),
        }
    }

    async fn connection(&self) -> Result<(Connection, u64), StateError> {
        self.reach().await.map_err(StateError::unavailable)
    }

    async fn reach(&self) -> Result<(Connection, u64), OpenError> {
        if let Some(at_hand) = self.at_hand() {
            return at_hand;
        }
        let _alone = self.connecting.lock().await;
        // Somebody else may have connected, or failed to, meanwhile.
        if let Some(at_hand) = self.at_hand() {
            return at_hand;
        }
        let connected = tokio::time::timeout(CONNECTING, self.connect()).await;
        let connected = connected.unwrap_or_else(|_| {
            Err(OpenError::Away(format!("no connection to {} within {CONNECTING:?}", self.address)))
        });
        let mut state = self.state.lock();
        match connected {
            Ok(connection) => {
                state.generation += 1;
                state.failed = None;
                state.connection = Some(connection.clone());
                Ok((connection, state.generation))
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn at_hand(&self) -> Option<Result<(Connection, u64), OpenError>> {
        let state = self.state.lock();
        if let Some(connection) = &state.connection {
            return Some(Ok((connection.clone(), state.generation)));
        }
        let (when, error) = state.failed.as_ref()?;
        (when.elapsed() < PAUSE).then(|| Err(error.clone()))
    }

    fn drop_connection(&self, generation: u64) {
        let mut state = self.state.lock();
        if state.generation == generation {
            state.connection = None;
        }
    }

    async fn connect(&self) -> Result<Connection, OpenError> {
        let away =
            |error: RedisError| OpenError::Away(format!("{}: {}", self.address, reason(&error)));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECTING))
            .set_response_timeout(Some(ANSWERING));
        let one = self.any(|client| {
            let config = config.clone();
            async move { client.get_multiplexed_async_connection_with_config(&config).await }
                .boxed()
        });
        let mut one = one.await.map_err(away)?;
        let server = Server::ask(&mut one).await.map_err(away)?;
        if let Some(fault) = server.fault(self.eviction) {
            return Err(OpenError::Unfit(fault));
        }
        let Form::Cluster(nodes) = &self.address.form else { return Ok(Connection::One(one)) };
        let client = cluster(&self.address, nodes).map_err(away)?;
        Ok(Connection::Cluster(client.get_async_connection().await.map_err(away)?))
    }

    /// What the first client gets that gets anything.
    async fn any<T>(
        &self,
        get: impl Fn(Client) -> BoxFuture<'static, RedisResult<T>>,
    ) -> RedisResult<T> {
        let mut last = RedisError::from((ErrorKind::InvalidClientConfig, "no node"));
        for client in self.clients().await? {
            match get(client).await {
                Ok(got) => return Ok(got),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Clients of the one server, of the primary, or of each node of a cluster, any
    /// of which may be down.
    async fn clients(&self) -> RedisResult<Vec<Client>> {
        match &self.address.form {
            Form::Server(node) => {
                open(&self.address, address_of(&self.address, node)).map(|one| vec![one])
            }
            Form::Socket(path) => {
                open(&self.address, ConnectionAddr::Unix(path.into())).map(|one| vec![one])
            }
            Form::Sentinel { sentinels, service } => {
                let mut sentinel = sentinel(&self.address, sentinels, service)?;
                sentinel.async_get_client().await.map(|primary| vec![primary])
            }
            Form::Cluster(nodes) => {
                let client = |node| open(&self.address, address_of(&self.address, node));
                nodes.iter().map(client).collect()
            }
        }
    }

    /// A connection that hears what is published.
    pub(crate) async fn subscribe(&self, channel: &str) -> Result<PubSub, StateError> {
        let subscribed = self.any(|client| {
            let channel = channel.to_owned();
            async move {
                let mut listening = client.get_async_pubsub().await?;
                listening.subscribe(channel).await?;
                Ok(listening)
            }
            .boxed()
        });
        let subscribed = tokio::time::timeout(CONNECTING, subscribed).await;
        let late = |_| StateError::unavailable(format!("no connection within {CONNECTING:?}"));
        subscribed
            .map_err(late)?
            .map_err(|error: RedisError| StateError::unavailable(reason(&error)))
    }
}

fn address_of(address: &Address, node: &Node) -> ConnectionAddr {
    let (host, port) = (node.host.clone(), node.port);
    match address.tls {
        Tls::No => ConnectionAddr::Tcp(host, port),
        Tls::Yes => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
    }
}

fn open(address: &Address, place: ConnectionAddr) -> RedisResult<Client> {
    let mut settings = RedisConnectionInfo::default().set_db(address.database);
    if let Some(user) = &address.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &address.password {
        settings = settings.set_password(password);
    }
    let info = place.into_connection_info()?.set_redis_settings(settings);
    match address.tls {
        Tls::No => Client::open(info),
        Tls::Yes => Client::build_with_tls(info, certificates(address)),
    }
}

fn certificates(address: &Address) -> TlsCertificates {
    TlsCertificates { client_tls: None, root_cert: address.authority.clone() }
}

fn sentinel(address: &Address, nodes: &[Node], service: &str) -> RedisResult<SentinelClient> {
    let places = nodes.iter().map(|node| address_of(address, node));
    let mut builder = SentinelClientBuilder::new(places, service, SentinelServerType::Master)?;
    builder = builder.set_client_to_redis_db(address.database);
    if address.tls == Tls::Yes {
        builder = builder
            .set_client_to_redis_tls_mode(TlsMode::Secure)
            .set_client_to_redis_certificates(certificates(address))
            .set_client_to_sentinel_tls_mode(TlsMode::Secure)
            .set_client_to_sentinel_certificates(certificates(address));
    }
    if let Some(user) = &address.user {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = &address.password {
        builder = builder.set_client_to_redis_password(password);
    }
    builder.build()
}

fn cluster(address: &Address, nodes: &[Node]) -> RedisResult<redis::cluster::ClusterClient> {
    let places = nodes.iter().map(|node| address_of(address, node).into_connection_info());
    let places = places.collect::<RedisResult<Vec<_>>>()?;
    // A request is sent again only where a node said that it did not take it.
    let mut builder = ClusterClientBuilder::new(places).connection_timeout(CONNECTING).retries(3);
    if address.tls == Tls::Yes {
        builder = builder.tls(TlsMode::Secure).certs(certificates(address));
    }
    if let Some(user) = &address.user {
        builder = builder.username(user);
    }
    if let Some(password) = &address.password {
        builder = builder.password(password);
    }
    builder.build()
}

/// Whether another connection may do better: this one is broken, or its server
/// is not the primary any more.
fn is_lost(error: &RedisError) -> bool {
    let is_demoted = matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "LOADING" | "NOAUTH"));
    is_demoted
        || error.is_io_error()
        || error.is_connection_dropped()
        || error.is_unrecoverable_error()
}

fn reason(error: &RedisError) -> String {
    match error.code() {
        Some("OOM") => "the store is full (out of memory)".to_owned(),
        Some("NOPERM") => format!("the store's user may not do that: {error}"),
        _ => error.to_string(),
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Connection::One(one) => one.req_packed_command(command),
            Connection::Cluster(cluster) => cluster.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Connection::One(one) => one.req_packed_commands(pipeline, offset, count),
            Connection::Cluster(cluster) => cluster.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Connection::One(one) => one.get_db(),
            Connection::Cluster(cluster) => cluster.get_db(),
        }
    }
}
