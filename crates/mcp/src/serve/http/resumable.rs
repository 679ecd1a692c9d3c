//! An event stream that a client can resume.
//!
//! Events are numbered and kept for a while, so that a client whose connection broke can
//! get the events after the last one it saw. The memory is bounded: the oldest unread
//! notifications are dropped, and the reader is told how many it missed. Unread questions
//! and answers are never dropped. There is one reader at a time: a new one replaces the
//! old one, whose connection may be dead.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, Sleep, sleep};
use tool::{Json, Reply};

use super::answer_memory::AnswerRoom;
use super::event;
use crate::message;
use crate::revision::method;
use crate::serve::channel::Outgoing;

/// How many bytes and how many events are kept for a client that may come back, besides
/// the newest event and those that must not be lost.
const KEPT_BYTES: usize = 256 << 10;
const KEPT_EVENTS: usize = 256;

/// How many bytes may wait for a connected reader.
const WAITING_BYTES: usize = 16 << 20;

/// How many bytes another replica reads at once.
const PIECE_BYTES: usize = 1 << 20;

/// Later than anybody waits: another replica sends its own keep-alives.
const NEVER: Duration = Duration::from_secs(3600);

/// The longest request id that event ids carry, in bytes.
const MAX_REQUEST_ID: usize = 64;

/// What identifies a stream: its number within the session, the replica that has it (0 if
/// there is only one), and the request that it answers, if that is a single one.
///
/// Event ids carry all of it, so that any replica can find the stream, and can answer the
/// request with an error if the replica that has the stream is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamId {
    pub(super) number: u64,
    pub(super) replica: u32,
    pub(super) request: Option<Json>,
}

/// One resumable stream.
pub(super) struct ResumableStream {
    id: StreamId,
    state: Mutex<State>,
}

/// How far another replica has read a stream: the last event that it has whole, and how
/// many bytes of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) after: u64,
    pub(super) offset: usize,
}

/// Some of a stream, for another replica: serialized events, the last of which may be cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) end: Position,
    /// Whether nothing comes after it.
    pub(super) is_last: bool,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    n_bytes: usize,
    next: u64,
    closed: Option<Instant>,
    waker: Option<Waker>,
    /// The number of the current reader, and whether it is connected.
    reader: u64,
    has_reader: bool,
    /// The number of the first event that no reader has read.
    next_unread: u64,
}

struct Event {
    number: u64,
    kind: Kind,
    text: Bytes,
}

/// Whether an event may be dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Notification,
    /// A question or an answer: it must arrive.
    Awaited,
}

/// A connection that reads a stream, as a stream of serialized events.
pub(super) struct Reader {
    stream: Arc<ResumableStream>,
    /// The number of the next event.
    at: u64,
    reader: u64,
    /// Whether an event counts as read when it was yielded.
    marks_read: bool,
    keep_alive_timer: Pin<Box<Sleep>>,
    keep_alive: Duration,
    /// Shows that the client is connected, as long as the reader lives.
    _presence: Arc<dyn Send + Sync>,
}

impl ResumableStream {
    pub(super) fn new(id: StreamId) -> Arc<ResumableStream> {
        Arc::new(ResumableStream { id, state: Mutex::default() })
    }

    /// Returns an open stream that continues the numbers of this closed one.
    pub(super) fn reopened(&self) -> Arc<ResumableStream> {
        let next = self.state.lock().next;
        let state = Mutex::new(State { next, next_unread: next, ..State::default() });
        Arc::new(ResumableStream { id: self.id.clone(), state })
    }

    /// Adds an event without data, so that a client can resume from the start.
    pub(super) fn push_priming_event(&self, retry: Duration) {
        self.add(Kind::Notification, |id| event::priming_event(id, retry.as_millis()));
    }

    /// Adds a notification, which may be dropped for later ones.
    pub(super) fn push_notification(&self, message: &[u8]) {
        self.add(Kind::Notification, |id| event::encode(Some(id), message));
    }

