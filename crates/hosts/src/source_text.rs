//! The text that an edit took out of a file, so that undoing it brings back what people
//! wrote: comments, spelling and order, and not only what it meant.

use serde::{Deserialize, Serialize};

/// A piece of a text that was replaced by another, and what stood around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// What was there.
    was: String,
    /// What is there instead; mostly nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    is: String,
    /// The lines before it.
    before: String,
    /// The lines after it.
    after: String,
}

/// How many lines on each side are remembered.
const LINES: usize = 3;

/// How many bytes on each side are remembered.
const MAX_CONTEXT_BYTES: usize = 1024;

impl SourceText {
    /// Finds the one piece by which two texts differ.
    pub(crate) fn between(before: &str, after: &str) -> Option<SourceText> {
        if before == after {
            return None;
        }
        let same = |(one, other): &(u8, u8)| one == other;
        let mut start = before.bytes().zip(after.bytes()).take_while(same).count();
        while !before.is_char_boundary(start) || !after.is_char_boundary(start) {
            start -= 1;
        }
        let shorter = before.len().min(after.len());
        let mut n_end = before.bytes().rev().zip(after.bytes().rev()).take_while(same).count();
        n_end = n_end.min(shorter - start);
        while !before.is_char_boundary(before.len() - n_end)
            || !after.is_char_boundary(after.len() - n_end)
        {
            n_end -= 1;
        }
        let (start, n_end) = on_whole_lines(before, after, start, n_end);
        let (was_end, is_end) = (before.len() - n_end, after.len() - n_end);
        Some(SourceText {
            was: before[start..was_end].to_owned(),
            is: after[start..is_end].to_owned(),
            before: last_lines(&before[..start], LINES).to_owned(),
            after: first_lines(&before[was_end..], LINES).to_owned(),
        })
    }

    /// Returns the texts in which the piece is back where it stood, the likeliest first. The
    /// text may have changed since; whoever asks has to check what they mean.
    pub(crate) fn put_back<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        let tries = [(LINES, LINES), (1, 1), (LINES, 0), (0, LINES), (1, 0), (0, 1)];
        tries.into_iter().filter_map(move |(n_before, n_after)| {
            let before = last_lines(&self.before, n_before);
            let after = first_lines(&self.after, n_after);
            let place = format!("{before}{}{after}", self.is);
            let mut found = text.match_indices(&place);
            // A place that there is twice is none.
            let (at, _) = found.next().filter(|_| !place.trim().is_empty())?;
            if found.next().is_some() {
                return None;
            }
            let (start, end) = (at + before.len(), at + place.len() - after.len());
            Some(format!("{}{}{}", &text[..start], self.was, &text[end..]))
        })
    }
}

/// Moves a piece that was taken out to the beginning of a line, where the texts differ in the
/// same way there: ends of entries look alike.
fn on_whole_lines(before: &str, after: &str, start: usize, n_end: usize) -> (usize, usize) {
    if after.len() - n_end != start {
        return (start, n_end);
    }
    let (bytes, mut at, mut end) = (before.as_bytes(), start, before.len() - n_end);
    while 0 < at && bytes[at - 1] != b'\n' && bytes[at - 1] == bytes[end - 1] {
        (at, end) = (at - 1, end - 1);
    }
    let is_line = at == 0 || bytes[at - 1] == b'\n';
    let is_boundary = before.is_char_boundary(at) && before.is_char_boundary(end);
    if is_line && is_boundary { (at, before.len() - end) } else { (start, n_end) }
}

/// The last lines of a text that are not empty, with those between, within bounds.
fn last_lines(text: &str, n_lines: usize) -> &str {
    let mut start = text.len();
    let mut n_left = n_lines;
    for line in text.split_inclusive('\n').rev() {
        if n_left == 0 || MAX_CONTEXT_BYTES < text.len() - start + line.len() {
            break;
        }
        start -= line.len();
        n_left -= usize::from(!line.trim().is_empty());
    }
    &text[start..]
}

/// The first lines of a text that are not empty, with those between, within bounds.
fn first_lines(text: &str, n_lines: usize) -> &str {
    let mut end = 0;
    let mut n_left = n_lines;
    for line in text.split_inclusive('\n') {
        if n_left == 0 || MAX_CONTEXT_BYTES < end + line.len() {
            break;
        }
        end += line.len();
        n_left -= usize::from(!line.trim().is_empty());
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, now: &str, expected: Option<&str>) {
        let source = SourceText::between(before, after).unwrap();
        let found = source.put_back(now).next();
        assert_eq!(found.as_deref(), expected, "{source:?}");
    }

    #[test]
    fn a_piece_comes_back_where_it_stood_though_other_lines_changed() {
        let before = "a: 1\nb: 2 # why\nc: 3\n";
        let after = "a: 1\nc: 3\n";
        check(before, after, after, Some(before));
        check(before, after, "x: 0\na: 1\nc: 3\n", Some("x: 0\na: 1\nb: 2 # why\nc: 3\n"));
        check(before, after, "a: 9\nc: 3\n", Some("a: 9\nb: 2 # why\nc: 3\n"));
        check(before, after, "a: 1\nc: 9\n", Some("a: 1\nb: 2 # why\nc: 9\n"));
        check(before, after, "x: 9\n", None);
        check("a # x\n", "b\n", "new\nb\n", Some("new\na # x\n"));
    }

    #[test]
    fn letters_of_several_bytes_are_never_cut() {
        check("a: é1\nb: è\n", "a: è1\nb: è\n", "a: è1\nb: è\n", Some("a: é1\nb: è\n"));
        check("é\nè\n", "è\n", "è\n", Some("é\nè\n"));
    }
}
