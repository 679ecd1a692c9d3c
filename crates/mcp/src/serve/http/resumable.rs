//! An event stream that a client can resume.
//!
//! Events are numbered and kept for a while, so that a client whose connection
//! broke asks for what came after the last one it saw. How much is kept is
//! bounded: of what has not been read, the oldest notifications give way, and
//! the reader is told how many it missed. Questions and answers that have not
//! been read are never dropped. One reader at a time: a new one replaces the
//! old, whose connection may be dead without anybody having noticed.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep};
use tool::{Json, Reply};

use super::answers::AnswerMemory;
use super::event;
use crate::message;
use crate::revision::method;
use crate::serve::channel::Outgoing;

/// How many bytes of events are kept for a client that may come back, beside
/// the newest one and what must not be lost.
const KEPT_BYTES: usize = 256 << 10;
const KEPT_EVENTS: usize = 256;

/// How many bytes may wait for a reader that is there.
const WAITING_BYTES: usize = 16 << 20;

/// One stream.
pub(super) struct ResumableStream {
    number: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
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

struct Event {
    number: u64,
    kind: Kind,
    text: Bytes,
}

/// Whether an event may be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Notification,
    /// A question or an answer: somebody waits for it.
    Awaited,
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
        self.add(Kind::Notification, |id| event::prime(id, retry.as_millis()));
    }

    /// Adds a notification, which may give way to later ones.
    pub(super) fn notify(&self, message: &[u8]) {
        self.add(Kind::Notification, |id| event::encode(Some(id), message));
    }

    /// Adds what is said to the client before an answer.
    pub(super) fn say(&self, message: &Outgoing) {
        match message {
            Outgoing::Note(text) => self.notify(text),
            Outgoing::Question(text) => {
                self.add(Kind::Awaited, |id| event::encode(Some(id), text));
            }
        }
    }

    /// Adds an answer.
    pub(super) fn answer(&self, to: &Json, reply: &Reply, memory: &AnswerMemory) {
        self.add(Kind::Awaited, |id| event::encode_answer(Some(id), to, reply, memory));
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

    /// Returns whether nothing was ever said on it.
    pub(super) fn is_new(&self) -> bool {
        self.state.lock().next == 0
    }

    /// Returns whether there was an event with this number.
    pub(super) fn has_said(&self, event: u64) -> bool {
        event < self.state.lock().next
    }

    /// Returns whether somebody has read it to its end.
    pub(super) fn is_read(&self) -> bool {
        let state = self.state.lock();
        state.closed.is_some() && state.read == state.next
    }

    /// The newest event that has been read, if any.
    pub(super) fn last(&self) -> Option<u64> {
        self.state.lock().read.checked_sub(1)
    }

    /// Returns how much memory the kept events take.
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

    fn add(&self, kind: Kind, write: impl FnOnce(&str) -> Bytes) {
        let mut state = self.state.lock();
        if state.closed.is_some() {
            return;
        }
        let number = state.next;
        let text = write(&format!("{}-{number}", self.number));
        state.next += 1;
        state.n_bytes += text.len();
        state.events.push_back(Event { number, kind, text });
        state.drop_oldest();
        state.wake();
    }

    /// Returns what a reader is told in place of the events that it missed, the
    /// last of which is the one before `next`.
    fn gap(&self, n_missed: u64, next: u64) -> Bytes {
        let data =
            format!("{n_missed} events were left out of this stream: they were not read in time");
        let params = serde_json::json!({"level": "warning", "logger": "gatelet", "data": data});
        let mut text = String::new();
        message::write_notification(&mut text, method::MESSAGE, Some(&params.into()));
        event::encode(Some(&format!("{}-{}", self.number, next - 1)), text.as_bytes())
    }
}

