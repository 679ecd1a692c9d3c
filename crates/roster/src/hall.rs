//! All upstreams, as clients of one kind see them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::{Catalog, Source};
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, broadcast};
use tokio_util::task::AbortOnDropHandle;
use tool::{Ask, Context, Event, Kind};

use super::derived::Derived;
use super::inspect::Inspector;
use super::link::{Known, Rousing};
use super::shelf::Memories;
use super::snapshot::Builtin;
use super::supervise::{Surroundings, supervise};
use super::wishes::Wishes;
use super::{Config, Indexing, Link, Profile, Snapshot, Upstream};
use tool::clock::Clock;

/// One set of upstream sessions and the catalog over them. Dropping it ends
/// the sessions.
pub struct Hall {
    core: Arc<Core>,
    default: Option<Arc<Hall>>,
    seats: Mutex<Vec<Seat>>,
    /// Whether anybody has come yet.
    roused: AtomicBool,
    /// What others keep as long as this lasts.
    derived: Derived,
    /// When somebody last came in, on the gate's clock.
    entered: Mutex<Duration>,
    _publisher: AbortOnDropHandle<()>,
    _quietener: AbortOnDropHandle<()>,
}

/// What a hall is opened with.
pub(crate) struct Parts {
    pub(super) profile: Profile,
    pub(super) config: Config,
    pub(super) memories: Arc<Memories>,
    pub(super) builtin: Arc<dyn Builtin>,
    pub(super) inspector: Arc<Inspector>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) wishes: Arc<Wishes>,
}

struct Core {
    parts: Parts,
    snapshot: ArcSwap<Snapshot>,
    links: ArcSwap<Vec<Arc<Link>>>,
    /// What is no link any more, until no snapshot shows it.
    leaving: Mutex<Vec<Seat>>,
    generations: AtomicU64,
    dirty: Arc<Notify>,
    /// Told whenever a snapshot is published.
    published: Notify,
    events: broadcast::Sender<Event>,
}

/// Hears of what the roster publishes.
pub trait Observer: Send + Sync {
    /// A new snapshot is in use.
    fn published(&self, snapshot: &Snapshot);
}

/// A link and the task that looks after it.
struct Seat {
    link: Arc<Link>,
    supervisor: AbortOnDropHandle<()>,
}

impl Hall {
    pub(crate) fn open(
        parts: Parts,
        upstreams: &[Arc<Upstream>],
        default: Option<Arc<Hall>>,
    ) -> Arc<Hall> {
        let links: Vec<Arc<Link>> =
            upstreams.iter().map(|upstream| link(&parts, upstream, default.as_deref())).collect();
        let earlier: Vec<Arc<Catalog>> =
            default.iter().map(|hall| Arc::clone(&hall.snapshot().catalog)).collect();
        let meaning = parts.config.meaning;
        let first = Snapshot::take(0, links.clone(), Arc::clone(&parts.builtin), meaning, &earlier);
        let core = Arc::new(Core {
            parts,
            snapshot: ArcSwap::from_pointee(first),
            links: ArcSwap::from_pointee(links.clone()),
            leaving: Mutex::default(),
            generations: AtomicU64::new(1),
            dirty: Arc::new(Notify::new()),
            published: Notify::new(),
            events: broadcast::channel(256).0,
        });
        let seats = links.into_iter().map(|link| core.seat(link, true)).collect();
        let entered = Mutex::new(core.parts.clock.elapsed());
        let publisher = AbortOnDropHandle::new(tokio::spawn(publish(Arc::clone(&core))));
        let quietener = AbortOnDropHandle::new(tokio::spawn(quieten(Arc::clone(&core))));
        Arc::new(Hall {
            core,
            default,
            seats: Mutex::new(seats),
            roused: AtomicBool::new(false),
            derived: Derived::default(),
            entered,
            _publisher: publisher,
            _quietener: quietener,
        })
    }

    pub fn profile(&self) -> &Profile {
        &self.core.parts.profile
    }

