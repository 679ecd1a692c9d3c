//! The [`SupervisedUpstream`]: one upstream in one pool, with its session, listing and
//! state.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::{Source, State};
use futures::FutureExt;
use futures::future::Either;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tool::text::json_without_invisible;
use tool::{
    Ask, Context, CredentialHealth, Failure, Json, Kind, Listing, Provider, Reply, RpcError, Sent,
};

use super::foreign_error;
use super::profile::Profile;
use super::redacting_client::{RedactingClient, without_own_meta};
use super::subscriptions::{SubscriptionChange, Subscriptions};
use super::upstream::{Start, Upstream};
use redact::Scrubber;

/// An upstream, its session while there is one, and what it listed last.
pub struct SupervisedUpstream {
    /// What the operator configured.
    pub(super) settings: Arc<Upstream>,
    pub(super) profile: Profile,
    /// The same upstream in the default pool; `None` in the default pool.
    pub(super) in_default_pool: Option<Arc<SupervisedUpstream>>,
    /// The upstream that took its place when its configuration was changed.
    pub(super) replacement: OnceLock<Arc<SupervisedUpstream>>,
    /// Whether a client with this profile has listed it in this run.
    pub(super) was_listed: bool,
    scrubber: Arc<Scrubber>,
    /// The subscriptions and log levels that are requested again of every new session.
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) state: watch::Sender<UpstreamState>,
    /// Notified when a call needs a session.
    pub(super) wake: Notify,
    /// How many requests are running.
    pub(super) busy: AtomicUsize,
    epoch: Instant,
    /// Microseconds since `epoch` when it was last used.
    used: AtomicU64,
    calls: AtomicU64,
    /// The duration of all calls together, in microseconds.
    call_micros: AtomicU64,
    /// How many requests in a row got no answer in time.
    unanswered: AtomicU32,
    /// How often a session was opened.
    starts: AtomicU64,
    /// How long the last start took, in microseconds; 0 before the first one.
    start_micros: AtomicU64,
    /// When the start began that is under way, in microseconds since `epoch`; 0 when none is.
    start_began: AtomicU64,
}

/// What is known of an upstream before it has started.
pub(crate) struct InitialState {
    pub(super) profile: Profile,
    pub(super) in_default_pool: Option<Arc<SupervisedUpstream>>,
    pub(super) remembered: Option<Arc<Listing>>,
    pub(super) was_listed: bool,
    pub(super) scrubber: Arc<Scrubber>,
    pub(super) subscriptions: Arc<Subscriptions>,
}

/// Which eager upstreams are started when a pool gets its first client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartMode {
    AllEager,
    /// Those that no client with this profile has listed in this run: only
    /// starting them tells what they list for such clients.
    UnlistedOnly,
}

/// The state of an upstream at one moment.
pub(crate) struct UpstreamState {
    pub(super) phase: Phase,
    pub(super) provider: Option<Arc<dyn Provider>>,
    pub(super) listing: Arc<Listing>,
    /// Whether the upstream sent the listing in this run.
    pub(super) seen: bool,
    /// While it is down: what a call does about that.
    pub(super) restart: Restart,
}

/// What a call does about an upstream that is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    /// The call fails: the upstream failed just now, or takes long to fail.
    Paused,
    /// The call ends the pause and waits for the start.
    OnCall,
    /// The call waits for the start that is under way.
    UnderWay,
}

impl UpstreamState {
    /// Returns whether there is no listing of it, not even a remembered one.
    fn was_never_listed(&self) -> bool {
        !self.seen && *self.listing == Listing::default()
    }

    /// Returns whether it may soon be listed for the first time.
    fn is_first_listing(&self) -> bool {
        self.was_never_listed() && !matches!(self.phase, Phase::Down { failures: 1.., .. })
    }
}

/// Whether an upstream is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not running; the next call starts it.
    Asleep,
    Starting,
    Up,
    /// It cannot be reached. `failures` counts the starts that failed since it
    /// was last up; with none yet, it has just died and is being restarted.
    Down {
        reason: String,
        failures: u32,
    },
}