    /// Adds a message that precedes the answer.
    pub(super) fn push(&self, message: &Outgoing) {
        match message {
            Outgoing::Notification(text) => self.push_notification(text),
            Outgoing::Question(text) => {
                self.add(Kind::Awaited, |id| event::encode(Some(id), text));
            }
        }
    }

    /// Adds the answer to a request.
    pub(super) fn push_answer(&self, request_id: &Json, reply: &Reply, room: AnswerRoom) {
        self.add(Kind::Awaited, |id| event::encode_answer(Some(id), request_id, reply, room));
    }

    /// Closes the stream for new events.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed.get_or_insert_with(Instant::now);
        state.wake();
    }

    /// Returns when the stream was closed, if it was.
    pub(super) fn closed(&self) -> Option<Instant> {
        self.state.lock().closed
    }

    /// Returns whether the stream never had an event.
    pub(super) fn is_new(&self) -> bool {
        self.state.lock().next == 0
    }

    /// Returns whether there was an event with this number.
    pub(super) fn has_event(&self, event: u64) -> bool {
        event < self.state.lock().next
    }

    /// Returns whether the stream is closed and was read completely.
    pub(super) fn is_read_to_end(&self) -> bool {
        let state = self.state.lock();
        state.closed.is_some() && state.next_unread == state.next
    }

    /// Returns the number of the newest event that was read, if any.
    pub(super) fn last_read(&self) -> Option<u64> {
        self.state.lock().next_unread.checked_sub(1)
    }

    /// Returns the size of the kept events.
    pub(super) fn n_bytes(&self) -> usize {
        self.state.lock().n_bytes
    }

    /// Opens a reader that starts after the event `after`, or at the start. It sends
    /// keep-alives and holds `presence`.
    pub(super) fn open_reader(
        self: &Arc<Self>,
        after: Option<u64>,
        keep_alive: Duration,
        presence: Arc<dyn Send + Sync>,
    ) -> Reader {
        let mut state = self.state.lock();
        state.reader += 1;
        state.has_reader = true;
        state.wake();
        let reader = state.reader;
        drop(state);
        let at = after.map_or(0, |after| after.saturating_add(1));
        let keep_alive_timer = Box::pin(sleep(keep_alive));
        Reader {
            stream: Arc::clone(self),
            at,
            reader,
            marks_read: true,
            keep_alive_timer,
            keep_alive,
            _presence: presence,
        }
    }

    /// Reads the events after a position for another replica, and waits for so long if
    /// there is none. What is before the position has been read. Returns `None` if what
    /// was read in part is not kept any more.
    pub(super) async fn read_piece(
        self: &Arc<Self>,
        start: Position,
        wait: Duration,
        presence: Arc<dyn Send + Sync>,
    ) -> Option<Piece> {
        let mut reader = self.open_reader(Some(start.after), wait + NEVER, presence);
        reader.marks_read = false;
        self.state.lock().acknowledge(start.after);
        let mut piece = Piece { text: String::new(), end: start, is_last: false };
        let Ok(mut next) = tokio::time::timeout(wait, reader.next()).await else {
            return Some(piece);
        };
        loop {
            let Some(event) = next else {
                piece.is_last = true;
                return Some(piece);
            };
            let event = std::str::from_utf8(&event).ok()?;
            let Position { after, offset } = piece.end;
            // A piece of one event can only be followed by the rest of that event.
            if offset != 0 && reader.at != after.saturating_add(2) {
                return None;
            }
            let rest = event.get(offset..)?;
            if rest.len() <= PIECE_BYTES.saturating_sub(piece.text.len()) {
                piece.text += rest;
                piece.end = Position { after: reader.at.saturating_sub(1), offset: 0 };
            } else {
                if piece.text.is_empty() {
                    piece.text += prefix(rest, PIECE_BYTES);
                    piece.end.offset += piece.text.len();
                }
                return Some(piece);
            }
            match reader.next().now_or_never() {
                Some(event) => next = event,
                None => return Some(piece),
            }
        }
    }

    fn add(&self, kind: Kind, write: impl FnOnce(&str) -> Bytes) {
        let mut state = self.state.lock();
        if state.closed.is_some() {
            return;
        }
        let number = state.next;
        let text = write(&self.id.event_id(number));
        state.next += 1;
        state.n_bytes += text.len();
        state.events.push_back(Event { number, kind, text });
        state.drop_oldest();
        state.wake();
    }

    /// Returns the event that replaces `n_missed` dropped events, the last of which is the
    /// one before `next`.
    fn gap_event(&self, n_missed: u64, next: u64) -> Bytes {
        let data =
            format!("{n_missed} events were left out of this stream: they were not read in time");
        let params = serde_json::json!({"level": "warning", "logger": "gatelet", "data": data});
        let mut text = String::new();
        message::write_notification(&mut text, method::MESSAGE, Some(&params.into()));
        event::encode(Some(&self.id.event_id(next - 1)), text.as_bytes())
    }
}