    /// The latest snapshot. A request takes one and uses it to the end.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.core.snapshot.load_full()
    }

    /// What somebody keeps for as long as this lasts: each type has its own
    /// place.
    pub fn derived<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        self.derived.get_or_make(make)
    }

    /// What happens from now on: changed listings, and what upstreams tell.
    pub fn events(&self) -> BoxStream<'static, Event> {
        let receiver = self.core.events.subscribe();
        let events = futures::stream::unfold(receiver, |mut receiver| async {
            match receiver.recv().await {
                Ok(event) => Some((vec![event], receiver)),
                // What was missed may have been a change of any kind.
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    Some((Kind::ALL.map(Event::Changed).to_vec(), receiver))
                }
                Err(broadcast::error::RecvError::Closed) => None,
            }
        });
        events.flat_map(futures::stream::iter).boxed()
    }

    /// Waits until it is known what stands in a namespace.
    ///
    /// An upstream that is listed for the first time has its time to come up,
    /// so that a first call into it is not told that there is no such
    /// function. Everything that was ever listed is known at once.
    pub async fn known(&self, namespace: &str) {
        let label = namespace.split('.').next().unwrap_or_default();
        let named = |link: &&Arc<Link>| catalog::name::same(link.label(), label);
        let link = self.core.links.load().iter().find(named).cloned();
        let Some(link) = link.filter(|link| link.is_awaited()) else { return };
        link.known().await;
        self.published(&link).await;
    }

    /// Has an upstream whose listing is from memory started and seen, for who
    /// looks for something that the memory does not know.
    pub async fn verified(&self, namespace: &str) {
        let label = namespace.split('.').next().unwrap_or_default();
        let named = |link: &&Arc<Link>| catalog::name::same(link.label(), label);
        let link = self.core.links.load().iter().find(named).cloned();
        let Some(link) = link else { return };
        if (link.status().seen && self.shows(&link)) || link.provider().await.is_err() {
            return;
        }
        self.published(&link).await;
    }

    /// Waits until the snapshot shows a link as it stands, for a while.
    async fn published(&self, link: &Link) {
        let published = async {
            loop {
                // Made before looking, so that nothing published in between is
                // missed.
                let next = self.core.published.notified();
                if self.shows(link) {
                    return;
                }
                next.await;
            }
        };
        let _ = tokio::time::timeout(self.core.parts.config.settle * 20, published).await;
    }

    /// Whether some upstream is being listed for the first time.
    pub fn awaits_any(&self) -> bool {
        self.core.links.load().iter().any(|link| link.is_awaited())
    }

    /// Whether the snapshot shows a link as it stands.
    fn shows(&self, link: &Link) -> bool {
        let now = link.source();
        let same =
            |shown: &Source| Arc::ptr_eq(&shown.listing, &now.listing) && shown.state == now.state;
        self.snapshot().catalog.sources().iter().any(same)
    }

    /// Starts what is to run without being asked for, if that has not
    /// happened yet.
    pub(crate) fn rouse(&self, wanted: Rousing) {
        if !self.roused.swap(true, Ordering::Relaxed) {
            for link in self.core.links.load().iter() {
                link.rouse(wanted);
            }
        }
    }

    pub(crate) fn is_roused(&self) -> bool {
        self.roused.load(Ordering::Relaxed)
    }

    /// Notes that somebody comes in.
    pub(crate) fn enter(&self) {
        *self.entered.lock() = self.now();
    }

    /// How long nobody has come in.
    pub(crate) fn quiet(&self) -> Duration {
        let entered = *self.entered.lock();
        self.now().saturating_sub(entered)
    }

    fn now(&self) -> Duration {
        self.core.parts.clock.elapsed()
    }

    /// Keeps in mind how much a session wants logged, while it lasts.
    pub fn log(&self, ask: &Ask, context: &Context) {
        self.core.parts.wishes.log(ask, context);
    }

    pub(crate) fn announce(&self) {
        for kind in Kind::ALL {
            // Nobody listening is no failure.
            let _ = self.core.events.send(Event::Changed(kind));
        }
    }

    pub(crate) fn reload(&self, upstreams: &[Arc<Upstream>]) {
        let mut seats = self.seats.lock();
        let mut before = std::mem::take(&mut *seats);
        for upstream in upstreams {
            let same = |seat: &Seat| is_same(&seat.link.upstream, upstream);
            let seat = match before.iter().position(same) {
                Some(at) => before.remove(at),
                None => {
                    let link = link(&self.core.parts, upstream, self.default.as_deref());
                    self.core.seat(link, !self.roused.load(Ordering::Relaxed))
                }
            };
            seats.push(seat);
        }
        let links: Vec<Arc<Link>> = seats.iter().map(|seat| Arc::clone(&seat.link)).collect();
        for gone in &before {
            let heir = links.iter().find(|link| link.label() == gone.link.label());
            gone.link.is_followed_by(heir);
        }
        self.core.links.store(Arc::new(links));
        // They serve until a snapshot is published that does not show them: who
        // calls before that finds them there.
        self.core.leaving().extend(before);
        self.core.dirty.notify_one();
    }
}

fn is_same(one: &Upstream, other: &Upstream) -> bool {
    one.label == other.label
        && one.fingerprint == other.fingerprint
        && one.description == other.description
        && one.start == other.start
        && one.idle_stop == other.idle_stop
        && one.start_timeout == other.start_timeout
        && one.call_timeout == other.call_timeout
}

/// A link that knows what is remembered, else what the default hall knows.
fn link(parts: &Parts, upstream: &Arc<Upstream>, default: Option<&Hall>) -> Arc<Link> {
    let elder = default.and_then(|hall| hall.link_of(upstream));
    let recalled = parts.memories.recall(upstream, &parts.profile).map(Arc::new);
    let known = elder.as_ref().map(|elder| elder.listing());
    let remembered = match (recalled, known) {
        (Some(recalled), Some(known)) if *recalled == *known => Some(known),
        (Some(recalled), _) => Some(recalled),
        (None, known) => known,
    };
    let known = Known {
        profile: parts.profile.clone(),
        elder,
        remembered,
        is_familiar: parts.memories.is_familiar(upstream, &parts.profile),
        scrubber: Arc::clone(&parts.inspector.scrubber),
        wishes: Arc::clone(&parts.wishes),
    };
    Arc::new(Link::new(Arc::clone(upstream), known))
}

