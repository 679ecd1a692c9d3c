//! Which upstreams there are, how they fare, and what they list.
//!
//! An upstream session is opened with what the client can really do, because
//! servers offer other tools to a client that can sample or be asked. So there
//! is one [`Hall`] per distinct set of capabilities ([`Profile`]), with its own
//! sessions and its own [`Snapshot`], made when the first such client comes and
//! shared by all that are alike. Each upstream of a hall is a [`Link`]: started
//! side by side with the others, within a time limit, restarted when it dies,
//! stopped when nobody needs it. Listings are kept on a [`Shelf`], so that
//! everything can be listed before anything has started.

pub mod callers;
pub mod clock;
pub mod derived;
pub mod gates;
pub mod hall;
pub mod inspect;
pub mod link;
mod masked;
pub mod primitives;
pub mod profile;
pub mod schema;
pub mod shelf;
pub mod snapshot;

mod supervise;
mod wishes;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use catalog::index::Meaning;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tool::{Client, CredentialHealth, Failure, Listing, Provider};

pub use hall::{Hall, Observer};
pub use link::{Link, Phase, Status};
pub use profile::Profile;
pub use shelf::Shelf;
pub use snapshot::{BUILTIN, Builtin, Snapshot};

use inspect::Inspector;
use link::Rousing;
use shelf::Memories;
use tool::clock::Clock;

/// Opens sessions with one upstream.
#[async_trait]
pub trait Connector: Send + Sync {
    /// Opens a session as this client. The roster bounds the time; dropping
    /// the future must leave nothing behind.
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure>;

    /// How it stands with what the upstream is shown; `None` where it wants
    /// nothing.
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
    /// Changes whenever the upstream is not the same any more (another
    /// command, another address), so that its old listing is not believed and
    /// a reload knows what to restart.
    pub fingerprint: String,
    /// What it lists, where that is known beforehand because it is part of
    /// this process.
    pub known: Option<Arc<Listing>>,
}

/// When an upstream is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the hall.
    Eager,
    /// When it is first needed, which includes never having been listed.
    OnDemand,
}

/// How the roster behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long changes are gathered before they are published.
    pub settle: Duration,
    /// How many halls there may be at once.
    pub halls: usize,
    /// Upstream sessions of a hall other than the default one are closed
    /// after this long without a call.
    pub linger: Duration,
    pub indexing: Indexing,
    /// Whether searches compare meanings, or words alone.
    pub meaning: Meaning,
    /// A number from 0 to 1, for jitter.
    pub chance: fn() -> f64,
    /// How many upstreams may be starting at once, in all halls together: forty
    /// programs that start side by side are each too late.
    pub starts: Arc<Semaphore>,
    /// Tells this gate from every other, so that it is not mounted behind
    /// itself; empty where nobody needs to tell.
    pub instance: Arc<str>,
}

/// How long nobody may have entered a hall before it gives way to another.
const QUIET: Duration = Duration::from_secs(60);

/// When the search index over a new catalog is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// By the first search.
    WhenNeeded,
    /// As soon as a catalog is published, beside everything else.
    Ahead,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            settle: Duration::from_millis(50),
            halls: 8,
            linger: Duration::from_secs(600),
            indexing: Indexing::WhenNeeded,
            meaning: Meaning::Compared,
            chance: rand::random,
            starts: Arc::new(Semaphore::new(starts_at_once())),
            instance: "".into(),
        }
    }
}

/// A few for each processor: a program that starts waits for the disk and the
/// network, too.
fn starts_at_once() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).saturating_mul(2).clamp(4, 16)
}

impl Upstream {
    /// An upstream that is started with the gate and never stopped.
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
    pub listings: Arc<dyn Shelf>,
    pub builtin: Arc<dyn Builtin>,
    pub inspector: Arc<Inspector>,
    pub observer: Arc<dyn Observer>,
    pub clock: Arc<dyn Clock>,
}

/// All halls.
pub struct Roster {
    config: Config,
    memories: Arc<Memories>,
    parts: Parts,
    upstreams: ArcSwap<Vec<Arc<Upstream>>>,
    /// The default hall first, then in the order of their last use.
    halls: Mutex<Vec<Arc<Hall>>>,
}

