//! The [`Roster`]: all upstreams, in one pool per set of client capabilities.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tool::Client;
use tool::clock::Clock;

use crate::config::Config;
use crate::listing_check::ListingChecker;
use crate::listing_store::{ListingCache, ListingStore};
use crate::pool::{self, Observer, UpstreamPool};
use crate::profile::Profile;
use crate::snapshot::{Builtin, Snapshot};
use crate::supervised::StartMode;
use crate::upstream::Upstream;

/// How long a pool must be unused before another may take its place.
const EVICT_AFTER: Duration = Duration::from_secs(60);

/// The objects that a roster works with.
pub struct Collaborators {
    /// Where listings are stored between runs.
    pub listings: Arc<dyn ListingStore>,
    pub builtin: Arc<dyn Builtin>,
    pub listing_checker: Arc<ListingChecker>,
    pub observer: Arc<dyn Observer>,
    pub clock: Arc<dyn Clock>,
}

/// All upstreams, in one pool per set of client capabilities.
pub struct Roster {
    config: Config,
    listing_cache: Arc<ListingCache>,
    collaborators: Collaborators,
    upstreams: ArcSwap<Vec<Arc<Upstream>>>,
    /// The default pool first, then in the order of their last use.
    pools: Mutex<Vec<Arc<UpstreamPool>>>,
}

impl Roster {
    /// Makes a roster that lists from the store. It starts nothing until a pool is asked
    /// for.
    pub fn new(upstreams: Vec<Upstream>, config: Config, collaborators: Collaborators) -> Roster {
        let upstreams: Vec<Arc<Upstream>> = upstreams.into_iter().map(Arc::new).collect();
        let upstreams = ArcSwap::from_pointee(upstreams);
        let listing_cache = Arc::new(ListingCache::new(Arc::clone(&collaborators.listings)));
        Roster { config, listing_cache, collaborators, upstreams, pools: Mutex::default() }
    }

    /// Returns the pool for clients with these capabilities, with its upstreams started.
    pub fn pool(&self, client: &Client) -> Arc<UpstreamPool> {
        self.started_pool(Profile::from_client(client))
    }

    /// Returns the pool for clients without capabilities, with its upstreams started.
    pub fn default_pool(&self) -> Arc<UpstreamPool> {
        self.started_pool(Profile::default())
    }

    /// Returns the snapshot of the default pool, with remembered or current listings,
    /// without starting anything.
    pub fn current_snapshot(&self) -> Arc<Snapshot> {
        self.find_or_open(&mut self.lock(), Profile::default()).snapshot()
    }

    /// Returns the pool of a profile, with its eager upstreams started.
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

    /// Replaces the upstreams. Those whose configuration did not change keep running.
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

    /// Returns the unique id of this gatelet process.
    pub fn gatelet_id(&self) -> &str {
        &self.config.gatelet_id
    }

    /// Returns all open pools, the default one first.
    pub fn pools(&self) -> Vec<Arc<UpstreamPool>> {
        self.lock().clone()
    }

    /// Returns the pool of a profile, opening it if there is none. The default pool is
    /// opened before the first other one; it also serves when there are too many pools.
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
        let dependencies = pool::Dependencies {
            profile,
            config: self.config.clone(),
            listing_cache: Arc::clone(&self.listing_cache),
            builtin: Arc::clone(&self.collaborators.builtin),
            listing_checker: Arc::clone(&self.collaborators.listing_checker),
            clock: Arc::clone(&self.collaborators.clock),
            observer: Arc::clone(&self.collaborators.observer),
            subscriptions: Arc::default(),
        };
        UpstreamPool::open(dependencies, &self.upstreams.load(), default)
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<Arc<UpstreamPool>>> {
        self.pools.lock()
    }
}

#[cfg(test)]
mod tests;
