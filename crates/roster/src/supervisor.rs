//! Supervises one upstream: connects, watches its events, stops it when it is idle and
//! reconnects with exponential backoff.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::sync::{Notify, Semaphore, broadcast};
use tokio::time::Instant;
use tool::{Client, Event, Failure, Listing, Provider};

use super::listing_check::ListingChecker;
use super::listing_store::ListingCache;
use super::loop_guard;
use super::redacting_client::{UpstreamEvent, redact_event};
use super::restarts::{self, Restarts};
use super::supervised::{
    Phase, Restart, SupervisedUpstream, UpstreamState, failure_reason, one_line,
};
use super::upstream::Start;
use tool::clock::Clock;

/// The first MCP revision whose sessions do not depend on the client's
/// capabilities, so that one session serves clients of every profile.
const FIRST_SHARED_REVISION: &str = "2026-07-28";

/// How long a starting upstream holds its start permit. An upstream that hangs
/// must not delay healthy ones for its whole start timeout.
const START_SLOT: Duration = Duration::from_secs(5);

/// Everything that the supervision of one upstream needs.
pub(crate) struct Supervisor {
    pub(super) listing_cache: Arc<ListingCache>,
    /// Returns a random number from 0 to 1, for the jitter of the backoff.
    pub(super) jitter: fn() -> f64,
    /// Limits how many upstreams start at once.
    pub(super) start_permits: Arc<Semaphore>,
    pub(super) listing_checker: Arc<ListingChecker>,
    pub(super) clock: Arc<dyn Clock>,
    /// Notified whenever the catalog may need to be rebuilt.
    pub(super) catalog_changed: Arc<Notify>,
    pub(super) events: broadcast::Sender<UpstreamEvent>,
    pub(super) idle_stop: Option<Duration>,
    /// Whether the upstream first starts when a call needs it.
    pub(super) lazy_start: bool,
    /// The id of this gatelet process, to detect loops of gatelets.
    pub(super) gatelet_id: Arc<str>,
}

