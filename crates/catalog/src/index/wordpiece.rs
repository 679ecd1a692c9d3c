//! Splits text into the tokens of the embedding table, as BERT's uncased tokenizer
//! does.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::table;

/// A word longer than this is unknown, as in BERT.
const LONGEST: usize = 100;

/// Calls `emit` with every word of `text` and its rows in the embedding table; an unknown
/// word has no rows.
pub(crate) fn each(text: &str, mut emit: impl FnMut(&str, &[u16])) {
    let mut splitter = WordSplitter { word: String::new(), rows: Vec::new(), emit: &mut emit };
    if text.is_ascii() {
        text.chars().for_each(|c| splitter.take(c.to_ascii_lowercase()));
    } else {
        let lower = text.chars().flat_map(char::to_lowercase);
        lower.nfd().filter(|c| !is_combining_mark(*c)).for_each(|c| splitter.take(c));
    }
    splitter.end();
}

/// Collects characters until a word ends.
struct WordSplitter<'a> {
    word: String,
    rows: Vec<u16>,
    emit: &'a mut dyn FnMut(&str, &[u16]),
}

impl WordSplitter<'_> {
    fn take(&mut self, c: char) {
        if c.is_whitespace() {
            self.end();
        } else if c.is_control() || c == '\u{fffd}' || is_format(c) {
            // BERT drops these without ending the word.
        } else if is_punctuation(c) || is_han(c) {
            self.end();
            self.word.push(c);
            self.end();
        } else {
            self.word.push(c);
        }
    }

    fn end(&mut self) {
        if !self.word.is_empty() {
            self.rows.clear();
            pieces(&self.word, &mut self.rows);
            (self.emit)(&self.word, &self.rows);
            self.word.clear();
        }
    }
}

/// Splits a word greedily into the longest known pieces; without result if a part is
/// unknown.
fn pieces(word: &str, rows: &mut Vec<u16>) {
    if LONGEST < word.chars().count() {
        return;
    }
    let mut start = 0;
    while start < word.len() {
        let prefix = if start == 0 { "" } else { "##" };
        let ends = (start + 1..=word.len()).rev().filter(|end| word.is_char_boundary(*end));
        let known = |end: usize| Some((end, table::row(prefix, &word[start..end])?));
        let Some((end, row)) = ends.into_iter().find_map(known) else {
            rows.clear();
            return;
        };
        rows.push(row);
        start = end;
    }
}

/// ASCII symbols count as punctuation, as do the Unicode punctuation blocks.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(u32::from(c),
            0xA1 | 0xA7 | 0xAB | 0xB6 | 0xB7 | 0xBB | 0xBF
            | 0x2010..=0x2027 | 0x2030..=0x205E
            | 0x3001..=0x3003 | 0x3008..=0x3011 | 0x3014..=0x301F | 0x30FB
            | 0xFF01..=0xFF0F | 0xFF1A..=0xFF20 | 0xFF3B..=0xFF40 | 0xFF5B..=0xFF65)
}

fn is_format(c: char) -> bool {
    matches!(u32::from(c), 0xAD | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x2064 | 0xFEFF)
}

fn is_han(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2CEAF
        | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        each(text, |_, rows| found.extend_from_slice(rows));
        let expected: Vec<u16> =
            expected.iter().map(|piece| table::row("", piece).expect("a known piece")).collect();
        assert_eq!(found, expected);
    }

    /// The ids given with the model, written as pieces.
    #[test]
    fn the_model_authors_examples_are_cut_alike() {
        check("create a github issue", &["create", "a", "gi", "##th", "##ub", "issue"]);
        check("send an email to the team", &["send", "an", "email", "to", "the", "team"]);
        check("Read the contents of a file", &["read", "the", "contents", "of", "a", "file"]);
        check(
            "naïve café 日本 list_pull_requests",
            &["naive", "cafe", "日", "本", "list", "_", "pull", "_", "requests"],
        );
    }

    #[test]
    fn unknown_words_leave_nothing() {
        check("\u{1F600}\u{1F601} ok", &["ok"]);
        check(&"a".repeat(101), &[]);
        check("", &[]);
    }
}
