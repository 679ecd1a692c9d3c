//! Keeps the session of one upstream open: connects, watches, stops when idle,
//! reconnects with growing pauses.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::sync::{Notify, Semaphore, broadcast};
use tokio::time::Instant;
use tool::{Client, Event, Failure, Listing, Provider};

use super::inspect::Inspector;
use super::listing_store::RememberedListings;
use super::loop_guard;
use super::masking::{PoolEvent, mask_event};
use super::restarts::{self, Restarts};
use super::supervised::{Phase, Restart, SupervisedUpstream, UpstreamState, one_line, reason};
use super::upstream::Start;
use tool::clock::Clock;

/// The first protocol revision whose sessions do not depend on the client's
/// capabilities, so that one session serves clients of every profile.
const MODERN: &str = "2026-07-28";

/// How long a starting upstream keeps its start permit. One that hangs must not
/// keep healthy ones waiting for its whole start timeout.
const START_SLOT: Duration = Duration::from_secs(5);

/// What supervising an upstream takes.
pub(crate) struct Supervisor {
    pub(super) remembered: Arc<RememberedListings>,
    /// A random number from 0 to 1, for jitter.
    pub(super) random: fn() -> f64,
    /// Limits how many upstreams start at once.
    pub(super) start_permits: Arc<Semaphore>,
    pub(super) inspector: Arc<Inspector>,
    pub(super) clock: Arc<dyn Clock>,
    /// Notified whenever the catalog may have to be rebuilt.
    pub(super) dirty: Arc<Notify>,
    pub(super) events: broadcast::Sender<PoolEvent>,
    pub(super) idle_stop: Option<Duration>,
    /// Whether the first start waits until somebody needs the upstream.
    pub(super) dormant: bool,
    /// The id of this gatelet among all others.
    pub(super) instance: Arc<str>,
}

