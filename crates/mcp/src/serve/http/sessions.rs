//! The sessions of an HTTP endpoint.
//!
//! An [`HttpSession`] is a session and what HTTP adds to it: the requests that are being
//! answered, and the streams that a client may come back to. HttpSessions that nobody
//! uses are cleared after a while, and the longest unused one gives way when
//! there are too many.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tool::Event;

use super::batch::InFlight;
use super::resumable::{Reader, ResumableStream};
use crate::message;
use crate::serve::server::McpServer;
use crate::serve::session::Session;

/// How many sessions there may be, and how long one may be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub sessions: usize,
    pub idle: Duration,
}

/// The number of the stream that belongs to no request.
const STANDALONE: u64 = 0;

/// How long, and how many at once, finished streams can be resumed.
const RESUMABLE: Duration = Duration::from_secs(60);
const N_RESUMABLE: usize = 8;
const RESUMABLE_BYTES: usize = 512 << 10;

/// All sessions.
pub(super) struct HttpSessions {
    server: Arc<McpServer>,
    limits: Limits,
    sessions: Mutex<HashMap<Arc<str>, Arc<HttpSession>>>,
    /// Whether the task that clears runs. Only changed under the lock.
    sweeping: AtomicBool,
}

/// One session.
pub(super) struct HttpSession {
    pub(super) inner: Arc<Session>,
    pub(super) in_flight: Arc<InFlight>,
    streams: Mutex<Streams>,
    /// Held by every connection that streams to this client.
    presence: Arc<()>,
    used: Mutex<Instant>,
}

#[derive(Default)]
struct Streams {
    last: u64,
    open: BTreeMap<u64, Arc<ResumableStream>>,
    news: Option<AbortHandle>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sessions: 10_000, idle: Duration::from_secs(30 * 60) }
    }
}

impl HttpSessions {
    pub(super) fn new(server: Arc<McpServer>, limits: Limits) -> Arc<HttpSessions> {
        Arc::new(HttpSessions {
            server,
            limits,
            sessions: Mutex::default(),
            sweeping: AtomicBool::new(false),
        })
    }

    /// A session that is not found by its id, and not cleared either.
    pub(super) fn detached(session: Session) -> Arc<HttpSession> {
        Arc::new(HttpSession {
            inner: Arc::new(session),
            in_flight: Arc::default(),
            streams: Mutex::default(),
            presence: Arc::new(()),
            used: Mutex::new(Instant::now()),
        })
    }

    pub(super) fn add(self: &Arc<Self>, session: Session) {
        let session = HttpSessions::detached(session);
        let mut sessions = self.sessions.lock();
        if !self.sweeping.swap(true, Ordering::Relaxed) {
            self.sweep_from_now_on();
        }
        let crowded = self.limits.sessions <= sessions.len();
        let longest_unused = || sessions.values().min_by_key(|session| session.used()).cloned();
        let gives_way = crowded.then(longest_unused).flatten();
        sessions.insert(Arc::clone(&session.inner.id), Arc::clone(&session));
        drop(sessions);
        if let Some(session) = gives_way {
            self.end(&session.inner.id);
        }
    }

    /// The session with this id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.sessions.lock().get(id).cloned()?;
        *session.used.lock() = Instant::now();
        Some(session)
    }

    /// Ends a session: what runs is cancelled, what is kept is dropped.
    pub(super) fn end(&self, id: &str) {
        let session = self.sessions.lock().remove(id);
        if let Some(session) = session {
            self.close(&session);
        }
    }

    /// Cancels what runs, drops what is kept, and gives up what the session
    /// wanted of its provider.
    pub(super) fn close(&self, session: &Arc<HttpSession>) {
        session.in_flight.cancel_all();
        session.close();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (server, session) = (Arc::clone(&self.server), Arc::clone(session));
        runtime.spawn(async move { server.close(&session.inner).await });
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Starts the task that clears what nobody uses. It ends with the last
    /// session.
    fn sweep_from_now_on(self: &Arc<Self>) {
        let sessions = Arc::downgrade(self);
        let every = (self.limits.idle / 4).clamp(Duration::from_millis(10), RESUMABLE);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(sessions) = sessions.upgrade() else { return };
                if !sessions.sweep(Instant::now()) {
                    return;
                }
            }
        });
    }

    /// Clears what nobody uses; `false` when nothing is left.
    fn sweep(&self, now: Instant) -> bool {
        let sessions: Vec<_> = self.sessions.lock().values().cloned().collect();
        for session in &sessions {
            session.streams.lock().forget(now);
            if session.is_unused() && self.limits.idle <= now - session.used() {
                self.end(&session.inner.id);
            }
        }
        let sessions = self.sessions.lock();
        self.sweeping.store(!sessions.is_empty(), Ordering::Relaxed);
        !sessions.is_empty()
    }
}

