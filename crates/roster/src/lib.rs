//! Which upstreams there are, how they fare, and what they list.
//!
//! An upstream session is opened with the capabilities of the client, because
//! servers offer other tools to a client that supports sampling or elicitation.
//! So there is one [`UpstreamPool`] per distinct set of capabilities
//! ([`Profile`]), with its own sessions and its own [`Snapshot`]. It is opened
//! for the first such client and shared by all clients with that profile. Each
//! upstream of a pool is a [`SupervisedUpstream`]: started in parallel with the
//! others, within a time limit, restarted when it dies, stopped when it is idle.
//! Listings are kept in a [`ListingStore`], so that everything can be listed
//! before anything has started.

pub mod pool;
pub mod profile;
pub mod snapshot;
pub mod supervised;

mod supervisor;

pub mod inspect;
pub mod listing_store;
pub mod loop_guard;
pub mod per_caller;
pub mod primitives;
pub mod schema;

mod masking;
mod restarts;
mod subscriptions;

pub mod clock;
pub mod derived;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use catalog::index::Meaning;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tool::{Client, CredentialHealth, Failure, Listing, Provider};

pub use listing_store::ListingStore;
pub use pool::{Observer, UpstreamPool};
pub use profile::Profile;
pub use snapshot::{BUILTIN, Builtin, Snapshot};
pub use supervised::{Phase, Status, SupervisedUpstream};

use inspect::Inspector;
use listing_store::RememberedListings;
use supervised::StartMode;
use tool::clock::Clock;

/// Opens sessions with one upstream.
#[async_trait]
pub trait Connector: Send + Sync {
    /// Opens a session as this client. The roster bounds the time; dropping
    /// the future must leave nothing behind.
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure>;

    /// The state of the credentials that the upstream is shown; `None` where it
    /// needs none.
    fn credential_health(&self) -> Option<CredentialHealth> {
        None
    }
}

/// One upstream, as the operator wants it.
pub struct Upstream {
    pub label: String,
    /// One line for readers; the server's own words when `None`.
    pub description: Option<String>,
    pub connector: Arc<dyn Connector>,
    pub start: Start,
    /// Stop it after this long without a call.
    pub idle_stop: Option<Duration>,
    pub start_timeout: Duration,
    pub call_timeout: Duration,
    /// Changes whenever the upstream becomes another one (another command,
    /// another address), so that its old listing is not used and a reload
    /// knows what to restart.
    pub fingerprint: String,
    /// What it lists, where that is known beforehand because it is part of
    /// this process.
    pub known: Option<Arc<Listing>>,
}

/// When an upstream is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// As soon as its pool has a client.
    Eager,
    /// When it is first needed, which includes never having been listed.
    OnDemand,
}

/// How the roster behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long changes are collected before they are published together.
    pub publish_delay: Duration,
    /// How many pools may be open at once.
    pub pools: usize,
    /// Upstream sessions of a pool other than the default one are closed
    /// after this long without a call.
    pub session_idle: Duration,
    pub indexing: Indexing,
    /// Whether searches compare meanings, or words alone.
    pub meaning: Meaning,
    /// A random number from 0 to 1, for jitter.
    pub random: fn() -> f64,
    /// Limits how many upstreams start at once, in all pools together: when
    /// forty programs start in parallel, each of them times out.
    pub start_permits: Arc<Semaphore>,
    /// The id of this gatelet among all others, so that it is not mounted
    /// behind itself; empty where no id is needed.
    pub instance: Arc<str>,
}

/// How long a pool must be unused before another may take its place.
const EVICT_AFTER: Duration = Duration::from_secs(60);

/// When the search index of a new catalog is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// By the first search.
    WhenNeeded,
    /// In the background, as soon as the catalog is published.
    Ahead,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            publish_delay: Duration::from_millis(50),
            pools: 8,
            session_idle: Duration::from_secs(600),
            indexing: Indexing::WhenNeeded,
            meaning: Meaning::Compared,
            random: rand::random,
            start_permits: Arc::new(Semaphore::new(starts_at_once())),
            instance: "".into(),
        }
    }
}

/// A few for each processor: a starting program also waits for the disk and the
/// network.
fn starts_at_once() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).saturating_mul(2).clamp(4, 16)
}

impl Upstream {
    /// An upstream that is started with gatelet and never stopped.
    pub fn new(label: &str, connector: Arc<dyn Connector>) -> Upstream {
        Upstream {
            label: label.to_owned(),
            description: None,
            connector,
            start: Start::Eager,
            idle_stop: None,
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(120),
            fingerprint: String::new(),
            known: None,
        }
    }
}

/// What a roster works with.
pub struct Parts {
    /// Where listings are remembered.
    pub listings: Arc<dyn ListingStore>,
    pub builtin: Arc<dyn Builtin>,
    pub inspector: Arc<Inspector>,
    pub observer: Arc<dyn Observer>,
    pub clock: Arc<dyn Clock>,
}

