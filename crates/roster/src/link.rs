//! One upstream in one hall.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::{Source, State};
use futures::FutureExt;
use futures::future::Either;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tool::{Ask, Context, CredentialHealth, Failure, Json, Kind, Listing, Provider, Reply, Sent};

use super::masked::Masked;
use super::wishes::{Lasting, Wishes};
use super::{Profile, Start, Upstream};
use redact::Scrubber;

/// An upstream, its session while there is one, and what it listed last.
pub struct Link {
    pub(super) upstream: Arc<Upstream>,
    pub(super) profile: Profile,
    /// The same upstream in the default hall; `None` in the default hall.
    pub(super) elder: Option<Arc<Link>>,
    /// What stands in its place, once its entry was changed.
    pub(super) heir: OnceLock<Arc<Link>>,
    /// Whether clients like these have seen it in this run.
    pub(super) is_familiar: bool,
    scrubber: Arc<Scrubber>,
    /// What is asked again of every session.
    pub(super) wishes: Arc<Wishes>,
    pub(super) now: watch::Sender<Now>,
    /// Somebody needs it.
    pub(super) wake: Notify,
    pub(super) busy: AtomicUsize,
    epoch: Instant,
    /// Microseconds since `epoch` when it was last used.
    used: AtomicU64,
    calls: AtomicU64,
    micros: AtomicU64,
}

/// What is known of a link before it has started.
pub(crate) struct Known {
    pub(super) profile: Profile,
    pub(super) elder: Option<Arc<Link>>,
    pub(super) remembered: Option<Arc<Listing>>,
    pub(super) is_familiar: bool,
    pub(super) scrubber: Arc<Scrubber>,
    pub(super) wishes: Arc<Wishes>,
}

/// What is started when the first client comes into a hall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rousing {
    /// All that is to run without being asked for.
    Eager,
    /// Of that, what clients like these have not seen in this run: only so is
    /// known what it lists for them.
    Unfamiliar,
}

/// The state of a link.
pub(crate) struct Now {
    pub(super) phase: Phase,
    pub(super) provider: Option<Arc<dyn Provider>>,
    pub(super) listing: Arc<Listing>,
    /// Whether the listing was seen in this run.
    pub(super) seen: bool,
}

impl Now {
    /// Whether nothing has ever been heard of it: it is being listed for the
    /// first time.
    fn is_blank(&self) -> bool {
        !self.seen && *self.listing == Listing::default()
    }

    /// Whether waiting will tell what it lists.
    fn is_awaited(&self) -> bool {
        self.is_blank() && !matches!(self.phase, Phase::Down { failures: 1.., .. })
    }
}

/// Where an upstream is in its life.
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

/// How an upstream fares, for people.
#[derive(Clone, Debug)]
pub struct Status {
    pub label: String,
    pub phase: Phase,
    pub listing: Arc<Listing>,
    pub seen: bool,
    /// How it stands with its credentials, where it wants some.
    pub credential: Option<CredentialHealth>,
    pub calls: u64,
    /// The mean time that a call took.
    pub mean: Duration,
}

impl Link {
    pub(crate) fn new(upstream: Arc<Upstream>, known: Known) -> Link {
        let Known { profile, elder, remembered, is_familiar, scrubber, wishes } = known;
        let seen = upstream.known.is_some();
        let listing = upstream.known.clone().or(remembered).unwrap_or_default();
        let now = Now { phase: Phase::Asleep, provider: None, listing, seen };
        Link {
            upstream,
            profile,
            elder,
            heir: OnceLock::new(),
            is_familiar,
            scrubber,
            wishes,
            now: watch::Sender::new(now),
            wake: Notify::new(),
            busy: AtomicUsize::new(0),
            epoch: Instant::now(),
            used: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            micros: AtomicU64::new(0),
        }
    }

    pub fn label(&self) -> &str {
        &self.upstream.label
    }

