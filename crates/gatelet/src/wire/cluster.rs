//! The replicas that serve together: their shared store, and messages between them.
//!
//! Each replica has a random tag and a mailbox in the store. It renews a sign of life
//! every few seconds, so that nobody waits for a replica that is gone.

mod message;
mod tunnel;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use mcp::serve::http::{Endpoint, RecordError, ReplicaError, Replicas};
use mcp::serve::stdio;
use parking_lot::Mutex;
use store::state::{Expiring, Messages, StateError};
use tokio::io::DuplexStream;
use tokio::sync::oneshot;
use tool::{FixedProvider, Json, Provider};
use valkey::{OpenError, Valkey};

use super::signer::Signer;
use crate::approval_queue::SharedStore;
use config::SharedState;
use message::{Received, ReplicaMessage, VERSION};
use tunnel::{Outgoing, TunnelEnd, Tunnels};

/// How long one operation of the store may hold up a request.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a replica counts as alive after its last sign of life.
const ALIVE_FOR: Duration = Duration::from_secs(6);
/// How often a replica gives a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// How long another replica may take to answer, and a message may wait in a mailbox.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// How long one read of the mailbox waits for a message.
const RECEIVE_WAIT: Duration = Duration::from_secs(5);

/// This replica among the others. Clones share everything.
#[derive(Clone)]
pub(crate) struct Cluster(Arc<Inner>);

struct Inner {
    store: Valkey,
    signer: Signer,
    /// The random number of this replica.
    tag: u32,
    /// The requests to other replicas that wait for an answer, by number.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Json, ReplicaError>>>>,
    next_number: AtomicU64,
    /// The endpoints that others may send requests to, by path.
    endpoints: Mutex<BTreeMap<String, Endpoint>>,
    /// The upstreams that this replica runs for all, by name.
    offered: Mutex<HashMap<String, OfferedUpstream>>,
    tunnels: Arc<Tunnels>,
}

/// An upstream that this replica runs, with the fencing number of its lease.
#[derive(Clone)]
struct OfferedUpstream {
    fence: u64,
    provider: Weak<dyn Provider>,
}

impl Cluster {
    pub(crate) fn new(config: &SharedState) -> Cluster {
        Cluster(Arc::new(Inner {
            store: Valkey::new(config.store.clone()),
            signer: Signer::new(config.key.as_ref().map(|key| key.0.as_str())),
            tag: rand::random_range(1..u32::MAX),
            waiting: Mutex::default(),
            next_number: AtomicU64::new(1),
            endpoints: Mutex::default(),
            offered: Mutex::default(),
            tunnels: Arc::default(),
        }))
    }

    pub(crate) fn store(&self) -> &Valkey {
        &self.0.store
    }

    /// Signs what this replica writes into the store.
    pub(crate) fn signer(&self) -> &Signer {
        &self.0.signer
    }

