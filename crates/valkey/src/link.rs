//! The connection to the server, which reconnects when it is lost.
//!
//! All requests share one connection and are answered in order. A request is sent
//! only once: the caller decides what to do if its answer is lost. While the server
//! cannot be reached, requests fail at once, except for the one that connects.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue,
    IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, RedisFuture, RedisResult,
    ServerErrorKind, TlsMode, Value,
};
use store::state::StateError;
use tokio::time::Instant;

use crate::address::{Address, Node, Tls, Topology};
use crate::endpoint::{CONNECT_TIMEOUT, certificates, node_address};
use crate::nodes;
use crate::scripts::Script;
use crate::server::Server;
use crate::settings::{Eviction, OpenError};

/// How long requests fail at once after connecting failed.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How long the driver waits for an answer. Callers have timeouts of their own.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that is opened when it is first needed.
pub(crate) struct Link {
    address: Address,
    eviction: Eviction,
    state: Mutex<State>,
    /// Held by the request that connects.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// The number of the current connection.
    generation: u64,
    /// When and why connecting last failed.
    failed: Option<(Instant, OpenError)>,
}

/// A connection to one server or to a cluster.
#[derive(Clone)]
pub(crate) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Link {
    pub(crate) fn new(address: Address, eviction: Eviction) -> Link {
        Link { address, eviction, state: Mutex::default(), connecting: Default::default() }
    }

    /// Sends a request and waits for its answer.
    async fn request<T, F: Future<Output = RedisResult<T>>>(
        &self,
        timeout: Duration,
        send: impl FnOnce(Connection) -> F,
    ) -> Result<T, StateError> {
        let mut used = 0;
        let asked = async {
            let (connection, generation) = self.connection().await?;
            used = generation;
            send(connection).await.map_err(|error| {
                if is_lost(&error) {
                    self.drop_connection(generation);
                }
                StateError::unavailable(render_error(&error))
            })
        };
        if let Ok(answer) = tokio::time::timeout(timeout, asked).await {
            return answer;
        }
        // A broken connection looks just like a slow server.
        self.drop_connection(used);
        Err(StateError::unavailable(format!("the store did not answer within {timeout:?}")))
    }

    /// Sends one command.
    pub(crate) async fn command<T: FromRedisValue>(
        &self,
        timeout: Duration,
        command: &Cmd,
    ) -> Result<T, StateError> {
        let request = |mut connection| async move { command.query_async(&mut connection).await };
        self.request(timeout, request).await
    }

    /// Runs a script, sending its text only if the server does not have it.
    pub(crate) async fn script<T: FromRedisValue>(
        &self,
        timeout: Duration,
        script: &Script,
        keys: &[String],
        arguments: &[&[u8]],
    ) -> Result<T, StateError> {
        let request = |mut connection| async move {
            match script.by_digest(keys, arguments).query_async(&mut connection).await {
                // A server that does not know the script has not run it.
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    script.by_text(keys, arguments).query_async(&mut connection).await
                }
                answered => answered,
            }
        };
        self.request(timeout, request).await
    }

    pub(crate) async fn check(&self, timeout: Duration) -> Result<(), OpenError> {
        match tokio::time::timeout(timeout, self.get_or_connect()).await {
            Ok(reached) => reached.map(drop),
            Err(_) => Err(OpenError::Away(format!("no connection within {timeout:?}"))),
        }
    }

    async fn connection(&self) -> Result<(Connection, u64), StateError> {
        self.get_or_connect().await.map_err(StateError::unavailable)
    }

    async fn get_or_connect(&self) -> Result<(Connection, u64), OpenError> {
        if let Some(current) = self.current() {
            return current;
        }
        let _alone = self.connecting.lock().await;
        // Somebody else may have connected, or failed to, meanwhile.
        if let Some(current) = self.current() {
            return current;
        }
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.connect()).await;
        let connected = connected.unwrap_or_else(|_| {
            Err(OpenError::Away(format!(
                "no connection to {} within {CONNECT_TIMEOUT:?}",
                self.address
            )))
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

    fn current(&self) -> Option<Result<(Connection, u64), OpenError>> {
        let state = self.state.lock();
        if let Some(connection) = &state.connection {
            return Some(Ok((connection.clone(), state.generation)));
        }
        let (when, error) = state.failed.as_ref()?;
        (when.elapsed() < RETRY_PAUSE).then(|| Err(error.clone()))
    }

    fn drop_connection(&self, generation: u64) {
        let mut state = self.state.lock();
        if state.generation == generation {
            state.connection = None;
        }
    }

    async fn connect(&self) -> Result<Connection, OpenError> {
        let away = |error: RedisError| {
            OpenError::Away(format!("{}: {}", self.address, render_error(&error)))
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let one = self.try_clients(|client| {
            let config = config.clone();
            async move { client.get_multiplexed_async_connection_with_config(&config).await }
                .boxed()
        });
        let mut one = one.await.map_err(away)?;
        let server = Server::query(&mut one).await.map_err(away)?;
        if let Some(fault) = server.find_fault(self.eviction) {
            return Err(OpenError::Unfit(fault));
        }
        let Topology::Cluster(nodes) = &self.address.topology else {
            return Ok(Connection::Single(one));
        };
        let client = nodes::client(&self.address, nodes).map_err(away)?;
        Ok(Connection::Cluster(client.get_async_connection().await.map_err(away)?))
    }

    /// Returns the first success of `get` with one client after the other.
    async fn try_clients<T>(
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

    /// Creates clients of the one server, of the primary, or of each node of a
    /// cluster, any of which may be down.
    async fn clients(&self) -> RedisResult<Vec<Client>> {
        match &self.address.topology {
            Topology::Server(node) => {
                client_for(&self.address, node_address(&self.address, node)).map(|one| vec![one])
            }
            Topology::Socket(path) => {
                client_for(&self.address, ConnectionAddr::Unix(path.into())).map(|one| vec![one])
            }
            Topology::Sentinel { sentinels, service } => {
                let mut sentinel = sentinel_client(&self.address, sentinels, service)?;
                sentinel.async_get_client().await.map(|primary| vec![primary])
            }
            Topology::Cluster(nodes) => {
                let client = |node| client_for(&self.address, node_address(&self.address, node));
                nodes.iter().map(client).collect()
            }
        }
    }

    /// Opens a connection that receives what is published on a channel.
    pub(crate) async fn subscribe(&self, channel: &str) -> Result<PubSub, StateError> {
        let subscribed = self.try_clients(|client| {
            let channel = channel.to_owned();
            async move {
                let mut listening = client.get_async_pubsub().await?;
                listening.subscribe(channel).await?;
                Ok(listening)
            }
            .boxed()
        });
        let subscribed = tokio::time::timeout(CONNECT_TIMEOUT, subscribed).await;
        let late = |_| StateError::unavailable(format!("no connection within {CONNECT_TIMEOUT:?}"));
        subscribed
            .map_err(late)?
            .map_err(|error: RedisError| StateError::unavailable(render_error(&error)))
    }
}

fn client_for(address: &Address, node_address: ConnectionAddr) -> RedisResult<Client> {
    let mut settings = RedisConnectionInfo::default().set_db(address.database);
    if let Some(user) = &address.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &address.password {
        settings = settings.set_password(password);
    }
    let info = node_address.into_connection_info()?.set_redis_settings(settings);
    match address.tls {
        Tls::No => Client::open(info),
        Tls::Yes => Client::build_with_tls(info, certificates(address)),
    }
}

fn sentinel_client(
    address: &Address,
    nodes: &[Node],
    service: &str,
) -> RedisResult<SentinelClient> {
    let addresses = nodes.iter().map(|node| node_address(address, node));
    let mut builder = SentinelClientBuilder::new(addresses, service, SentinelServerType::Master)?;
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

/// Returns whether a new connection may help: this one is broken, or its server is
/// not the primary any more.
fn is_lost(error: &RedisError) -> bool {
    let is_demoted = matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "LOADING" | "NOAUTH"));
    is_demoted
        || error.is_io_error()
        || error.is_connection_dropped()
        || error.is_unrecoverable_error()
}

fn render_error(error: &RedisError) -> String {
    match error.code() {
        Some("OOM") => "the store is full (out of memory)".to_owned(),
        Some("NOPERM") => format!("the store's user may not do that: {error}"),
        _ => error.to_string(),
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Connection::Single(one) => one.req_packed_command(command),
            Connection::Cluster(cluster) => nodes::send(cluster, command).boxed(),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Connection::Single(one) => one.req_packed_commands(pipeline, offset, count),
            Connection::Cluster(cluster) => cluster.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Connection::Single(one) => one.get_db(),
            Connection::Cluster(cluster) => cluster.get_db(),
        }
    }
}