impl Hall {
    fn link_of(&self, upstream: &Upstream) -> Option<Arc<Link>> {
        let links = self.core.links.load();
        links.iter().find(|link| is_same(&link.upstream, upstream)).cloned()
    }
}

impl Core {
    fn leaving(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.leaving.lock()
    }

    /// `dormant` links wait to be roused.
    fn seat(&self, link: Arc<Link>, dormant: bool) -> Seat {
        let own_stop = link.upstream.idle_stop;
        let idle_stop = match link.elder {
            Some(_) => Some(own_stop.unwrap_or(self.parts.config.linger)),
            None => own_stop,
        };
        let around = Surroundings {
            memories: Arc::clone(&self.parts.memories),
            chance: self.parts.config.chance,
            starts: Arc::clone(&self.parts.config.starts),
            inspector: Arc::clone(&self.parts.inspector),
            clock: Arc::clone(&self.parts.clock),
            dirty: Arc::clone(&self.dirty),
            events: self.events.clone(),
            idle_stop,
            dormant,
            instance: Arc::clone(&self.parts.config.instance),
        };
        let task = tokio::spawn(supervise(Arc::clone(&link), around));
        Seat { link, supervisor: AbortOnDropHandle::new(task) }
    }
}

/// Publishes a new snapshot whenever something changed, after it has settled.
///
/// The permit of the notification outlives the build, so a change that comes
/// while a snapshot is being taken leads to another one.
async fn publish(core: Arc<Core>) {
    let mut leaving = Vec::new();
    loop {
        core.dirty.notified().await;
        tokio::time::sleep(core.parts.config.settle).await;
        // Before the links, so that none of those is among them.
        leaving.append(&mut core.leaving());
        let links = core.links.load_full();
        let generation = core.generations.fetch_add(1, Ordering::Relaxed);
        let builtin = Arc::clone(&core.parts.builtin);
        let earlier = [Arc::clone(&core.snapshot.load().catalog)];
        let meaning = core.parts.config.meaning;
        let take = move || Snapshot::take(generation, links.to_vec(), builtin, meaning, &earlier);
        let Ok(next) = tokio::task::spawn_blocking(take).await else { continue };
        let changed = changes(core.snapshot.load().catalog.sources(), next.catalog.sources());
        let next = Arc::new(next);
        core.snapshot.store(Arc::clone(&next));
        core.published.notify_waiters();
        for gone in leaving.drain(..) {
            drop(gone.supervisor);
            gone.link.retire();
        }
        let (ahead, observer) = (core.parts.config.indexing, Arc::clone(&core.parts.observer));
        tokio::task::spawn_blocking(move || {
            if ahead == Indexing::Ahead {
                next.catalog.warm();
                next.directory();
            }
            observer.published(&next);
        });
        for kind in changed {
            // Nobody listening is no failure.
            let _ = core.events.send(Event::Changed(kind));
        }
    }
}

/// How often it is looked whether the most curious client has left.
const LOOK: Duration = Duration::from_secs(15);

/// How long upstreams may take to hear that they are to log less.
const HEARING: Duration = Duration::from_secs(5);

/// Has upstreams log less when who wanted more has left.
async fn quieten(core: Arc<Core>) {
    loop {
        core.parts.wishes.any_curious().await;
        tokio::time::sleep(LOOK).await;
        let Some((ask, context)) = core.parts.wishes.quieter() else { continue };
        let links = core.links.load_full();
        let told = links.iter().map(|link| link.tell(ask.clone(), &context, HEARING));
        futures::future::join_all(told).await;
    }
}

/// Which listings a client has to fetch again.
fn changes(before: &[Source], after: &[Source]) -> Vec<Kind> {
    let differs = |same: &dyn Fn(&Source, &Source) -> bool| {
        before.len() != after.len()
            || before.iter().zip(after).any(|(one, other)| {
                one.label != other.label
                    || (!Arc::ptr_eq(&one.listing, &other.listing) && !same(one, other))
            })
    };
    let mut kinds = Vec::new();
    let mut check = |kind, same: &dyn Fn(&Source, &Source) -> bool| {
        if differs(same) {
            kinds.push(kind);
        }
    };
    check(Kind::Tools, &|one, other| one.listing.tools == other.listing.tools);
    check(Kind::Resources, &|one, other| one.listing.resources == other.listing.resources);
    check(Kind::Templates, &|one, other| one.listing.templates == other.listing.templates);
    check(Kind::Prompts, &|one, other| one.listing.prompts == other.listing.prompts);
    kinds
}