/// A session, and its events from the start on.
type Session = (Arc<dyn Provider>, BoxStream<'static, Event>);

/// Why a session ended.
enum SessionEnd {
    Gone(String),
    Idle,
}

/// Opens a session, or shares that of the default pool if it serves every profile. Returns
/// the session and how long it took to open.
async fn connect(
    upstream: &SupervisedUpstream,
    client: &Client,
    start_permits: &Semaphore,
) -> Result<(Arc<dyn Provider>, Duration), Failure> {
    if let Some(shared) = &upstream.in_default_pool
        && FIRST_SHARED_REVISION <= shared.listing().server.protocol.as_str()
    {
        let began = Instant::now();
        return Ok((shared.provider().await?, began.elapsed()));
    }
    // The start timeout begins after this wait. The semaphore is never closed.
    let permit = start_permits.acquire().await;
    let began = Instant::now();
    upstream.set_starting(true);
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
    upstream.set_starting(false);
    let connected = connected.unwrap_or_else(|_| {
        let reason = format!("did not start within {} (`start_timeout`)", seconds(limit));
        Err(Failure::Unavailable { reason })
    });
    Ok((connected?, began.elapsed()))
}

/// Waits before the next start. A call ends the wait, because the upstream may
/// have recovered. An upstream that took long to fail keeps a minimum pause;
/// otherwise every call would wait as long as that start.
async fn pause_before_restart(upstream: &SupervisedUpstream, pause: Duration, took: Duration) {
    let minimum = restarts::min_pause(pause, took);
    tokio::time::sleep(minimum).await;
    let set = |restart| upstream.set(|now| now.restart = restart);
    set(Restart::OnCall);
    let called = tokio::time::timeout(pause - minimum, upstream.wake.notified()).await.is_ok();
    set(if called || took < START_SLOT { Restart::UnderWay } else { Restart::Paused });
}

fn seconds(limit: Duration) -> String {
    if limit < Duration::from_secs(1) {
        format!("{limit:?}")
    } else {
        format!("{} s", limit.as_secs())
    }
}

/// Logs that an upstream is down: the first failure as a warning, repeated ones only for
/// debugging.
fn log_down(upstream: &str, reason: &str, failures: u32) {
    if failures <= 1 {
        tracing::warn!(target: "upstream", upstream, reason, "it is down");
    } else {
        tracing::debug!(target: "upstream", upstream, reason, failures, "it is still down");
    }
}

impl Supervisor {
    /// Supervises an upstream until the task is aborted.
    pub(crate) async fn run(self, upstream: Arc<SupervisedUpstream>) {
        let client = upstream.profile.client();
        let mut restarts = Restarts::default();
        let is_remembered =
            upstream.settings.start == Start::OnDemand && !upstream.listing().tools.is_empty();
        let mut wait_until_needed = self.lazy_start || is_remembered;
        loop {
            if wait_until_needed {
                upstream.wake.notified().await;
            }
            // A failed upstream is shown with its reason until it is up again.
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
                    wait_until_needed = matches!(end, SessionEnd::Idle);
                    match wait_until_needed {
                        true => restarts.closed(),
                        false => restarts.died(lived),
                    }
                    drop(provider);
                    // A call that arrived during the start has been served; its
                    // notification must not start the next session.
                    let _ = upstream.wake.notified().now_or_never();
                    if let SessionEnd::Gone(reason) = &end {
                        log_down(upstream.label(), reason, restarts.failures());
                    }
                    upstream.set(|now| {
                        now.provider = None;
                        now.restart = Restart::Paused;
                        now.phase = match end {
                            SessionEnd::Idle => Phase::Asleep,
                            // The first loss does not count as a failure: calls
                            // wait for the restart.
                            SessionEnd::Gone(reason) => Phase::Down {
                                reason,
                                failures: restarts.failures().saturating_sub(1),
                            },
                        };
                    });
                    self.catalog_changed.notify_one();
                    if wait_until_needed {
                        continue;
                    }
                }
                Err(failure) => {
                    restarts.failed();
                    let failures = restarts.failures();
                    wait_until_needed = false;
                    let reason = self.listing_checker.scrub_reason(&failure_reason(&failure));
                    log_down(upstream.label(), &reason, failures);
                    upstream.set(|now| {
                        now.phase = Phase::Down { reason, failures };
                        now.restart = Restart::Paused;
                    });
                    self.catalog_changed.notify_one();
                }
            }
            let pause = restarts.pause((self.jitter)());
            pause_before_restart(&upstream, pause, took).await;
        }
    }

    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Opens a session and publishes its listing.
    async fn open(
        &self,
        upstream: &Arc<SupervisedUpstream>,
        client: &Client,
    ) -> Result<Session, Failure> {
        let (provider, took) = connect(upstream, client, &self.start_permits).await?;
        upstream.touch();
        upstream.note_start(took);
        // Subscribe before listing, so that no change in between is missed.
        let events = provider.events();
        upstream.subscriptions.replay(upstream.label(), &provider).await;
        let adopted = self.adopt(upstream, &provider, Some(Phase::Up)).await;
        adopted.map_err(|reason| Failure::Unavailable { reason })?;
        Ok((provider, events))
    }

    /// Publishes the current listing of a provider, unless the checks reject it.
    async fn adopt(
        &self,
        upstream: &Arc<SupervisedUpstream>,
        provider: &Arc<dyn Provider>,
        phase: Option<Phase>,
    ) -> Result<(), String> {
        let (listing_checker, mut listing) =
            (Arc::clone(&self.listing_checker), provider.listing());
        // If the upstream is a gatelet, its declaration from the start of the
        // session may be outdated: this gatelet may be behind it by now.
        if phase.is_none()
            && let Some(server) = loop_guard::refresh(provider).await
        {
            listing = Arc::new(Listing { server, ..Listing::clone(&listing) });
        }
        if let Some(why) = loop_guard::refusal(&listing.server, &self.gatelet_id) {
            self.forget_listing(upstream);
            return Err(why);
        }
        if !listing.failed_lists.is_empty() {
            listing = Arc::new(listing.with_failed_lists_from(&upstream.listing()));
        }
        let label = upstream.label().to_owned();
        // Checking many schemas blocks for a long time.
        let check = move || listing_checker.check(&label, &listing);
        let checked = tokio::task::spawn_blocking(check).await;
        let checked = checked.unwrap_or_else(|_| Err("checking its listing panicked".to_owned()));
        let listing = upstream.intern(checked?);
        let fresh = !Arc::ptr_eq(&listing, &upstream.listing());
        upstream.set(|now| {
            now.listing = Arc::clone(&listing);
            now.seen = true;
            if let Some(phase) = phase {
                now.provider = Some(Arc::clone(provider));
                now.phase = phase;
            }
        });
        self.catalog_changed.notify_one();
        self.listing_cache.mark_listed(&upstream.settings, &upstream.profile);
        if fresh {
            let (listing_cache, upstream) = (Arc::clone(&self.listing_cache), Arc::clone(upstream));
            // Writing may block, and nothing waits for its end.
            tokio::task::spawn_blocking(move || {
                listing_cache.save(&upstream.settings, &upstream.profile, &listing);
            });
        }
        Ok(())
    }

    /// Discards the listing of an upstream, because it may contain gatelet's own tools.
    fn forget_listing(&self, upstream: &Arc<SupervisedUpstream>) {
        upstream.set(|now| now.listing = Arc::default());
        let (listing_cache, upstream) = (Arc::clone(&self.listing_cache), Arc::clone(upstream));
        // Writing may block, and nothing waits for its end.
        tokio::task::spawn_blocking(move || {
            listing_cache.save(&upstream.settings, &upstream.profile, &Listing::default());
        });
    }

    /// Forwards the events of a provider until it disconnects or is idle.
    async fn watch(
        &self,
        upstream: &Arc<SupervisedUpstream>,
        provider: &Arc<dyn Provider>,
        mut events: BoxStream<'static, Event>,
    ) -> SessionEnd {
        let (mut is_stale, mut next_adoption) = (false, Instant::now());
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = tokio::time::sleep_until(next_adoption), if is_stale => {
                    is_stale = false;
                    let began = Instant::now();
                    if let Err(reason) = self.adopt(upstream, provider, None).await {
                        return SessionEnd::Gone(one_line(&reason));
                    }
                    next_adoption = Instant::now() + pause_after_adoption(began.elapsed());
                    continue;
                }
                () = idle(upstream, self.idle_stop) => return SessionEnd::Idle,
            };
            match event {
                Some(Event::Changed(_)) => is_stale = true,
                Some(Event::Gone { reason }) => {
                    return SessionEnd::Gone(one_line(&self.listing_checker.scrub_reason(&reason)));
                }
                None => return SessionEnd::Gone("the connection was closed".to_owned()),
                Some(other @ (Event::Updated { .. } | Event::Notification(_))) => {
                    // It is not an error if there is no receiver.
                    let label = upstream.label();
                    let event = redact_event(&self.listing_checker.scrubber, label, other);
                    let from = Some(Arc::from(label));
                    let _ = self.events.send(UpstreamEvent { from, event });
                }
            }
        }
    }
}

