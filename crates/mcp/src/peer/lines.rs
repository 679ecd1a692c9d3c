//! Splits a byte stream into lines of limited length.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};
use tool::Json;

use crate::memory::{MemoryBudget, OutOfMemory, Reservation};
use crate::off_thread::LONG_MESSAGE;

/// How many bytes of a line over the limit are kept at either end.
const EDGE_BYTES: usize = 256;

/// The room for a read, made when less than [`MIN_READ_ROOM`] is left: a new buffer for
/// every message would cost more than reading it.
const READ_ROOM: usize = 64 << 10;
const MIN_READ_ROOM: usize = 4 << 10;

/// One line of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Whole(Bytes),
    /// A line over the limit: its length, and its first and last bytes.
    TooLong {
        length: usize,
        head: Bytes,
        tail: Bytes,
        /// Set if the line was dropped because the memory budget is used up.
        out_of_memory: Option<OutOfMemory>,
    },
}

/// Reads lines. Skips empty ones; the last line needs no line break.
pub struct Lines<R> {
    reader: R,
    buffer: BytesMut,
    /// How many bytes of the buffer were searched for a line break.
    searched: usize,
    limit: usize,
    skipping: Option<Skipped>,
    ended: bool,
    memory: MemoryBudget,
    /// The memory reserved for a long line that is being read.
    reserved: Option<Reservation>,
}

/// A line over the limit that is being skipped.
struct Skipped {
    n_bytes: usize,
    head: Bytes,
    out_of_memory: Option<OutOfMemory>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(reader: R, limit: usize) -> Lines<R> {
        Lines {
            reader,
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            skipping: None,
            ended: false,
            memory: MemoryBudget::new(usize::MAX),
            reserved: None,
        }
    }

    /// Counts long lines against a shared memory budget.
    pub fn with_memory(self, memory: MemoryBudget) -> Lines<R> {
        Lines { memory, ..self }
    }

    /// Reads more input; returns `false` at its end. Waits while there is no memory for a
    /// long line. Cancel safe.
    pub async fn fill(&mut self) -> io::Result<bool> {
        // Growing with what is there already keeps long lines linear in cost. Very
        // long ones have room to their limit at once: memory that nobody writes to
        // costs nothing, and moving what is there costs twice.
        if self.buffer.capacity() - self.buffer.len() < MIN_READ_ROOM {
            self.buffer.reserve(match self.buffer.len() {
                0..LONG_MESSAGE => READ_ROOM.max(self.buffer.len() / 2),
                n_bytes => READ_ROOM.max(self.limit.saturating_sub(n_bytes)) + MIN_READ_ROOM,
            });
        }
        let n_read = match self.skipping {
            Some(_) => self.reader.read_buf(&mut self.buffer).await?,
            None => match self.fill_within_memory().await? {
                Ok(n_read) => n_read,
                Err(full) => {
                    self.begin_skipping(Some(full));
                    return Ok(true);
                }
            },
        };
        self.ended |= n_read == 0;
        Ok(n_read != 0)
    }

    /// Reads more of a line that is not skipped. What makes it long is reserved first.
    async fn fill_within_memory(&mut self) -> io::Result<Result<usize, OutOfMemory>> {
        let n_bytes = self.buffer.len();
        if n_bytes < LONG_MESSAGE {
            let mut room = (&mut self.buffer).limit(LONG_MESSAGE - n_bytes);
            return Ok(Ok(self.reader.read_buf(&mut room).await?));
        }
        let reserved = self.reserved.get_or_insert_with(|| self.memory.reserve_for(self.limit));
        // One byte over the limit shows that the line is too long.
        let wanted = (n_bytes + READ_ROOM).min(self.limit.max(n_bytes) + 1);
        if let Err(full) = reserved.grow(wanted).await {
            return Ok(Err(full));
        }
        let mut room = (&mut self.buffer).limit(wanted - n_bytes);
        tokio::select! {
            biased;
            n_read = self.reader.read_buf(&mut room) => Ok(Ok(n_read?)),
            full = reserved.overdue() => Ok(Err(full)),
        }
    }