/// All upstreams, in one pool per set of client capabilities.
pub struct Roster {
    config: Config,
    remembered: Arc<RememberedListings>,
    parts: Parts,
    upstreams: ArcSwap<Vec<Arc<Upstream>>>,
    /// The default pool first, then in the order of their last use.
    pools: Mutex<Vec<Arc<UpstreamPool>>>,
}

impl Roster {
    /// Lists from the store at once; starts nothing until a pool is asked for.
    pub fn new(upstreams: Vec<Upstream>, config: Config, parts: Parts) -> Roster {
        let upstreams: Vec<Arc<Upstream>> = upstreams.into_iter().map(Arc::new).collect();
        let upstreams = ArcSwap::from_pointee(upstreams);
        let remembered = Arc::new(RememberedListings::new(Arc::clone(&parts.listings)));
        Roster { config, remembered, parts, upstreams, pools: Mutex::default() }
    }

    /// The pool for clients with these capabilities. The default pool is opened
    /// together with the first other one, which falls back on it; it starts
    /// nothing until it is asked for.
    pub fn pool(&self, client: &Client) -> Arc<UpstreamPool> {
        self.started_pool(Profile::from_client(client))
    }

    /// The pool for clients without capabilities.
    pub fn default_pool(&self) -> Arc<UpstreamPool> {
        self.started_pool(Profile::default())
    }

    /// What is known now, remembered or listed, without starting anything.
    pub fn known(&self) -> Arc<Snapshot> {
        self.find_or_open(&mut self.lock(), Profile::default()).snapshot()
    }

    /// The pool, with its eager upstreams started.
    ///
    /// The first pool starts all of them. Any client can cause another pool by
    /// declaring other capabilities, so those start only the upstreams that no
    /// client of that profile has listed yet.
    fn started_pool(&self, profile: Profile) -> Arc<UpstreamPool> {
        let mut pools = self.lock();
        let pool = self.find_or_open(&mut pools, profile);
        let others = pools.iter().filter(|other| !Arc::ptr_eq(other, &pool));
        let is_first = !others.into_iter().any(|other| other.is_started());
        pool.start(if is_first { StartMode::AllEager } else { StartMode::UnlistedOnly });
        pool
    }

    /// Replaces the upstreams. Those that are the same go on as they are.
    pub fn reload(&self, upstreams: Vec<Upstream>) {
        let upstreams: Vec<Arc<Upstream>> = upstreams.into_iter().map(Arc::new).collect();
        self.upstreams.store(Arc::new(upstreams.clone()));
        for pool in self.lock().iter() {
            pool.reload(&upstreams);
        }
    }

    /// Tells every client that everything it has listed may have changed.
    pub fn announce(&self) {
        for pool in self.lock().iter() {
            pool.announce();
        }
    }

    /// The id of this gatelet among all others.
    pub fn instance(&self) -> &str {
        &self.config.instance
    }

    /// Every pool there is, the default one first.
    pub fn pools(&self) -> Vec<Arc<UpstreamPool>> {
        self.lock().clone()
    }

    fn find_or_open(
        &self,
        pools: &mut Vec<Arc<UpstreamPool>>,
        profile: Profile,
    ) -> Arc<UpstreamPool> {
        if pools.is_empty() {
            pools.push(self.open(Profile::default(), None));
        }
        if let Some(at) = pools.iter().position(|pool| *pool.profile() == profile) {
            // Keep the default pool where it is and the others in order of use.
            let pool = if at == 0 { Arc::clone(&pools[0]) } else { pools.remove(at) };
            if at != 0 {
                pools.push(Arc::clone(&pool));
            }
            pool.touch();
            return pool;
        }
        if self.config.pools <= pools.len() {
            // Only the roster holds it, so no client uses it. A client that has
            // just left may come back and should not start everything again.
            let is_unused = |pool: &Arc<UpstreamPool>| {
                Arc::strong_count(pool) == 1 && EVICT_AFTER <= pool.idle()
            };
            match pools.iter().skip(1).position(is_unused) {
                Some(at) => drop(pools.remove(at + 1)),
                None => return Arc::clone(&pools[0]),
            }
        }
        let pool = self.open(profile, Some(Arc::clone(&pools[0])));
        pools.push(Arc::clone(&pool));
        pool
    }

    fn open(&self, profile: Profile, default: Option<Arc<UpstreamPool>>) -> Arc<UpstreamPool> {
        let parts = pool::Parts {
            profile,
            config: self.config.clone(),
            remembered: Arc::clone(&self.remembered),
            builtin: Arc::clone(&self.parts.builtin),
            inspector: Arc::clone(&self.parts.inspector),
            clock: Arc::clone(&self.parts.clock),
            observer: Arc::clone(&self.parts.observer),
            subscriptions: Arc::default(),
        };
        UpstreamPool::open(parts, &self.upstreams.load(), default)
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<Arc<UpstreamPool>>> {
        self.pools.lock()
    }
}

#[cfg(test)]
mod tests;
