//! Gives an upstream one session per caller, opened with the caller's own credentials.
//!
//! Such sessions are opened when they are first needed, are limited in number, and are
//! closed when idle. They are supervised like the session that all callers share: opened
//! within a time limit, watched, and opened again after growing pauses when they die or
//! do not open. The listing comes from the shared session.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tool::{Ask, Client, Context, Event, Failure, Identity, Json, Listing, Provider, Reply, Sent};

use super::restarts::{Restarts, min_pause};
use super::supervised::{failure_reason, one_line};

/// Opens sessions as a caller.
#[async_trait]
pub trait CallerConnector: Send + Sync {
    /// Returns whose credentials this caller's requests use.
    fn access(&self, caller: &Identity) -> Access;

    /// Opens a session with a caller's own credentials.
    async fn open(&self, subject: &str, client: &Client) -> Result<Arc<dyn Provider>, Failure>;
}

/// Whose credentials a caller's requests use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Those of the operator, over the session that all callers share.
    Shared,
    /// The caller's own.
    Own,
    /// None: the caller has no access. The text says what to do about it.
    Denied(String),
}

/// The limits of sessions per upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub sessions: usize,
    /// A session that nobody used for this long is closed.
    pub idle: Duration,
    /// How long a session may take to open.
    pub start_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            sessions: 64,
            idle: Duration::from_secs(600),
            start_timeout: Duration::from_secs(30),
        }
    }
}

/// A request waits at most this long for a restart; if that is further away, it fails with
/// the reason of the last failure.
const MAX_WAIT: Duration = Duration::from_millis(250);

/// A provider that answers every caller over a session of its own.
pub struct PerCallerSessions {
    /// The upstream's label, for the log.
    label: Arc<str>,
    shared: Arc<dyn Provider>,
    connector: Arc<dyn CallerConnector>,
    client: Client,
    limits: Limits,
    sessions: Arc<Sessions>,
    _sweeper: AbortOnDropHandle<()>,
}

/// The sessions, by the caller's subject.
type Sessions = Mutex<HashMap<String, Arc<CallerSession>>>;

/// A caller's session, open or not.
struct CallerSession {
    label: Arc<str>,
    subject: String,
    /// Locked while it is being opened.
    state: tokio::sync::Mutex<SessionState>,
    /// When it was last used.
    used: Mutex<Instant>,
}

#[derive(Default)]
struct SessionState {
    open: Option<OpenSession>,
    restarts: Restarts,
    /// Why it could not be opened or died, and when it may be opened again.
    failed: Option<(Failure, Instant)>,
}

struct OpenSession {
    provider: Arc<dyn Provider>,
    since: Instant,
    /// Closes the session when the provider is gone.
    _watcher: AbortOnDropHandle<()>,
}

impl PerCallerSessions {
    pub fn new(
        label: &str,
        shared: Arc<dyn Provider>,
        connector: Arc<dyn CallerConnector>,
        client: &Client,
        limits: Limits,
    ) -> PerCallerSessions {
        let sessions = Arc::<Sessions>::default();
        let sweeper = tokio::spawn(sweep(Arc::clone(&sessions), limits.idle));
        PerCallerSessions {
            label: label.into(),
            shared,
            connector,
            client: client.clone(),
            limits,
            sessions,
            _sweeper: AbortOnDropHandle::new(sweeper),
        }
    }

    /// Returns a caller's session and its provider, opened if it is not.
    async fn open_session(
        &self,
        subject: &str,
    ) -> Result<(Arc<CallerSession>, Arc<dyn Provider>), Failure> {
        let session = self.find_or_add(subject);
        // One request opens it for all that wait.
        let mut state = session.state.lock().await;
        if let Some(open) = &state.open {
            let provider = Arc::clone(&open.provider);
            drop(state);
            return Ok((session, provider));
        }
        state.wait_for_restart().await?;
        let began = Instant::now();
        match self.connect(subject).await {
            Ok(provider) => {
                tracing::info!(upstream = &*self.label, caller = subject, "session opened");
                let watcher =
                    watch(Arc::downgrade(&session), Arc::downgrade(&provider), provider.events());
                state.failed = None;
                state.open = Some(OpenSession {
                    provider: Arc::clone(&provider),
                    since: Instant::now(),
                    _watcher: AbortOnDropHandle::new(tokio::spawn(watcher)),
                });
                drop(state);
                Ok((session, provider))
            }
            Err(failure) => {
                state.restarts.failed();
                let pause = state.pause_after(failure.clone(), began.elapsed());
                let why = failure_reason(&failure);
                tracing::warn!(
                    upstream = &*self.label,
                    caller = subject,
                    ?pause,
                    "no session: {why}"
                );
                Err(failure)
            }
        }
    }

