//! The life of one link: start, watch, stop, start again.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::sync::{Notify, Semaphore, broadcast};
use tool::{Backoff, Client, Event, Failure, Listing, Provider};

use super::inspect::Inspector;
use super::link::{Link, Now, Phase, one_line, reason};
use super::masked::masked;
use super::shelf::Memories;
use super::{Start, gates};
use tool::clock::Clock;

/// The first protocol revision whose sessions know no client, so that one
/// session serves clients of every kind.
const MODERN: &str = "2026-07-28";

/// How long a session has to live to count as one. What dies sooner, again and
/// again, is started less and less often, like what does not start.
const STEADY: Duration = Duration::from_secs(10);

/// How long an upstream that starts holds others back. One that hangs must not
/// keep the healthy ones waiting for its whole start timeout.
const TURN: Duration = Duration::from_secs(5);

/// The pauses between starts that fail. Half of each is left to chance, so that
/// what died together does not come back in one rush.
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(250), Duration::from_secs(60)).with_jitter(0.5);

/// What a supervisor needs besides its link.
pub(crate) struct Surroundings {
    pub(super) memories: Arc<Memories>,
    /// A number from 0 to 1, so that what died together does not come back in
    /// one rush.
    pub(super) chance: fn() -> f64,
    /// Whose turn it is to start.
    pub(super) starts: Arc<Semaphore>,
    pub(super) inspector: Arc<Inspector>,
    pub(super) clock: Arc<dyn Clock>,
    /// Told whenever the catalog may have to be built anew.
    pub(super) dirty: Arc<Notify>,
    pub(super) events: broadcast::Sender<Event>,
    pub(super) idle_stop: Option<Duration>,
    /// Whether it waits to be woken before its first start.
    pub(super) dormant: bool,
    /// What tells this gate from every other.
    pub(super) instance: Arc<str>,
}

