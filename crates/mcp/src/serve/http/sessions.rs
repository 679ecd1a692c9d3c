//! The sessions of an HTTP endpoint.
//!
//! An [`HttpSession`] is a session and what HTTP adds to it: the requests that
//! are being answered, and the streams that a client may come back to. A session
//! that nobody uses is cleared after a while.
//!
//! There is a limit for each caller, for each address, and for all together.
//! Where one is reached, the longest unused session of that caller or address
//! gives way, and for all together one of whoever has the most. A session in
//! use never gives way: then the new one is refused.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tool::Event;

use super::batch::{CallerLoad, InFlight};
use super::resumable::{Reader, ResumableStream};
use crate::message;
use crate::serve::caller::{Caller, CallerKey};
use crate::serve::server::McpServer;
use crate::serve::session::Session;

/// How many sessions there may be, and how long one may be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub sessions: usize,
    pub per_caller: usize,
    /// From one address, whoever the callers are.
    pub per_address: usize,
    pub idle: Duration,
}

/// Why there is no session for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoRoom {
    #[error(
        "this caller has {0} sessions, and all are in use: end some with DELETE, or use one of them"
    )]
    Caller(usize),
    #[error("{0} sessions from this address are in use: end some with DELETE, or use one of them")]
    Address(usize),
    #[error("{0} sessions are in use here; try again in a moment")]
    Everybody(usize),
}

/// The number of the stream that belongs to no request.
const STANDALONE: u64 = 0;

/// How long finished streams can be resumed; how many that have been read, with
/// how many bytes, and how many that have not.
const RESUMABLE: Duration = Duration::from_secs(60);
const N_RESUMABLE: usize = 8;
const RESUMABLE_BYTES: usize = 512 << 10;
const N_UNREAD: usize = 256;

/// All sessions.
pub(super) struct HttpSessions {
    server: Arc<McpServer>,
    limits: Limits,
    table: Mutex<Table>,
    /// Whether the task that clears runs. Only changed under the lock.
    sweeping: AtomicBool,
}

/// The sessions, by id and by whose they are.
#[derive(Default)]
struct Table {
    by_id: HashMap<Arc<str>, Arc<HttpSession>>,
    callers: HashMap<CallerKey, CallerSessions>,
    networks: HashMap<IpAddr, usize>,
}

#[derive(Default)]
struct CallerSessions {
    by_id: HashMap<Arc<str>, Arc<HttpSession>>,
    load: Arc<CallerLoad>,
}

/// How often the table holds a session: whoever holds it beside uses it.
const HELD_BY_TABLE: usize = 2;

/// One session.
pub(super) struct HttpSession {
    pub(super) inner: Arc<Session>,
    pub(super) in_flight: Arc<InFlight>,
    network: Option<IpAddr>,
    streams: Mutex<Streams>,
    /// Held by every connection that streams to this client.
    presence: Arc<()>,
    used: Mutex<Instant>,
    /// When the note that other replicas find it by was last written.
    noted: Mutex<Instant>,
}

#[derive(Default)]
struct Streams {
    last: u64,
    open: BTreeMap<u64, Arc<ResumableStream>>,
    news: Option<AbortHandle>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            sessions: 10_000,
            per_caller: 1000,
            per_address: 5000,
            idle: Duration::from_secs(30 * 60),
        }
    }
}

impl HttpSessions {
    pub(super) fn new(server: Arc<McpServer>, limits: Limits) -> Arc<HttpSessions> {
        let (table, sweeping) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(HttpSessions { server, limits, table, sweeping })
    }

    /// A session that is not found by its id, and not cleared either.
    pub(super) fn detached(session: Session) -> Arc<HttpSession> {
        HttpSession::new(session, None, Arc::default())
    }

    /// Takes a session in, if there is room for it or room can be made.
    pub(super) fn add(self: &Arc<Self>, session: Session, caller: &Caller) -> Result<(), NoRoom> {
        let mut table = self.table.lock();
        let (key, network) = (session.caller_key(), caller.network());
        let gives_way = table.room_for(key, network, &self.limits)?;
        let gives_way = gives_way.and_then(|id| table.remove(&id));
        table.insert(session, network);
        if !self.sweeping.swap(true, Ordering::Relaxed) {
            self.sweep_from_now_on();
        }
        drop(table);
        if let Some(session) = gives_way {
            self.close(&session);
        }
        Ok(())
    }

