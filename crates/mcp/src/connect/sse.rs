//! Parses server-sent events from a byte stream.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;
use std::time::Duration;

use crate::memory::{MemoryBudget, OutOfMemory, Reservation};
use crate::message::BYTE_ORDER_MARK;
use crate::off_thread::LONG_MESSAGE;

/// The longest event id that is remembered, in bytes.
const MAX_ID_BYTES: usize = 4 << 10;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// The event type; empty for a plain message.
    pub(super) name: String,
    pub(super) data: Bytes,
}

/// An incremental parser: takes bytes, returns events, and remembers what resuming needs.
pub(super) struct Parser {
    buffer: BytesMut,
    /// How many bytes of the buffer were searched for a line break.
    searched: usize,
    /// The last line ended in `\r`, so a following `\n` belongs to it.
    after_return: bool,
    limit: usize,
    memory: MemoryBudget,
    /// The memory reserved for a long event that is being read.
    reserved: Option<Reservation>,
    /// Nothing of the stream was parsed yet.
    at_start: bool,
    name: String,
    data: Option<BytesMut>,
    /// The id of the event that is being read.
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

/// Why an event is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EventTooLong {
    #[error("an event is over the limit of {0} bytes")]
    Limit(usize),
    #[error("the answer is too long for now: {0}; ask for less of it, or later")]
    OutOfMemory(OutOfMemory),
}

/// Why no chunk was added.
#[derive(Debug, thiserror::Error)]
pub(super) enum FillError<E> {
    #[error("the stream broke")]
    Broken(E),
    #[error(transparent)]
    TooLong(#[from] EventTooLong),
}

impl Parser {
    pub(super) fn new(limit: usize) -> Parser {
        Parser {
            buffer: BytesMut::new(),
            searched: 0,
            after_return: false,
            limit,
            memory: MemoryBudget::new(usize::MAX),
            reserved: None,
            at_start: true,
            name: String::new(),
            data: None,
            id: None,
            last_id: None,
            retry: None,
        }
    }

    /// Counts long events against a shared memory budget.
    pub(super) fn with_memory(self, memory: MemoryBudget) -> Parser {
        Parser { memory, ..self }
    }

