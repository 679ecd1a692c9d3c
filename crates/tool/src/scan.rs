//! Scans JSON text for the start and end of values, without parsing them.
//!
//! To forward a message one needs to know that it is JSON and where its members
//! are, and nothing else. A parser that creates values costs three times as much,
//! so every message is scanned first
//! ([why](../../../docs/decisions/034-scan-before-parsing.md)). Whatever a scan
//! returns is well-formed JSON. `None` does not mean that the text is malformed:
//! names with escapes and deep nesting are left to the parser, which also has the
//! error messages.

mod duplicates;

use serde_json::value::RawValue;

use crate::Json;

pub use duplicates::duplicate_key;

/// A slice of a text that is one well-formed JSON value, without white space
/// around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueText<'t>(&'t str);

impl<'t> ValueText<'t> {
    pub fn as_str(self) -> &'t str {
        self.0
    }

    /// Returns the content of the string, if this is a string without escapes.
    pub fn unescaped_string(self) -> Option<&'t str> {
        let inside = self.0.strip_prefix('"')?.strip_suffix('"')?;
        (!inside.contains('\\')).then_some(inside)
    }
}

impl<'t> From<&'t RawValue> for ValueText<'t> {
    fn from(raw: &'t RawValue) -> ValueText<'t> {
        ValueText(raw.get())
    }
}

impl<'t> From<&'t Json> for ValueText<'t> {
    fn from(json: &'t Json) -> ValueText<'t> {
        ValueText(json.as_str())
    }
}

/// Calls `on_member` with the name and the value of every member of the object
/// `text`, in order.
///
/// Returns `None` if a parser is needed; `on_member` may have been called by then.
pub fn scan_members<'t>(
    text: &'t str,
    mut on_member: impl FnMut(&'t str, ValueText<'t>),
) -> Option<()> {
    let mut scan = Scanner { text, position: 0 };
    scan.skip_blanks();
    scan.expect(b'{')?;
    scan.skip_blanks();
    if scan.peek()? == b'}' {
        scan.position += 1;
        return scan.expect_end();
    }
    loop {
        let name = scan.unescaped_name()?;
        scan.expect_colon()?;
        on_member(name, scan.value()?);
        scan.skip_blanks();
        match scan.take()? {
            b',' => scan.skip_blanks(),
            b'}' => return scan.expect_end(),
            _ => return None,
        }
    }
}

/// Returns `text` without the white space around it; `None` if a parser is needed
/// to tell whether it is one JSON value.
pub fn scan_value(text: &str) -> Option<ValueText<'_>> {
    let mut scan = Scanner { text, position: 0 };
    scan.skip_blanks();
    let part = scan.value()?;
    scan.expect_end()?;
    Some(part)
}

/// A text and how far it is scanned. Its functions return `None` where the text
/// is malformed or a parser is needed.
struct Scanner<'t> {
    text: &'t str,
    position: usize,
}

/// The brackets that are open around a value. More than 64 levels are left to the
/// parser.
#[derive(Default)]
struct OpenBrackets {
    /// One bit for each level, the innermost last: set for an object.
    objects: u64,
    n_levels: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Array,
    Object,
}

impl OpenBrackets {
    fn enter(&mut self, bracket: Bracket) -> Option<()> {
        if self.n_levels == u64::BITS {
            return None;
        }
        self.n_levels += 1;
        self.objects = self.objects << 1 | u64::from(bracket == Bracket::Object);
        Some(())
    }

    fn leave(&mut self) {
        self.n_levels -= 1;
        self.objects >>= 1;
    }

    fn innermost(&self) -> Option<Bracket> {
        match (self.n_levels, self.objects & 1) {
            (0, _) => None,
            (_, 0) => Some(Bracket::Array),
            (_, _) => Some(Bracket::Object),
        }
    }
}