/// A session, and what it tells from its beginning on.
type Session = (Arc<dyn Provider>, BoxStream<'static, Event>);

/// Why a session ended.
enum End {
    Gone(String),
    Idle,
}

/// Looks after a link until it is aborted.
pub(crate) async fn supervise(link: Arc<Link>, around: Surroundings) {
    let client = link.profile.client();
    let mut failures = 0_u32;
    let known = link.upstream.start == Start::OnDemand && !link.listing().tools.is_empty();
    let mut rest = around.dormant || known;
    loop {
        if rest {
            link.wake.notified().await;
        }
        // What is down stays so until it is up, with the reason.
        link.set(|now| {
            if now.phase == Phase::Asleep {
                now.phase = Phase::Starting;
            }
        });
        match around.open(&link, &client).await {
            Ok((provider, events)) => {
                let since = around.now();
                let end = around.watch(&link, &provider, events).await;
                let lived = around.now().saturating_sub(since);
                rest = matches!(end, End::Idle);
                failures = if rest || STEADY <= lived { 0 } else { failures + 1 };
                drop(provider);
                // A call that came while it was being started has been served;
                // its wish to wake it must not outlive the session.
                let _ = link.wake.notified().now_or_never();
                link.set(|now| {
                    now.provider = None;
                    now.phase = match end {
                        End::Idle => Phase::Asleep,
                        // The first time it may have been bad luck: calls wait
                        // for the restart.
                        End::Gone(reason) => {
                            Phase::Down { reason, failures: failures.saturating_sub(1) }
                        }
                    };
                });
                around.dirty.notify_one();
                if rest {
                    continue;
                }
            }
            Err(failure) => {
                failures += 1;
                rest = false;
                let reason = around.inspector.reason(&reason(&failure));
                link.set(|now| now.phase = Phase::Down { reason, failures });
                around.dirty.notify_one();
            }
        }
        tokio::time::sleep(BACKOFF.pause_after(failures, (around.chance)())).await;
    }
}

/// Opens a session, or shares the default hall's where that serves anybody.
async fn connect(
    link: &Link,
    client: &Client,
    starts: &Semaphore,
) -> Result<Arc<dyn Provider>, Failure> {
    if let Some(elder) = &link.elder
        && MODERN <= elder.listing().server.protocol.as_str()
    {
        return elder.provider().await;
    }
    // The clock runs from its turn on. Nobody closes the semaphore.
    let turn = starts.acquire().await;
    let limit = link.upstream.start_timeout;
    let connecting = tokio::time::timeout(limit, link.upstream.connector.connect(client));
    let mut connecting = std::pin::pin!(connecting);
    let connected = match tokio::time::timeout(TURN, &mut connecting).await {
        Ok(connected) => connected,
        Err(_) => {
            drop(turn);
            connecting.await
        }
    };
    connected.unwrap_or_else(|_| {
        let reason = format!("did not start within {}", seconds(limit));
        Err(Failure::Unavailable { reason })
    })
}

fn seconds(limit: Duration) -> String {
    if limit < Duration::from_secs(1) {
        format!("{limit:?}")
    } else {
        format!("{} s", limit.as_secs())
    }
}

impl Surroundings {
    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Opens a session and takes over what it lists.
    async fn open(&self, link: &Arc<Link>, client: &Client) -> Result<Session, Failure> {
        let provider = connect(link, client, &self.starts).await?;
        link.touch();
        // Listening before listing, so that no change falls between.
        let events = provider.events();
        link.wishes.ask_again(link.label(), &provider).await;
        let adopted = self.adopt(link, &provider, Some(Phase::Up)).await;
        adopted.map_err(|reason| Failure::Unavailable { reason })?;
        Ok((provider, events))
    }

    /// Takes over what a provider lists now, unless that may not be used.
    async fn adopt(
        &self,
        link: &Arc<Link>,
        provider: &Arc<dyn Provider>,
        phase: Option<Phase>,
    ) -> Result<(), String> {
        let (inspector, mut listing) = (Arc::clone(&self.inspector), provider.listing());
        // What a gate said of itself when the session was opened is old when
        // it lists something else: that may be this gate by now.
        if phase.is_none()
            && let Some(server) = gates::ask_again(provider).await
        {
            listing = Arc::new(Listing { server, ..Listing::clone(&listing) });
        }
        if let Some(why) = gates::refuse(&listing.server, &self.instance) {
            self.disown(link);
            return Err(why);
        }
        if !listing.unread.is_empty() {
            listing = Arc::new(listing.keeping_unread(&link.listing()));
        }
        let label = link.label().to_owned();
        // Looking at many schemas takes a while.
        let inspect = move || inspector.inspect(&label, &listing);
        let inspected = tokio::task::spawn_blocking(inspect).await;
        let inspected = inspected.unwrap_or_else(|_| Err("looking at it broke off".to_owned()));
        let listing = link.intern(inspected?);
        let fresh = !Arc::ptr_eq(&listing, &link.listing());
        link.set(|now| {
            now.listing = Arc::clone(&listing);
            now.seen = true;
            if let Some(phase) = phase {
                now.provider = Some(Arc::clone(provider));
                now.phase = phase;
            }
        });
        self.dirty.notify_one();
        self.memories.familiarise(&link.upstream, &link.profile);
        if fresh {
            let (memories, link) = (Arc::clone(&self.memories), Arc::clone(link));
            // Writing may block, and nobody waits for it.
            tokio::task::spawn_blocking(move || {
                memories.remember(&link.upstream, &link.profile, &listing);
            });
        }
        Ok(())
    }

    /// Forgets what an upstream listed: some of it may be our own.
    fn disown(&self, link: &Arc<Link>) {
        link.set(|now| now.listing = Arc::default());
        let (memories, link) = (Arc::clone(&self.memories), Arc::clone(link));
        // Writing may block, and nobody waits for it.
        tokio::task::spawn_blocking(move || {
            memories.remember(&link.upstream, &link.profile, &Listing::default());
        });
    }

    /// Passes on what a provider tells, until it is gone or nobody needs it.
    async fn watch(
        &self,
        link: &Arc<Link>,
        provider: &Arc<dyn Provider>,
        mut events: BoxStream<'static, Event>,
    ) -> End {
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = idle(link, self.idle_stop) => return End::Idle,
            };
            match event {
                Some(Event::Changed(_)) => {
                    if let Err(reason) = self.adopt(link, provider, None).await {
                        return End::Gone(one_line(&reason));
                    }
                }
                Some(Event::Gone { reason }) => {
                    return End::Gone(one_line(&self.inspector.reason(&reason)));
                }
                None => return End::Gone("the connection was closed".to_owned()),
                Some(other @ (Event::Updated { .. } | Event::Note(_))) => {
                    // Nobody listening is no failure.
                    let _ = self.events.send(masked(&self.inspector.scrubber, other));
                }
            }
        }
    }
}

impl Link {
    /// Ends the session for good and says so to who still waits.
    pub(crate) fn retire(&self) {
        let reason = match self.heir.get() {
            Some(_) => "its entry in the configuration was changed just now",
            None => "it was taken out of the configuration",
        };
        self.set(|now| {
            now.provider = None;
            now.phase = Phase::Down { reason: reason.to_owned(), failures: 1 };
        });
    }

    fn set(&self, change: impl FnOnce(&mut Now)) {
        self.now.send_modify(change);
    }

    /// An equal listing that is in memory already, instead of another copy.
    fn intern(&self, listing: Arc<Listing>) -> Arc<Listing> {
        let known = [Some(self.listing()), self.elder.as_ref().map(|elder| elder.listing())];
        let same = |known: &Arc<Listing>| Arc::ptr_eq(known, &listing) || **known == *listing;
        known.into_iter().flatten().find(same).unwrap_or(listing)
    }
}

/// Returns when the link has been idle for as long as `limit`.
async fn idle(link: &Link, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    loop {
        let left = limit.saturating_sub(link.idle());
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
    fn pauses_double_up_to_a_minute() {
        let pauses = [0, 1, 2, 3, 9, 1000].map(|n| BACKOFF.pause_after(n, 1.0).as_millis());
        assert_eq!(pauses, [250, 250, 500, 1000, 60_000, 60_000]);
    }

    #[test]
    fn chance_spreads_them_over_the_upper_half() {
        assert_eq!(BACKOFF.pause_after(2, 0.0), Duration::from_millis(250));
        assert_eq!(BACKOFF.pause_after(2, 0.5), Duration::from_millis(375));
    }
}