    /// Returns the next line that is in the buffer completely.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let line = match memchr(b'\n', &self.buffer[self.searched..]) {
                Some(found) => {
                    let line = self.buffer.split_to(self.searched + found);
                    self.buffer.advance(1);
                    self.searched = 0;
                    if LONG_MESSAGE < line.len() {
                        // Do not keep the memory of a long line for what follows.
                        self.buffer = BytesMut::from(&self.buffer[..]);
                    }
                    self.finish_line(line)
                }
                None if self.ended && !self.buffer.is_empty() => {
                    let line = self.buffer.split();
                    self.searched = 0;
                    self.finish_line(line)
                }
                None => {
                    self.searched = self.buffer.len();
                    self.skip_oversized();
                    return None;
                }
            };
            if let Some(line) = line {
                return Some(line);
            }
        }
    }

    fn finish_line(&mut self, line: BytesMut) -> Option<Line> {
        let reserved = self.reserved.take();
        if let Some(Skipped { n_bytes, head, out_of_memory }) = self.skipping.take() {
            let length = n_bytes + line.len();
            let tail = line.freeze();
            let tail = tail.slice(tail.len().saturating_sub(EDGE_BYTES)..);
            return Some(Line::TooLong { length, head, tail, out_of_memory });
        }
        if line.trim_ascii().is_empty() {
            return None;
        }
        let line = line.freeze();
        if line.len() <= self.limit {
            return Some(Line::Whole(match reserved {
                Some(reserved) => reserved.hold(line),
                None => line,
            }));
        }
        let edge = EDGE_BYTES.min(line.len());
        let (head, tail) = (line.slice(..edge), line.slice(line.len() - edge..));
        Some(Line::TooLong { length: line.len(), head, tail, out_of_memory: None })
    }

    /// Drops the bytes of a line over the limit, except its ends.
    fn skip_oversized(&mut self) {
        let over = match &self.skipping {
            Some(_) => EDGE_BYTES < self.buffer.len(),
            None => self.limit < self.buffer.len(),
        };
        if over {
            self.begin_skipping(None);
        }
    }

    /// Drops what is there of a line, except its ends, and skips the rest.
    fn begin_skipping(&mut self, out_of_memory: Option<OutOfMemory>) {
        self.reserved = None;
        let cut = self.buffer.len() - EDGE_BYTES.min(self.buffer.len());
        let head = Bytes::copy_from_slice(&self.buffer[..EDGE_BYTES.min(self.buffer.len())]);
        let skipped = Skipped { n_bytes: 0, head, out_of_memory };
        let skipped = self.skipping.take().unwrap_or(skipped);
        let rest = BytesMut::from(&self.buffer[cut..]);
        self.skipping = Some(Skipped { n_bytes: skipped.n_bytes + cut, ..skipped });
        self.buffer = rest;
        self.searched = self.buffer.len();
    }
}

/// Finds the id of a response of which only the ends are known.
///
/// Accepts only an id among the first members or as the very last one, because only
/// there it is certain to be at the top level.
pub(super) fn id_from_ends(head: &[u8], tail: &[u8]) -> Option<Json> {
    let head = String::from_utf8_lossy(&head[..head.len().min(128)]);
    if let Some(id) = leading_id(&head) {
        return Some(id);
    }
    let tail = String::from_utf8_lossy(tail);
    let (_, id) = tail.trim_end().strip_suffix('}')?.rsplit_once("\"id\":")?;
    plain_id(id)
}