    /// What the replicas' requests for approval are kept in.
    pub(crate) fn approval_store(&self) -> SharedStore<'_> {
        SharedStore { store: self.store(), key: self.signer().key() }
    }

    /// Checks that the store can be used now. One that is away may come back.
    pub(crate) async fn check(&self) -> Result<(), OpenError> {
        self.0.store.check(STORE_TIMEOUT).await
    }

    /// The other replicas, for the HTTP endpoint at `path`.
    pub(crate) fn replicas(&self, path: &str) -> Arc<dyn Replicas> {
        Arc::new(EndpointReplicas { cluster: self.clone(), path: path.to_owned() })
    }

    /// Takes part in the cluster until dropped: gives signs of life, receives messages
    /// (requests go to these endpoints, by path), and listens for changes of the store.
    pub(crate) async fn run(self, endpoints: BTreeMap<String, Endpoint>) {
        *self.0.endpoints.lock() = endpoints;
        let ((), (), ()) =
            futures::join!(self.send_heartbeats(), self.receive_all(), self.0.store.listen());
    }

    async fn send_heartbeats(&self) {
        let key = alive_key(self.0.tag);
        loop {
            let put = Expiring::put(&self.0.store, &key, "1".into(), ALIVE_FOR, STORE_TIMEOUT);
            if let Err(error) = put.await {
                tracing::debug!(%error, "cannot tell the other replicas that this one is there");
            }
            tokio::time::sleep(HEARTBEAT).await;
        }
    }

    async fn receive_all(&self) {
        let mailbox = mailbox_key(self.0.tag);
        loop {
            match self.0.store.receive(&mailbox, RECEIVE_WAIT).await {
                Ok(messages) => messages.iter().for_each(|message| self.receive(message)),
                Err(_) => tokio::time::sleep(HEARTBEAT).await,
            }
        }
    }

    fn receive(&self, message: &[u8]) {
        let message = match ReplicaMessage::receive(message) {
            Received::Message(message) => message,
            Received::UnknownRequest { from, number } => {
                tracing::warn!(from, "a replica of another release asked what is not known here");
                return self.send_later(from, ReplicaMessage::refusal(number));
            }
            Received::UnknownTunnel { from, tunnel } => {
                tracing::warn!(from, "a replica of another release asked what is not known here");
                return self.send_later(from, ReplicaMessage::Close { tunnel });
            }
            Received::Unreadable(error) => {
                tracing::warn!(%error, "a message of another replica cannot be read");
                return;
            }
        };
        match message {
            ReplicaMessage::Answer { number, message, refused } => {
                if let Some(waiting) = self.0.waiting.lock().remove(&number) {
                    let answer = if refused { Err(ReplicaError::Refused) } else { Ok(message) };
                    // The requester may have stopped waiting.
                    drop(waiting.send(answer));
                }
            }
            ReplicaMessage::Ask { endpoint, from, number, message, version } => {
                let Some(endpoint) = self.0.endpoints.lock().get(&endpoint).cloned() else {
                    tracing::warn!(
                        endpoint,
                        from,
                        version,
                        "another replica asked for an endpoint that is not served here"
                    );
                    return self.send_later(from, ReplicaMessage::refusal(number));
                };
                let cluster = self.clone();
                tokio::spawn(async move {
                    let message = endpoint.answer_replica_message(&message).await;
                    let answer = ReplicaMessage::Answer { number, message, refused: false };
                    if let Err(error) = cluster.send(from, &answer).await {
                        tracing::warn!(%error, "an answer to another replica is lost");
                    }
                });
            }
            ReplicaMessage::Open { upstream, fence, from, tunnel, .. } => {
                self.serve_tunnel(&upstream, fence, from, tunnel);
            }
            ReplicaMessage::Line { tunnel, number, text } => {
                self.0.tunnels.receive_line(tunnel, number, text);
            }
            ReplicaMessage::Sent { tunnel, from, n_lines } => {
                if !self.0.tunnels.receive_count(tunnel, n_lines) {
                    self.send_later(from, ReplicaMessage::Close { tunnel });
                }
            }
            ReplicaMessage::Close { tunnel } => self.0.tunnels.close(tunnel),
        }
    }

    /// Sends a message that may get lost.
    fn send_later(&self, replica: u32, message: ReplicaMessage) {
        let cluster = self.clone();
        tokio::spawn(async move { cluster.send(replica, &message).await });
    }

    /// Whether the replica with this tag gave a sign of life lately.
    pub(super) async fn is_alive(&self, replica: u32) -> bool {
        let alive = Expiring::get(&self.0.store, &alive_key(replica), STORE_TIMEOUT).await;
        matches!(alive, Ok(Some(_)))
    }

    /// The random number of this replica.
    pub(super) fn tag(&self) -> u32 {
        self.0.tag
    }

    /// Lets other replicas open tunnels to an upstream that this one runs. `fence` is
    /// the fencing number of its lease.
    pub(super) fn offer(&self, upstream: &str, fence: u64, provider: Weak<dyn Provider>) {
        self.0.offered.lock().insert(upstream.to_owned(), OfferedUpstream { fence, provider });
    }

    /// Ends the offer of an upstream that does not run here any more.
    pub(super) fn withdraw(&self, upstream: &str, fence: u64) {
        let mut offered = self.0.offered.lock();
        if offered.get(upstream).is_some_and(|current| current.fence == fence) {
            offered.remove(upstream);
        }
    }

    /// Opens a tunnel to an upstream that another replica runs.
    pub(super) fn open_tunnel(&self, replica: u32, upstream: &str, fence: u64) -> DuplexStream {
        let tunnel = rand::random();
        let (near, end) = self.0.tunnels.open(tunnel);
        let (upstream, from) = (upstream.to_owned(), self.0.tag);
        let cluster = self.clone();
        tokio::spawn(async move {
            let open = ReplicaMessage::Open { upstream, fence, from, tunnel, version: VERSION };
            if cluster.send(replica, &open).await.is_ok() {
                cluster.run_tunnel(end, replica, tunnel).await;
            } else {
                cluster.0.tunnels.close(tunnel);
            }
        });
        near
    }

    /// Serves an upstream that runs here to another replica, through a tunnel. A request
    /// for an older lease is refused; that replica then looks up the owner again.
    fn serve_tunnel(&self, upstream: &str, fence: u64, from: u32, tunnel: u64) {
        let offered = self.0.offered.lock().get(upstream).cloned();
        let current = offered.filter(|current| current.fence == fence);
        let provider = current.and_then(|current| current.provider.upgrade());
        let Some(provider) = provider else {
            return self.send_later(from, ReplicaMessage::Close { tunnel });
        };
        let cluster = self.clone();
        let (near, end) = self.0.tunnels.open(tunnel);
        let (reader, writer) = tokio::io::split(near);
        let source = Arc::new(FixedProvider(provider));
        tokio::spawn(stdio::serve(source, reader, writer, stdio::Options::default()));
        tokio::spawn(async move { cluster.run_tunnel(end, from, tunnel).await });
    }

    async fn run_tunnel(&self, end: TunnelEnd, replica: u32, tunnel: u64) {
        let send = |outgoing: Outgoing| async move {
            let message = match outgoing {
                Outgoing::Line { number, text } => {
                    ReplicaMessage::Line { tunnel, number: Some(number), text }
                }
                Outgoing::Count(n_lines) => {
                    ReplicaMessage::Sent { tunnel, from: self.0.tag, n_lines }
                }
                Outgoing::Closed => ReplicaMessage::Close { tunnel },
            };
            self.send(replica, &message).await.is_ok()
        };
        let peer_gone = async {
            while self.is_alive(replica).await {
                tokio::time::sleep(HEARTBEAT).await;
            }
        };
        end.run(Arc::clone(&self.0.tunnels), send, peer_gone, HEARTBEAT).await;
    }

    /// Waits for an answer for as long as the replica is alive.
    async fn wait_for(
        &self,
        replica: u32,
        answer: &mut oneshot::Receiver<Result<Json, ReplicaError>>,
    ) -> Result<Json, ReplicaError> {
        let end = tokio::time::Instant::now() + ANSWER_TIMEOUT;
        while tokio::time::Instant::now() < end {
            match tokio::time::timeout(HEARTBEAT, &mut *answer).await {
                Ok(answer) => return answer.unwrap_or(Err(ReplicaError::NoAnswer)),
                Err(_) if self.is_alive(replica).await => {}
                Err(_) => return Err(ReplicaError::NoAnswer),
            }
        }
        Err(ReplicaError::NoAnswer)
    }

    async fn send(&self, replica: u32, message: &ReplicaMessage) -> Result<(), StateError> {
        let text = Json::encode(message).as_str().to_owned();
        let mailbox = mailbox_key(replica);
        self.0.store.send(&mailbox, text.into(), ANSWER_TIMEOUT, STORE_TIMEOUT).await
    }
}

