//! How much memory a long request takes.
//!
//! A long body takes its length of the [memory of requests](super::FairMemory) before it is
//! read, and what its values take when they are parsed. Whoever finds no room waits a
//! moment and is told to come again. Short bodies are not counted: the number of requests
//! bounds them.

use std::time::Duration;

/// Bodies of up to this many bytes are not counted.
pub(super) const SHORT_BODY: usize = 64 << 10;

/// How long a request waits for memory.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(5);

/// About how many bytes a parsed value takes, beside its text.
const BYTES_PER_VALUE: usize = 64;

/// Returns how many bytes a message with so many values takes, parsed and unparsed.
pub(super) fn parsed_bytes(n_bytes: usize, n_values: usize) -> usize {
    n_bytes + n_values.saturating_mul(BYTES_PER_VALUE)
}

/// Returns about how many values a JSON text has, never too few: whatever stands after a
/// comma, a colon or a bracket may be one. Text that is not JSON gets some number.
pub(super) fn count_values(text: &[u8]) -> usize {
    let mut n_values = 1;
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b',' | b':' | b'[' | b'{' => n_values += 1,
            b'"' => rest = after_string(after),
            _ => {}
        }
    }
    n_values
}

/// Returns what follows the string that `text` is inside of.
fn after_string(mut text: &[u8]) -> &[u8] {
    loop {
        match memchr::memchr2(b'"', b'\\', text) {
            None => return &[],
            Some(at) if text[at] == b'"' => return &text[at + 1..],
            Some(at) => text = text.get(at + 2..).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