/// Returns how long to wait before a changed listing is checked, after the last check
/// `took` this long. So an upstream that changes its long listing all the time uses only
/// a small part of one processor.
fn pause_after_adoption(took: Duration) -> Duration {
    (took * 10).min(Duration::from_secs(60))
}

impl SupervisedUpstream {
    /// Ends the session permanently and fails all calls that still wait for it.
    pub(crate) fn retire(&self) {
        let reason = match self.replacement.get() {
            Some(_) => "its entry in the configuration was changed just now",
            None => "it was removed from the configuration",
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

    /// Returns an equal listing that is in memory already, to avoid a second copy.
    fn intern(&self, listing: Arc<Listing>) -> Arc<Listing> {
        let known =
            [Some(self.listing()), self.in_default_pool.as_ref().map(|other| other.listing())];
        let same = |known: &Arc<Listing>| Arc::ptr_eq(known, &listing) || **known == *listing;
        known.into_iter().flatten().find(same).unwrap_or(listing)
    }
}

/// Returns once the upstream has been idle for `limit`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_that_takes_long_to_check_is_checked_less_often() {
        let pause = |millis| pause_after_adoption(Duration::from_millis(millis));
        assert_eq!(pause(0), Duration::ZERO);
        assert_eq!(pause(200), Duration::from_secs(2));
        assert_eq!(pause(60_000), Duration::from_secs(60));
    }
}
