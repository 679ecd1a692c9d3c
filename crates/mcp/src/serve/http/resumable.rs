//! A stream of events that a client can come back to.
//!
//! Events are numbered and kept for a while, so that a client whose connection
//! broke asks for what came after the last one it saw. How much is kept is
//! bounded. What a reader has yet to read is never dropped: one that takes too
//! little of it loses the stream, and knows it. One reader at a time: a new one
//! replaces the old, whose connection may be dead without anybody having
//! noticed.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep};

use super::event;

/// How many bytes of events are kept for a client that may come back, beside
/// the newest one.
const KEPT_BYTES: usize = 256 << 10;
const KEPT_EVENTS: usize = 256;

/// How many bytes may wait for a reader that is there, beside the newest event.
const WAITING_BYTES: usize = 16 << 20;

/// One stream.
pub(super) struct ResumableStream {
    number: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: VecDeque<(u64, Bytes)>,
    n_bytes: usize,
    next: u64,
    closed: Option<Instant>,
    waker: Option<Waker>,
    /// Which reader is the current one, and whether it is there.
    reader: u64,
    is_read: bool,
    /// The first event that no reader has read.
    read: u64,
}

/// Somebody who reads a stream.
pub(super) struct Reader {
    replay: Arc<ResumableStream>,
    /// The first event that has not been read.
    at: u64,
    reader: u64,
    alive: Pin<Box<Sleep>>,
    every: Duration,
    /// Given up when the reader goes.
    _presence: Arc<dyn Send + Sync>,
}

impl ResumableStream {
    pub(super) fn new(number: u64) -> Arc<ResumableStream> {
        Arc::new(ResumableStream { number, state: Mutex::default() })
    }

    /// Adds the event that lets a client resume before anything was said.
    pub(super) fn prime(&self, retry: Duration) {
        self.add(|id| event::prime(id, retry.as_millis()));
    }

    pub(super) fn push(&self, message: &[u8]) {
        self.add(|id| event::encode(Some(id), message));
    }

    /// Nothing will follow.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed.get_or_insert_with(Instant::now);
        state.wake();
    }

    pub(super) fn closed(&self) -> Option<Instant> {
        self.state.lock().closed
    }

    /// Whether nothing was ever said on it.
    pub(super) fn is_new(&self) -> bool {
        self.state.lock().next == 0
    }

    /// The newest event that has been read, if any.
    pub(super) fn last(&self) -> Option<u64> {
        self.state.lock().read.checked_sub(1)
    }

    /// How much memory the kept events take.
    pub(super) fn n_bytes(&self) -> usize {
        self.state.lock().n_bytes
    }

    /// Reads on after the event with this number; from the start when `None`.
    pub(super) fn read(
        self: &Arc<Self>,
        after: Option<u64>,
        every: Duration,
        presence: Arc<dyn Send + Sync>,
    ) -> Reader {
        let mut state = self.state.lock();
        state.reader += 1;
        state.is_read = true;
        state.wake();
        let reader = state.reader;
        drop(state);
        let at = after.map_or(0, |after| after.saturating_add(1));
        let alive = Box::pin(sleep(every));
        Reader { replay: Arc::clone(self), at, reader, alive, every, _presence: presence }
    }

    fn add(&self, write: impl FnOnce(&str) -> Bytes) {
        let mut state = self.state.lock();
        if state.closed.is_some() {
            return;
        }
        let event = write(&format!("{}-{}", self.number, state.next));
        let number = state.next;
        state.next += 1;
        state.n_bytes += event.len();
        state.events.push_back((number, event));
        state.drop_oldest();
        state.wake();
    }
}

