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

mod settings;

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

use link::Link;
use scripts::Scripts;

pub use settings::{Config, Eviction, Limits, OpenError};

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