    async fn connect(&self, subject: &str) -> Result<Arc<dyn Provider>, Failure> {
        let limit = self.limits.start_timeout;
        let connecting = self.connector.open(subject, &self.client);
        tokio::time::timeout(limit, connecting).await.unwrap_or_else(|_| {
            Err(Failure::Unavailable {
                reason: format!("did not start within {limit:?} (`start_timeout`)"),
            })
        })
    }

    /// Returns the caller's session, open or not. If there are too many sessions, the least
    /// recently used one is closed.
    fn find_or_add(&self, subject: &str) -> Arc<CallerSession> {
        let mut sessions = lock(&self.sessions);
        if let Some(session) = sessions.get(subject) {
            session.touch();
            return Arc::clone(session);
        }
        while self.limits.sessions.max(1) <= sessions.len() {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.used());
            let Some(oldest) = oldest.map(|(subject, _)| subject.clone()) else { break };
            sessions.remove(&oldest);
        }
        let session = Arc::new(CallerSession {
            label: Arc::clone(&self.label),
            subject: subject.to_owned(),
            state: tokio::sync::Mutex::default(),
            used: Mutex::new(Instant::now()),
        });
        sessions.insert(subject.to_owned(), Arc::clone(&session));
        session
    }

    /// Returns whether a caller has a session that is open or being opened.
    fn has_session(&self, subject: &str) -> bool {
        lock(&self.sessions).get(subject).is_some_and(|session| session.is_open())
    }
}

#[async_trait]
impl Provider for PerCallerSessions {
    fn listing(&self) -> Arc<Listing> {
        self.shared.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.shared.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let subject = &context.caller.subject;
        match self.connector.access(&context.caller) {
            Access::Shared => self.shared.ask(ask, context).await,
            Access::Denied(reason) => Err(Failure::Unauthorized { reason, sent: Sent::No }),
            // A notification does not open a session.
            Access::Own if is_notification(&ask) && !self.has_session(subject) => {
                Ok(Reply::Result(Json::empty_object()))
            }
            Access::Own => {
                let (session, provider) = self.open_session(subject).await?;
                let answer = provider.ask(ask, context).await;
                if let Err(failure @ (Failure::Lost { .. } | Failure::Unavailable { .. })) = &answer
                {
                    session.died(&provider, &failure_reason(failure)).await;
                }
                session.touch();
                answer
            }
        }
    }
}

impl CallerSession {
    fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    fn used(&self) -> Instant {
        *self.used.lock()
    }

    /// Returns whether it is open, or being opened.
    fn is_open(&self) -> bool {
        match self.state.try_lock() {
            Ok(state) => state.open.is_some(),
            Err(_) => true,
        }
    }

    /// Closes the session if its provider is still this one. The next request opens another,
    /// after a pause.
    async fn died(&self, provider: &Arc<dyn Provider>, why: &str) {
        let mut state = self.state.lock().await;
        let is_this = |open: &mut OpenSession| Arc::ptr_eq(&open.provider, provider);
        let Some(open) = state.open.take_if(is_this) else { return };
        state.restarts.died(open.since.elapsed());
        let failure = Failure::Unavailable { reason: why.to_owned() };
        let pause = state.pause_after(failure, Duration::ZERO);
        let (upstream, caller) = (&*self.label, self.subject.as_str());
        tracing::warn!(upstream, caller, ?pause, "session ended: {why}");
    }
}

impl SessionState {
    /// Notes why there is no session, and returns the pause before a request may open the
    /// next; `took` is how long the failed attempt took.
    fn pause_after(&mut self, failure: Failure, took: Duration) -> Duration {
        let pause = min_pause(self.restarts.pause(rand::random()), took);
        self.failed = Some((failure, Instant::now() + pause));
        pause
    }

