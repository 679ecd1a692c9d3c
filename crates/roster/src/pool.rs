//! All upstreams, as clients with one set of capabilities see them.

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

use super::config::{Config, Indexing};
use super::derived::Derived;
use super::inspect::ListingChecker;
use super::listing_store::ListingCache;
use super::masking::UpstreamEvent;
use super::profile::Profile;
use super::snapshot::{Builtin, Snapshot};
use super::subscriptions::Subscriptions;
use super::supervised::{InitialState, StartMode, SupervisedUpstream};
use super::supervisor::Supervisor;
use super::upstream::Upstream;
use tool::clock::Clock;

/// One session per upstream and the catalog of what they list. Dropping it
/// closes the sessions.
pub struct UpstreamPool {
    state: Arc<PoolState>,
    default: Option<Arc<UpstreamPool>>,
    supervisions: Mutex<Vec<Supervision>>,
    /// Whether a client has used it yet.
    started: AtomicBool,
    /// What others keep for as long as the pool lives.
    derived: Derived,
    /// When a client last asked for it, on the clock.
    last_used: Mutex<Duration>,
    _publisher: AbortOnDropHandle<()>,
    _log_levels: AbortOnDropHandle<()>,
}

/// What a pool is opened with.
pub(crate) struct Parts {
    pub(super) profile: Profile,
    pub(super) config: Config,
    pub(super) listing_cache: Arc<ListingCache>,
    pub(super) builtin: Arc<dyn Builtin>,
    pub(super) listing_checker: Arc<ListingChecker>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) subscriptions: Arc<Subscriptions>,
}

/// What the pool shares with its background tasks.
struct PoolState {
    parts: Parts,
    snapshot: ArcSwap<Snapshot>,
    supervised: ArcSwap<Vec<Arc<SupervisedUpstream>>>,
    /// Upstreams taken out of the pool, until no snapshot shows them.
    leaving: Mutex<Vec<Supervision>>,
    generations: AtomicU64,
    catalog_changed: Arc<Notify>,
    /// Notified whenever a snapshot is published.
    published: Notify,
    events: broadcast::Sender<UpstreamEvent>,
}

/// Is told what the roster publishes.
pub trait Observer: Send + Sync {
    /// A new snapshot is in use.
    fn published(&self, snapshot: &Snapshot);
}

/// An upstream and the task that supervises it.
struct Supervision {
    upstream: Arc<SupervisedUpstream>,
    task: AbortOnDropHandle<()>,
}

impl UpstreamPool {
    pub(crate) fn open(
        parts: Parts,
        upstreams: &[Arc<Upstream>],
        default: Option<Arc<UpstreamPool>>,
    ) -> Arc<UpstreamPool> {
        let supervised: Vec<Arc<SupervisedUpstream>> = upstreams
            .iter()
            .map(|upstream| prepare(&parts, upstream, default.as_deref()))
            .collect();
        let earlier: Vec<Arc<Catalog>> =
            default.iter().map(|pool| Arc::clone(&pool.snapshot().catalog)).collect();
        let meaning = parts.config.meaning;
        let first =
            Snapshot::take(0, supervised.clone(), Arc::clone(&parts.builtin), meaning, &earlier);
        let state = Arc::new(PoolState {
            parts,
            snapshot: ArcSwap::from_pointee(first),
            supervised: ArcSwap::from_pointee(supervised.clone()),
            leaving: Mutex::default(),
            generations: AtomicU64::new(1),
            catalog_changed: Arc::new(Notify::new()),
            published: Notify::new(),
            events: broadcast::channel(256).0,
        });
        let supervisions =
            supervised.into_iter().map(|upstream| state.supervise(upstream, true)).collect();
        let last_used = Mutex::new(state.parts.clock.elapsed());
        let publisher = AbortOnDropHandle::new(tokio::spawn(publish(Arc::clone(&state))));
        let log_levels = AbortOnDropHandle::new(tokio::spawn(raise_log_levels(Arc::clone(&state))));
        Arc::new(UpstreamPool {
            state,
            default,
            supervisions: Mutex::new(supervisions),
            started: AtomicBool::new(false),
            derived: Derived::default(),
            last_used,
            _publisher: publisher,
            _log_levels: log_levels,
        })
    }

