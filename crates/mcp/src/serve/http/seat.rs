//! The sessions of an HTTP endpoint.
//!
//! A seat is a session and what HTTP adds to it: the requests that are being
//! answered, and the streams that a client may come back to. Seats that nobody
//! uses are cleared after a while, and the longest unused one gives way when
//! there are too many.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tool::Event;

use super::group::InFlight;
use super::replay::{Reader, Replay};
use crate::message;
use crate::serve::desk::Desk;
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
pub(super) struct Seats {
    desk: Arc<Desk>,
    limits: Limits,
    seats: Mutex<HashMap<Arc<str>, Arc<Seat>>>,
    /// Whether the task that clears runs. Only changed under the lock.
    sweeping: AtomicBool,
}

/// One session.
pub(super) struct Seat {
    pub(super) session: Arc<Session>,
    pub(super) in_flight: Arc<InFlight>,
    streams: Mutex<Streams>,
    /// Held by every connection that streams to this client.
    presence: Arc<()>,
    used: Mutex<Instant>,
}

#[derive(Default)]
struct Streams {
    last: u64,
    open: BTreeMap<u64, Arc<Replay>>,
    news: Option<AbortHandle>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sessions: 10_000, idle: Duration::from_secs(30 * 60) }
    }
}

impl Seats {
    pub(super) fn new(desk: Arc<Desk>, limits: Limits) -> Arc<Seats> {
        Arc::new(Seats { desk, limits, seats: Mutex::default(), sweeping: AtomicBool::new(false) })
    }

    /// A session that is not found by its id, and not cleared either.
    pub(super) fn detached(session: Session) -> Arc<Seat> {
        Arc::new(Seat {
            session: Arc::new(session),
            in_flight: Arc::default(),
            streams: Mutex::default(),
            presence: Arc::new(()),
            used: Mutex::new(Instant::now()),
        })
    }

    pub(super) fn add(self: &Arc<Self>, session: Session) {
        let seat = Seats::detached(session);
        let mut seats = self.lock();
        if !self.sweeping.swap(true, Ordering::Relaxed) {
            self.sweep_from_now_on();
        }
        let crowded = self.limits.sessions <= seats.len();
        let longest_unused = || seats.values().min_by_key(|seat| seat.used()).cloned();
        let gives_way = crowded.then(longest_unused).flatten();
        seats.insert(Arc::clone(&seat.session.id), Arc::clone(&seat));
        drop(seats);
        if let Some(seat) = gives_way {
            self.end(&seat.session.id);
        }
    }

    /// The session with this id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Seat>> {
        let seat = self.lock().get(id).cloned()?;
        *lock(&seat.used) = Instant::now();
        Some(seat)
    }

    /// Ends a session: what runs is cancelled, what is kept is dropped.
    pub(super) fn end(&self, id: &str) {
        let seat = self.lock().remove(id);
        if let Some(seat) = seat {
            self.close(&seat);
        }
    }

    /// Cancels what runs, drops what is kept, and gives up what the session
    /// wanted of its provider.
    pub(super) fn close(&self, seat: &Arc<Seat>) {
        seat.in_flight.cancel_all();
        seat.close();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (desk, seat) = (Arc::clone(&self.desk), Arc::clone(seat));
        runtime.spawn(async move { desk.close(&seat.session).await });
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Starts the task that clears what nobody uses. It ends with the last
    /// session.
    fn sweep_from_now_on(self: &Arc<Self>) {
        let seats = Arc::downgrade(self);
        let every = (self.limits.idle / 4).clamp(Duration::from_millis(10), RESUMABLE);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(seats) = seats.upgrade() else { return };
                if !seats.sweep(Instant::now()) {
                    return;
                }
            }
        });
    }

    /// Clears what nobody uses; `false` when nothing is left.
    fn sweep(&self, now: Instant) -> bool {
        let seats: Vec<_> = self.lock().values().cloned().collect();
        for seat in &seats {
            lock(&seat.streams).forget(now);
            if seat.is_unused() && self.limits.idle <= now - seat.used() {
                self.end(&seat.session.id);
            }
        }
        let seats = self.lock();
        self.sweeping.store(!seats.is_empty(), Ordering::Relaxed);
        !seats.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Seat>>> {
        lock(&self.seats)
    }
}

impl Seat {
    /// Opens a stream for the answers to one POST.
    pub(super) fn stream(&self) -> Arc<Replay> {
        let mut streams = lock(&self.streams);
        streams.forget(Instant::now());
        streams.last += 1;
        let number = streams.last;
        let replay = Replay::new(number);
        streams.open.insert(number, Arc::clone(&replay));
        replay
    }

    /// The stream that belongs to no request; the first time it is asked for,
    /// what the provider tells unasked begins to flow.
    pub(super) fn standalone(&self) -> Arc<Replay> {
        let mut streams = lock(&self.streams);
        let replay = streams.open.entry(STANDALONE).or_insert_with(|| Replay::new(STANDALONE));
        let replay = Arc::clone(replay);
        streams.tell_news(&self.session, &replay);
        replay
    }

    /// Lets what the provider tells unasked flow to this stream.
    pub(super) fn tell_news(&self, replay: &Arc<Replay>) {
        lock(&self.streams).tell_news(&self.session, replay);
    }

    /// The stream that an event id names, if it is still there.
    pub(super) fn resume(&self, stream: u64) -> Option<Arc<Replay>> {
        match stream {
            STANDALONE => Some(self.standalone()),
            stream => lock(&self.streams).open.get(&stream).cloned(),
        }
    }

    /// Reads a stream; as long as somebody does, the session is in use.
    pub(super) fn read(&self, replay: &Arc<Replay>, after: Option<u64>, every: Duration) -> Reader {
        replay.read(after, every, Arc::clone(&self.presence) as _)
    }

    fn used(&self) -> Instant {
        *lock(&self.used)
    }

    fn is_unused(&self) -> bool {
        let unused = Arc::strong_count(&self.presence) == 1 && self.in_flight.is_empty();
        if !unused {
            *lock(&self.used) = Instant::now();
        }
        unused
    }

    fn close(&self) {
        let streams = std::mem::take(&mut *lock(&self.streams));
        if let Some(news) = streams.news {
            news.abort();
        }
        for replay in streams.open.values() {
            replay.close();
        }
    }
}

impl Streams {
    fn tell_news(&mut self, session: &Arc<Session>, replay: &Arc<Replay>) {
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
    replay: Arc<Replay>,
) {
    while let Some(event) = events.next().await {
        let Some(note) = session.news(event) else { continue };
        let params = (!note.params.is_empty()).then(|| note.params.to_json());
        let mut text = String::new();
        message::write_notification(&mut text, &note.method, params.as_ref());
        replay.push(text.as_bytes());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