    /// Returns the id of the last complete event that had one, to resume from.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns the reconnect pause that the server requested (`retry:`).
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Reads the next chunk of the stream with `read`, and adds it; returns `false` at the
    /// end. Waits while there is no memory for a long event.
    pub(super) async fn fill<E>(
        &mut self,
        read: impl Future<Output = Result<Option<Bytes>, E>>,
    ) -> Result<bool, FillError<E>> {
        let chunk = match &self.reserved {
            None => read.await,
            Some(reserved) => tokio::select! {
                biased;
                chunk = read => chunk,
                full = reserved.overdue() => return Err(EventTooLong::OutOfMemory(full).into()),
            },
        };
        let Some(chunk) = chunk.map_err(FillError::Broken)? else { return Ok(false) };
        let in_data = self.data.as_ref().map_or(0, BytesMut::len);
        let n_bytes = in_data + self.buffer.len() + chunk.len();
        if LONG_MESSAGE < n_bytes && n_bytes <= self.limit {
            let reserved = self.reserved.get_or_insert_with(|| self.memory.reserve_for(self.limit));
            reserved.grow(n_bytes).await.map_err(EventTooLong::OutOfMemory)?;
        }
        self.push(&chunk);
        Ok(true)
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        // Untouched memory costs nothing; moving a long event does.
        let room = self.buffer.capacity() - self.buffer.len();
        if LONG_MESSAGE < self.buffer.len() && room < bytes.len() {
            self.buffer.reserve(bytes.len().max(self.limit.saturating_sub(self.buffer.len())));
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Discards an incomplete event, because its stream ended.
    pub(super) fn interrupt(&mut self) {
        self.buffer.clear();
        self.searched = 0;
        self.after_return = false;
        self.at_start = true;
        self.name.clear();
        self.data = None;
        self.reserved = None;
        self.id = None;
    }

    /// Returns the next complete event, if there is one.
    pub(super) fn next_event(&mut self) -> Result<Option<Event>, EventTooLong> {
        while let Some(line) = self.next_line() {
            // Count a complete line like one that is still being read.
            self.reserve(line.len())?;
            if line.is_empty() {
                // Only now: an incomplete event must be sent again.
                self.last_id = self.id.take().or(self.last_id.take());
                let name = std::mem::take(&mut self.name);
                if let Some(data) = self.data.take() {
                    let reserved = self.reserved.take().filter(|_| LONG_MESSAGE < data.len());
                    let data = match reserved {
                        Some(reserved) => reserved.hold(data),
                        None => data.freeze(),
                    };
                    return Ok(Some(Event { name, data }));
                }
                self.reserved = None;
            } else {
                self.parse_field(line);
            }
        }
        self.reserve(self.buffer.len())?;
        Ok(None)
    }

    /// Checks the size of the current event with `n_line` more bytes, and reserves memory.
    fn reserve(&mut self, n_line: usize) -> Result<(), EventTooLong> {
        let n_bytes = n_line + self.data.as_ref().map_or(0, BytesMut::len);
        if self.limit < n_bytes {
            return Err(EventTooLong::Limit(self.limit));
        }
        if LONG_MESSAGE < n_bytes {
            let reserved = self.reserved.get_or_insert_with(|| self.memory.reserve_for(self.limit));
            reserved.try_grow(n_bytes).map_err(EventTooLong::OutOfMemory)?;
        }
        Ok(())
    }

    /// Takes the next line from the buffer, without its end; `None` until all of it has come.
    fn next_line(&mut self) -> Option<BytesMut> {
        if self.at_start {
            self.skip_byte_order_mark()?;
        }
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        let Some(found) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + found);
        self.searched = 0;
        self.after_return = self.buffer[0] == b'\r';
        self.buffer.advance(1);
        if LONG_MESSAGE < line.len() {
            // Do not keep the memory of a long event for what follows.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        Some(line)
    }

    /// Skips a byte order mark at the start of the stream; `None` if more bytes are needed.
    fn skip_byte_order_mark(&mut self) -> Option<()> {
        if self.buffer.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&self.buffer) {
            return None;
        }
        if self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.advance(BYTE_ORDER_MARK.len());
        }
        self.at_start = false;
        Some(())
    }