    /// Waits for the end of the pause, if it is near; else returns the failure that it began
    /// with.
    async fn wait_for_restart(&self) -> Result<(), Failure> {
        let Some((failure, until)) = &self.failed else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if MAX_WAIT < left {
            return Err(failure.clone());
        }
        tokio::time::sleep(left).await;
        Ok(())
    }
}

fn lock(sessions: &Sessions) -> MutexGuard<'_, HashMap<String, Arc<CallerSession>>> {
    sessions.lock()
}

/// Returns whether a request is a notification, which expects no answer.
fn is_notification(ask: &Ask) -> bool {
    matches!(ask, Ask::Other { method, .. } if method.starts_with("notifications/"))
}

/// Closes a caller's session as soon as its provider is gone.
async fn watch(
    session: Weak<CallerSession>,
    provider: Weak<dyn Provider>,
    mut events: BoxStream<'static, Event>,
) {
    let why = loop {
        match events.next().await {
            Some(Event::Gone { reason }) => break one_line(&reason),
            Some(Event::Changed(_) | Event::Updated { .. } | Event::Notification(_)) => {}
            None => break "the connection was closed".to_owned(),
        }
    };
    if let (Some(session), Some(provider)) = (session.upgrade(), provider.upgrade()) {
        session.died(&provider, &why).await;
    }
}