fn leading_id(head: &str) -> Option<Json> {
    let first = head.trim_start().strip_prefix('{')?;
    let first = first.strip_prefix(r#""jsonrpc":"2.0","#).unwrap_or(first);
    let (id, _) = first.strip_prefix(r#""id":"#)?.split_once(',')?;
    plain_id(id)
}

fn plain_id(text: &str) -> Option<Json> {
    let id = text.trim();
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'"' | b'-' | b'_');
    if !id.bytes().all(plain) {
        return None;
    }
    Json::parse(id.to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(input, limit);
        let mut found = Vec::new();
        loop {
            let more = lines.fill().await.unwrap();
            while let Some(line) = lines.next_line() {
                found.push(line);
            }
            if !more {
                return found;
            }
        }
    }

    #[tokio::test]
    async fn empty_lines_are_skipped_and_the_last_needs_no_break() {
        let found = lines(b"a\r\n\n  \nb\nc", 100).await;
        let texts: Vec<_> = found
            .iter()
            .map(|line| match line {
                Line::Whole(text) => text.trim_ascii().to_vec(),
                Line::TooLong { .. } => panic!("{line:?}"),
            })
            .collect();
        assert_eq!(texts, [b"a", b"b", b"c"]);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_skipped_and_the_next_one_read() {
        let long = format!("{{\"result\":\"{}\",\"id\":7}}", "x".repeat(1 << 20));
        let input = format!("{long}\nnext\n");
        let found = lines(input.as_bytes(), 1000).await;
        let Line::TooLong { length, head, tail, .. } = &found[0] else { panic!("{found:?}") };
        assert_eq!(*length, long.len());
        assert_eq!(id_from_ends(head, tail).unwrap().as_str(), "7");
        assert_eq!(found[1], Line::Whole(Bytes::from_static(b"next")));
    }

    #[tokio::test]
    async fn long_lines_are_counted_and_leave_no_room_behind() {
        tokio::time::pause();
        let memory = MemoryBudget::new(5 << 20);
        let long = "x".repeat(3 << 20);
        let input = format!("{long}\n{long}\nshort\n");
        let mut lines = Lines::new(input.as_bytes(), 64 << 20).with_memory(memory.clone());
        let mut found = Vec::new();
        while lines.fill().await.unwrap() {
            found.extend(std::iter::from_fn(|| lines.next_line()));
        }
        let Line::Whole(first) = &found[0] else { panic!("{found:?}") };
        assert_eq!((first.len(), memory.used()), (3 << 20, 3 << 20));
        let Line::TooLong { out_of_memory: Some(_), .. } = &found[1] else { panic!("it fits") };
        assert_eq!(found[2], Line::Whole(Bytes::from_static(b"short")));
        assert!(lines.buffer.capacity() < LONG_MESSAGE, "{}", lines.buffer.capacity());
        drop(found);
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test]
    async fn long_lines_wait_for_each_other_when_they_do_not_fit_together() {
        let memory = MemoryBudget::new(5 << 20);
        let input = format!("{}\n", "x".repeat(3 << 20));
        let read = async || {
            let mut lines = Lines::new(input.as_bytes(), 64 << 20).with_memory(memory.clone());
            loop {
                lines.fill().await.unwrap();
                match lines.next_line() {
                    Some(Line::Whole(line)) => return line.len(),
                    Some(Line::TooLong { .. }) => return 0,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        let all = futures::future::join_all((0..4).map(|_| read())).await;
        assert_eq!(all, [3 << 20; 4]);
    }

    #[test]
    fn only_an_id_that_is_certainly_at_the_top_is_believed() {
        let id = |head: &str, tail: &str| {
            id_from_ends(head.as_bytes(), tail.as_bytes()).map(|id| id.to_string())
        };
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":5,"result":{"#, "..").as_deref(), Some("5"));
        assert_eq!(id(r#"{"id":"a-1","result":{"#, "").as_deref(), Some("\"a-1\""));
        assert_eq!(id(r#"{"result":{"id":5,"#, r#"{"id":5}}"#), None);
        assert_eq!(id("{", r#"],"jsonrpc":"2.0","id":12}"#).as_deref(), Some("12"));
    }
}