    fn parse_field(&mut self, mut line: BytesMut) {
        let (name, value) = match memchr::memchr(b':', &line) {
            Some(0) => return,
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.extend_from_slice(b"\n");
                    data.extend_from_slice(value);
                }
                None => {
                    // Without a copy: it may be long.
                    let start = line.len() - value.len();
                    line.advance(start);
                    self.data = Some(line);
                }
            },
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) && value.len() <= MAX_ID_BYTES => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&str]) -> (Vec<(String, String)>, Parser) {
        let mut parser = Parser::new(1000);
        let mut found = Vec::new();
        for chunk in chunks {
            parser.push(chunk.as_bytes());
            while let Some(event) = parser.next_event().unwrap() {
                found.push((event.name, String::from_utf8(event.data.to_vec()).unwrap()));
            }
        }
        (found, parser)
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(n, d)| ((*n).to_owned(), (*d).to_owned())).collect();
        assert_eq!(events(&[text]).0, expected);
        let bytes: Vec<_> = text.split("").collect();
        assert_eq!(events(&bytes).0, expected, "byte by byte");
    }

    #[test]
    fn events_are_read_whatever_the_line_breaks_and_the_chunks() {
        check("data: a\n\ndata:b\r\n\r\ndata: c\r\r", &[("", "a"), ("", "b"), ("", "c")]);
        check(": hi\nevent: endpoint\ndata: /x\n\n", &[("endpoint", "/x")]);
        check("data: a\ndata:  b\n\n", &[("", "a\n b")]);
        check("event: x\n\ndata\n\n", &[("", "")]);
        check("data: half", &[]);
    }

    #[test]
    fn ids_and_retry_times_are_kept() {
        let (found, parser) = events(&["id: 7\nretry: 1500\ndata:\n\nid: 8\ndata: x\n\n"]);
        assert_eq!(found.len(), 2);
        assert_eq!(parser.last_id(), Some("8"));
        assert_eq!(parser.retry(), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn an_event_that_is_cut_off_is_not_where_to_resume() {
        for cut in ["id: 8\n", "id: 8\ndata: {\"half", "id: 8\ndata: whole\n"] {
            let (_, mut parser) = events(&["id: 7\ndata: x\n\n", cut]);
            assert_eq!(parser.last_id(), Some("7"), "{cut:?}");
            parser.interrupt();
            parser.push(b"data: y\n\n");
            assert!(parser.next_event().unwrap().is_some());
            assert_eq!(parser.last_id(), Some("7"), "{cut:?}");
        }
        assert_eq!(events(&["id: 1\n\n"]).1.last_id(), Some("1"), "nothing is cut off");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let mut parser = Parser::new(1000);
        for byte in b"\xef\xbb\xbfdata: a\n\n" {
            assert_eq!(parser.next_event(), Ok(None));
            parser.push(&[*byte]);
        }
        assert_eq!(parser.next_event().unwrap().unwrap().data, "a");
    }

    #[test]
    fn an_event_over_the_limit_is_refused() {
        let mut parser = Parser::new(10);
        parser.push(b"data: 0123456789abcdef");
        assert_eq!(parser.next_event(), Err(EventTooLong::Limit(10)));
    }

    #[test]
    fn an_event_over_the_limit_is_refused_however_its_stream_is_cut() {
        for text in ["data: 0123456789\n\n", "data: 01\ndata: 23456789\n\n", ": 0123456789abc\n"] {
            for chunk in [1, 5, 100] {
                let mut parser = Parser::new(10);
                let mut outcome = Ok(None);
                for piece in text.as_bytes().chunks(chunk) {
                    parser.push(piece);
                    outcome = outcome.and_then(|_| parser.next_event());
                }
                assert_eq!(outcome, Err(EventTooLong::Limit(10)), "{text:?} by {chunk}");
            }
        }
    }

    #[test]
    fn long_events_share_their_memory_and_one_too_many_is_refused() {
        let memory = MemoryBudget::new(5 << 20);
        let long = format!("data: {}\n\n", "x".repeat(3 << 20));
        let read = || {
            let mut parser = Parser::new(64 << 20).with_memory(memory.clone());
            parser.push(long.as_bytes());
            parser.next_event()
        };
        let first = read().unwrap().unwrap();
        assert!(matches!(read(), Err(EventTooLong::OutOfMemory(_))));
        assert_eq!(first.data.len(), 3 << 20);
        drop(first);
        assert_eq!(memory.used(), 0);
        assert!(read().unwrap().is_some());
    }

    static STREAM: testkit::fuzz::Dictionary = testkit::fuzz::Dictionary {
        seeds: &["id: 1\nevent: message\ndata: {\"a\":1}\ndata: b\n\n: note\nretry: 5\r\n\r\n"],
        words: &["\n", "\r", "\r\n", "data:", "data: ", "event:", "id:", "retry:", ":", "\u{feff}"],
    };

    #[test]
    fn fuzz_event_stream() {
        testkit::fuzz::run("event_stream", &STREAM, |bytes| {
            let read = |chunk: usize| {
                // Short, so that what is over it is found, too.
                let mut parser = Parser::new(48);
                let mut events = Vec::new();
                for piece in bytes.chunks(chunk) {
                    parser.push(piece);
                    loop {
                        match parser.next_event() {
                            Ok(Some(event)) => events.push(event),
                            Ok(None) => break,
                            Err(too_long) => return (events, Err(too_long)),
                        }
                    }
                }
                (events, Ok(parser.last_id().map(str::to_owned)))
            };
            assert_eq!(read(7), read(bytes.len().max(1)), "however the stream is cut");
        });
    }
}