impl HttpSession {
    /// Opens a stream for the answers to one POST.
    pub(super) fn stream(&self) -> Arc<ResumableStream> {
        let mut streams = self.streams.lock();
        streams.forget(Instant::now());
        streams.last += 1;
        let number = streams.last;
        let replay = ResumableStream::new(number);
        streams.open.insert(number, Arc::clone(&replay));
        replay
    }

    /// The stream that belongs to no request; the first time it is asked for,
    /// what the provider tells unasked begins to flow.
    pub(super) fn standalone(&self) -> Arc<ResumableStream> {
        let mut streams = self.streams.lock();
        let replay =
            streams.open.entry(STANDALONE).or_insert_with(|| ResumableStream::new(STANDALONE));
        let replay = Arc::clone(replay);
        streams.forward_events(&self.inner, &replay);
        replay
    }

    /// Lets what the provider tells unasked flow to this stream.
    pub(super) fn forward_events(&self, replay: &Arc<ResumableStream>) {
        self.streams.lock().forward_events(&self.inner, replay);
    }

    /// The stream that an event id names, if it is still there.
    pub(super) fn resume(&self, stream: u64) -> Option<Arc<ResumableStream>> {
        match stream {
            STANDALONE => Some(self.standalone()),
            stream => self.streams.lock().open.get(&stream).cloned(),
        }
    }

    /// Reads a stream; as long as somebody does, the session is in use.
    pub(super) fn read(
        &self,
        replay: &Arc<ResumableStream>,
        after: Option<u64>,
        every: Duration,
    ) -> Reader {
        replay.read(after, every, Arc::clone(&self.presence) as _)
    }

    fn used(&self) -> Instant {
        *self.used.lock()
    }

    fn is_unused(&self) -> bool {
        let unused = Arc::strong_count(&self.presence) == 1 && self.in_flight.is_empty();
        if !unused {
            *self.used.lock() = Instant::now();
        }
        unused
    }

    fn close(&self) {
        let streams = std::mem::take(&mut *self.streams.lock());
        if let Some(news) = streams.news {
            news.abort();
        }
        for replay in streams.open.values() {
            replay.close();
        }
    }
}

impl Streams {
    fn forward_events(&mut self, session: &Arc<Session>, replay: &Arc<ResumableStream>) {
        if self.news.is_none() {
            // Before anything else happens, so that nothing is missed.
            let events = session.provider.events();
            let task = pass_on(events, Arc::clone(session), Arc::clone(replay));
            self.news = Some(tokio::spawn(task).abort_handle());
        }
    }

    /// Forgets finished streams that are old, many or large.
    fn forget(&mut self, now: Instant) {
        let old = |closed: Instant| RESUMABLE <= now - closed;
        self.open.retain(|_, replay| !replay.closed().is_some_and(old));
        loop {
            let finished: Vec<_> =
                self.open.iter().filter(|(_, replay)| replay.closed().is_some()).collect();
            let n_bytes: usize = finished.iter().map(|(_, replay)| replay.n_bytes()).sum();
            if finished.len() <= N_RESUMABLE && n_bytes <= RESUMABLE_BYTES {
                return;
            }
            let Some(first) = finished.first().map(|(number, _)| **number) else { return };
            self.open.remove(&first);
        }
    }
}

/// Writes what the provider tells unasked to a stream.
async fn pass_on(
    mut events: BoxStream<'static, Event>,
    session: Arc<Session>,
    replay: Arc<ResumableStream>,
) {
    while let Some(event) = events.next().await {
        let Some(note) = session.news(event) else { continue };
        let params = (!note.params.is_empty()).then(|| note.params.to_json());
        let mut text = String::new();
        message::write_notification(&mut text, &note.method, params.as_ref());
        replay.push(text.as_bytes());
    }
}
