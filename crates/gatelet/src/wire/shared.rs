//! What this replica shares with others: the store, and messages over it.
//!
//! Each replica has a tag and a mailbox. It says every few seconds that it is
//! there, so that nobody waits for one that is gone.

mod tunnel;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use mcp::serve::http::{Endpoint, NotCarried, Replicas};
use mcp::serve::stdio;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use store::state::{Expiring, Messages, StateError};
use tokio::io::DuplexStream;
use tokio::sync::oneshot;
use tool::{FixedProvider, Json, Provider};
use valkey::{OpenError, Valkey};

use super::seal::Seal;
use config::SharedState;
use tunnel::{End, Outgoing, Tunnels};

/// How long one operation of the store may hold up a request.
const WITHIN: Duration = Duration::from_secs(2);
/// How long a replica counts as there after it last said so, and how often it does.
const THERE: Duration = Duration::from_secs(6);
const SAY: Duration = Duration::from_secs(2);
/// How long another replica may take to answer, and a message to be read.
const ANSWER: Duration = Duration::from_secs(300);
/// How long a look into the mailbox waits for a message.
const LOOK: Duration = Duration::from_secs(5);

/// What this replica shares with others. Clones are the same.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

struct Inner {
    store: Valkey,
    seal: Seal,
    tag: u32,
    /// Who waits for an answer of another replica.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Json>>>,
    next: AtomicU64,
    /// The endpoints that others may send to, by path.
    endpoints: Mutex<BTreeMap<String, Endpoint>>,
    /// The upstreams that run here for everybody, by name, with their fences.
    offered: Mutex<HashMap<String, Offered>>,
    tunnels: Arc<Tunnels>,
}

/// An upstream that runs here, with the fence of its lease.
#[derive(Clone)]
struct Offered {
    fence: u64,
    provider: Weak<dyn Provider>,
}

/// What travels between replicas.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Letter {
    /// To an endpoint; the answer goes to `from` under `number`.
    Ask {
        endpoint: String,
        from: u32,
        number: u64,
        message: Json,
    },
    Answer {
        number: u64,
        message: Json,
    },
    /// Opens a pipe to an upstream that runs there under that lease.
    Open {
        upstream: String,
        fence: u64,
        from: u32,
        tunnel: u64,
    },
    /// A line on a pipe.
    Line {
        tunnel: u64,
        text: String,
    },
    Close {
        tunnel: u64,
    },
}

impl Shared {
    pub(crate) fn new(config: &SharedState) -> Shared {
        Shared(Arc::new(Inner {
            store: Valkey::new(config.store.clone()),
            seal: Seal::new(config.key.as_ref().map(|key| key.0.as_str())),
            tag: rand::random_range(1..u32::MAX),
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            endpoints: Mutex::default(),
            offered: Mutex::default(),
            tunnels: Arc::default(),
        }))
    }

    pub(crate) fn store(&self) -> &Valkey {
        &self.0.store
    }

    /// Signs what this replica tells the others.
    pub(crate) fn seal(&self) -> &Seal {
        &self.0.seal
    }

    /// Whether the store can be used. One that is away may come back.
    pub(crate) async fn check(&self) -> Result<(), OpenError> {
        self.0.store.check(WITHIN).await
    }

    /// What an endpoint needs to know of the other replicas.
    pub(crate) fn replicas(&self, path: &str) -> Arc<dyn Replicas> {
        Arc::new(OfEndpoint { shared: self.clone(), path: path.to_owned() })
    }

    /// Takes letters to these endpoints, and hears of changes, until dropped.
    pub(crate) async fn keep(self, endpoints: BTreeMap<String, Endpoint>) {
        *self.0.endpoints.lock() = endpoints;
        let ((), (), ()) =
            futures::join!(self.say_there(), self.take_letters(), self.0.store.listen());
    }

    async fn say_there(&self) {
        let key = there(self.0.tag);
        loop {
            let said = Expiring::put(&self.0.store, &key, "1".into(), THERE, WITHIN).await;
            if let Err(error) = said {
                tracing::debug!(%error, "cannot tell the other replicas that this one is there");
            }
            tokio::time::sleep(SAY).await;
        }
    }

