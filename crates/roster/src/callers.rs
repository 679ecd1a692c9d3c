//! One upstream with a session for each caller.
//!
//! Where callers have credentials of their own, what they ask goes over a
//! session that was opened with those. Such sessions are opened when they are
//! first needed, are few, and are closed when nobody uses them. What is listed
//! comes from the session that all share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tool::{Ask, Client, Context, Event, Failure, Identity, Json, Listing, Provider, Reply};

/// Opens sessions as a caller.
#[async_trait]
pub trait Opener: Send + Sync {
    /// How this caller is let in.
    fn way(&self, caller: &Identity) -> Way;

    /// Opens a session with a caller's own credentials.
    async fn open(&self, subject: &str, client: &Client) -> Result<Arc<dyn Provider>, Failure>;
}

/// Whose credentials a caller's questions go with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    Shared,
    Own,
    /// With none: what to do about it, in one line.
    Closed(String),
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

/// The upstream, as whoever asks.
pub struct Callers {
    shared: Arc<dyn Provider>,
    opener: Arc<dyn Opener>,
    client: Client,
    limits: Limits,
    rooms: Arc<Rooms>,
    _sweeper: AbortOnDropHandle<()>,
}

type Rooms = Mutex<HashMap<String, Arc<Room>>>;

/// A caller's session, or the one that is being opened.
struct Room {
    session: tokio::sync::Mutex<Option<Arc<dyn Provider>>>,
    used: Mutex<Instant>,
}

impl Callers {
    pub fn new(
        shared: Arc<dyn Provider>,
        opener: Arc<dyn Opener>,
        client: &Client,
        limits: Limits,
    ) -> Callers {
        let rooms = Arc::<Rooms>::default();
        let sweeper = AbortOnDropHandle::new(tokio::spawn(sweep(Arc::clone(&rooms), limits.idle)));
        Callers { shared, opener, client: client.clone(), limits, rooms, _sweeper: sweeper }
    }

    /// A caller's session, and the room that it is in.
    async fn session(&self, subject: &str) -> Result<(Arc<Room>, Arc<dyn Provider>), Failure> {
        let room = self.room(subject);
        // One opens it for all who wait.
        let mut session = room.session.lock().await;
        let opened = match &*session {
            Some(session) => Arc::clone(session),
            None => self.opener.open(subject, &self.client).await?,
        };
        *session = Some(Arc::clone(&opened));
        drop(session);
        Ok((room, opened))
    }

    /// The caller's room. When there are too many, whoever was away longest
    /// has to open theirs again.
    fn room(&self, subject: &str) -> Arc<Room> {
        let mut rooms = lock(&self.rooms);
        if let Some(room) = rooms.get(subject) {
            room.touch();
            return Arc::clone(room);
        }
        while self.limits.sessions.max(1) <= rooms.len() {
            let oldest = rooms.iter().min_by_key(|(_, room)| room.used());
            let Some(oldest) = oldest.map(|(subject, _)| subject.clone()) else { break };
            rooms.remove(&oldest);
        }
        let room =
            Room { session: tokio::sync::Mutex::new(None), used: Mutex::new(Instant::now()) };
        let room = Arc::new(room);
        rooms.insert(subject.to_owned(), Arc::clone(&room));
        room
    }
}

#[async_trait]
impl Provider for Callers {
    fn listing(&self) -> Arc<Listing> {
        self.shared.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.shared.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let subject = &context.caller.subject;
        match self.opener.way(&context.caller) {
            Way::Shared => self.shared.ask(ask, context).await,
            Way::Closed(reason) => Err(Failure::Unauthorized { reason }),
            // News are for who is there; nobody is let in for them.
            Way::Own if is_news(&ask) && !lock(&self.rooms).contains_key(subject) => {
                Ok(Reply::Result(Json::empty_object()))
            }
            Way::Own => {
                let (room, session) = self.session(subject).await?;
                let answer = session.ask(ask, context).await;
                if matches!(answer, Err(Failure::Lost { .. } | Failure::Unavailable { .. })) {
                    // The next question opens another, unless one has already.
                    let mut rooms = lock(&self.rooms);
                    if rooms.get(subject).is_some_and(|now| Arc::ptr_eq(now, &room)) {
                        rooms.remove(subject);
                    }
                } else if let Some(room) = lock(&self.rooms).get(subject) {
                    room.touch();
                }
                answer
            }
        }
    }
}