    /// Takes in a session that another replica opened, unless it is here by now.
    pub(super) fn adopt(
        self: &Arc<Self>,
        session: Session,
        caller: &Caller,
    ) -> Result<Arc<HttpSession>, NoRoom> {
        let id = Arc::clone(&session.id);
        // Of two requests that come at once, one takes it in; the other one's
        // copy is dropped unused.
        if self.find(&id).is_none() {
            self.add(session, caller)?;
        }
        self.find(&id).ok_or(NoRoom::Everybody(self.limits.sessions))
    }

    /// The session with this id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.table.lock().by_id.get(id).cloned()?;
        *session.used.lock() = Instant::now();
        Some(session)
    }

    /// Ends a session: what runs is cancelled, what is kept is dropped.
    pub(super) fn end(&self, id: &str) {
        let session = self.table.lock().remove(id);
        if let Some(session) = session {
            self.close(&session);
        }
    }

    /// Cancels what runs, drops what is kept, and gives up what the session
    /// wanted of its provider.
    pub(super) fn close(&self, session: &Arc<HttpSession>) {
        session.in_flight.end_all();
        session.close();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (server, session) = (Arc::clone(&self.server), Arc::clone(session));
        runtime.spawn(async move { server.close(&session.inner).await });
    }

    pub(super) fn len(&self) -> usize {
        self.table.lock().by_id.len()
    }

    /// Ends the streams on which clients only listen, because we are going.
    pub(super) fn stop_listening(&self) {
        for session in self.table.lock().by_id.values() {
            session.stop_listening();
        }
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
        let mut table = self.table.lock();
        let is_idle = |session: &Arc<HttpSession>| {
            session.streams.lock().forget(now);
            session.is_unused() && self.limits.idle <= now - session.used()
        };
        let idle = table.by_id.values().filter(|session| is_idle(session));
        let idle: Vec<_> = idle.map(|session| Arc::clone(&session.inner.id)).collect();
        let idle: Vec<_> = idle.iter().filter_map(|id| table.remove(id)).collect();
        let is_left = !table.by_id.is_empty();
        self.sweeping.store(is_left, Ordering::Relaxed);
        drop(table);
        idle.iter().for_each(|session| self.close(session));
        is_left
    }
}

impl Table {
    /// Returns which session has to give way to one more of this caller, if any.
    fn room_for(
        &self,
        key: &CallerKey,
        network: Option<IpAddr>,
        limits: &Limits,
    ) -> Result<Option<Arc<str>>, NoRoom> {
        let own = self.callers.get(key);
        if own.is_some_and(|own| limits.per_caller <= own.by_id.len()) {
            let oldest = own.and_then(|own| longest_unused(own.by_id.values()));
            return oldest.map(Some).ok_or(NoRoom::Caller(limits.per_caller));
        }
        let n_here = network.and_then(|network| self.networks.get(&network));
        if n_here.is_some_and(|n_here| limits.per_address <= *n_here) {
            let here = self.by_id.values().filter(|session| session.network == network);
            return longest_unused(here).map(Some).ok_or(NoRoom::Address(limits.per_address));
        }
        if self.by_id.len() < limits.sessions {
            return Ok(None);
        }
        let mut callers: Vec<_> = self.callers.values().collect();
        callers.sort_by_key(|caller| std::cmp::Reverse(caller.by_id.len()));
        let oldest = callers.iter().find_map(|caller| longest_unused(caller.by_id.values()));
        oldest.map(Some).ok_or(NoRoom::Everybody(limits.sessions))
    }

    fn insert(&mut self, session: Session, network: Option<IpAddr>) {
        let id = Arc::clone(&session.id);
        // One that is there already, because two took it in at once.
        if self.by_id.contains_key(&id) {
            return;
        }
        let caller = self.callers.entry(session.caller_key().clone()).or_default();
        let session = HttpSession::new(session, network, Arc::clone(&caller.load));
        caller.by_id.insert(Arc::clone(&id), Arc::clone(&session));
        if let Some(network) = network {
            *self.networks.entry(network).or_default() += 1;
        }
        self.by_id.insert(id, session);
    }

