//! The [`UpstreamPool`]: sessions with all upstreams for clients with one set of
//! capabilities, and the publication of snapshots.

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
use super::derived::DerivedValues;
use super::listing_check::ListingChecker;
use super::listing_store::ListingCache;
use super::profile::Profile;
use super::redacting_client::UpstreamEvent;
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
    /// The default pool; `None` in the default pool itself.
    default: Option<Arc<UpstreamPool>>,
    supervisions: Mutex<Vec<Supervision>>,
    /// Whether a client has used it yet.
    started: AtomicBool,
    /// Values that other modules keep for as long as the pool lives.
    derived: DerivedValues,
    /// When a client last asked for it, on the clock.
    last_used: Mutex<Duration>,
    _publisher: AbortOnDropHandle<()>,
    _log_levels: AbortOnDropHandle<()>,
}

/// The objects that a pool works with.
pub(crate) struct Dependencies {
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
    dependencies: Dependencies,
    snapshot: ArcSwap<Snapshot>,
    supervised: ArcSwap<Vec<Arc<SupervisedUpstream>>>,
    /// Upstreams that were removed from the pool, until no snapshot has them.
    leaving: Mutex<Vec<Supervision>>,
    generations: AtomicU64,
    catalog_changed: Arc<Notify>,
    /// Notified whenever a snapshot is published.
    published: Notify,
    events: broadcast::Sender<UpstreamEvent>,
}