impl<'t> Scanner<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.position += 1;
        Some(byte)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.take()? == wanted).then_some(())
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.position += 1;
        }
    }

    fn expect_end(&mut self) -> Option<()> {
        self.skip_blanks();
        (self.position == self.text.len()).then_some(())
    }

    /// Reads a member's name, if it has no escapes.
    fn unescaped_name(&mut self) -> Option<&'t str> {
        self.expect(b'"')?;
        let start = self.position;
        self.position += n_bytes_without_special(&self.text.as_bytes()[start..]);
        self.expect(b'"')?;
        self.text.get(start..self.position - 1)
    }

    fn expect_colon(&mut self) -> Option<()> {
        self.skip_blanks();
        self.expect(b':')?;
        self.skip_blanks();
        Some(())
    }

    fn value(&mut self) -> Option<ValueText<'t>> {
        let start = self.position;
        self.skip_value()?;
        self.text.get(start..self.position).map(ValueText)
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut nest = OpenBrackets::default();
        'value: loop {
            let is_open = match self.take()? {
                b'{' => self.enter_bracket(b'}', Bracket::Object, &mut nest)?,
                b'[' => self.enter_bracket(b']', Bracket::Array, &mut nest)?,
                b'"' => {
                    self.skip_string()?;
                    false
                }
                first => {
                    self.skip_number_or_word(first)?;
                    false
                }
            };
            if is_open {
                continue;
            }
            // A value has ended, and perhaps the arrays and objects around it.
            while let Some(inside) = nest.innermost() {
                self.skip_blanks();
                match (self.take()?, inside) {
                    (b',', Bracket::Object) => {
                        self.skip_blanks();
                        self.skip_name()?;
                        continue 'value;
                    }
                    (b',', Bracket::Array) => {
                        self.skip_blanks();
                        continue 'value;
                    }
                    (b'}', Bracket::Object) | (b']', Bracket::Array) => nest.leave(),
                    _ => return None,
                }
            }
            return Some(());
        }
    }

    /// Goes to the first value inside of the bracket that was just read; `false`
    /// if there is none.
    fn enter_bracket(
        &mut self,
        closing: u8,
        bracket: Bracket,
        open: &mut OpenBrackets,
    ) -> Option<bool> {
        self.skip_blanks();
        if self.peek()? == closing {
            self.position += 1;
            return Some(false);
        }
        open.enter(bracket)?;
        if bracket == Bracket::Object {
            self.skip_name()?;
        }
        Some(true)
    }

    fn skip_name(&mut self) -> Option<()> {
        self.expect(b'"')?;
        self.skip_string()?;
        self.expect_colon()
    }

    /// Goes past the end of a string whose first quote was read.
    fn skip_string(&mut self) -> Option<()> {
        loop {
            self.position += n_bytes_without_special(&self.text.as_bytes()[self.position..]);
            match self.take()? {
                b'"' => return Some(()),
                b'\\' => match self.take()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        let digits = self.text.as_bytes().get(self.position..self.position + 4)?;
                        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                        self.position += 4;
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
    }

    /// Goes past a number, `true`, `false` or `null` whose first byte was read.
    fn skip_number_or_word(&mut self, first: u8) -> Option<()> {
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
        self.text.as_bytes()[self.position..].starts_with(rest).then_some(())?;
        self.position += rest.len();
        Some(())
    }

    fn skip_number(&mut self, first: u8) -> Option<()> {
        match first {
            b'0' => {}
            b'1'..=b'9' => drop(self.skip_digits()),
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            self.skip_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.position += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.position += 1;
            }
            self.skip_digits()?;
        }
        Some(())
    }

    /// Goes past digits; `None` if there are none.
    fn skip_digits(&mut self) -> Option<()> {
        let start = self.position;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
        (start < self.position).then_some(())
    }
}

/// Returns how many bytes come before the first quote, backslash or control
/// character.
///
/// It tests eight bytes at a time. In the result of each test only the lowest set
/// bit is reliable, so the lowest of all three results is used.
fn n_bytes_without_special(bytes: &[u8]) -> usize {
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
