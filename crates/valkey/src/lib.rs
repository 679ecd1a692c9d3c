//! State that several replicas share, in Valkey or Redis.
//!
//! [`Valkey`] implements the state traits of `store` on one server, on a primary
//! behind Sentinel, or on a cluster ([`address`]). An operation that must be atomic
//! is one script on the server, which uses the server's clock. Replication is
//! asynchronous, so a failover may lose acknowledged writes: single-use values
//! become void (`values`), so do the documents and values of an epoch
//! ([`EpochDocuments`], [`EpochValues`]), and the fence of a lease never goes back
//! (`leases`).
//!
//! The crate does not know tools or callers. It is the only one with a driver for
//! Valkey.

pub mod address;

mod settings;

mod endpoint;
mod link;
mod nodes;
mod scripts;
mod server;

mod blobs;
mod counters;
mod documents;
mod epoch_documents;
mod epoch_values;
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

pub use epoch_documents::EpochDocuments;
pub use epoch_values::EpochValues;
pub use settings::{Config, Eviction, Limits, OpenError};

/// Begins all keys of this version of the format, after the prefix.
const FORMAT: &str = "1:";

/// A store that several replicas share. Cheap to clone; all clones share one
/// connection.
#[derive(Clone)]
pub struct Valkey(Arc<Store>);

struct Store {
    link: Link,
    /// The connection for requests that block on the server, which would hold up all
    /// others.
    blocking_link: Link,
    scripts: Scripts,
    prefix: String,
    limits: Limits,
    /// The documents that this process watches.
    watched: Mutex<HashMap<String, watch::Sender<()>>>,
}

impl Valkey {
    /// Creates the store; it connects when it is first used.
    pub fn new(config: Config) -> Valkey {
        let Config { address, prefix, eviction, limits } = config;
        Valkey(Arc::new(Store {
            link: Link::new(address.clone(), eviction),
            blocking_link: Link::new(address, eviction),
            scripts: Scripts::new(),
            prefix: format!("{prefix}{FORMAT}"),
            limits,
            watched: Mutex::default(),
        }))
    }

    /// Fails if the server does not answer or must not be used.
    pub async fn check(&self, timeout: Duration) -> Result<(), OpenError> {
        self.0.link.check(timeout).await
    }

    fn key(&self, kind: &str, name: &str) -> String {
        format!("{}{kind}:{name}", self.0.prefix)
    }

    /// Returns a key that is in the same slot of a cluster as all others of that hash
    /// `tag`. The underscore makes sure that the tag is not empty.
    fn tagged(&self, kind: &str, tag: &str, name: &str) -> String {
        format!("{}{kind}:{{_{tag}}}{name}", self.0.prefix)
    }
}

/// The longest duration in milliseconds: the server adds it to its clock, which must
/// not overflow.
const MAX_MILLIS: u64 = u64::MAX >> 12;

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(MAX_MILLIS).clamp(1, MAX_MILLIS)
}

/// Returns a TTL for the server, whose values live through their last millisecond.
fn ttl_millis(ttl: Duration) -> u64 {
    millis(ttl).saturating_sub(1).max(1)
}

/// Creates the error for an answer that cannot be parsed.
fn unexpected(request: &str) -> StateError {
    StateError::unavailable(format!("the server's answer to {request} cannot be read"))
}