    async fn take_letters(&self) {
        let mailbox = mailbox(self.0.tag);
        loop {
            match self.0.store.receive(&mailbox, LOOK).await {
                Ok(letters) => letters.iter().for_each(|letter| self.take_letter(letter)),
                Err(_) => tokio::time::sleep(SAY).await,
            }
        }
    }

    fn take_letter(&self, letter: &[u8]) {
        match serde_json::from_slice::<Letter>(letter) {
            Ok(Letter::Answer { number, message }) => {
                if let Some(waiting) = self.0.waiting.lock().remove(&number) {
                    // Whoever stopped waiting needs no answer.
                    drop(waiting.send(message));
                }
            }
            Ok(Letter::Ask { endpoint, from, number, message }) => {
                let Some(endpoint) = self.0.endpoints.lock().get(&endpoint).cloned() else {
                    return;
                };
                let shared = self.clone();
                tokio::spawn(async move {
                    let message = endpoint.take_carried(&message).await;
                    if let Err(error) = shared.send(from, &Letter::Answer { number, message }).await
                    {
                        tracing::warn!(%error, "an answer to another replica is lost");
                    }
                });
            }
            Ok(Letter::Open { upstream, fence, from, tunnel }) => {
                self.serve_tunnel(&upstream, fence, from, tunnel);
            }
            Ok(Letter::Line { tunnel, text }) => self.0.tunnels.take(tunnel, text),
            Ok(Letter::Close { tunnel }) => self.0.tunnels.close(tunnel),
            Err(error) => tracing::warn!(%error, "a letter of another replica cannot be read"),
        }
    }

    /// Whether a replica said lately that it is there.
    pub(super) async fn is_there(&self, replica: u32) -> bool {
        let said = Expiring::get(&self.0.store, &there(replica), WITHIN).await;
        matches!(said, Ok(Some(_)))
    }

    /// Tells this replica from the others.
    pub(super) fn tag(&self) -> u32 {
        self.0.tag
    }

    /// Lets other replicas reach an upstream that runs here.
    pub(super) fn offer(&self, upstream: &str, fence: u64, provider: Weak<dyn Provider>) {
        self.0.offered.lock().insert(upstream.to_owned(), Offered { fence, provider });
    }

    /// Takes an upstream back that does not run here any more.
    pub(super) fn withdraw(&self, upstream: &str, fence: u64) {
        let mut offered = self.0.offered.lock();
        if offered.get(upstream).is_some_and(|current| current.fence == fence) {
            offered.remove(upstream);
        }
    }

    /// A pipe to an upstream that another replica runs.
    pub(super) fn open_tunnel(&self, replica: u32, upstream: &str, fence: u64) -> DuplexStream {
        let tunnel = rand::random();
        let (near, end) = self.0.tunnels.open(tunnel);
        let (upstream, from) = (upstream.to_owned(), self.0.tag);
        let shared = self.clone();
        tokio::spawn(async move {
            let open = Letter::Open { upstream, fence, from, tunnel };
            if shared.send(replica, &open).await.is_ok() {
                shared.carry(end, replica, tunnel).await;
            } else {
                shared.0.tunnels.close(tunnel);
            }
        });
        near
    }

    /// Has another replica talk to an upstream that runs here. One that asks for an
    /// older lease of it is turned away, and looks again who has it.
    fn serve_tunnel(&self, upstream: &str, fence: u64, from: u32, tunnel: u64) {
        let offered = self.0.offered.lock().get(upstream).cloned();
        let current = offered.filter(|current| current.fence == fence);
        let provider = current.and_then(|current| current.provider.upgrade());
        let shared = self.clone();
        let Some(provider) = provider else {
            tokio::spawn(async move { shared.send(from, &Letter::Close { tunnel }).await });
            return;
        };
        let (near, end) = self.0.tunnels.open(tunnel);
        let (reader, writer) = tokio::io::split(near);
        let source = Arc::new(FixedProvider(provider));
        tokio::spawn(stdio::serve(source, reader, writer, stdio::Options::default()));
        tokio::spawn(async move { shared.carry(end, from, tunnel).await });
    }

