//! The configuration of the roster.

use std::sync::Arc;
use std::time::Duration;

use catalog::index::Meaning;
use tokio::sync::Semaphore;

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
    /// Whether searches compare meanings, or only words.
    pub meaning: Meaning,
    /// Returns a random number from 0 to 1, for the jitter of restarts.
    pub jitter: fn() -> f64,
    /// Limits how many upstreams start at once, in all pools together: when
    /// forty programs start in parallel, each of them times out.
    pub start_permits: Arc<Semaphore>,
    /// The unique id of this gatelet process, to detect that it is mounted behind itself;
    /// empty if that is not checked.
    pub gatelet_id: Arc<str>,
}

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
            jitter: rand::random,
            start_permits: Arc::new(Semaphore::new(max_parallel_starts())),
            gatelet_id: "".into(),
        }
    }
}

/// Returns how many upstreams may start at once: a few per processor, because a starting
/// program also waits for the disk and the network.
fn max_parallel_starts() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).saturating_mul(2).clamp(4, 16)
}
