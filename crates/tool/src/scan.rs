//! Scans JSON text for the start and end of values, without parsing them.
//!
//! Whoever forwards a message needs to know that it is JSON and where its
//! members are, and nothing else. A parser that makes values of them finds that
//! out too, at three times the cost, so every message passes here first
//! ([why](../../../docs/decisions/034-scan-before-parsing.md)). What is found is
//! well-formed. What is not found may be all the same: names with escapes and
//! deep nesting are left to the parser, which also knows how to say what is
//! wrong.

mod duplicates;

use serde_json::value::RawValue;

use crate::Json;

pub use duplicates::duplicate_key;

/// One well-formed value in a text, without white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'t>(&'t str);

impl<'t> Part<'t> {
    pub fn as_str(self) -> &'t str {
        self.0
    }

    /// The string that it is, if it is one without escapes.
    pub fn plain(self) -> Option<&'t str> {
        let inside = self.0.strip_prefix('"')?.strip_suffix('"')?;
        (!inside.contains('\\')).then_some(inside)
    }
}

impl<'t> From<&'t RawValue> for Part<'t> {
    fn from(raw: &'t RawValue) -> Part<'t> {
        Part(raw.get())
    }
}

impl<'t> From<&'t Json> for Part<'t> {
    fn from(json: &'t Json) -> Part<'t> {
        Part(json.as_str())
    }
}

/// Hands every member of the object that `text` is to `each`, in order.
///
/// `None` where a parser has to look; `each` may have been called by then.
pub fn members<'t>(text: &'t str, mut each: impl FnMut(&'t str, Part<'t>)) -> Option<()> {
    let mut scan = Scan { text, at: 0 };
    scan.skip_blanks();
    scan.expect(b'{')?;
    scan.skip_blanks();
    if scan.peek()? == b'}' {
        scan.at += 1;
        return scan.end();
    }
    loop {
        let name = scan.plain_name()?;
        scan.expect_colon()?;
        each(name, scan.part()?);
        scan.skip_blanks();
        match scan.take()? {
            b',' => scan.skip_blanks(),
            b'}' => return scan.end(),
            _ => return None,
        }
    }
}

/// The one value that `text` is, if a scan can tell.
pub fn whole(text: &str) -> Option<Part<'_>> {
    let mut scan = Scan { text, at: 0 };
    scan.skip_blanks();
    let part = scan.part()?;
    scan.end()?;
    Some(part)
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
}

/// What stands around a value. More levels than bits are left to the parser.
#[derive(Default)]
struct Nest {
    /// One bit for each level, the innermost last: set for an object.
    objects: u64,
    n_levels: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Array,
    Object,
}

impl Nest {
    fn enter(&mut self, inside: Inside) -> Option<()> {
        if self.n_levels == u64::BITS {
            return None;
        }
        self.n_levels += 1;
        self.objects = self.objects << 1 | u64::from(inside == Inside::Object);
        Some(())
    }

    fn leave(&mut self) {
        self.n_levels -= 1;
        self.objects >>= 1;
    }

    fn inside(&self) -> Option<Inside> {
        match (self.n_levels, self.objects & 1) {
            (0, _) => None,
            (_, 0) => Some(Inside::Array),
            (_, _) => Some(Inside::Object),
        }
    }
}