/// The state of an upstream, for people.
#[derive(Clone, Debug)]
pub struct Status {
    pub label: String,
    pub phase: Phase,
    pub listing: Arc<Listing>,
    /// Whether the upstream sent the listing in this run; if not, it is a remembered one.
    pub seen: bool,
    /// The state of its credentials, where it needs some.
    pub credential: Option<CredentialHealth>,
    pub calls: u64,
    /// The mean duration of a call.
    pub mean: Duration,
    /// How many of the last requests, in a row, got no answer in time. An upstream that
    /// hangs still looks as if it were up.
    pub unanswered: u32,
    /// How often a session was opened after the first one.
    pub restarts: u64,
    /// How long the last session took to open and list, without the wait for a start
    /// permit; `None` before the first one.
    pub start_up: Option<Duration>,
    /// How long the start has been under way that goes on now, without the wait for a start
    /// permit.
    pub starting_for: Option<Duration>,
}

impl SupervisedUpstream {
    pub(crate) fn new(settings: Arc<Upstream>, initial: InitialState) -> SupervisedUpstream {
        let InitialState {
            profile,
            in_default_pool,
            remembered,
            was_listed,
            scrubber,
            subscriptions,
        } = initial;
        let seen = settings.fixed_listing.is_some();
        let listing = settings.fixed_listing.clone().or(remembered).unwrap_or_default();
        let restart = Restart::Paused;
        let state = UpstreamState { phase: Phase::Asleep, provider: None, listing, seen, restart };
        SupervisedUpstream {
            settings,
            profile,
            in_default_pool,
            replacement: OnceLock::new(),
            was_listed,
            scrubber,
            subscriptions,
            state: watch::Sender::new(state),
            wake: Notify::new(),
            busy: AtomicUsize::new(0),
            epoch: Instant::now(),
            used: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            call_micros: AtomicU64::new(0),
            unanswered: AtomicU32::new(0),
            starts: AtomicU64::new(0),
            start_micros: AtomicU64::new(0),
            start_began: AtomicU64::new(0),
        }
    }

    pub fn label(&self) -> &str {
        &self.settings.label
    }

