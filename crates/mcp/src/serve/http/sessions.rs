//! The sessions of an HTTP endpoint.
//!
//! An [`HttpSession`] is a session and what HTTP adds to it: its open requests, and the
//! streams that a client may resume. An idle session ends after a while.
//!
//! There is a limit per caller, per address, and in total. At a limit, the session of that
//! caller or address that has been idle the longest is evicted; at the total limit, one of
//! the caller with the most sessions. A session in use is never evicted: then the new one
//! is refused.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tool::{Event, Json};

use super::batch::{CallerLoad, InFlight};
use super::resumable::{Reader, ResumableStream, StreamId};
use crate::message;
use crate::serve::caller::{Caller, CallerKey};
use crate::serve::server::McpServer;
use crate::serve::session::Session;

/// How many sessions there may be, and how long one may be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of sessions in total.
    pub sessions: usize,
    pub per_caller: usize,
    /// From one address, for all callers together.
    pub per_address: usize,
    pub idle: Duration,
}

/// Why a new session is refused: the limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SessionsFull {
    #[error(
        "this caller has {0} sessions, and all are in use: end some with DELETE, or use one of them"
    )]
    Caller(usize),
    #[error("{0} sessions from this address are in use: end some with DELETE, or use one of them")]
    Address(usize),
    #[error("{0} sessions are in use here; try again in a moment")]
    Total(usize),
}

/// The number of the stream that belongs to no request.
pub(super) const STANDALONE_STREAM: u64 = 0;

/// How long finished streams can be resumed; how many of those that were read completely
/// and how many bytes of them; and how many in total.
const RESUMABLE_TIME: Duration = Duration::from_secs(60);
const MAX_READ_STREAMS: usize = 8;
const MAX_READ_BYTES: usize = 512 << 10;
const MAX_FINISHED_STREAMS: usize = 256;

/// All sessions of an endpoint.
pub(super) struct HttpSessions {
    server: Arc<McpServer>,
    limits: Limits,
    table: Mutex<SessionTable>,
    /// Whether the sweep task runs. Only changed under the lock of the table.
    sweeping: AtomicBool,
}

/// The sessions by id and by caller, and their number by network.
#[derive(Default)]
struct SessionTable {
    by_id: HashMap<Arc<str>, Arc<HttpSession>>,
    callers: HashMap<CallerKey, CallerSessions>,
    networks: HashMap<IpAddr, usize>,
}

/// The sessions of one caller.
#[derive(Default)]
struct CallerSessions {
    by_id: HashMap<Arc<str>, Arc<HttpSession>>,
    load: Arc<CallerLoad>,
}

/// The number of references of the table to a session. If there are more, it is in use.
const HELD_BY_TABLE: usize = 2;

/// One session.
pub(super) struct HttpSession {
    pub(super) inner: Arc<Session>,
    pub(super) in_flight: Arc<InFlight>,
    network: Option<IpAddr>,
    streams: Mutex<Streams>,
    /// Cloned by every connection that streams to this client.
    presence: Arc<()>,
    last_used: Mutex<Instant>,
    /// When the record in the shared store was last looked at.
    recorded_at: Mutex<Instant>,
}

/// The streams of one session by number, and the task that forwards the provider's events.
#[derive(Default)]
struct Streams {
    last: u64,
    open: BTreeMap<u64, Arc<ResumableStream>>,
    forwarding_task: Option<AbortHandle>,
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

    /// Makes a session outside of the table: not found by id, and not swept.
    pub(super) fn detached(session: Session) -> Arc<HttpSession> {
        HttpSession::new(session, None, Arc::default())
    }

    /// Adds a session, and evicts an idle one if a limit is reached.
    pub(super) fn add(
        self: &Arc<Self>,
        session: Session,
        caller: &Caller,
    ) -> Result<(), SessionsFull> {
        let mut table = self.table.lock();
        let (key, network) = (session.caller_key(), caller.network());
        let evicted = table.session_to_evict(key, network, &self.limits)?;
        let evicted = evicted.and_then(|id| table.remove(&id));
        table.insert(session, network);
        if !self.sweeping.swap(true, Ordering::Relaxed) {
            self.start_sweeping();
        }
        drop(table);
        if let Some(session) = evicted {
            self.close(&session);
        }
        Ok(())
    }

    /// Adds a session that another replica opened, unless it is here already.
    pub(super) fn adopt(
        self: &Arc<Self>,
        session: Session,
        caller: &Caller,
    ) -> Result<Arc<HttpSession>, SessionsFull> {
        let id = Arc::clone(&session.id);
        // Of two concurrent requests, one adds it; the copy of the other is dropped.
        if self.find(&id).is_none() {
            self.add(session, caller)?;
        }
        self.find(&id).ok_or(SessionsFull::Total(self.limits.sessions))
    }

