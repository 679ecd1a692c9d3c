//! Text without what may stand between the characters of a secret that is spelt out.
//!
//! The skeleton of a text is its ASCII letters and digits, in order. A secret with spaces,
//! line breaks, dots, quotes or unseen characters in it has the same skeleton as the
//! secret itself, so one search over a skeleton finds all of these at once.

use std::ops::Range;

use regex::Regex;

/// What is decoded while a skeleton is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decoding {
    /// Escapes of JSON, however often they are escaped themselves.
    pub(super) escapes: bool,
    /// Escapes of URLs.
    pub(super) percent: bool,
}

/// How many bytes of a skeleton are searched at once, so that a long text needs little
/// memory.
const CHUNK_BYTES: usize = 1 << 16;

/// Whether `pattern`, of at most `max_len` bytes, matches the skeleton of a text.
pub(super) fn is_match(text: &str, decoding: Decoding, pattern: &Regex, max_len: usize) -> bool {
    let mut chunk = String::with_capacity(CHUNK_BYTES + max_len);
    for (kept, _) in Kept::new(text, decoding) {
        chunk.push(char::from(kept));
        if CHUNK_BYTES + max_len <= chunk.len() {
            if pattern.is_match(&chunk) {
                return true;
            }
            // A match may begin in this chunk and end in the next.
            chunk.drain(..=chunk.len() - max_len);
        }
    }
    pattern.is_match(&chunk)
}

/// The ranges of a text whose skeleton `pattern` matches.
pub(super) fn find(text: &str, decoding: Decoding, pattern: &Regex) -> Vec<Range<usize>> {
    let skeleton: String = Kept::new(text, decoding).map(|(kept, _)| char::from(kept)).collect();
    let mut kept = Kept::new(text, decoding).map(|(_, range)| range).enumerate();
    let mut place = |wanted: usize| kept.find(|(at, _)| *at == wanted).map(|(_, range)| range);
    let places = pattern.find_iter(&skeleton).filter_map(|found| {
        let first = place(found.start())?;
        let last = match found.len() {
            1 => first.clone(),
            _ => place(found.end() - 1)?,
        };
        Some(first.start..last.end)
    });
    places.collect()
}

/// The skeleton of a short text.
pub(super) fn of(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The characters of a skeleton, with their places in the text.
struct Kept<'t> {
    bytes: &'t [u8],
    at: usize,
    decoding: Decoding,
}

impl<'t> Kept<'t> {
    fn new(text: &'t str, decoding: Decoding) -> Kept<'t> {
        Kept { bytes: text.as_bytes(), at: 0, decoding }
    }

    /// The byte that this many hexadecimal digits from `start` on encode. One that is
    /// not ASCII is none of a skeleton's, so it does not matter which it is.
    fn hex(&self, start: usize, n_digits: usize) -> Option<u8> {
        let digits = self.bytes.get(start..start + n_digits)?;
        let value = digits
            .iter()
            .try_fold(0_u32, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))?;
        Some(u8::try_from(value).unwrap_or(u8::MAX))
    }

    /// Reads an escape at the current place: the character that it stands for, if it
    /// is one, and where it ends.
    fn escape(&self) -> (Option<u8>, usize) {
        let behind = |at: usize| self.bytes.get(at).copied();
        match self.bytes[self.at] {
            b'\\' if self.decoding.escapes => {
                let n_slashes = self.bytes[self.at..].iter().take_while(|b| **b == b'\\').count();
                let end = self.at + n_slashes;
                match behind(end) {
                    Some(b'u') => match self.hex(end + 1, 4) {
                        Some(byte) => (Some(byte), end + 5),
                        None => (None, end),
                    },
                    Some(b'n' | b'r' | b't' | b'b' | b'f') => (None, end + 1),
                    Some(_) | None => (None, end),
                }
            }
            b'%' if self.decoding.percent => match self.hex(self.at + 1, 2) {
                Some(byte) => (Some(byte), self.at + 3),
                None => (None, self.at + 1),
            },
            _ => (None, self.at + 1),
        }
    }
}

impl Iterator for Kept<'_> {
    type Item = (u8, Range<usize>);

    fn next(&mut self) -> Option<(u8, Range<usize>)> {
        loop {
            let (start, byte) = (self.at, *self.bytes.get(self.at)?);
            if byte.is_ascii_alphanumeric() {
                self.at += 1;
                return Some((byte, start..self.at));
            }
            let (decoded, end) = self.escape();
            self.at = end;
            if let Some(decoded) = decoded.filter(u8::is_ascii_alphanumeric) {
                return Some((decoded, start..end));
            }
        }
    }
}