impl State {
    /// Drops the oldest events over the limits: notifications first, unread ones only when
    /// too much waits, then questions and answers that were read. The newest event stays.
    fn drop_oldest(&mut self) {
        let limit = if self.has_reader { WAITING_BYTES } else { KEPT_BYTES };
        while self.is_over(KEPT_BYTES) {
            let n_old = self.events.len() - 1;
            let mut old = self.events.iter().take(n_old);
            let at = old.position(|event| event.kind == Kind::Notification);
            let has_been_read = self.events[at.unwrap_or(0)].number < self.next_unread;
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

    fn drop_at(&mut self, index: usize) {
        let dropped = self.events.remove(index);
        self.n_bytes -= dropped.map_or(0, |event| event.text.len());
    }

    /// Counts everything up to the event `after` as read.
    fn acknowledge(&mut self, after: u64) {
        self.next_unread = self.next_unread.max(after.saturating_add(1).min(self.next));
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Returns the first kept event with this number or above, with its number.
    fn event_from(&self, number: u64) -> Option<(u64, Bytes)> {
        let found = self.events.partition_point(|event| event.number < number);
        self.events.get(found).map(|event| (event.number, event.text.clone()))
    }
}

impl Stream for Reader {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let stream = Arc::clone(&self.stream);
        let mut state = stream.state.lock();
        if state.reader != self.reader {
            return Poll::Ready(None);
        }
        if let Some((number, text)) = state.event_from(self.at) {
            let n_missed = number - self.at;
            self.at = if n_missed == 0 { number + 1 } else { number };
            if self.marks_read {
                state.next_unread = state.next_unread.max(self.at);
            }
            let later = Instant::now() + self.keep_alive;
            self.keep_alive_timer.as_mut().reset(later);
            return Poll::Ready(Some(match n_missed {
                0 => text,
                _ => stream.gap_event(n_missed, number),
            }));
        }
        if state.closed.is_some() {
            return Poll::Ready(None);
        }
        state.waker = Some(task.waker().clone());
        drop(state);
        if self.keep_alive_timer.as_mut().poll(task).is_ready() {
            let later = Instant::now() + self.keep_alive;
            self.keep_alive_timer.as_mut().reset(later);
            // The timer must be polled again to be armed.
            task.waker().wake_by_ref();
            return Poll::Ready(Some(event::KEEP_ALIVE));
        }
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.state.lock();
        if state.reader == self.reader {
            state.has_reader = false;
            state.drop_oldest();
        }
    }
}

/// Returns the longest prefix with at most `n_bytes` bytes.
fn prefix(text: &str, n_bytes: usize) -> &str {
    let end = (0..=n_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

impl StreamId {
    /// Returns the id of an event of this stream: `STREAM-EVENT`, with several replicas
    /// `STREAM-EVENT-REPLICA`, and then `-REQUEST` for the stream of one request.
    fn event_id(&self, event: u64) -> String {
        let StreamId { number, replica, request } = self;
        let request = request.as_ref().filter(|id| id.as_str().len() <= MAX_REQUEST_ID);
        match (replica, request) {
            (0, _) => format!("{number}-{event}"),
            (replica, None) => format!("{number}-{event}-{replica}"),
            (replica, Some(id)) => {
                format!("{number}-{event}-{replica}-{}", tool::hex::encode(id.as_bytes()))
            }
        }
    }
}

/// Parses a `Last-Event-ID`: the stream, and the number of the event.
pub(super) fn parse_event_id(id: &str) -> Option<(StreamId, u64)> {
    let mut parts = id.split('-');
    let (number, event) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let replica = parts.next().map_or(Some(0), |tag| tag.parse().ok())?;
    let request = parts.next().map(request_id);
    let is_whole = parts.next().is_none() && request != Some(None);
    is_whole.then(|| (StreamId { number, replica, request: request.flatten() }, event))
}

/// Parses the id of a request, which is a string or a number.
fn request_id(hex: &str) -> Option<Json> {
    let id = Json::parse(tool::hex::decode(hex)?).ok()?;
    let is_id = id.as_str().len() <= MAX_REQUEST_ID
        && (id.string_value().is_some() || id.parse_as::<serde_json::Number>().is_ok());
    is_id.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream_id(number: u64) -> StreamId {
        StreamId { number, ..StreamId::default() }
    }

    const EVERY: Duration = Duration::from_secs(15);

    fn here() -> Arc<dyn Send + Sync> {
        Arc::new(())
    }

    async fn all(reader: Reader) -> Vec<String> {
        reader.map(|event| String::from_utf8_lossy(&event).into_owned()).collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_comes_back_gets_what_it_missed() {
        let stream = ResumableStream::new(stream_id(3));
        stream.push_priming_event(Duration::from_millis(500));
        stream.push_notification(b"1");
        stream.push_notification(b"2");
        let mut first = stream.open_reader(None, EVERY, here());
        assert_eq!(first.next().await.unwrap().as_ref(), b"id: 3-0\nretry: 500\ndata: \n\n");
        assert_eq!(first.next().await.unwrap().as_ref(), b"id: 3-1\ndata: 1\n\n");
        stream.push_notification(b"3");
        stream.close();
        let (id, event) = parse_event_id("3-1").unwrap();
        assert_eq!(id, stream_id(3));
        let rest = all(stream.open_reader(Some(event), EVERY, here())).await;
        assert_eq!(rest, ["id: 3-2\ndata: 2\n\n", "id: 3-3\ndata: 3\n\n"]);
        assert_eq!(first.next().await, None, "the old reader is replaced");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_bounded_but_the_newest_always_is() {
        let stream = ResumableStream::new(stream_id(0));
        for _ in 0..1000 {
            stream.push_notification(b"x");
        }
        assert_eq!(stream.state.lock().events.len(), KEPT_EVENTS);
        stream.push_notification(&vec![b'y'; 2 * KEPT_BYTES]);
        assert_eq!(stream.state.lock().events.len(), 1);
        stream.close();
        let events = all(stream.open_reader(None, EVERY, here())).await;
        assert_eq!(n_missed(&events[0]), Some(1000));
        assert!(events[1].starts_with("id: 0-1000\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_reader_has_yet_to_read_is_not_dropped() {
        let stream = ResumableStream::new(stream_id(0));
        let mut reader = stream.open_reader(None, EVERY, here());
        let large = vec![b'y'; KEPT_BYTES];
        for _ in 0..3 {
            stream.push_notification(&large);
        }
        for number in 0..3 {
            let event = reader.next().await.unwrap();
            assert!(event.starts_with(format!("id: 0-{number}\n").as_bytes()));
        }
        stream.push_notification(b"x");
        assert_eq!(stream.state.lock().events.len(), 1, "what is read is kept within bounds");
        (0..3).for_each(|_| stream.push_notification(&large));
        drop(reader);
        assert_eq!(stream.state.lock().events.len(), 1, "and so is what nobody reads");
    }

    fn answered(stream: &ResumableStream) {
        stream.push_answer(&Json::encode(&7), &Reply::text("done"), AnswerRoom::uncounted());
    }

    /// Returns how many events a notice says were left out.
    fn n_missed(event: &str) -> Option<usize> {
        let (before, _) = event.split_once(" events were left out")?;
        before.rsplit('"').next()?.parse().ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_too_little_loses_notifications_and_never_an_answer() {
        let stream = ResumableStream::new(stream_id(0));
        let reader = stream.open_reader(None, EVERY, here());
        stream.push(&Outgoing::Question("a question".into()));
        let large = vec![b'y'; WAITING_BYTES / 4];
        (0..20).for_each(|_| stream.push_notification(&large));
        answered(&stream);
        (0..20).for_each(|_| stream.push_notification(&large));
        stream.close();
        assert!(stream.n_bytes() <= 2 * WAITING_BYTES);
        let events = all(reader).await;
        assert!(events[0].ends_with("data: a question\n\n"));
        assert!(events.iter().any(|event| event.contains(r#""id":7,"result""#)));
        let n_kept = events.iter().filter(|event| event.contains("yyyy")).count();
        let n_missed: usize = events.iter().filter_map(|event| n_missed(event)).sum();
        assert_eq!(n_kept + n_missed, 40);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_was_away_gets_its_answer_and_is_told_what_it_missed() {
        let stream = ResumableStream::new(stream_id(4));
        stream.push_priming_event(Duration::from_millis(500));
        let mut reader = stream.open_reader(None, EVERY, here());
        reader.next().await.unwrap();
        drop(reader);
        stream.push(&Outgoing::Question("a question".into()));
        (0..2 * KEPT_EVENTS).for_each(|_| stream.push_notification(b"x"));
        answered(&stream);
        stream.close();
        let events = all(stream.open_reader(Some(0), EVERY, here())).await;
        assert_eq!(events[0], "id: 4-1\ndata: a question\n\n");
        assert!(events[1].contains(r#""method":"notifications/message""#), "{}", events[1]);
        let n_missed = n_missed(&events[1]).unwrap();
        assert_eq!(n_missed + events.len() - 3, 2 * KEPT_EVENTS);
        assert!(events.last().unwrap().contains(r#""id":7,"result""#));
        assert!(stream.is_read_to_end());
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
                let stream = ResumableStream::new(stream_id(0));
                let (mut n_notified, mut n_answers) = (0, 0);
                let (mut seen, mut last) = (Vec::new(), None);
                let mut reader = Some(stream.open_reader(None, EVERY, here()));
                for step in steps {
                    match step {
                        Step::Notify(n_bytes) => {
                            stream.push_notification(&vec![b'x'; n_bytes]);
                            n_notified += 1;
                        }
                        Step::Answer => {
                            answered(&stream);
                            n_answers += 1;
                        }
                        Step::Read(n_events) => {
                            let again = || stream.open_reader(last, EVERY, here());
                            let reader = reader.get_or_insert_with(again);
                            for _ in 0..n_events {
                                let Some(Some(event)) = reader.next().now_or_never() else { break };
                                let event = String::from_utf8_lossy(&event).into_owned();
                                let (id, _) = event[4..].split_once('\n').unwrap();
                                last = Some(parse_event_id(id).unwrap().1);
                                seen.push(event);
                            }
                        }
                        Step::Leave => reader = None,
                    }
                }
                stream.close();
                drop(reader);
                seen.extend(all(stream.open_reader(last, EVERY, here())).await);
                let n_missed: usize = seen.iter().filter_map(|event| n_missed(event)).sum();
                let n_read = seen.iter().filter(|event| event.contains("data: x")).count();
                let n_answered = seen.iter().filter(|event| event.contains("\"result\"")).count();
                assert_eq!((n_read + n_missed, n_answered), (n_notified, n_answers));
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_is_kept_alive() {
        let stream = ResumableStream::new(stream_id(0));
        let mut reader = stream.open_reader(None, EVERY, here());
        let began = Instant::now();
        assert_eq!(reader.next().await.unwrap(), event::KEEP_ALIVE);
        assert_eq!(reader.next().await.unwrap(), event::KEEP_ALIVE);
        assert_eq!(began.elapsed(), 2 * EVERY);
    }
}