impl<'t> Scan<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.take()? == wanted).then_some(())
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn end(&mut self) -> Option<()> {
        self.skip_blanks();
        (self.at == self.text.len()).then_some(())
    }

    /// A member's name, if it has no escapes.
    fn plain_name(&mut self) -> Option<&'t str> {
        self.expect(b'"')?;
        let start = self.at;
        self.at += n_plain(&self.text.as_bytes()[start..]);
        self.expect(b'"')?;
        self.text.get(start..self.at - 1)
    }

    fn expect_colon(&mut self) -> Option<()> {
        self.skip_blanks();
        self.expect(b':')?;
        self.skip_blanks();
        Some(())
    }

    fn part(&mut self) -> Option<Part<'t>> {
        let start = self.at;
        self.skip_value()?;
        self.text.get(start..self.at).map(Part)
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut nest = Nest::default();
        'value: loop {
            let is_open = match self.take()? {
                b'{' => self.opens(b'}', Inside::Object, &mut nest)?,
                b'[' => self.opens(b']', Inside::Array, &mut nest)?,
                b'"' => {
                    self.skip_string()?;
                    false
                }
                first => {
                    self.skip_plain(first)?;
                    false
                }
            };
            if is_open {
                continue;
            }
            // A value has ended, and with it perhaps what it stands in.
            while let Some(inside) = nest.inside() {
                self.skip_blanks();
                match (self.take()?, inside) {
                    (b',', Inside::Object) => {
                        self.skip_blanks();
                        self.skip_name()?;
                        continue 'value;
                    }
                    (b',', Inside::Array) => {
                        self.skip_blanks();
                        continue 'value;
                    }
                    (b'}', Inside::Object) | (b']', Inside::Array) => nest.leave(),
                    _ => return None,
                }
            }
            return Some(());
        }
    }

    /// Goes to the first value inside of what was just opened; `false` where
    /// there is none.
    fn opens(&mut self, closing: u8, inside: Inside, nest: &mut Nest) -> Option<bool> {
        self.skip_blanks();
        if self.peek()? == closing {
            self.at += 1;
            return Some(false);
        }
        nest.enter(inside)?;
        if inside == Inside::Object {
            self.skip_name()?;
        }
        Some(true)
    }

    fn skip_name(&mut self) -> Option<()> {
        self.expect(b'"')?;
        self.skip_string()?;
        self.expect_colon()
    }

    /// Goes past the end of a string whose first quote is behind.
    fn skip_string(&mut self) -> Option<()> {
        loop {
            self.at += n_plain(&self.text.as_bytes()[self.at..]);
            match self.take()? {
                b'"' => return Some(()),
                b'\\' => match self.take()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        let digits = self.text.as_bytes().get(self.at..self.at + 4)?;
                        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                        self.at += 4;
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
    }

    /// A number or a word, of which the first byte is behind.
    fn skip_plain(&mut self, first: u8) -> Option<()> {
        match first {
            b't' => self.skip_word(b"rue"),
            b'f' => self.skip_word(b"alse"),
            b'n' => self.skip_word(b"ull"),
            b'-' => {
                let first = self.take()?;
                self.skip_number(first)
            }
            _ => self.skip_number(first),
        }
    }

    fn skip_word(&mut self, rest: &[u8]) -> Option<()> {
        self.text.as_bytes()[self.at..].starts_with(rest).then_some(())?;
        self.at += rest.len();
        Some(())
    }

    fn skip_number(&mut self, first: u8) -> Option<()> {
        match first {
            b'0' => {}
            b'1'..=b'9' => drop(self.skip_digits()),
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Some(())
    }

    /// Goes past digits; `None` where there are none.
    fn skip_digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (start < self.at).then_some(())
    }
}

/// Returns how many bytes come before the first that ends a string or must not
/// stand in one as it is: a quote, a backslash, a control character.
///
/// Eight at a time. In each test the lowest bit that is set is right, and what
/// stands above it may not be, so only the lowest of them all counts.
fn n_plain(bytes: &[u8]) -> usize {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = EACH << 7;
    let is_zero = |word: u64| word.wrapping_sub(EACH) & !word & HIGH;
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = is_zero(word ^ (EACH * u64::from(b'"')));
        let backslash = is_zero(word ^ (EACH * u64::from(b'\\')));
        let control = word.wrapping_sub(EACH * 0x20) & !word & HIGH;
        let found = quote | backslash | control;
        if found != 0 {
            return at * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    words.len() * 8 + rest.iter().position(is_special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests;