impl State {
    /// Drops what is more than a client may come back to: notifications first,
    /// those that have not been read only when too much waits, then questions
    /// and answers that have been read. The newest event stays.
    fn drop_oldest(&mut self) {
        let limit = if self.is_read { WAITING_BYTES } else { KEPT_BYTES };
        while self.is_over(KEPT_BYTES) {
            let n_old = self.events.len() - 1;
            let mut old = self.events.iter().take(n_old);
            let at = old.position(|event| event.kind == Kind::Notification);
            let has_been_read = self.events[at.unwrap_or(0)].number < self.read;
            let drops = match at {
                Some(_) => has_been_read || self.is_over(limit),
                None => has_been_read && self.is_over(limit),
            };
            if !drops {
                return;
            }
            self.drop_at(at.unwrap_or(0));
        }
    }

    fn is_over(&self, n_bytes: usize) -> bool {
        let is_many = n_bytes == KEPT_BYTES && KEPT_EVENTS < self.events.len();
        1 < self.events.len() && (n_bytes < self.n_bytes || is_many)
    }

    fn drop_at(&mut self, at: usize) {
        let dropped = self.events.remove(at);
        self.n_bytes -= dropped.map_or(0, |event| event.text.len());
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn after(&self, at: u64) -> Option<(u64, Bytes)> {
        let found = self.events.partition_point(|event| event.number < at);
        self.events.get(found).map(|event| (event.number, event.text.clone()))
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
        if let Some((number, text)) = state.after(self.at) {
            let n_missed = number - self.at;
            self.at = if n_missed == 0 { number + 1 } else { number };
            state.read = state.read.max(self.at);
            let later = Instant::now() + self.every;
            self.alive.as_mut().reset(later);
            return Poll::Ready(Some(match n_missed {
                0 => text,
                _ => replay.gap(n_missed, number),
            }));
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
            return Poll::Ready(Some(event::KEEP_ALIVE));
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
    use futures::{FutureExt, StreamExt};
    use proptest::prelude::*;

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
        replay.notify(b"1");
        replay.notify(b"2");
        let mut first = replay.read(None, EVERY, here());
        assert_eq!(first.next().await.unwrap().as_ref(), b"id: 3-0\nretry: 500\ndata: \n\n");
        assert_eq!(first.next().await.unwrap().as_ref(), b"id: 3-1\ndata: 1\n\n");
        replay.notify(b"3");
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
            replay.notify(b"x");
        }
        assert_eq!(replay.state.lock().events.len(), KEPT_EVENTS);
        replay.notify(&vec![b'y'; 2 * KEPT_BYTES]);
        assert_eq!(replay.state.lock().events.len(), 1);
        replay.close();
        let events = all(replay.read(None, EVERY, here())).await;
        assert_eq!(n_missed(&events[0]), Some(1000));
        assert!(events[1].starts_with("id: 0-1000\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_reader_has_yet_to_read_is_not_dropped() {
        let replay = ResumableStream::new(0);
        let mut reader = replay.read(None, EVERY, here());
        let large = vec![b'y'; KEPT_BYTES];
        for _ in 0..3 {
            replay.notify(&large);
        }
        for number in 0..3 {
            let event = reader.next().await.unwrap();
            assert!(event.starts_with(format!("id: 0-{number}\n").as_bytes()));
        }
        replay.notify(b"x");
        assert_eq!(replay.state.lock().events.len(), 1, "what is read is kept within bounds");
        (0..3).for_each(|_| replay.notify(&large));
        drop(reader);
        assert_eq!(replay.state.lock().events.len(), 1, "and so is what nobody reads");
    }

    fn answered(replay: &ResumableStream) {
        replay.answer(&Json::encode(&7), &Reply::text("done"), &AnswerMemory::default());
    }

    /// Returns how many events a notice says were left out.
    fn n_missed(event: &str) -> Option<usize> {
        let (before, _) = event.split_once(" events were left out")?;
        before.rsplit('"').next()?.parse().ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_too_little_loses_notifications_and_never_an_answer() {
        let replay = ResumableStream::new(0);
        let reader = replay.read(None, EVERY, here());
        replay.say(&Outgoing::Question("a question".into()));
        let large = vec![b'y'; WAITING_BYTES / 4];
        (0..20).for_each(|_| replay.notify(&large));
        answered(&replay);
        (0..20).for_each(|_| replay.notify(&large));
        replay.close();
        assert!(replay.n_bytes() <= 2 * WAITING_BYTES);
        let events = all(reader).await;
        assert!(events[0].ends_with("data: a question\n\n"));
        assert!(events.iter().any(|event| event.contains(r#""id":7,"result""#)));
        let n_kept = events.iter().filter(|event| event.contains("yyyy")).count();
        let n_missed: usize = events.iter().filter_map(|event| n_missed(event)).sum();
        assert_eq!(n_kept + n_missed, 40);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_was_away_gets_its_answer_and_is_told_what_it_missed() {
        let replay = ResumableStream::new(4);
        replay.prime(Duration::from_millis(500));
        let mut reader = replay.read(None, EVERY, here());
        reader.next().await.unwrap();
        drop(reader);
        replay.say(&Outgoing::Question("a question".into()));
        (0..2 * KEPT_EVENTS).for_each(|_| replay.notify(b"x"));
        answered(&replay);
        replay.close();
        let events = all(replay.read(Some(0), EVERY, here())).await;
        assert_eq!(events[0], "id: 4-1\ndata: a question\n\n");
        assert!(events[1].contains(r#""method":"notifications/message""#), "{}", events[1]);
        let n_missed = n_missed(&events[1]).unwrap();
        assert_eq!(n_missed + events.len() - 3, 2 * KEPT_EVENTS);
        assert!(events.last().unwrap().contains(r#""id":7,"result""#));
        assert!(replay.is_read());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Notify(usize),
        Answer,
        Read(usize),
        Leave,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1..100_000_usize).prop_map(Step::Notify),
            (1..100_000_usize).prop_map(Step::Notify),
            Just(Step::Answer),
            (1..50_usize).prop_map(Step::Read),
            Just(Step::Leave),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_happens_every_answer_arrives_and_every_gap_is_told(
            steps in prop::collection::vec(step(), 0..400),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            runtime.unwrap().block_on(async {
                let replay = ResumableStream::new(0);
                let (mut n_notified, mut n_answers) = (0, 0);
                let (mut seen, mut last) = (Vec::new(), None);
                let mut reader = Some(replay.read(None, EVERY, here()));
                for step in steps {
                    match step {
                        Step::Notify(n_bytes) => {
                            replay.notify(&vec![b'x'; n_bytes]);
                            n_notified += 1;
                        }
                        Step::Answer => {
                            answered(&replay);
                            n_answers += 1;
                        }
                        Step::Read(n_events) => {
                            let again = || replay.read(last, EVERY, here());
                            let reader = reader.get_or_insert_with(again);
                            for _ in 0..n_events {
                                let Some(Some(event)) = reader.next().now_or_never() else { break };
                                let event = String::from_utf8_lossy(&event).into_owned();
                                let (id, _) = event[4..].split_once('\n').unwrap();
                                last = Some(read_id(id).unwrap().1);
                                seen.push(event);
                            }
                        }
                        Step::Leave => reader = None,
                    }
                }
                replay.close();
                drop(reader);
                seen.extend(all(replay.read(last, EVERY, here())).await);
                let n_missed: usize = seen.iter().filter_map(|event| n_missed(event)).sum();
                let n_read = seen.iter().filter(|event| event.contains("data: x")).count();
                let n_answered = seen.iter().filter(|event| event.contains("\"result\"")).count();
                assert_eq!((n_read + n_missed, n_answered), (n_notified, n_answers));
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_is_kept_alive() {
        let replay = ResumableStream::new(0);
        let mut reader = replay.read(None, EVERY, here());
        let began = Instant::now();
        assert_eq!(reader.next().await.unwrap(), event::KEEP_ALIVE);
        assert_eq!(reader.next().await.unwrap(), event::KEEP_ALIVE);
        assert_eq!(began.elapsed(), 2 * EVERY);
    }
}
