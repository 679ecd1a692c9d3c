//! What a text costs a model.
//!
//! Exact `cl100k_base` counts. Text that looks like a special token
//! (`<|endoftext|>`) is counted as the text it is, so nobody can break a count
//! by writing one into a description.

use std::sync::OnceLock;

use tiktoken::CoreBpe;

/// The number of tokens of `text`.
///
/// The first count loads the vocabulary, which takes about 50 ms; call
/// [`warm`] off the request path to have that behind you.
pub fn count(text: &str) -> usize {
    encoder().count(text)
}

/// Whether `text` has at most `limit` tokens, without counting more of a long
/// text than it takes to know.
pub fn fits(text: &str, limit: usize) -> bool {
    // A token is never shorter than a byte, and no vocabulary entry is longer
    // than 128 bytes.
    if text.len() <= limit {
        return true;
    }
    if limit.saturating_mul(LONGEST_TOKEN) < text.len() {
        return false;
    }
    count(text) <= limit
}

/// A number near [`count`]: exact for short text, extrapolated from the
/// beginning of long text, so that its cost is bounded.
pub fn about(text: &str) -> usize {
    if text.len() <= SAMPLE {
        return count(text);
    }
    let mut end = SAMPLE;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let sampled = count(&text[..end]);
    (sampled as f64 * text.len() as f64 / end as f64).round() as usize
}

/// Loads the vocabulary now instead of at the first count.
pub fn warm() {
    encoder();
}

const LONGEST_TOKEN: usize = 128;
const SAMPLE: usize = 64 * 1024;

fn encoder() -> &'static CoreBpe {
    static ENCODER: OnceLock<&'static CoreBpe> = OnceLock::new();
    ENCODER.get_or_init(|| {
        tiktoken::get_encoding("cl100k_base").expect("the vocabulary is part of the library")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_have_their_known_counts() {
        for (text, expected) in [("", 0), ("hello", 1), ("hello world", 2), ("日本", 2)] {
            assert_eq!(count(text), expected, "{text}");
        }
    }

    #[test]
    fn text_that_looks_like_a_special_token_is_counted_as_text() {
        assert!(1 < count("<|endoftext|>"));
    }

    #[test]
    fn the_longest_token_is_no_longer_than_assumed() {
        let spaces = " ".repeat(LONGEST_TOKEN * 4);
        assert!(fits(&spaces, count(&spaces)));
        assert!(!fits(&spaces, count(&spaces) - 1));
    }

    #[test]
    fn long_text_is_estimated_closely() {
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(4000);
        let (exact, near) = (count(&text) as f64, about(&text) as f64);
        assert!((near / exact - 1.0).abs() < 0.02, "{near} for {exact}");
    }

    #[test]
    fn fitting_agrees_with_counting() {
        for text in ["", "a", "one two three", "日本語のテキスト", &"word ".repeat(500)] {
            for limit in [0, 1, 3, 10, 500, 5000] {
                assert_eq!(fits(text, limit), count(text) <= limit, "{limit} {text}");
            }
        }
    }
}