    /// Returns the session with this id, and marks it as used.
    pub(super) fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.table.lock().by_id.get(id).cloned()?;
        *session.last_used.lock() = Instant::now();
        Some(session)
    }

    /// Removes and closes a session.
    pub(super) fn end(&self, id: &str) {
        let session = self.table.lock().remove(id);
        if let Some(session) = session {
            self.close(&session);
        }
    }

    /// Closes a session: ends its requests, drops its streams, and unsubscribes from its
    /// provider.
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

    /// Ends the streams on which clients only listen, because the server stops.
    pub(super) fn stop_listening(&self) {
        for session in self.table.lock().by_id.values() {
            session.stop_listening();
        }
    }

    /// Starts the task that ends idle sessions. It ends with the last session.
    fn start_sweeping(self: &Arc<Self>) {
        let sessions = Arc::downgrade(self);
        let interval = (self.limits.idle / 4).clamp(Duration::from_millis(10), RESUMABLE_TIME);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(interval).await;
                let Some(sessions) = sessions.upgrade() else { return };
                if !sessions.sweep(Instant::now()) {
                    return;
                }
            }
        });
    }

    /// Ends idle sessions and drops old streams; returns `false` when no session is left.
    fn sweep(&self, now: Instant) -> bool {
        let mut table = self.table.lock();
        let is_idle = |session: &Arc<HttpSession>| {
            session.streams.lock().drop_finished(now);
            session.is_unused() && self.limits.idle <= now - session.last_used()
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

impl SessionTable {
    /// Returns the session to evict for a new one of this caller, if a limit is reached.
    fn session_to_evict(
        &self,
        key: &CallerKey,
        network: Option<IpAddr>,
        limits: &Limits,
    ) -> Result<Option<Arc<str>>, SessionsFull> {
        let own = self.callers.get(key);
        if own.is_some_and(|own| limits.per_caller <= own.by_id.len()) {
            let oldest = own.and_then(|own| longest_unused(own.by_id.values()));
            return oldest.map(Some).ok_or(SessionsFull::Caller(limits.per_caller));
        }
        let n_here = network.and_then(|network| self.networks.get(&network));
        if n_here.is_some_and(|n_here| limits.per_address <= *n_here) {
            let here = self.by_id.values().filter(|session| session.network == network);
            return longest_unused(here).map(Some).ok_or(SessionsFull::Address(limits.per_address));
        }
        if self.by_id.len() < limits.sessions {
            return Ok(None);
        }
        let mut callers: Vec<_> = self.callers.values().collect();
        callers.sort_by_key(|caller| std::cmp::Reverse(caller.by_id.len()));
        let oldest = callers.iter().find_map(|caller| longest_unused(caller.by_id.values()));
        oldest.map(Some).ok_or(SessionsFull::Total(limits.sessions))
    }

    fn insert(&mut self, session: Session, network: Option<IpAddr>) {
        let id = Arc::clone(&session.id);
        // Two concurrent requests may add the same session.
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

/// Returns the id of the session that has been idle the longest.
fn longest_unused<'a>(sessions: impl Iterator<Item = &'a Arc<HttpSession>>) -> Option<Arc<str>> {
    let unused = sessions.filter(|session| session.is_unused());
    unused.min_by_key(|session| session.last_used()).map(|session| Arc::clone(&session.inner.id))
}

impl HttpSession {
    fn new(session: Session, network: Option<IpAddr>, load: Arc<CallerLoad>) -> Arc<HttpSession> {
        Arc::new(HttpSession {
            inner: Arc::new(session),
            in_flight: Arc::new(InFlight::new(load)),
            network,
            streams: Mutex::default(),
            presence: Arc::new(()),
            last_used: Mutex::new(Instant::now()),
            recorded_at: Mutex::new(Instant::now()),
        })
    }

    /// Returns whether the shared record was not looked at for `age`, and counts it as looked at.
    pub(super) fn is_record_due(&self, age: Duration) -> bool {
        let (mut recorded_at, now) = (self.recorded_at.lock(), Instant::now());
        let is_old = age <= now - *recorded_at;
        if is_old {
            *recorded_at = now;
        }
        is_old
    }

    /// Opens a stream for the answers to one POST.
    ///
    /// `request` is the id of its request, if it has a single one.
    pub(super) fn open_stream(&self, request: Option<&Json>) -> Arc<ResumableStream> {
        let mut streams = self.streams.lock();
        streams.drop_finished(Instant::now());
        streams.last += 1;
        let number = streams.last;
        let replica = self.inner.replica_tag();
        let stream = ResumableStream::new(StreamId { number, replica, request: request.cloned() });
        streams.open.insert(number, Arc::clone(&stream));
        stream
    }

    /// Returns the stream that belongs to no request. The first call starts to forward the
    /// provider's events to it.
    pub(super) fn standalone(&self) -> Arc<ResumableStream> {
        let mut streams = self.streams.lock();
        let (number, replica) = (STANDALONE_STREAM, self.inner.replica_tag());
        let new = || ResumableStream::new(StreamId { number, replica, request: None });
        let stream = streams.open.entry(STANDALONE_STREAM).or_insert_with(new);
        if stream.closed().is_some() {
            // Another replica took over, and now the client is back.
            *stream = stream.reopened();
        }
        let stream = Arc::clone(stream);
        streams.forward_events(&self.inner, &stream);
        stream
    }

    /// Starts to forward the provider's events to this stream.
    pub(super) fn forward_events(&self, stream: &Arc<ResumableStream>) {
        self.streams.lock().forward_events(&self.inner, stream);
    }

    /// Returns the stream with this number, if it is still kept.
    pub(super) fn resume(&self, stream: u64) -> Option<Arc<ResumableStream>> {
        match stream {
            STANDALONE_STREAM => Some(self.standalone()),
            stream => self.streams.lock().open.get(&stream).cloned(),
        }
    }

    /// Returns a stream that the client resumes at another replica, if it is still kept.
    /// News of the provider reach the client over that replica from now on.
    pub(super) fn hand_over(&self, stream: u64) -> Option<Arc<ResumableStream>> {
        if stream == STANDALONE_STREAM {
            self.stop_listening();
        }
        self.streams.lock().open.get(&stream).cloned()
    }

    /// Opens a reader of a stream. The session is in use as long as it lives.
    pub(super) fn open_reader(
        &self,
        stream: &Arc<ResumableStream>,
        after: Option<u64>,
        keep_alive: Duration,
    ) -> Reader {
        stream.open_reader(after, keep_alive, Arc::clone(&self.presence) as _)
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Returns whether the session has no reader, no open request and no other user. Must be
    /// called under the lock of the table.
    fn is_unused(self: &Arc<Self>) -> bool {
        let unused = Arc::strong_count(self) == HELD_BY_TABLE
            && Arc::strong_count(&self.presence) == 1
            && self.in_flight.is_empty();
        if !unused {
            *self.last_used.lock() = Instant::now();
        }
        unused
    }

    /// Drops all streams. Those with open requests end when these are answered.
    fn close(&self) {
        self.stop_listening();
        self.streams.lock().open.clear();
    }

    /// Ends the stream that belongs to no request.
    fn stop_listening(&self) {
        let mut streams = self.streams.lock();
        if let Some(forwarding_task) = streams.forwarding_task.take() {
            forwarding_task.abort();
        }
        if let Some(standalone) = streams.open.get(&STANDALONE_STREAM) {
            standalone.close();
        }
    }
}

impl Streams {
    fn forward_events(&mut self, session: &Arc<Session>, stream: &Arc<ResumableStream>) {
        if self.forwarding_task.is_none() {
            // Subscribe first, so that no event is missed.
            let events = session.provider.events();
            let task = forward_events(events, Arc::clone(session), Arc::clone(stream));
            self.forwarding_task = Some(tokio::spawn(task).abort_handle());
        }
    }

    /// Drops finished streams that are old, and those over the limits.
    fn drop_finished(&mut self, now: Instant) {
        let old = |closed: Instant| RESUMABLE_TIME <= now - closed;
        self.open.retain(|_, stream| !stream.closed().is_some_and(old));
        self.drop_oldest(MAX_READ_STREAMS, MAX_READ_BYTES, |stream| stream.is_read_to_end());
        let is_finished = |stream: &ResumableStream| stream.closed().is_some();
        self.drop_oldest(MAX_FINISHED_STREAMS, usize::MAX, is_finished);
    }

    /// Drops the oldest streams that match, until at most `n_streams` with `n_bytes` are
    /// left.
    fn drop_oldest(
        &mut self,
        n_streams: usize,
        n_bytes: usize,
        matches: impl Fn(&ResumableStream) -> bool,
    ) {
        let some = self.open.iter().filter(|(_, stream)| matches(stream));
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

/// Writes the provider's events to a stream, as notifications.
async fn forward_events(
    mut events: BoxStream<'static, Event>,
    session: Arc<Session>,
    stream: Arc<ResumableStream>,
) {
    while let Some(event) = events.next().await {
        let Some(note) = session.notification_for(event) else { continue };
        let params = (!note.params.is_empty()).then(|| note.params.to_json());
        let mut text = String::new();
        message::write_notification(&mut text, &note.method, params.as_ref());
        stream.push_notification(text.as_bytes());
    }
}
