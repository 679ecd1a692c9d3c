//! One upstream with a session for each caller.
//!
//! Where callers have credentials of their own, their requests go over a session
//! that was opened with those. Such sessions are opened when they are first
//! needed, are limited in number, and are closed when idle. The listing comes
//! from the session that all callers share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tool::{Ask, Client, Context, Event, Failure, Identity, Json, Listing, Provider, Reply, Sent};

/// Opens sessions as a caller.
#[async_trait]
pub trait CallerConnector: Send + Sync {
    /// Whose credentials this caller's requests use.
    fn access(&self, caller: &Identity) -> Access;

    /// Opens a session with a caller's own credentials.
    async fn open(&self, subject: &str, client: &Client) -> Result<Arc<dyn Provider>, Failure>;
}

/// Whose credentials a caller's requests use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    Shared,
    Own,
    /// None: the caller has no access, and this is what to do about it.
    Denied(String),
}

/// How many sessions there may be, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub sessions: usize,
    /// A session that nobody used for this long is closed.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sessions: 64, idle: Duration::from_secs(600) }
    }
}

/// The upstream, with a session for each caller.
pub struct PerCallerSessions {
    shared: Arc<dyn Provider>,
    connector: Arc<dyn CallerConnector>,
    client: Client,
    limits: Limits,
    sessions: Arc<Sessions>,
    _sweeper: AbortOnDropHandle<()>,
}

type Sessions = Mutex<HashMap<String, Arc<CallerSession>>>;

/// A caller's session, or the one that is being opened.
struct CallerSession {
    session: tokio::sync::Mutex<Option<Arc<dyn Provider>>>,
    used: Mutex<Instant>,
}

impl PerCallerSessions {
    pub fn new(
        shared: Arc<dyn Provider>,
        connector: Arc<dyn CallerConnector>,
        client: &Client,
        limits: Limits,
    ) -> PerCallerSessions {
        let sessions = Arc::<Sessions>::default();
        let sweeper =
            AbortOnDropHandle::new(tokio::spawn(sweep(Arc::clone(&sessions), limits.idle)));
        PerCallerSessions {
            shared,
            connector,
            client: client.clone(),
            limits,
            sessions,
            _sweeper: sweeper,
        }
    }

    /// A caller's open session, and its slot.
    async fn session(
        &self,
        subject: &str,
    ) -> Result<(Arc<CallerSession>, Arc<dyn Provider>), Failure> {
        let slot = self.slot(subject);
        // One request opens it for all that wait.
        let mut session = slot.session.lock().await;
        let opened = match &*session {
            Some(session) => Arc::clone(session),
            None => self.connector.open(subject, &self.client).await?,
        };
        *session = Some(Arc::clone(&opened));
        drop(session);
        Ok((slot, opened))
    }

    /// The caller's slot. When there are too many, the one that was unused for
    /// longest is closed.
    fn slot(&self, subject: &str) -> Arc<CallerSession> {
        let mut sessions = lock(&self.sessions);
        if let Some(slot) = sessions.get(subject) {
            slot.touch();
            return Arc::clone(slot);
        }
        while self.limits.sessions.max(1) <= sessions.len() {
            let oldest = sessions.iter().min_by_key(|(_, slot)| slot.used());
            let Some(oldest) = oldest.map(|(subject, _)| subject.clone()) else { break };
            sessions.remove(&oldest);
        }
        let slot = CallerSession {
            session: tokio::sync::Mutex::new(None),
            used: Mutex::new(Instant::now()),
        };
        let slot = Arc::new(slot);
        sessions.insert(subject.to_owned(), Arc::clone(&slot));
        slot
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
            Access::Own if is_notification(&ask) && !lock(&self.sessions).contains_key(subject) => {
                Ok(Reply::Result(Json::empty_object()))
            }
            Access::Own => {
                let (slot, session) = self.session(subject).await?;
                let answer = session.ask(ask, context).await;
                if matches!(answer, Err(Failure::Lost { .. } | Failure::Unavailable { .. })) {
                    // The next request opens another, unless one has already.
                    let mut sessions = lock(&self.sessions);
                    if sessions.get(subject).is_some_and(|now| Arc::ptr_eq(now, &slot)) {
                        sessions.remove(subject);
                    }
                } else if let Some(slot) = lock(&self.sessions).get(subject) {
                    slot.touch();
                }
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
}

fn lock(sessions: &Sessions) -> MutexGuard<'_, HashMap<String, Arc<CallerSession>>> {
    sessions.lock()
}

/// Whether the client only notifies, and expects no answer.
fn is_notification(ask: &Ask) -> bool {
    matches!(ask, Ask::Other { method, .. } if method.starts_with("notifications/"))
}

/// Closes idle sessions. One that is in use right now ends with its last
/// request.
async fn sweep(sessions: Arc<Sessions>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 4).await;
        lock(&sessions).retain(|_, slot| slot.used().elapsed() < idle);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt;
    use tool::Call;

    use super::*;

    /// Answers with its name, and counts how many of it there are.
    struct Named(String, Arc<AtomicUsize>);

    impl Named {
        fn new(name: &str, count: &Arc<AtomicUsize>) -> Arc<Named> {
            count.fetch_add(1, Ordering::Relaxed);
            Arc::new(Named(name.to_owned(), Arc::clone(count)))
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
            futures::stream::empty().boxed()
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

    struct Connector {
        alive: Arc<AtomicUsize>,
        opened: AtomicUsize,
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
            Ok(Named::new(subject, &self.alive))
        }
    }

    struct Fixture {
        callers: PerCallerSessions,
        connector: Arc<Connector>,
    }

    impl Fixture {
        fn new(sessions: usize) -> Fixture {
            let alive = Arc::<AtomicUsize>::default();
            let shared = Named::new("everybody", &alive);
            let connector = Arc::new(Connector { alive, opened: AtomicUsize::new(0) });
            let limits = Limits { sessions, idle: Duration::from_secs(60) };
            let shown = Arc::clone(&connector) as Arc<dyn CallerConnector>;
            let callers = PerCallerSessions::new(shared, shown, &Client::named("c", ""), limits);
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
}