    pub fn profile(&self) -> &Profile {
        &self.state.parts.profile
    }

    /// The latest snapshot. A request takes one and uses it to the end.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.state.snapshot.load_full()
    }

    /// A value that somebody keeps for as long as the pool lives, one per type.
    pub fn derived<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        self.derived.get_or_make(make)
    }

    /// Events from now on: changed listings and the upstreams' notifications.
    pub fn events(&self) -> BoxStream<'static, Event> {
        self.events_from(|_, _| true)
    }

    /// The same, without what `sees` says no to: an event of the upstream with this label.
    pub fn events_from(
        &self,
        sees: impl Fn(&str, &Event) -> bool + Send + Sync + 'static,
    ) -> BoxStream<'static, Event> {
        let receiver = self.state.events.subscribe();
        let events = futures::stream::unfold((receiver, sees), |(mut receiver, sees)| async {
            match receiver.recv().await {
                Ok(UpstreamEvent { from, event }) => {
                    let is_seen = from.is_none_or(|label| sees(&label, &event));
                    let seen: Vec<Event> = is_seen.then_some(event).into_iter().collect();
                    Some((seen, (receiver, sees)))
                }
                // The missed events may have been changes of any kind.
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    Some((Kind::ALL.map(Event::Changed).to_vec(), (receiver, sees)))
                }
                Err(broadcast::error::RecvError::Closed) => None,
            }
        });
        events.flat_map(futures::stream::iter).boxed()
    }

    /// Waits while the upstream of this namespace is being listed for the first
    /// time, so that a first call does not fail with an unknown function. An
    /// upstream with a remembered listing is not waited for.
    pub async fn first_listing(&self, namespace: &str) {
        let upstream = self.upstream_of(namespace);
        let Some(upstream) = upstream.filter(|upstream| upstream.is_first_listing()) else {
            return;
        };
        upstream.first_listing().await;
        self.published(&upstream).await;
    }

    /// Starts the upstream of this namespace when its listing is only a
    /// remembered one, and waits until the snapshot shows what it lists now.
    /// For callers who look for something that is not in the remembered listing.
    pub async fn current_listing(&self, namespace: &str) {
        let Some(upstream) = self.upstream_of(namespace) else { return };
        if (upstream.status().seen && self.shows(&upstream)) || upstream.provider().await.is_err() {
            return;
        }
        self.published(&upstream).await;
    }

    fn upstream_of(&self, namespace: &str) -> Option<Arc<SupervisedUpstream>> {
        let label = namespace.split('.').next().unwrap_or_default();
        let named =
            |upstream: &&Arc<SupervisedUpstream>| catalog::name::same(upstream.label(), label);
        self.state.supervised.load().iter().find(named).cloned()
    }

    /// Waits until the snapshot shows the present state of an upstream, for a
    /// limited time.
    async fn published(&self, upstream: &SupervisedUpstream) {
        let published = async {
            loop {
                // Created before the check, so that no publication in between
                // is missed.
                let next = self.state.published.notified();
                if self.shows(upstream) {
                    return;
                }
                next.await;
            }
        };
        let _ = tokio::time::timeout(self.state.parts.config.publish_delay * 20, published).await;
    }

    /// Whether some upstream is being listed for the first time.
    pub fn any_first_listing(&self) -> bool {
        self.state.supervised.load().iter().any(|upstream| upstream.is_first_listing())
    }

    /// Whether the snapshot shows the present state of an upstream.
    fn shows(&self, upstream: &SupervisedUpstream) -> bool {
        let now = upstream.source();
        let same =
            |shown: &Source| Arc::ptr_eq(&shown.listing, &now.listing) && shown.state == now.state;
        self.snapshot().catalog.sources().iter().any(same)
    }

    /// Starts the upstreams that `wanted` names, the first time it is called.
    pub(crate) fn start(&self, wanted: StartMode) {
        if !self.started.swap(true, Ordering::Relaxed) {
            for upstream in self.state.supervised.load().iter() {
                upstream.start(wanted);
            }
        }
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// Notes that a client asked for the pool.
    pub(crate) fn touch(&self) {
        *self.last_used.lock() = self.now();
    }

    /// How long no client has asked for the pool.
    pub(crate) fn idle(&self) -> Duration {
        let last_used = *self.last_used.lock();
        self.now().saturating_sub(last_used)
    }

    fn now(&self) -> Duration {
        self.state.parts.clock.elapsed()
    }

    /// Remembers the log level that a session wants, while the session lasts.
    pub fn set_log_level(&self, ask: &Ask, context: &Context) {
        self.state.parts.subscriptions.set_log_level(ask, context);
    }

    pub(crate) fn announce(&self) {
        for kind in Kind::ALL {
            // It is no error that nobody listens.
            let _ = self.state.events.send(UpstreamEvent::of_all(Event::Changed(kind)));
        }
    }

    pub(crate) fn reload(&self, upstreams: &[Arc<Upstream>]) {
        let mut supervisions = self.supervisions.lock();
        let mut before = std::mem::take(&mut *supervisions);
        for upstream in upstreams {
            let same = |one: &Supervision| is_same(&one.upstream.settings, upstream);
            let supervision = match before.iter().position(same) {
                Some(at) => before.remove(at),
                None => {
                    let upstream = prepare(&self.state.parts, upstream, self.default.as_deref());
                    self.state.supervise(upstream, !self.started.load(Ordering::Relaxed))
                }
            };
            supervisions.push(supervision);
        }
        let supervised: Vec<Arc<SupervisedUpstream>> =
            supervisions.iter().map(|one| Arc::clone(&one.upstream)).collect();
        for gone in &before {
            let replacement =
                supervised.iter().find(|upstream| upstream.label() == gone.upstream.label());
            gone.upstream.replaced_by(replacement);
        }
        self.state.supervised.store(Arc::new(supervised));
        // They serve until a snapshot without them is published: a call that uses
        // an older snapshot still reaches them.
        self.state.leaving().extend(before);
        self.state.catalog_changed.notify_one();
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

/// An upstream that lists what is remembered of it, else what it lists in the
/// default pool.
fn prepare(
    parts: &Parts,
    upstream: &Arc<Upstream>,
    default: Option<&UpstreamPool>,
) -> Arc<SupervisedUpstream> {
    let in_default_pool = default.and_then(|pool| pool.upstream_like(upstream));
    let recalled = parts.listing_cache.load(upstream, &parts.profile).map(Arc::new);
    let known = in_default_pool.as_ref().map(|upstream| upstream.listing());
    let remembered = match (recalled, known) {
        (Some(recalled), Some(known)) if *recalled == *known => Some(known),
        (Some(recalled), _) => Some(recalled),
        (None, known) => known,
    };
    let initial = InitialState {
        profile: parts.profile.clone(),
        in_default_pool,
        remembered,
        was_listed: parts.listing_cache.was_listed(upstream, &parts.profile),
        scrubber: Arc::clone(&parts.listing_checker.scrubber),
        subscriptions: Arc::clone(&parts.subscriptions),
    };
    Arc::new(SupervisedUpstream::new(Arc::clone(upstream), initial))
}

impl UpstreamPool {
    fn upstream_like(&self, upstream: &Upstream) -> Option<Arc<SupervisedUpstream>> {
        let supervised = self.state.supervised.load();
        supervised.iter().find(|one| is_same(&one.settings, upstream)).cloned()
    }
}

impl PoolState {
    fn leaving(&self) -> MutexGuard<'_, Vec<Supervision>> {
        self.leaving.lock()
    }

    /// Starts the task that supervises an upstream. With `lazy_start` it is not
    /// connected until somebody needs it.
    fn supervise(&self, upstream: Arc<SupervisedUpstream>, lazy_start: bool) -> Supervision {
        let own_stop = upstream.settings.idle_stop;
        let idle_stop = match upstream.in_default_pool {
            Some(_) => Some(own_stop.unwrap_or(self.parts.config.session_idle)),
            None => own_stop,
        };
        let supervisor = Supervisor {
            listing_cache: Arc::clone(&self.parts.listing_cache),
            jitter: self.parts.config.jitter,
            start_permits: Arc::clone(&self.parts.config.start_permits),
            listing_checker: Arc::clone(&self.parts.listing_checker),
            clock: Arc::clone(&self.parts.clock),
            catalog_changed: Arc::clone(&self.catalog_changed),
            events: self.events.clone(),
            idle_stop,
            lazy_start,
            gatelet_id: Arc::clone(&self.parts.config.gatelet_id),
        };
        let task = tokio::spawn(supervisor.run(Arc::clone(&upstream)));
        Supervision { upstream, task: AbortOnDropHandle::new(task) }
    }
}

/// How many functions a snapshot may have to be published before its index is there:
/// so many are indexed in a few milliseconds.
const LARGE: usize = 500;

/// Publishes a new snapshot after every change, several changes at a time.
///
/// A change that comes while a snapshot is being built leaves its notification
/// behind and leads to another snapshot.
async fn publish(state: Arc<PoolState>) {
    let mut leaving = Vec::new();
    loop {
        state.catalog_changed.notified().await;
        tokio::time::sleep(state.parts.config.publish_delay).await;
        // Read before the list of upstreams, so that none is in both.
        leaving.append(&mut state.leaving());
        let supervised = state.supervised.load_full();
        let generation = state.generations.fetch_add(1, Ordering::Relaxed);
        let builtin = Arc::clone(&state.parts.builtin);
        let earlier = [Arc::clone(&state.snapshot.load().catalog)];
        let meaning = state.parts.config.meaning;
        let indexing = state.parts.config.indexing;
        let take = move || {
            let next = Snapshot::take(generation, supervised.to_vec(), builtin, meaning, &earlier);
            // Whoever asks first would make it on a thread that serves everybody.
            if indexing == Indexing::Ahead && LARGE < next.catalog.functions().len() {
                next.warm();
            }
            next
        };
        let Ok(next) = tokio::task::spawn_blocking(take).await else { continue };
        let changed = changes(state.snapshot.load().catalog.sources(), next.catalog.sources());
        let next = Arc::new(next);
        state.snapshot.store(Arc::clone(&next));
        state.published.notify_waiters();
        for gone in leaving.drain(..) {
            drop(gone.task);
            gone.upstream.retire();
        }
        let observer = Arc::clone(&state.parts.observer);
        tokio::task::spawn_blocking(move || {
            if indexing == Indexing::Ahead {
                next.warm();
            }
            observer.published(&next);
        });
        for kind in changed {
            // It is no error that nobody listens.
            let _ = state.events.send(UpstreamEvent::of_all(Event::Changed(kind)));
        }
    }
}

/// How often it is checked whether the client with the lowest log level has left.
const LOG_LEVEL_CHECK: Duration = Duration::from_secs(15);

/// How long an upstream may take to accept a new log level.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Raises the upstreams' log level when the client that wanted more has left.
async fn raise_log_levels(state: Arc<PoolState>) {
    loop {
        state.parts.subscriptions.any_log_level().await;
        tokio::time::sleep(LOG_LEVEL_CHECK).await;
        let Some((ask, context)) = state.parts.subscriptions.raised_log_level() else { continue };
        let supervised = state.supervised.load_full();
        let sent = supervised
            .iter()
            .map(|upstream| upstream.notify(ask.clone(), &context, LOG_LEVEL_TIMEOUT));
        futures::future::join_all(sent).await;
    }
}

/// The kinds of listings that a client has to fetch again.
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