    fn remove(&mut self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.by_id.remove(id)?;
        let key = session.inner.caller_key();
        if let Some(caller) = self.callers.get_mut(key) {
            caller.by_id.remove(id);
            if caller.by_id.is_empty() {
                self.callers.remove(key);
            }
        }
        if let Some(network) = session.network
            && let Some(n_here) = self.networks.get_mut(&network)
        {
            *n_here -= 1;
            if *n_here == 0 {
                self.networks.remove(&network);
            }
        }
        Some(session)
    }
}

/// The session that nobody uses and that was used the longest ago.
fn longest_unused<'a>(sessions: impl Iterator<Item = &'a Arc<HttpSession>>) -> Option<Arc<str>> {
    let unused = sessions.filter(|session| session.is_unused());
    unused.min_by_key(|session| session.used()).map(|session| Arc::clone(&session.inner.id))
}

impl HttpSession {
    fn new(session: Session, network: Option<IpAddr>, load: Arc<CallerLoad>) -> Arc<HttpSession> {
        Arc::new(HttpSession {
            inner: Arc::new(session),
            in_flight: Arc::new(InFlight::new(load)),
            network,
            streams: Mutex::default(),
            presence: Arc::new(()),
            used: Mutex::new(Instant::now()),
            noted: Mutex::new(Instant::now()),
        })
    }

    /// Whether its note has to be kept alive; once for every such time.
    pub(super) fn is_note_old(&self, age: Duration) -> bool {
        let (mut noted, now) = (self.noted.lock(), Instant::now());
        let is_old = age <= now - *noted;
        if is_old {
            *noted = now;
        }
        is_old
    }

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

    /// Returns whether nobody reads from it, asks it anything or waits for an
    /// answer. Asked under the lock of the table, without which nobody finds it.
    fn is_unused(self: &Arc<Self>) -> bool {
        let unused = Arc::strong_count(self) == HELD_BY_TABLE
            && Arc::strong_count(&self.presence) == 1
            && self.in_flight.is_empty();
        if !unused {
            *self.used.lock() = Instant::now();
        }
        unused
    }

    /// Lets every stream go. Those with requests under way end when these have
    /// their answers.
    fn close(&self) {
        self.stop_listening();
        self.streams.lock().open.clear();
    }

    /// Ends the stream that belongs to no request.
    fn stop_listening(&self) {
        let mut streams = self.streams.lock();
        if let Some(news) = streams.news.take() {
            news.abort();
        }
        if let Some(standalone) = streams.open.get(&STANDALONE) {
            standalone.close();
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

    /// Forgets finished streams that are old; of those that have been read, also
    /// what is many or large.
    fn forget(&mut self, now: Instant) {
        let old = |closed: Instant| RESUMABLE <= now - closed;
        self.open.retain(|_, stream| !stream.closed().is_some_and(old));
        self.forget_first(N_RESUMABLE, RESUMABLE_BYTES, |stream| stream.is_read());
        let is_finished = |stream: &ResumableStream| stream.closed().is_some();
        self.forget_first(N_UNREAD, usize::MAX, is_finished);
    }

    /// Forgets the first of some streams until they are few and small enough.
    fn forget_first(
        &mut self,
        n_streams: usize,
        n_bytes: usize,
        is_one: impl Fn(&ResumableStream) -> bool,
    ) {
        let some = self.open.iter().filter(|(_, stream)| is_one(stream));
        let some: Vec<_> = some.map(|(number, stream)| (*number, stream.n_bytes())).collect();
        let (mut n_left, mut n_bytes_left) =
            (some.len(), some.iter().map(|(_, n_bytes)| n_bytes).sum::<usize>());
        for (number, n_freed) in some {
            if n_left <= n_streams && n_bytes_left <= n_bytes {
                return;
            }
            self.open.remove(&number);
            n_left -= 1;
            n_bytes_left -= n_freed;
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
        replay.notify(text.as_bytes());
    }
}