fn mailbox_key(tag: u32) -> String {
    format!("replica {tag}")
}

fn alive_key(tag: u32) -> String {
    format!("replica {tag} is there")
}

/// The sessions and replicas of the cluster, for the HTTP endpoint at one path.
struct EndpointReplicas {
    cluster: Cluster,
    path: String,
}

impl fmt::Debug for EndpointReplicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndpointReplicas({})", self.path)
    }
}

impl EndpointReplicas {
    fn session_key(&self, id: &str) -> String {
        format!("session {} {id}", self.path)
    }
}

#[async_trait]
impl Replicas for EndpointReplicas {
    fn tag(&self) -> u32 {
        self.cluster.0.tag
    }

    async fn read_session(&self, id: &str) -> Result<Option<String>, RecordError> {
        let found = Expiring::get(self.cluster.store(), &self.session_key(id), STORE_TIMEOUT).await;
        let found = found.map_err(|error| record_error(&error))?;
        Ok(found.and_then(|found| String::from_utf8(found.into()).ok()))
    }

    async fn swap_session(
        &self,
        id: &str,
        expected: Option<String>,
        next: String,
        life: Duration,
    ) -> Result<(), RecordError> {
        let (key, expected) = (self.session_key(id), expected.map(Into::into));
        let store = self.cluster.store();
        store
            .replace(&key, expected, next.into(), life, STORE_TIMEOUT)
            .await
            .map_err(|error| record_error(&error))
    }

    async fn touch_session(&self, id: &str, life: Duration) {
        let key = self.session_key(id);
        if let Err(error) = self.cluster.store().touch(&key, life, STORE_TIMEOUT).await {
            tracing::debug!(%error, "cannot keep the record of a session");
        }
    }

    async fn ask(&self, replica: u32, message: Json) -> Result<Json, ReplicaError> {
        let Cluster(inner) = &self.cluster;
        if !self.cluster.is_alive(replica).await {
            return Err(ReplicaError::Gone);
        }
        let number = inner.next_number.fetch_add(1, Ordering::Relaxed);
        let (sender, mut answer) = oneshot::channel();
        inner.waiting.lock().insert(number, sender);
        let endpoint = self.path.clone();
        let from = inner.tag;
        let ask = ReplicaMessage::Ask { endpoint, from, number, message, version: VERSION };
        let answer = match self.cluster.send(replica, &ask).await {
            Ok(()) => self.cluster.wait_for(replica, &mut answer).await,
            // It may have been sent all the same.
            Err(_) => Err(ReplicaError::NoAnswer),
        };
        inner.waiting.lock().remove(&number);
        answer
    }
}

fn record_error(error: &StateError) -> RecordError {
    match error {
        StateError::Conflict => RecordError::Conflict,
        StateError::Unavailable { .. } | StateError::TooLarge { .. } | StateError::Gone => {
            RecordError::Unavailable(error.to_string())
        }
    }
}
