//! Counts the tokens of a text exactly as `cl100k_base` does.
//!
//! Text that looks like a special token (`<|endoftext|>`) is counted as ordinary text, so
//! a description cannot falsify a count.

mod merge;
mod pieces;
mod slots;
mod vocabulary;

use merge::Merger;

/// The number of tokens of `text`.
pub fn count(text: &str) -> usize {
    let (mut rest, mut merger, mut n_tokens) = (text, Merger::default(), 0);
    while !rest.is_empty() {
        let (piece, after) = pieces::next(rest);
        n_tokens += merger.count(piece.as_bytes());
        rest = after;
    }
    n_tokens
}

/// Whether `text` has at most `limit` tokens. Stops counting as soon as that is known.
pub fn fits(text: &str, limit: usize) -> bool {
    // A token is never shorter than a byte.
    if text.len() <= limit {
        return true;
    }
    if limit.saturating_mul(vocabulary::LONGEST) < text.len() {
        return false;
    }
    end_within(text, limit).is_none()
}

/// The end of the piece with which `text` exceeds `limit` tokens; `None` if it does not
/// exceed them. No longer prefix fits, unless it ends in white space.
pub(crate) fn end_within(text: &str, limit: usize) -> Option<usize> {
    let (mut rest, mut merger, mut n_tokens) = (text, Merger::default(), 0);
    while !rest.is_empty() {
        let (piece, after) = pieces::next(rest);
        n_tokens += merger.count(piece.as_bytes());
        if limit < n_tokens {
            return Some(text.len() - after.len());
        }
        rest = after;
    }
    None
}

/// An estimate of [`count`] with bounded cost: exact for short text, extrapolated from the
/// beginning of long text.
pub fn estimate(text: &str) -> usize {
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

/// The bytes of a long text that are counted.
const SAMPLE: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts of a tokenizer that we did not write.
    fn peer(text: &str) -> usize {
        tiktoken::get_encoding("cl100k_base").unwrap().count(text)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn any_text_has_the_count_of_the_published_tokenizer(text in any_text()) {
            prop_assert_eq!(count(&text), peer(&text), "{:?}", text);
        }
    }

    /// Texts that meet every branch of the rule: words, digits, contractions,
    /// signs, white space of all sorts, other scripts, and anything at all.
    fn any_text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "[a-zA-Z]{1,12}",
            "[0-9]{1,6}",
            "'(s|T|re|VE|m|ll|D|x|ſ)",
            "[ \t\r\n\u{a0}\u{3000}]{1,6}",
            "[!-/:-@\\[-`{-~]{1,5}",
            "[\u{c0}-\u{24f}\u{370}-\u{5ff}\u{900}-\u{97f}\u{3040}-\u{30ff}\u{4e00}-\u{4eff}]{1,6}",
            "[\u{2150}-\u{218b}\u{2460}-\u{24ff}\u{1f300}-\u{1f64f}]{1,3}",
            "\\PC{1,4}",
        ];
        prop::collection::vec(part, 0..20).prop_map(|parts| parts.concat())
    }

    #[test]
    fn real_texts_have_the_count_of_the_published_tokenizer() {
        for text in [
            include_str!("../tests/gold/queries.jsonl"),
            include_str!("../../../README.md"),
            include_str!("tokens.rs"),
            &"a".repeat(5000),
            &"\u{1f600}".repeat(500),
            &" \n".repeat(3000),
        ] {
            assert_eq!(count(text), peer(text), "{:?}…", &text[..8]);
        }
    }

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
        let spaces = " ".repeat(vocabulary::LONGEST * 4);
        assert!(fits(&spaces, count(&spaces)));
        assert!(!fits(&spaces, count(&spaces) - 1));
    }

    #[test]
    fn long_text_is_estimated_closely() {
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(4000);
        let (exact, near) = (count(&text) as f64, estimate(&text) as f64);
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
