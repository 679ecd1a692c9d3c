//! Cuts a text to a number of tokens, deterministically.

use crate::tokens;

/// The longest part of `text` that ends with a sentence and has at most
/// `limit` tokens; failing that, a cut with `…` at its end.
///
/// Token counts are not monotone in the length of a prefix, so the search is
/// part of the contract: the same text and limit give the same bytes.
pub fn truncate(text: &str, limit: usize) -> String {
    if limit == 0 {
        return String::new();
    }
    let Some(passed) = tokens::passed(text, limit) else { return text.to_owned() };
    match whole_sentences(text, limit, passed) {
        Some(sentences) => sentences.to_owned(),
        None => hard_cut(text, limit),
    }
}

/// The most sentences that fit. None that goes beyond `passed` does.
fn whole_sentences(text: &str, limit: usize, passed: usize) -> Option<&str> {
    let mut ends = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !matches!(c, '.' | '!' | '?') {
            continue;
        }
        match chars.peek() {
            None => ends.push(at + c.len_utf8()),
            Some((next, blank)) if is_blank(*blank) => ends.push(next + blank.len_utf8()),
            Some(_) => {}
        }
    }
    let candidates = ends.into_iter().rev().map(|end| text[..end].trim_end_matches(is_blank));
    let mut near = candidates.filter(|candidate| candidate.len() <= passed);
    near.find(|candidate| tokens::fits(candidate, limit))
}

fn hard_cut(text: &str, limit: usize) -> String {
    let offsets: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let (mut low, mut high, mut best) = (0, offsets.len(), 0);
    // `high` is one past the last candidate, so that it never goes below zero.
    while low < high {
        let middle = (low + high - 1) / 2;
        if tokens::fits(&text[..offsets[middle]], limit - 1) {
            best = middle;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    format!("{}…", text[..offsets[best]].trim_end_matches(is_blank))
}

/// White space, with the four separators that only some libraries count.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}