    async fn carry(&self, end: End, replica: u32, tunnel: u64) {
        let say = |said: Outgoing| async move {
            let letter = match said {
                Outgoing::Line(text) => Letter::Line { tunnel, text },
                Outgoing::Closed => Letter::Close { tunnel },
            };
            self.send(replica, &letter).await.is_ok()
        };
        let gone = async {
            while self.is_there(replica).await {
                tokio::time::sleep(SAY).await;
            }
        };
        end.carry(Arc::clone(&self.0.tunnels), say, gone).await;
    }

    /// Waits for an answer for as long as the replica is there to give it.
    async fn wait_for(&self, replica: u32, answer: &mut oneshot::Receiver<Json>) -> Option<Json> {
        let end = tokio::time::Instant::now() + ANSWER;
        while tokio::time::Instant::now() < end {
            match tokio::time::timeout(SAY, &mut *answer).await {
                Ok(answer) => return answer.ok(),
                Err(_) if self.is_there(replica).await => {}
                Err(_) => return None,
            }
        }
        None
    }

    async fn send(&self, replica: u32, letter: &Letter) -> Result<(), StateError> {
        let text = Json::encode(letter).as_str().to_owned();
        self.0.store.send(&mailbox(replica), text.into(), ANSWER, WITHIN).await
    }
}

fn mailbox(tag: u32) -> String {
    format!("replica {tag}")
}

fn there(tag: u32) -> String {
    format!("replica {tag} is there")
}

/// The replicas as one endpoint sees them.
struct OfEndpoint {
    shared: Shared,
    path: String,
}

impl fmt::Debug for OfEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OfEndpoint({})", self.path)
    }
}

impl OfEndpoint {
    fn key(&self, id: &str) -> String {
        format!("session {} {id}", self.path)
    }
}

#[async_trait]
impl Replicas for OfEndpoint {
    fn tag(&self) -> u32 {
        self.shared.0.tag
    }

    async fn note_session(&self, id: &str, note: String, life: Duration) -> Result<(), String> {
        let key = self.key(id);
        let noted = Expiring::put(self.shared.store(), &key, note.into(), life, WITHIN).await;
        noted.map_err(|error| error.to_string())
    }

    async fn find_session(&self, id: &str) -> Option<String> {
        let found = Expiring::get(self.shared.store(), &self.key(id), WITHIN).await;
        let found = found.inspect_err(|error| {
            tracing::warn!(%error, "cannot look for a session of another replica");
        });
        String::from_utf8(found.ok()??.into()).ok()
    }

    async fn touch_session(&self, id: &str, life: Duration) {
        if let Err(error) = self.shared.store().touch(&self.key(id), life, WITHIN).await {
            tracing::debug!(%error, "cannot keep the note of a session");
        }
    }

    async fn forget_session(&self, id: &str) {
        if let Err(error) = Expiring::remove(self.shared.store(), &self.key(id), WITHIN).await {
            tracing::warn!(%error, "a session that ended may be carried on elsewhere until it is idle");
        }
    }

    async fn ask(&self, replica: u32, message: Json) -> Result<Json, NotCarried> {
        let Shared(inner) = &self.shared;
        if !self.shared.is_there(replica).await {
            return Err(NotCarried::Gone);
        }
        let number = inner.next.fetch_add(1, Ordering::Relaxed);
        let (sender, mut answer) = oneshot::channel();
        inner.waiting.lock().insert(number, sender);
        let endpoint = self.path.clone();
        let letter = Letter::Ask { endpoint, from: inner.tag, number, message };
        let answer = match self.shared.send(replica, &letter).await {
            Ok(()) => self.shared.wait_for(replica, &mut answer).await,
            // It may have been sent all the same.
            Err(_) => None,
        };
        inner.waiting.lock().remove(&number);
        answer.ok_or(NotCarried::NoAnswer)
    }
}