    pub fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.state.borrow().listing)
    }

    pub fn status(&self) -> Status {
        let now = self.state.borrow();
        let calls = self.calls.load(Ordering::Relaxed);
        let micros = self.call_micros.load(Ordering::Relaxed);
        Status {
            label: self.settings.label.clone(),
            phase: now.phase.clone(),
            listing: Arc::clone(&now.listing),
            seen: now.seen,
            credential: self.settings.connector.credential_health(),
            calls,
            mean: Duration::from_micros(micros / calls.max(1)),
            unanswered: self.unanswered.load(Ordering::Relaxed),
            restarts: self.starts.load(Ordering::Relaxed).saturating_sub(1),
            start_up: Some(self.start_micros.load(Ordering::Relaxed))
                .filter(|micros| *micros != 0)
                .map(Duration::from_micros),
            starting_for: self.starting_for(),
        }
    }

    /// Notes that a start begins, or that it has ended.
    pub(crate) fn set_starting(&self, is_starting: bool) {
        let now = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.start_began.store(if is_starting { now.max(1) } else { 0 }, Ordering::Relaxed);
    }

    fn starting_for(&self) -> Option<Duration> {
        let began = Some(self.start_began.load(Ordering::Relaxed)).filter(|began| *began != 0)?;
        Some(self.epoch.elapsed().saturating_sub(Duration::from_micros(began)))
    }

    /// Returns whether it is being listed for the first time.
    pub(crate) fn is_first_listing(&self) -> bool {
        self.state.borrow().is_first_listing()
    }

    /// Waits until it has been listed for the first time, or cannot be.
    pub(crate) async fn first_listing(&self) {
        let mut now = self.state.subscribe();
        let limit = self.settings.start_timeout + Duration::from_secs(1);
        let listed = now.wait_for(|now| !now.is_first_listing());
        // Whether it was listed or not, the catalog shows its state.
        let _ = tokio::time::timeout(limit, listed).await;
    }

    /// Returns its entry in a catalog.
    pub(crate) fn source(&self) -> Source {
        let now = self.state.borrow();
        let state = match (&now.phase, now.seen) {
            (Phase::Down { reason, .. }, _) => State::Unavailable { reason: reason.clone() },
            (Phase::Asleep | Phase::Starting, false) if now.was_never_listed() => {
                State::Unavailable { reason: "still starting".to_owned() }
            }
            (Phase::Asleep | Phase::Starting | Phase::Up, seen) => {
                // It is up, but its functions may have changed.
                let is_old = now.listing.failed_lists.contains(&Kind::Tools);
                if seen && !is_old { State::Available } else { State::Remembered }
            }
        };
        Source {
            description: self.settings.description.clone(),
            state,
            ..Source::new(&self.settings.label, Arc::clone(&now.listing))
        }
    }

    /// Asks the upstream, starting it first when it is not up.
    pub fn ask<'a>(
        &'a self,
        ask: Ask,
        context: &'a Context,
    ) -> impl Future<Output = Result<Reply, Failure>> + use<'a> {
        // Boxed, here and below: the future of a call is not made larger by
        // requests that are rare.
        match SubscriptionChange::from_ask(&ask) {
            SubscriptionChange::None => Either::Left(self.ask_now(ask, context)),
            SubscriptionChange::Subscribe => Either::Right(self.subscribe(ask, context).boxed()),
            SubscriptionChange::Unsubscribe => {
                Either::Right(self.unsubscribe(ask, context).boxed())
            }
        }
    }

    async fn subscribe(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let reply = self.ask_now(ask.clone(), context).await?;
        if matches!(reply, Reply::Result(_)) {
            self.subscriptions.add(self.label(), ask, context);
        }
        Ok(reply)
    }

    async fn unsubscribe(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        self.subscriptions.remove(self.label(), &ask, context);
        match self.open_session() {
            Some(_) => self.ask_now(ask, context).await,
            // Without a session there is no subscription to end.
            None => Ok(Reply::Result(Json::empty_object())),
        }
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` keeps its arguments twice")]
    fn ask_now(&self, ask: Ask, context: &Context) -> impl Future<Output = Result<Reply, Failure>> {
        async move {
            let mut busy = Busy::enter(self);
            let provider = match self.open_session() {
                Some(provider) => provider,
                None => match Box::pin(self.provider_if_unchanged(&ask)).await {
                    Ok(provider) => provider,
                    Err(failure) => match Box::pin(self.equal_replacement()).await {
                        Some(replacement) => {
                            return Box::pin(replacement.ask_now(ask, context)).await;
                        }
                        None => return Err(failure),
                    },
                },
            };
            let limit = self.settings.call_timeout;
            let limit = context.timeout.map_or(limit, |timeout| timeout.min(limit));
            let context = self.upstream_context(limit, context);
            let since = self.elapsed();
            let asking = provider.ask(ask, &context);
            let outcome = match provider.enforces_timeout() {
                true => Ok(asking.await),
                false => Box::pin(tokio::time::timeout(limit, asking)).await,
            };
            let until = self.elapsed();
            busy.until = Some(until);
            self.calls.fetch_add(1, Ordering::Relaxed);
            self.call_micros.fetch_add(until - since, Ordering::Relaxed);
            let outcome = outcome.unwrap_or(Err(Failure::Timeout { after: limit }));
            self.count_unanswered(&outcome);
            Ok(self.without_forged_names(require_object(outcome?)?))
        }
    }

    /// Removes members of `_meta` that only gatelet writes from a result, and invisible
    /// characters from an error, which cannot be taken for gatelet's own. Providers in this process and nested CaSH servers may
    /// write such members.
    fn without_forged_names(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Result(result) => match without_own_meta(&result) {
                Some(clean) if self.is_foreign() => Reply::Result(clean),
                Some(_) | None => Reply::Result(result),
            },
            Reply::Error(error) => {
                let error = match json_without_invisible(&error.raw) {
                    Some(clean) => RpcError::parse(clean),
                    None => error,
                };
                Reply::Error(match self.is_foreign() {
                    true => foreign_error::in_their_voice(error),
                    false => error,
                })
            }
        }
    }

    /// Returns whether it is neither part of this process nor a nested CaSH server.
    fn is_foreign(&self) -> bool {
        let listing = &self.state.borrow().listing;
        !listing.is_nested && !listing.server.protocol.is_empty()
    }

    /// Counts a new session, notes how long it took to open, and resets the unanswered
    /// requests.
    pub(super) fn note_start(&self, took: Duration) {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.start_micros.store(micros.max(1), Ordering::Relaxed);
        self.unanswered.store(0, Ordering::Relaxed);
    }

    /// Counts the requests in a row that got no answer in time.
    fn count_unanswered(&self, outcome: &Result<Reply, Failure>) {
        if matches!(outcome, Err(Failure::Timeout { .. })) {
            let before = self.unanswered.fetch_add(1, Ordering::Relaxed);
            if before == 0 {
                tracing::warn!(target: "upstream", upstream = self.label(), "it does not answer in time");
            }
        } else if self.unanswered.load(Ordering::Relaxed) != 0 {
            self.unanswered.store(0, Ordering::Relaxed);
            tracing::info!(target: "upstream", upstream = self.label(), "it answers again");
        }
    }

    /// Sends the upstream a request whose answer does not matter, if it has a
    /// session. Starts nothing and is not counted as a call.
    pub async fn notify(&self, ask: Ask, context: &Context, limit: Duration) {
        let Some(provider) = self.open_session() else { return };
        let (ask, context) =
            (self.subscriptions.with_common_level(ask), self.upstream_context(limit, context));
        let _ = tokio::time::timeout(limit, provider.ask(ask, &context)).await;
    }

    /// Returns the context that is passed to the upstream: with this timeout, and with a
    /// client handle that redacts the upstream's notifications.
    fn upstream_context(&self, timeout: Duration, context: &Context) -> Context {
        let (client_handle, scrubber) =
            (Arc::clone(&context.client_handle), Arc::clone(&self.scrubber));
        let from = Arc::clone(&self.settings);
        let client_handle = Arc::new(RedactingClient { from, client_handle, scrubber });
        Context { timeout: Some(timeout), client_handle, ..context.clone() }
    }

    /// Returns the session, opened if there is none.
    pub(crate) async fn provider(&self) -> Result<Arc<dyn Provider>, Failure> {
        if let Some(provider) = self.open_session() {
            return Ok(provider);
        }
        let mut now = self.state.subscribe();
        self.wake.notify_one();
        let settled = |now: &UpstreamState| match &now.phase {
            Phase::Up => true,
            Phase::Down { failures, .. } => 0 < *failures && now.restart == Restart::Paused,
            Phase::Asleep | Phase::Starting => false,
        };
        let limit = self.settings.start_timeout + Duration::from_secs(1);
        let reached = tokio::time::timeout(limit, now.wait_for(settled)).await;
        let unavailable = |reason: &str| Failure::Unavailable { reason: reason.to_owned() };
        match reached {
            Ok(Ok(now)) => match (&now.provider, &now.phase) {
                (Some(provider), _) => Ok(Arc::clone(provider)),
                (None, Phase::Down { reason, .. }) => Err(unavailable(reason)),
                (None, Phase::Asleep | Phase::Starting | Phase::Up) => {
                    Err(unavailable("it stopped just now"))
                }
            },
            Ok(Err(_)) => Err(unavailable("it was stopped")),
            Err(_) => Err(unavailable("it is still starting")),
        }
    }

    /// Returns the session, opened if there is none. Fails if the called tool then differs
    /// from the remembered one, which validation, trust and approval were about.
    async fn provider_if_unchanged(&self, ask: &Ask) -> Result<Arc<dyn Provider>, Failure> {
        let before = self.listing();
        let provider = self.provider().await?;
        let after = self.listing();
        let Ask::Call(call) = ask else { return Ok(provider) };
        let tool_in =
            |listing: &Listing| listing.tools.iter().find(|tool| tool.name == call.name).cloned();
        if Arc::ptr_eq(&before, &after)
            || tool_in(&before).is_none_or(|was| tool_in(&after) == Some(was))
        {
            return Ok(provider);
        }
        let name = &call.name;
        let reason = format!(
            "`{name}` is not what it was before its server started; look at it, then call it again"
        );
        Err(Failure::Unavailable { reason })
    }

    /// Returns the replacement for a call that still comes here, but only if it lists the
    /// very same tools, because the call was admitted for those.
    async fn equal_replacement(&self) -> Option<&Arc<SupervisedUpstream>> {
        let replacement = self.replacement.get()?;
        replacement.provider().await.ok()?;
        (replacement.listing().tools == self.listing().tools).then_some(replacement)
    }

    pub(crate) fn replaced_by(&self, replacement: Option<&Arc<SupervisedUpstream>>) {
        if let Some(replacement) = replacement {
            // It is replaced at most once.
            self.replacement.set(Arc::clone(replacement)).ok();
        }
    }

    /// Returns the session if it is open.
    fn open_session(&self) -> Option<Arc<dyn Provider>> {
        let now = self.state.borrow();
        match now.phase {
            Phase::Up => now.provider.clone(),
            Phase::Asleep | Phase::Starting | Phase::Down { .. } => None,
        }
    }

    /// Starts it if `mode` includes it and it was not started before.
    pub(crate) fn start(&self, mode: StartMode) {
        let now = self.state.borrow();
        let eager = match mode {
            StartMode::AllEager => true,
            StartMode::UnlistedOnly => !self.was_listed,
        };
        let wanted = (self.settings.start == Start::Eager && eager) || now.listing.tools.is_empty();
        if wanted && !now.seen && now.phase == Phase::Asleep {
            self.wake.notify_one();
        }
    }

    /// Returns how long nobody has used it; zero while somebody does, or is subscribed to
    /// one of its resources.
    pub(crate) fn idle(&self) -> Duration {
        if self.busy.load(Ordering::Relaxed) != 0 || self.subscriptions.has_any(self.label()) {
            return Duration::ZERO;
        }
        let used = Duration::from_micros(self.used.load(Ordering::Relaxed));
        self.epoch.elapsed().saturating_sub(used)
    }

    /// Notes that it is used now.
    pub(crate) fn touch(&self) {
        self.used.store(self.elapsed(), Ordering::Relaxed);
    }

    /// Microseconds since `epoch`.
    fn elapsed(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// A guard: the upstream counts as busy until this is dropped.
struct Busy<'a> {
    upstream: &'a SupervisedUpstream,
    /// When the request ended, if the clock was read; in microseconds since `epoch`.
    until: Option<u64>,
}

impl Busy<'_> {
    fn enter(upstream: &SupervisedUpstream) -> Busy<'_> {
        upstream.busy.fetch_add(1, Ordering::Relaxed);
        Busy { upstream, until: None }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        match self.until {
            Some(until) => self.upstream.used.store(until, Ordering::Relaxed),
            None => self.upstream.touch(),
        }
        self.upstream.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the reason of a failure on one line, short enough to be shown beside a name.
pub(crate) fn failure_reason(failure: &Failure) -> String {
    let text = match failure {
        Failure::Unavailable { reason } => reason.clone(),
        Failure::Lost { reason, sent: Sent::No | Sent::Perhaps } => reason.clone(),
        Failure::Timeout { .. }
        | Failure::Unauthorized { .. }
        | Failure::Forbidden { .. }
        | Failure::RateLimited { .. }
        | Failure::Unusable { .. }
        | Failure::Cancelled
        | Failure::Unsupported { .. } => failure.to_string(),
    };
    one_line(&text)
}

pub(crate) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    catalog::summary::cut(&line, 400)
}

/// Fails for a result that is not an object: clients that get one wait for ever.
fn require_object(reply: Reply) -> Result<Reply, Failure> {
    match &reply {
        Reply::Result(result) if !result.is_object() => {
            let reason = format!(
                "its result is not an object but `{}`",
                catalog::summary::cut(result.as_str(), 40)
            );
            Err(Failure::Unusable { reason })
        }
        Reply::Result(_) | Reply::Error(_) => Ok(reply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_not_an_object_is_not_an_answer() {
        let check =
            |text: &str| require_object(Reply::Result(Json::parse(text.to_owned()).unwrap()));
        assert!(check("{}").is_ok());
        for text in ["null", "5", "[]", "\"x\""] {
            let message = check(text).unwrap_err().to_string();
            assert!(message.contains(&format!("not an object but `{text}`")), "{message}");
        }
    }
}