impl State {
    /// Drops what is more than a client may come back to; what somebody is
    /// about to read only together with the stream.
    fn drop_oldest(&mut self) {
        while 1 < self.events.len()
            && (KEPT_BYTES < self.n_bytes || KEPT_EVENTS < self.events.len())
        {
            if self.is_read && self.events.front().is_some_and(|(number, _)| self.read <= *number) {
                let newest = self.events.back().map_or(0, |(_, event)| event.len());
                if WAITING_BYTES < self.n_bytes - newest {
                    tracing::warn!(
                        n_bytes = self.n_bytes,
                        "a client reads too slowly; its stream ends"
                    );
                    self.events.clear();
                    self.n_bytes = 0;
                    self.closed.get_or_insert_with(Instant::now);
                }
                return;
            }
            let dropped = self.events.pop_front();
            self.n_bytes -= dropped.map_or(0, |(_, event)| event.len());
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn after(&self, at: u64) -> Option<(u64, Bytes)> {
        let found = self.events.partition_point(|(number, _)| *number < at);
        self.events.get(found).cloned()
    }
}

impl Stream for Reader {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let replay = Arc::clone(&self.replay);
        let mut state = replay.state.lock();
        if state.reader != self.reader {
            return Poll::Ready(None);
        }
        if let Some((number, event)) = state.after(self.at) {
            self.at = number + 1;
            state.read = state.read.max(self.at);
            let later = Instant::now() + self.every;
            self.alive.as_mut().reset(later);
            return Poll::Ready(Some(event));
        }
        if state.closed.is_some() {
            return Poll::Ready(None);
        }
        state.waker = Some(task.waker().clone());
        drop(state);
        if self.alive.as_mut().poll(task).is_ready() {
            let later = Instant::now() + self.every;
            self.alive.as_mut().reset(later);
            // The timer wants to be polled again to be armed.
            task.waker().wake_by_ref();
            return Poll::Ready(Some(event::ALIVE));
        }
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.replay.state.lock();
        if state.reader == self.reader {
            state.is_read = false;
            state.drop_oldest();
        }
    }
}

/// The stream and the event that a `Last-Event-ID` names.
pub(super) fn read_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;

    const EVERY: Duration = Duration::from_secs(15);

    fn here() -> Arc<dyn Send + Sync> {
        Arc::new(())
    }

    async fn all(reader: Reader) -> Vec<String> {
        reader.map(|event| String::from_utf8_lossy(&event).into_owned()).collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_comes_back_gets_what_it_missed() {
        let replay = ResumableStream::new(3);
        replay.prime(Duration::from_millis(500));
        replay.push(b"1");
        replay.push(b"2");
        let mut first = replay.read(None, EVERY, here());
        assert_eq!(first.next().await.unwrap().as_ref(), b"id: 3-0\nretry: 500\ndata: \n\n");
        assert_eq!(first.next().await.unwrap().as_ref(), b"id: 3-1\ndata: 1\n\n");
        replay.push(b"3");
        replay.close();
        let (stream, event) = read_id("3-1").unwrap();
        assert_eq!(stream, 3);
        let rest = all(replay.read(Some(event), EVERY, here())).await;
        assert_eq!(rest, ["id: 3-2\ndata: 2\n\n", "id: 3-3\ndata: 3\n\n"]);
        assert_eq!(first.next().await, None, "the old reader is replaced");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_bounded_but_the_newest_always_is() {
        let replay = ResumableStream::new(0);
        for _ in 0..1000 {
            replay.push(b"x");
        }
        assert_eq!(replay.state.lock().events.len(), KEPT_EVENTS);
        replay.push(&vec![b'y'; 2 * KEPT_BYTES]);
        assert_eq!(replay.state.lock().events.len(), 1);
        replay.close();
        let events = all(replay.read(None, EVERY, here())).await;
        assert!(events[0].starts_with("id: 0-1000\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_reader_has_yet_to_read_is_not_dropped() {
        let replay = ResumableStream::new(0);
        let mut reader = replay.read(None, EVERY, here());
        let large = vec![b'y'; KEPT_BYTES];
        for _ in 0..3 {
            replay.push(&large);
        }
        for number in 0..3 {
            let event = reader.next().await.unwrap();
            assert!(event.starts_with(format!("id: 0-{number}\n").as_bytes()));
        }
        replay.push(b"x");
        assert_eq!(replay.state.lock().events.len(), 1, "what is read is kept within bounds");
        (0..3).for_each(|_| replay.push(&large));
        drop(reader);
        assert_eq!(replay.state.lock().events.len(), 1, "and so is what nobody reads");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_too_little_loses_the_stream() {
        let replay = ResumableStream::new(0);
        let mut reader = replay.read(None, EVERY, here());
        let large = vec![b'y'; WAITING_BYTES / 2];
        (0..3).for_each(|_| replay.push(&large));
        assert_eq!(reader.next().await, None);
        assert_eq!(replay.n_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_is_kept_alive() {
        let replay = ResumableStream::new(0);
        let mut reader = replay.read(None, EVERY, here());
        let began = Instant::now();
        assert_eq!(reader.next().await.unwrap(), event::ALIVE);
        assert_eq!(reader.next().await.unwrap(), event::ALIVE);
        assert_eq!(began.elapsed(), 2 * EVERY);
    }
}