/// A session and its events from the beginning.
type Session = (Arc<dyn Provider>, BoxStream<'static, Event>);

/// Why a session ended.
enum End {
    Gone(String),
    Idle,
}

/// Opens a session, or shares the default pool's where it serves every profile.
async fn connect(
    upstream: &SupervisedUpstream,
    client: &Client,
    start_permits: &Semaphore,
) -> Result<Arc<dyn Provider>, Failure> {
    if let Some(shared) = &upstream.in_default_pool
        && MODERN <= shared.listing().server.protocol.as_str()
    {
        return shared.provider().await;
    }
    // The timeout runs from here on. Nobody closes the semaphore.
    let permit = start_permits.acquire().await;
    let limit = upstream.settings.start_timeout;
    let connecting = tokio::time::timeout(limit, upstream.settings.connector.connect(client));
    let mut connecting = std::pin::pin!(connecting);
    let connected = match tokio::time::timeout(START_SLOT, &mut connecting).await {
        Ok(connected) => connected,
        Err(_) => {
            drop(permit);
            connecting.await
        }
    };
    connected.unwrap_or_else(|_| {
        let reason = format!("did not start within {}", seconds(limit));
        Err(Failure::Unavailable { reason })
    })
}

/// Waits for the next start. A call ends the wait, because the upstream may be well
/// again; but one that took long to fail keeps its pause, or each call would take
/// as long.
async fn pause_before_restart(upstream: &SupervisedUpstream, pause: Duration, took: Duration) {
    let least = restarts::least_pause(pause, took);
    tokio::time::sleep(least).await;
    let set = |restart| upstream.set(|now| now.restart = restart);
    set(Restart::OnCall);
    let called = tokio::time::timeout(pause - least, upstream.wake.notified()).await.is_ok();
    set(if called || took < START_SLOT { Restart::UnderWay } else { Restart::Paused });
}

fn seconds(limit: Duration) -> String {
    if limit < Duration::from_secs(1) {
        format!("{limit:?}")
    } else {
        format!("{} s", limit.as_secs())
    }
}

impl Supervisor {
    /// Supervises an upstream until the task is aborted.
    pub(crate) async fn run(self, upstream: Arc<SupervisedUpstream>) {
        let client = upstream.profile.client();
        let mut restarts = Restarts::default();
        let known =
            upstream.settings.start == Start::OnDemand && !upstream.listing().tools.is_empty();
        let mut wait_until_needed = self.dormant || known;
        loop {
            if wait_until_needed {
                upstream.wake.notified().await;
            }
            // An upstream that is down is shown with its reason until it is up again.
            upstream.set(|now| {
                if now.phase == Phase::Asleep {
                    now.phase = Phase::Starting;
                }
            });
            let began = Instant::now();
            let opened = self.open(&upstream, &client).await;
            let took = began.elapsed();
            match opened {
                Ok((provider, events)) => {
                    let since = self.now();
                    let end = self.watch(&upstream, &provider, events).await;
                    let lived = self.now().saturating_sub(since);
                    wait_until_needed = matches!(end, End::Idle);
                    match wait_until_needed {
                        true => restarts.closed(),
                        false => restarts.died(lived),
                    }
                    drop(provider);
                    // A call that came while it was starting has been served; its
                    // wake-up must not start the next session.
                    let _ = upstream.wake.notified().now_or_never();
                    upstream.set(|now| {
                        now.provider = None;
                        now.restart = Restart::Paused;
                        now.phase = match end {
                            End::Idle => Phase::Asleep,
                            // The first time it may have been an accident: calls
                            // wait for the restart.
                            End::Gone(reason) => Phase::Down {
                                reason,
                                failures: restarts.failures().saturating_sub(1),
                            },
                        };
                    });
                    self.dirty.notify_one();
                    if wait_until_needed {
                        continue;
                    }
                }
                Err(failure) => {
                    restarts.failed();
                    let failures = restarts.failures();
                    wait_until_needed = false;
                    let reason = self.inspector.reason(&reason(&failure));
                    upstream.set(|now| {
                        now.phase = Phase::Down { reason, failures };
                        now.restart = Restart::Paused;
                    });
                    self.dirty.notify_one();
                }
            }
            let pause = restarts.pause((self.random)());
            pause_before_restart(&upstream, pause, took).await;
        }
    }

    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Opens a session and adopts its listing.
    async fn open(
        &self,
        upstream: &Arc<SupervisedUpstream>,
        client: &Client,
    ) -> Result<Session, Failure> {
        let provider = connect(upstream, client, &self.start_permits).await?;
        upstream.touch();
        upstream.forget_silence();
        // Subscribed before listing, so that no change in between is missed.
        let events = provider.events();
        upstream.subscriptions.replay(upstream.label(), &provider).await;
        let adopted = self.adopt(upstream, &provider, Some(Phase::Up)).await;
        adopted.map_err(|reason| Failure::Unavailable { reason })?;
        Ok((provider, events))
    }

    /// Adopts what a provider lists now, unless inspection rejects it.
    async fn adopt(
        &self,
        upstream: &Arc<SupervisedUpstream>,
        provider: &Arc<dyn Provider>,
        phase: Option<Phase>,
    ) -> Result<(), String> {
        let (inspector, mut listing) = (Arc::clone(&self.inspector), provider.listing());
        // What another gatelet declared when the session was opened may be
        // outdated when its listing changes: this gatelet may be behind it now.
        if phase.is_none()
            && let Some(server) = loop_guard::refresh(provider).await
        {
            listing = Arc::new(Listing { server, ..Listing::clone(&listing) });
        }
        if let Some(why) = loop_guard::refusal(&listing.server, &self.instance) {
            self.forget_listing(upstream);
            return Err(why);
        }
        if !listing.unread.is_empty() {
            listing = Arc::new(listing.keeping_unread(&upstream.listing()));
        }
        let label = upstream.label().to_owned();
        // Inspecting many schemas takes a while.
        let inspect = move || inspector.inspect(&label, &listing);
        let inspected = tokio::task::spawn_blocking(inspect).await;
        let inspected =
            inspected.unwrap_or_else(|_| Err("inspecting its listing broke off".to_owned()));
        let listing = upstream.intern(inspected?);
        let fresh = !Arc::ptr_eq(&listing, &upstream.listing());
        upstream.set(|now| {
            now.listing = Arc::clone(&listing);
            now.seen = true;
            if let Some(phase) = phase {
                now.provider = Some(Arc::clone(provider));
                now.phase = phase;
            }
        });
        self.dirty.notify_one();
        self.remembered.mark_listed(&upstream.settings, &upstream.profile);
        if fresh {
            let (remembered, upstream) = (Arc::clone(&self.remembered), Arc::clone(upstream));
            // Writing may block, and nobody waits for it.
            tokio::task::spawn_blocking(move || {
                remembered.save(&upstream.settings, &upstream.profile, &listing);
            });
        }
        Ok(())
    }

    /// Forgets what an upstream listed: some of it may be gatelet's own.
    fn forget_listing(&self, upstream: &Arc<SupervisedUpstream>) {
        upstream.set(|now| now.listing = Arc::default());
        let (remembered, upstream) = (Arc::clone(&self.remembered), Arc::clone(upstream));
        // Writing may block, and nobody waits for it.
        tokio::task::spawn_blocking(move || {
            remembered.save(&upstream.settings, &upstream.profile, &Listing::default());
        });
    }

    /// Forwards the events of a provider until it is gone or idle.
    async fn watch(
        &self,
        upstream: &Arc<SupervisedUpstream>,
        provider: &Arc<dyn Provider>,
        mut events: BoxStream<'static, Event>,
    ) -> End {
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = idle(upstream, self.idle_stop) => return End::Idle,
            };
            match event {
                Some(Event::Changed(_)) => {
                    if let Err(reason) = self.adopt(upstream, provider, None).await {
                        return End::Gone(one_line(&reason));
                    }
                }
                Some(Event::Gone { reason }) => {
                    return End::Gone(one_line(&self.inspector.reason(&reason)));
                }
                None => return End::Gone("the connection was closed".to_owned()),
                Some(other @ (Event::Updated { .. } | Event::Note(_))) => {
                    // It is no error that nobody listens.
                    let event = mask_event(&self.inspector.scrubber, other);
                    let from = Some(Arc::from(upstream.label()));
                    let _ = self.events.send(PoolEvent { from, event });
                }
            }
        }
    }
}

impl SupervisedUpstream {
    /// Ends the session for good and fails whoever still waits for it.
    pub(crate) fn retire(&self) {
        let reason = match self.replacement.get() {
            Some(_) => "its entry in the configuration was changed just now",
            None => "it was taken out of the configuration",
        };
        self.set(|now| {
            now.provider = None;
            now.phase = Phase::Down { reason: reason.to_owned(), failures: 1 };
            now.restart = Restart::Paused;
        });
    }

    fn set(&self, change: impl FnOnce(&mut UpstreamState)) {
        self.state.send_modify(change);
    }

    /// The equal listing that is in memory already, instead of another copy.
    fn intern(&self, listing: Arc<Listing>) -> Arc<Listing> {
        let known =
            [Some(self.listing()), self.in_default_pool.as_ref().map(|other| other.listing())];
        let same = |known: &Arc<Listing>| Arc::ptr_eq(known, &listing) || **known == *listing;
        known.into_iter().flatten().find(same).unwrap_or(listing)
    }
}

/// Returns when the upstream has been idle for as long as `limit`.
async fn idle(upstream: &SupervisedUpstream, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    loop {
        let left = limit.saturating_sub(upstream.idle());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.max(Duration::from_millis(10))).await;
    }
}