impl Roster {
    /// Lists from memory at once; starts nothing until a hall is entered.
    pub fn new(upstreams: Vec<Upstream>, config: Config, parts: Parts) -> Roster {
        let upstreams: Vec<Arc<Upstream>> = upstreams.into_iter().map(Arc::new).collect();
        let upstreams = ArcSwap::from_pointee(upstreams);
        let memories = Arc::new(Memories::on(Arc::clone(&parts.listings)));
        Roster { config, memories, parts, upstreams, halls: Mutex::default() }
    }

    /// The hall for clients like this one. The default hall is always there
    /// once any has been entered, because the others fall back on it; it
    /// starts nothing until somebody enters it.
    pub fn hall(&self, client: &Client) -> Arc<Hall> {
        self.roused(Profile::of(client))
    }

    /// The hall for clients without capabilities.
    pub fn default_hall(&self) -> Arc<Hall> {
        self.roused(Profile::default())
    }

    /// The hall, with that running which is to run without being asked for.
    ///
    /// The first hall that is entered starts what is eager. The others are for
    /// clients that say something else of themselves, and saying that is free:
    /// there, only what such clients never saw starts unasked.
    fn roused(&self, profile: Profile) -> Arc<Hall> {
        let mut halls = self.lock();
        let hall = self.enter(&mut halls, profile);
        let others = halls.iter().filter(|other| !Arc::ptr_eq(other, &hall));
        let is_first = !others.into_iter().any(|other| other.is_roused());
        hall.rouse(if is_first { Rousing::Eager } else { Rousing::Unfamiliar });
        hall
    }

    /// Replaces the upstreams. Those that are the same go on as they are.
    pub fn reload(&self, upstreams: Vec<Upstream>) {
        let upstreams: Vec<Arc<Upstream>> = upstreams.into_iter().map(Arc::new).collect();
        self.upstreams.store(Arc::new(upstreams.clone()));
        for hall in self.lock().iter() {
            hall.reload(&upstreams);
        }
    }

    /// Tells every client that whatever it has listed may be another now.
    pub fn announce(&self) {
        for hall in self.lock().iter() {
            hall.announce();
        }
    }

    /// What tells this gate from every other.
    pub fn instance(&self) -> &str {
        &self.config.instance
    }

    /// Every hall there is, the default one first.
    pub fn halls(&self) -> Vec<Arc<Hall>> {
        self.lock().clone()
    }

    fn enter(&self, halls: &mut Vec<Arc<Hall>>, profile: Profile) -> Arc<Hall> {
        if halls.is_empty() {
            halls.push(self.open(Profile::default(), None));
        }
        if let Some(at) = halls.iter().position(|hall| *hall.profile() == profile) {
            // Keep the default hall where it is and the others in order of use.
            let hall = if at == 0 { Arc::clone(&halls[0]) } else { halls.remove(at) };
            if at != 0 {
                halls.push(Arc::clone(&hall));
            }
            hall.enter();
            return hall;
        }
        if self.config.halls <= halls.len() {
            // Only the roster knows it, so nobody is in it. Who left just now
            // may come back, and is not to start everything again.
            let is_empty = |hall: &Arc<Hall>| Arc::strong_count(hall) == 1 && QUIET <= hall.quiet();
            match halls.iter().skip(1).position(is_empty) {
                Some(at) => drop(halls.remove(at + 1)),
                None => return Arc::clone(&halls[0]),
            }
        }
        let hall = self.open(profile, Some(Arc::clone(&halls[0])));
        halls.push(Arc::clone(&hall));
        hall
    }

    fn open(&self, profile: Profile, default: Option<Arc<Hall>>) -> Arc<Hall> {
        let parts = hall::Parts {
            profile,
            config: self.config.clone(),
            memories: Arc::clone(&self.memories),
            builtin: Arc::clone(&self.parts.builtin),
            inspector: Arc::clone(&self.parts.inspector),
            clock: Arc::clone(&self.parts.clock),
            observer: Arc::clone(&self.parts.observer),
            wishes: Arc::default(),
        };
        Hall::open(parts, &self.upstreams.load(), default)
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<Arc<Hall>>> {
        self.halls.lock()
    }
}

#[cfg(test)]
mod tests;
