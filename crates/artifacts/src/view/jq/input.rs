//! Checks JSON text before it is parsed for jq: its nesting and the length of its
//! numbers.
//!
//! The parser calls itself for every level and takes quadratic time for long
//! numbers, so both are bounded before it is called. The scan reads what the
//! parser reads: JSON with comments that begin with `#`.

/// The deepest nesting of a value, whether it was parsed or created by a filter.
///
/// At this depth every recursive operation on a value (parsing, writing,
/// comparing, hashing, dropping) fits the stack of a filter many times over.
pub(super) const MAX_DEPTH: usize = 512;

/// The longest number.
const MAX_DIGITS: usize = 10_000;

/// Why a text is not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooComplex {
    #[error("it nests deeper than {MAX_DEPTH} levels")]
    Deep,
    #[error("it has a number of more than {MAX_DIGITS} digits")]
    Long,
}

/// Fails if the text must not be parsed.
pub(super) fn check(text: &[u8]) -> Result<(), TooComplex> {
    let (mut depth, mut digits, mut at) = (0_usize, 0_usize, 0);
    while let Some(byte) = text.get(at) {
        at += 1;
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => at += string_length(&text[at..]),
            b'#' => at += text[at..].iter().take_while(|byte| **byte != b'\n').count(),
            _ => {}
        }
        if MAX_DEPTH < depth {
            return Err(TooComplex::Deep);
        }
        if MAX_DIGITS < digits {
            return Err(TooComplex::Long);
        }
    }
    Ok(())
}

/// Returns the number of bytes of a string after its first quote.
fn string_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) =
        text[at.min(text.len())..].iter().position(|b| matches!(b, b'"' | b'\\'))
    {
        at += found;
        match text[at] {
            b'"' => return at + 1,
            _ => at += 2,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_outside_of_strings_and_comments_only() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert_eq!(check(nested(MAX_DEPTH).as_bytes()), Ok(()));
        assert_eq!(check(nested(MAX_DEPTH + 1).as_bytes()), Err(TooComplex::Deep));
        assert_eq!(check("{\"a\":".repeat(MAX_DEPTH + 1).as_bytes()), Err(TooComplex::Deep));
        let side_by_side = format!("[{}[]]", "[],".repeat(MAX_DEPTH));
        assert_eq!(check(side_by_side.as_bytes()), Ok(()));
        let quoted = format!("\"\\\"{}\"", "[".repeat(MAX_DEPTH + 1));
        assert_eq!(check(quoted.as_bytes()), Ok(()));
        for hidden in ["#\"\n", "\"\\\\\" ", "# ]]\n", "\"]]]\" "] {
            let text = format!("[{hidden}{}", "[".repeat(MAX_DEPTH));
            assert_eq!(check(text.as_bytes()), Err(TooComplex::Deep), "{hidden}");
        }
        assert_eq!(check(b"\"\\"), Ok(()));
    }

    #[test]
    fn numbers_are_bounded_and_the_digits_of_texts_are_not() {
        let digits = "7".repeat(MAX_DIGITS + 1);
        assert_eq!(check(digits.as_bytes()), Err(TooComplex::Long));
        assert_eq!(check(format!("\"{digits}\"").as_bytes()), Ok(()));
    }
}