/// Is notified of what the roster publishes.
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
        dependencies: Dependencies,
        upstreams: &[Arc<Upstream>],
        default: Option<Arc<UpstreamPool>>,
    ) -> Arc<UpstreamPool> {
        let supervised: Vec<Arc<SupervisedUpstream>> = upstreams
            .iter()
            .map(|upstream| prepare(&dependencies, upstream, default.as_deref()))
            .collect();
        let earlier: Vec<Arc<Catalog>> =
            default.iter().map(|pool| Arc::clone(&pool.snapshot().catalog)).collect();
        let meaning = dependencies.config.meaning;
        let first = Snapshot::build(
            0,
            supervised.clone(),
            Arc::clone(&dependencies.builtin),
            meaning,
            &earlier,
        );
        let state = Arc::new(PoolState {
            dependencies,
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
        let last_used = Mutex::new(state.dependencies.clock.elapsed());
        let publisher = AbortOnDropHandle::new(tokio::spawn(publish(Arc::clone(&state))));
        let log_levels = AbortOnDropHandle::new(tokio::spawn(raise_log_levels(Arc::clone(&state))));
        Arc::new(UpstreamPool {
            state,
            default,
            supervisions: Mutex::new(supervisions),
            started: AtomicBool::new(false),
            derived: DerivedValues::default(),
            last_used,
            _publisher: publisher,
            _log_levels: log_levels,
        })
    }

    pub fn profile(&self) -> &Profile {
        &self.state.dependencies.profile
    }

    /// Returns the latest snapshot. A request takes one and uses it to the end.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.state.snapshot.load_full()
    }

    /// Returns the value of this type that is kept for as long as the pool lives, and makes
    /// it the first time.
    pub fn derived<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        self.derived.get_or_make(make)
    }

    /// Returns the events from now on: changed listings and the upstreams' notifications.
    pub fn events(&self) -> BoxStream<'static, Event> {
        self.events_from(|_, _| true)
    }

    /// Returns the events from now on that `sees` lets through; it gets the label of the
    /// upstream and the event.
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
        self.wait_until_shown(&upstream).await;
    }

    /// Starts the upstream of this namespace when its listing is only a
    /// remembered one, and waits until the snapshot shows what it lists now.
    /// For callers who look for something that is not in the remembered listing.
    pub async fn current_listing(&self, namespace: &str) {
        let Some(upstream) = self.upstream_of(namespace) else { return };
        if (upstream.status().seen && self.shows(&upstream)) || upstream.provider().await.is_err() {
            return;
        }
        self.wait_until_shown(&upstream).await;
    }

    /// Returns the upstream that a namespace belongs to.
    fn upstream_of(&self, namespace: &str) -> Option<Arc<SupervisedUpstream>> {
        let label = namespace.split('.').next().unwrap_or_default();
        let named =
            |upstream: &&Arc<SupervisedUpstream>| catalog::name::same(upstream.label(), label);
        self.state.supervised.load().iter().find(named).cloned()
    }

    /// Waits until the snapshot shows the present state of an upstream, for a
    /// limited time.
    async fn wait_until_shown(&self, upstream: &SupervisedUpstream) {
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
        let _ = tokio::time::timeout(self.state.dependencies.config.publish_delay * 20, published)
            .await;
    }

    /// Returns whether some upstream is being listed for the first time.
    pub fn any_first_listing(&self) -> bool {
        self.state.supervised.load().iter().any(|upstream| upstream.is_first_listing())
    }

    /// Returns whether the snapshot shows the present state of an upstream.
    fn shows(&self, upstream: &SupervisedUpstream) -> bool {
        let now = upstream.source();
        let same =
            |shown: &Source| Arc::ptr_eq(&shown.listing, &now.listing) && shown.state == now.state;
        self.snapshot().catalog.sources().iter().any(same)
    }

    /// Starts the upstreams that `mode` includes, the first time it is called.
    pub(crate) fn start(&self, mode: StartMode) {
        if !self.started.swap(true, Ordering::Relaxed) {
            for upstream in self.state.supervised.load().iter() {
                upstream.start(mode);
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

    /// Returns how long no client has asked for the pool.
    pub(crate) fn idle(&self) -> Duration {
        let last_used = *self.last_used.lock();
        self.now().saturating_sub(last_used)
    }

    fn now(&self) -> Duration {
        self.state.dependencies.clock.elapsed()
    }

    /// Remembers the log level that a session wants, while the session lasts.
    pub fn set_log_level(&self, ask: &Ask, context: &Context) {
        self.state.dependencies.subscriptions.set_log_level(ask, context);
    }

    /// Tells all clients that every list may have changed.
    pub(crate) fn announce(&self) {
        for kind in Kind::ALL {
            // It is not an error if nobody listens.
            let _ = self.state.events.send(UpstreamEvent::of_all(Event::Changed(kind)));
        }
    }

    /// Replaces the upstreams; those whose configuration did not change keep running.
    pub(crate) fn reload(&self, upstreams: &[Arc<Upstream>]) {
        let mut supervisions = self.supervisions.lock();
        let mut before = std::mem::take(&mut *supervisions);
        for upstream in upstreams {
            let same = |one: &Supervision| is_same(&one.upstream.settings, upstream);
            let supervision = match before.iter().position(same) {
                Some(at) => before.remove(at),
                None => {
                    let upstream =
                        prepare(&self.state.dependencies, upstream, self.default.as_deref());
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

/// Returns whether two configurations of an upstream are equal.
fn is_same(one: &Upstream, other: &Upstream) -> bool {
    one.label == other.label
        && one.fingerprint == other.fingerprint
        && one.description == other.description
        && one.start == other.start
        && one.idle_stop == other.idle_stop
        && one.start_timeout == other.start_timeout
        && one.call_timeout == other.call_timeout
}

/// Makes an upstream that lists what is remembered of it, else what it lists in the default
/// pool.
fn prepare(
    dependencies: &Dependencies,
    upstream: &Arc<Upstream>,
    default: Option<&UpstreamPool>,
) -> Arc<SupervisedUpstream> {
    let in_default_pool = default.and_then(|pool| pool.upstream_like(upstream));
    let recalled = dependencies.listing_cache.load(upstream, &dependencies.profile).map(Arc::new);
    let known = in_default_pool.as_ref().map(|upstream| upstream.listing());
    let remembered = match (recalled, known) {
        (Some(recalled), Some(known)) if *recalled == *known => Some(known),
        (Some(recalled), _) => Some(recalled),
        (None, known) => known,
    };
    let initial = InitialState {
        profile: dependencies.profile.clone(),
        in_default_pool,
        remembered,
        was_listed: dependencies.listing_cache.was_listed(upstream, &dependencies.profile),
        scrubber: Arc::clone(&dependencies.listing_checker.scrubber),
        subscriptions: Arc::clone(&dependencies.subscriptions),
    };
    Arc::new(SupervisedUpstream::new(Arc::clone(upstream), initial))
}

impl UpstreamPool {
    /// Returns the upstream of this pool with an equal configuration.
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
            Some(_) => Some(own_stop.unwrap_or(self.dependencies.config.session_idle)),
            None => own_stop,
        };
        let supervisor = Supervisor {
            listing_cache: Arc::clone(&self.dependencies.listing_cache),
            jitter: self.dependencies.config.jitter,
            start_permits: Arc::clone(&self.dependencies.config.start_permits),
            listing_checker: Arc::clone(&self.dependencies.listing_checker),
            clock: Arc::clone(&self.dependencies.clock),
            catalog_changed: Arc::clone(&self.catalog_changed),
            events: self.events.clone(),
            idle_stop,
            lazy_start,
            gatelet_id: Arc::clone(&self.dependencies.config.gatelet_id),
        };
        let task = tokio::spawn(supervisor.run(Arc::clone(&upstream)));
        Supervision { upstream, task: AbortOnDropHandle::new(task) }
    }
}

/// A snapshot with more functions is published only after its search index is built. Fewer
/// are indexed in a few milliseconds.
const MAX_UNINDEXED: usize = 500;

/// Publishes a new snapshot after every change, several changes at a time.
///
/// A change that comes while a snapshot is being built leaves its notification
/// behind and leads to another snapshot.
async fn publish(state: Arc<PoolState>) {
    let mut leaving = Vec::new();
    loop {
        state.catalog_changed.notified().await;
        tokio::time::sleep(state.dependencies.config.publish_delay).await;
        // Read before the list of upstreams, so that none is in both.
        leaving.append(&mut state.leaving());
        let supervised = state.supervised.load_full();
        let generation = state.generations.fetch_add(1, Ordering::Relaxed);
        let builtin = Arc::clone(&state.dependencies.builtin);
        let earlier = [Arc::clone(&state.snapshot.load().catalog)];
        let meaning = state.dependencies.config.meaning;
        let indexing = state.dependencies.config.indexing;
        let build = move || {
            let next = Snapshot::build(generation, supervised.to_vec(), builtin, meaning, &earlier);
            // Otherwise the first search would build it on a thread that serves everybody.
            if indexing == Indexing::Ahead && MAX_UNINDEXED < next.catalog.functions().len() {
                next.warm();
            }
            next
        };
        let Ok(next) = tokio::task::spawn_blocking(build).await else { continue };
        let changed = changes(state.snapshot.load().catalog.sources(), next.catalog.sources());
        let next = Arc::new(next);
        state.snapshot.store(Arc::clone(&next));
        state.published.notify_waiters();
        for gone in leaving.drain(..) {
            drop(gone.task);
            gone.upstream.retire();
        }
        let observer = Arc::clone(&state.dependencies.observer);
        tokio::task::spawn_blocking(move || {
            if indexing == Indexing::Ahead {
                next.warm();
            }
            observer.published(&next);
        });
        for kind in changed {
            // It is not an error if nobody listens.
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
        state.dependencies.subscriptions.any_log_level().await;
        tokio::time::sleep(LOG_LEVEL_CHECK).await;
        let Some((ask, context)) = state.dependencies.subscriptions.raised_log_level() else {
            continue;
        };
        let supervised = state.supervised.load_full();
        let sent = supervised
            .iter()
            .map(|upstream| upstream.notify(ask.clone(), &context, LOG_LEVEL_TIMEOUT));
        futures::future::join_all(sent).await;
    }
}

/// Returns the kinds of lists that clients have to fetch again.
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
