//! Truncates a text to a number of tokens, deterministically.

use crate::tokens;

/// The most whole sentences of `text` with at most `limit` tokens; where not even one
/// fits, a prefix that ends with `…`.
///
/// Token counts are not monotone in the length of a prefix, so the order of the search
/// matters: the same text and limit give the same bytes.
pub fn truncate(text: &str, limit: usize) -> String {
    if limit == 0 {
        return String::new();
    }
    let Some(end) = tokens::end_within(text, limit) else { return text.to_owned() };
    match whole_sentences(text, limit, end) {
        Some(sentences) => sentences.to_owned(),
        None => hard_cut(text, limit),
    }
}

/// The most sentences that fit. No prefix longer than `longest` bytes does.
fn whole_sentences(text: &str, limit: usize, longest: usize) -> Option<&str> {
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
    let mut near = candidates.filter(|candidate| candidate.len() <= longest);
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

/// White space, including four separators that not all libraries count as such.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}
