//! State that several replicas share, in Valkey or Redis.
//!
//! [`Valkey`] implements the state traits of `store` on one server, on a primary
//! that Sentinel names, or on a cluster ([`address`]). What has to be decided in
//! one step is one script on the server, by the server's clock. Replication is
//! asynchronous, so a failover may lose what was acknowledged: a single use is
//! void after it (`values`), and the fence of a lease never goes back (`leases`).
//!
//! The crate knows nothing of tools and callers. It is the only one with a driver
//! for Valkey.

pub mod address;

mod link;
mod scripts;
mod server;

mod blobs;
mod counters;
mod documents;
mod leases;
mod lines;
mod messages;
mod values;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::state::StateError;
use tokio::sync::watch;

use address::Address;
use link::Link;
use scripts::Scripts;

/// How a store is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub address: Address,
    /// What every key begins with, so that several gates may share a server.
    pub prefix: String,
    pub eviction: Eviction,
    pub limits: Limits,
}

/// Whether a server that may drop keys to make room is used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// It would forget tokens, leases and limits without a word.
    Refuse,
    /// The operator knows.
    Accept,
}

/// What a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest document, value, line or message.
    pub value_bytes: u64,
    /// The longest blob.
    pub blob_bytes: u64,
    /// About how many lines a log keeps.
    pub n_lines: usize,
    /// How many messages may wait in a mailbox; the oldest go first.
    pub n_messages: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        let (value_bytes, blob_bytes) = (16 << 20, 16 << 20);
        Limits { value_bytes, blob_bytes, n_lines: 10_000, n_messages: 10_000 }
    }
}

/// Why a store cannot be used. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It may answer later, and is asked again then.
    #[error("the store does not answer: {0}")]
    Away(String),
    /// Another server or another setting of it is needed.
    #[error("{0}")]
    Unfit(String),
}

/// What the keys of this version of the format begin with, after the prefix.
const FORMAT: &str = "1:";

/// A store that other replicas share. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Valkey(Arc<Shared>);

struct Shared {
    link: Link,
    /// For requests that wait on the server, which would hold up all others.
    waiting: Link,
    scripts: Scripts,
    prefix: String,
    limits: Limits,
    /// The documents that are watched here.
    watched: Mutex<HashMap<String, watch::Sender<()>>>,
}

impl Valkey {
    /// Connects when something is first asked.
    pub fn new(config: Config) -> Valkey {
        let Config { address, prefix, eviction, limits } = config;
        Valkey(Arc::new(Shared {
            link: Link::new(address.clone(), eviction),
            waiting: Link::new(address, eviction),
            scripts: Scripts::new(),
            prefix: format!("{prefix}{FORMAT}"),
            limits,
            watched: Mutex::default(),
        }))
    }

    /// Whether the server answers and is fit to be used.
    pub async fn check(&self, within: Duration) -> Result<(), OpenError> {
        self.0.link.check(within).await
    }

    fn key(&self, kind: &str, name: &str) -> String {
        format!("{}{kind}:{name}", self.0.prefix)
    }

    /// A key that lies in one slot of a cluster with all others of that `tag`. The
    /// underscore keeps an odd tag from being an empty one.
    fn tagged(&self, kind: &str, tag: &str, name: &str) -> String {
        format!("{}{kind}:{{_{tag}}}{name}", self.0.prefix)
    }
}

/// What the longest time is cut to, in milliseconds: the server adds it to its own.
const LONGEST: u64 = u64::MAX >> 12;

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(LONGEST).clamp(1, LONGEST)
}

/// A life as the server takes it: its values live through their last millisecond.
fn life_millis(life: Duration) -> u64 {
    millis(life).saturating_sub(1).max(1)
}

/// What the server answered and cannot be.
fn unexpected(what: &str) -> StateError {
    StateError::unavailable(format!("the server's answer to {what} cannot be read"))
}