impl Room {
    fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    fn used(&self) -> Instant {
        *self.used.lock()
    }
}

fn lock(rooms: &Rooms) -> MutexGuard<'_, HashMap<String, Arc<Room>>> {
    rooms.lock()
}

/// Whether a caller only says something of itself.
fn is_news(ask: &Ask) -> bool {
    matches!(ask, Ask::Other { method, .. } if method.starts_with("notifications/"))
}

/// Closes sessions that nobody uses. One that is in use right now ends with
/// its last question.
async fn sweep(rooms: Arc<Rooms>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 4).await;
        lock(&rooms).retain(|_, room| room.used().elapsed() < idle);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt;
    use tool::Call;

    use super::*;

    /// Says who it is, and counts how many of it there are.
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

    struct Desk {
        alive: Arc<AtomicUsize>,
        opened: AtomicUsize,
    }

    #[async_trait]
    impl Opener for Desk {
        fn way(&self, caller: &Identity) -> Way {
            match caller.subject.as_str() {
                "" => Way::Shared,
                "eve" => Way::Closed("ask the operator".to_owned()),
                _ => Way::Own,
            }
        }

        async fn open(&self, subject: &str, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
            self.opened.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(Named::new(subject, &self.alive))
        }
    }

    struct Stage {
        callers: Callers,
        desk: Arc<Desk>,
    }

    impl Stage {
        fn new(sessions: usize) -> Stage {
            let alive = Arc::<AtomicUsize>::default();
            let shared = Named::new("everybody", &alive);
            let desk = Arc::new(Desk { alive, opened: AtomicUsize::new(0) });
            let limits = Limits { sessions, idle: Duration::from_secs(60) };
            let opener = Arc::clone(&desk) as Arc<dyn Opener>;
            let callers = Callers::new(shared, opener, &Client::named("c", ""), limits);
            Stage { callers, desk }
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
            let alive = self.desk.alive.load(Ordering::Relaxed);
            (alive - 1, self.desk.opened.load(Ordering::Relaxed))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_is_answered_over_their_own_session() {
        let stage = Stage::new(8);
        assert_eq!(stage.ask("", "x").await, "everybody");
        assert_eq!(stage.ask("eve", "x").await, "not authorised: ask the operator");
        let both = futures::future::join(stage.ask("ann", "x"), stage.ask("ann", "x")).await;
        assert_eq!(both, ("ann".to_owned(), "ann".to_owned()));
        assert_eq!(stage.ask("bob", "x").await, "bob");
        assert_eq!(stage.counts(), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_are_few_and_idle_ones_are_closed() {
        let stage = Stage::new(2);
        for subject in ["ann", "bob", "cid"] {
            stage.ask(subject, "x").await;
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(stage.counts(), (2, 3));
        stage.ask("cid", "x").await;
        assert_eq!(stage.counts(), (2, 3));
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(stage.counts(), (0, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_died_is_opened_again_by_the_next_question() {
        let stage = Stage::new(8);
        assert_eq!(stage.ask("ann", "die").await, "unavailable: gone");
        assert_eq!(stage.ask("ann", "x").await, "ann");
        assert_eq!(stage.counts(), (1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn who_learns_late_that_a_session_died_leaves_the_next_one_alone() {
        let stage = Stage::new(8);
        let late = stage.ask("ann", "die late");
        let meanwhile = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            stage.ask("ann", "die").await;
            stage.ask("ann", "x").await
        };
        futures::future::join(late, meanwhile).await;
        assert_eq!(stage.ask("ann", "x").await, "ann");
        assert_eq!(stage.counts(), (1, 2));
    }
}