    pub fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.now.borrow().listing)
    }

    pub fn status(&self) -> Status {
        let now = self.now.borrow();
        let calls = self.calls.load(Ordering::Relaxed);
        let micros = self.micros.load(Ordering::Relaxed);
        Status {
            label: self.upstream.label.clone(),
            phase: now.phase.clone(),
            listing: Arc::clone(&now.listing),
            seen: now.seen,
            credential: self.upstream.connector.credential_health(),
            calls,
            mean: Duration::from_micros(micros / calls.max(1)),
        }
    }

    /// Whether it is being listed for the first time.
    pub(crate) fn is_awaited(&self) -> bool {
        self.now.borrow().is_awaited()
    }

    /// Waits until it has been listed for the first time, or cannot be.
    pub(crate) async fn known(&self) {
        let mut now = self.now.subscribe();
        let limit = self.upstream.start_timeout + Duration::from_secs(1);
        let known = now.wait_for(|now| !now.is_awaited());
        // Whatever comes of it, the catalog says how it stands.
        let _ = tokio::time::timeout(limit, known).await;
    }

    /// How it stands in a catalog.
    pub(crate) fn source(&self) -> Source {
        let now = self.now.borrow();
        let state = match (&now.phase, now.seen) {
            (Phase::Down { reason, .. }, _) => State::Unavailable { reason: reason.clone() },
            (Phase::Asleep | Phase::Starting, false) if now.is_blank() => {
                State::Unavailable { reason: "still starting".to_owned() }
            }
            (Phase::Asleep | Phase::Starting | Phase::Up, seen) => {
                // It is there, but its functions may be others by now.
                let is_old = now.listing.unread.contains(&Kind::Tools);
                if seen && !is_old { State::Available } else { State::Remembered }
            }
        };
        Source {
            description: self.upstream.description.clone(),
            state,
            ..Source::new(&self.upstream.label, Arc::clone(&now.listing))
        }
    }

    /// Asks the upstream, starting it first when it is not up.
    pub fn ask<'a>(
        &'a self,
        ask: Ask,
        context: &'a Context,
    ) -> impl Future<Output = Result<Reply, Failure>> + use<'a> {
        // Boxed, here and below: what few questions need is no weight for the
        // others.
        match Lasting::of(&ask) {
            Lasting::No => Either::Left(self.ask_now(ask, context)),
            Lasting::Watch => Either::Right(self.watch(ask, context).boxed()),
            Lasting::Unwatch => Either::Right(self.unwatch(ask, context).boxed()),
        }
    }

    async fn watch(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let reply = self.ask_now(ask.clone(), context).await?;
        if matches!(reply, Reply::Result(_)) {
            self.wishes.watch(self.label(), ask, context);
        }
        Ok(reply)
    }

    async fn unwatch(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        self.wishes.unwatch(self.label(), &ask, context);
        match self.open_session() {
            Some(_) => self.ask_now(ask, context).await,
            // It watches nothing, and is not started for that.
            None => Ok(Reply::Result(Json::empty_object())),
        }
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` keeps its arguments twice")]
    fn ask_now(&self, ask: Ask, context: &Context) -> impl Future<Output = Result<Reply, Failure>> {
        async move {
            let mut busy = Busy::enter(self);
            let provider = match self.open_session() {
                Some(provider) => provider,
                None => match Box::pin(self.provider_of_the_same(&ask)).await {
                    Ok(provider) => provider,
                    Err(failure) => match Box::pin(self.lawful_heir()).await {
                        Some(heir) => return Box::pin(heir.ask_now(ask, context)).await,
                        None => return Err(failure),
                    },
                },
            };
            let limit = self.upstream.call_timeout;
            let patience = context.timeout.map_or(limit, |patience| patience.min(limit));
            let context = self.within(patience, context);
            let since = self.elapsed();
            let asking = provider.ask(ask, &context);
            let outcome = match provider.enforces_timeout() {
                true => Ok(asking.await),
                false => Box::pin(tokio::time::timeout(patience, asking)).await,
            };
            let until = self.elapsed();
            busy.until = Some(until);
            self.calls.fetch_add(1, Ordering::Relaxed);
            self.micros.fetch_add(until - since, Ordering::Relaxed);
            usable(outcome.unwrap_or(Err(Failure::Timeout { after: patience }))?)
        }
    }

    /// Tells the upstream something, if there is a session: it starts nothing,
    /// counts as no call, and what is answered does not matter.
    pub async fn tell(&self, ask: Ask, context: &Context, limit: Duration) {
        let Some(provider) = self.open_session() else { return };
        let (ask, context) = (self.wishes.together(ask), self.within(limit, context));
        let _ = tokio::time::timeout(limit, provider.ask(ask, &context)).await;
    }

    /// A question's surroundings, as the upstream gets them.
    fn within(&self, patience: Duration, context: &Context) -> Context {
        let (client_handle, scrubber) =
            (Arc::clone(&context.client_handle), Arc::clone(&self.scrubber));
        let client_handle = Arc::new(Masked { client_handle, scrubber });
        Context { timeout: Some(patience), client_handle, ..context.clone() }
    }

    /// The session, opened when there is none.
    pub(crate) async fn provider(&self) -> Result<Arc<dyn Provider>, Failure> {
        if let Some(provider) = self.open_session() {
            return Ok(provider);
        }
        let mut now = self.now.subscribe();
        self.wake.notify_one();
        let settled = |now: &Now| match &now.phase {
            Phase::Up => true,
            Phase::Down { failures, .. } => 0 < *failures,
            Phase::Asleep | Phase::Starting => false,
        };
        let limit = self.upstream.start_timeout + Duration::from_secs(1);
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

    /// The session, opened when there is none: only if the tool that is called
    /// is then what it was remembered to be, because that is what was checked,
    /// trusted and agreed to.
    async fn provider_of_the_same(&self, ask: &Ask) -> Result<Arc<dyn Provider>, Failure> {
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

    /// What stands in its place, for who still asks here: only if it lists the
    /// very same tools, because what was allowed was allowed of those.
    async fn lawful_heir(&self) -> Option<&Arc<Link>> {
        let heir = self.heir.get()?;
        heir.provider().await.ok()?;
        (heir.listing().tools == self.listing().tools).then_some(heir)
    }

    pub(crate) fn is_followed_by(&self, heir: Option<&Arc<Link>>) {
        if let Some(heir) = heir {
            // An entry is changed once; then it is another.
            self.heir.set(Arc::clone(heir)).ok();
        }
    }

    fn open_session(&self) -> Option<Arc<dyn Provider>> {
        let now = self.now.borrow();
        match now.phase {
            Phase::Up => now.provider.clone(),
            Phase::Asleep | Phase::Starting | Phase::Down { .. } => None,
        }
    }

    /// Starts what is to run without being asked for and never did.
    pub(crate) fn rouse(&self, wanted: Rousing) {
        let now = self.now.borrow();
        let eager = match wanted {
            Rousing::Eager => true,
            Rousing::Unfamiliar => !self.is_familiar,
        };
        let wanted = (self.upstream.start == Start::Eager && eager) || now.listing.tools.is_empty();
        if wanted && !now.seen && now.phase == Phase::Asleep {
            self.wake.notify_one();
        }
    }

    /// How long nobody has used it; zero while somebody does, or watches
    /// something of it.
    pub(crate) fn idle(&self) -> Duration {
        if self.busy.load(Ordering::Relaxed) != 0 || self.wishes.any(self.label()) {
            return Duration::ZERO;
        }
        let used = Duration::from_micros(self.used.load(Ordering::Relaxed));
        self.epoch.elapsed().saturating_sub(used)
    }

    pub(crate) fn touch(&self) {
        self.used.store(self.elapsed(), Ordering::Relaxed);
    }

    /// Microseconds since `epoch`.
    fn elapsed(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Somebody is using the link; ends with the call, however that ends.
struct Busy<'a> {
    link: &'a Link,
    /// When it ended, if somebody has looked at the clock.
    until: Option<u64>,
}

impl Busy<'_> {
    fn enter(link: &Link) -> Busy<'_> {
        link.busy.fetch_add(1, Ordering::Relaxed);
        Busy { link, until: None }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        match self.until {
            Some(until) => self.link.used.store(until, Ordering::Relaxed),
            None => self.link.touch(),
        }
        self.link.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reason on one line, short enough to be shown beside a name.
pub(crate) fn reason(failure: &Failure) -> String {
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
    catalog::summary::cut(&line, 160)
}

/// A result is an object. Clients that are given anything else wait for ever.
fn usable(reply: Reply) -> Result<Reply, Failure> {
    match &reply {
        Reply::Result(result) if !result.is_object() => {
            let reason = format!(
                "its result is no object but `{}`",
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
    fn a_result_that_is_no_object_is_no_answer() {
        let of = |text: &str| usable(Reply::Result(Json::parse(text.to_owned()).unwrap()));
        assert!(of("{}").is_ok());
        for text in ["null", "5", "[]", "\"x\""] {
            let told = of(text).unwrap_err().to_string();
            assert!(told.contains(&format!("no object but `{text}`")), "{told}");
        }
    }
}