/// Closes idle sessions. One that is in use right now ends with its last
/// request.
async fn sweep(sessions: Arc<Sessions>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 4).await;
        lock(&sessions).retain(|_, session| session.used().elapsed() < idle);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;
    use tool::Call;

    use super::*;

    /// Answers with its name, and counts how many of it there are.
    struct Named(String, Arc<AtomicUsize>, Arc<Notify>);

    impl Named {
        /// It is gone when `gone` is notified.
        fn new(name: &str, count: &Arc<AtomicUsize>, gone: &Arc<Notify>) -> Arc<Named> {
            count.fetch_add(1, Ordering::Relaxed);
            Arc::new(Named(name.to_owned(), Arc::clone(count), Arc::clone(gone)))
        }
    }

    impl Drop for Named {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[async_trait]
    impl Provider for Named {
        fn listing(&self) -> Arc<Listing> {
            Arc::default()
        }

        fn events(&self) -> BoxStream<'static, Event> {
            let gone = Arc::clone(&self.2);
            futures::stream::once(async move {
                gone.notified().await;
                Event::Gone { reason: "it crashed".to_owned() }
            })
            .boxed()
        }

        async fn ask(&self, ask: Ask, _: &Context) -> Result<Reply, Failure> {
            let Ask::Call(call) = ask else { return Ok(Reply::text(&self.0)) };
            if call.name == "die late" {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            if call.name.starts_with("die") {
                return Err(Failure::Unavailable { reason: "gone".to_owned() });
            }
            Ok(Reply::text(&self.0))
        }
    }

    /// What becomes of an attempt to open a session.
    #[derive(Clone, Copy)]
    enum Opens {
        Well,
        Refused,
        Never,
    }

    struct Connector {
        alive: Arc<AtomicUsize>,
        opened: AtomicUsize,
        opens: Mutex<Opens>,
        gone: Arc<Notify>,
    }

    #[async_trait]
    impl CallerConnector for Connector {
        fn access(&self, caller: &Identity) -> Access {
            match caller.subject.as_str() {
                "" => Access::Shared,
                "eve" => Access::Denied("ask the operator".to_owned()),
                _ => Access::Own,
            }
        }

        async fn open(&self, subject: &str, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
            self.opened.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(50)).await;
            let opens = *self.opens.lock();
            match opens {
                Opens::Well => Ok(Named::new(subject, &self.alive, &self.gone)),
                Opens::Refused => {
                    let reason = "log in again".to_owned();
                    Err(Failure::Unauthorized { reason, sent: Sent::No })
                }
                Opens::Never => std::future::pending().await,
            }
        }
    }

    struct Fixture {
        callers: PerCallerSessions,
        connector: Arc<Connector>,
    }

    impl Fixture {
        fn new(sessions: usize) -> Fixture {
            let alive = Arc::<AtomicUsize>::default();
            let shared = Named::new("everybody", &alive, &Arc::default());
            let connector = Arc::new(Connector {
                alive,
                opened: AtomicUsize::new(0),
                opens: Mutex::new(Opens::Well),
                gone: Arc::default(),
            });
            let idle = Duration::from_secs(60);
            let limits = Limits { sessions, idle, ..Limits::default() };
            let shown = Arc::clone(&connector) as Arc<dyn CallerConnector>;
            let callers =
                PerCallerSessions::new("up", shared, shown, &Client::named("c", ""), limits);
            Fixture { callers, connector }
        }

        async fn ask(&self, subject: &str, tool: &str) -> String {
            let caller = Identity { subject: subject.to_owned(), ..Identity::default() };
            let context = Context { caller: Arc::new(caller), ..Context::anonymous() };
            let call = Call::new(tool, tool::Json::empty_object());
            match self.callers.ask(Ask::Call(call), &context).await {
                Ok(reply) => reply.tool_result().unwrap().text(),
                Err(failure) => failure.to_string(),
            }
        }

        /// How many sessions there are beside the shared one, and were opened.
        fn counts(&self) -> (usize, usize) {
            let alive = self.connector.alive.load(Ordering::Relaxed);
            (alive - 1, self.connector.opened.load(Ordering::Relaxed))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_is_answered_over_their_own_session() {
        let fixture = Fixture::new(8);
        assert_eq!(fixture.ask("", "x").await, "everybody");
        assert_eq!(fixture.ask("eve", "x").await, "not authorised: ask the operator");
        let both = futures::future::join(fixture.ask("ann", "x"), fixture.ask("ann", "x")).await;
        assert_eq!(both, ("ann".to_owned(), "ann".to_owned()));
        assert_eq!(fixture.ask("bob", "x").await, "bob");
        assert_eq!(fixture.counts(), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_are_few_and_idle_ones_are_closed() {
        let fixture = Fixture::new(2);
        for subject in ["ann", "bob", "cid"] {
            fixture.ask(subject, "x").await;
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(fixture.counts(), (2, 3));
        fixture.ask("cid", "x").await;
        assert_eq!(fixture.counts(), (2, 3));
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(fixture.counts(), (0, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_died_is_opened_again_by_the_next_question() {
        let fixture = Fixture::new(8);
        assert_eq!(fixture.ask("ann", "die").await, "unavailable: gone");
        assert_eq!(fixture.ask("ann", "x").await, "ann");
        assert_eq!(fixture.counts(), (1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn who_learns_late_that_a_session_died_leaves_the_next_one_alone() {
        let fixture = Fixture::new(8);
        let late = fixture.ask("ann", "die late");
        let meanwhile = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            fixture.ask("ann", "die").await;
            fixture.ask("ann", "x").await
        };
        futures::future::join(late, meanwhile).await;
        assert_eq!(fixture.ask("ann", "x").await, "ann");
        assert_eq!(fixture.counts(), (1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_does_not_open_is_tried_again_after_growing_pauses() {
        let fixture = Fixture::new(8);
        *fixture.connector.opens.lock() = Opens::Refused;
        let refused = "not authorised: log in again";
        for attempt in 1..=6 {
            assert_eq!(fixture.ask("ann", "x").await, refused);
            assert_eq!(fixture.counts(), (0, attempt));
            tokio::time::advance(Duration::from_secs(30)).await;
        }
        // The pause has begun anew, and is longer than a request waits.
        assert_eq!(fixture.ask("ann", "x").await, refused);
        for _ in 0..100 {
            assert_eq!(fixture.ask("ann", "x").await, refused);
        }
        assert_eq!(fixture.counts(), (0, 7));
        *fixture.connector.opens.lock() = Opens::Well;
        assert_eq!(fixture.ask("bob", "x").await, "bob");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(fixture.ask("ann", "x").await, "ann");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_hangs_while_it_opens_is_given_up() {
        let fixture = Fixture::new(8);
        *fixture.connector.opens.lock() = Opens::Never;
        let answer = fixture.ask("ann", "x").await;
        assert_eq!(answer, "unavailable: did not start within 30s (`start_timeout`)");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_whose_upstream_is_gone_is_closed_before_anybody_asks() {
        let fixture = Fixture::new(8);
        assert_eq!(fixture.ask("ann", "x").await, "ann");
        fixture.connector.gone.notify_one();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(fixture.counts(), (0, 1));
        assert_eq!(fixture.ask("ann", "x").await, "ann");
        assert_eq!(fixture.counts(), (1, 2));
    }
}
