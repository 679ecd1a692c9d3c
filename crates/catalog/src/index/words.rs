//! Splits text into search terms.
//!
//! Descriptions, identifiers and queries are split in the same way: identifiers are split
//! at case and punctuation and also kept whole, words are stemmed, and scripts without
//! spaces become pairs of characters. Only English is stemmed.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The kind of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Shape {
    /// A word or a part of an identifier.
    Word,
    /// Several parts of one identifier, joined.
    Compound,
}

/// The longest word that is kept whole; longer ones are noise such as base64.
const LONGEST: usize = 40;

/// Lower case, without accents, with compatibility forms folded.
pub(crate) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfkd().filter(|c| !is_combining_mark(*c)).nfc().collect())
}

/// Replaces typographic punctuation by ASCII. Most texts are plain ASCII then, and need no
/// folding.
pub(crate) fn with_ascii_punctuation(text: &str) -> Cow<'_, str> {
    let mark = |c: char| match c {
        '\u{2018}' | '\u{2019}' => Some('\''),
        '\u{201c}' | '\u{201d}' => Some('"'),
        '\u{2010}'..='\u{2015}' => Some('-'),
        '\u{a0}' | '\u{2009}' | '\u{202f}' => Some(' '),
        _ => None,
    };
    if text.is_ascii() || !text.contains(|c| mark(c).is_some()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| mark(c).unwrap_or(c)).collect())
}

/// Calls `emit` with every word of `text`, in order, lower case, unstemmed.
pub(crate) fn each(text: &str, mut emit: impl FnMut(&str, Shape)) {
    let folded = fold(text);
    let mut parts = IdentifierParts::default();
    let mut rest = &*folded;
    while let Some(c) = rest.chars().next() {
        if is_unspaced(c) {
            parts.flush(&mut emit);
            pairs(run(&mut rest, is_unspaced), &mut emit);
        } else if c.is_alphanumeric() {
            split_camel_case(
                run(&mut rest, |n| n.is_alphanumeric() && !is_unspaced(n)),
                &mut parts,
            );
            match rest.chars().next() {
                Some('_' | '-') => {
                    rest = &rest[1..];
                    if !rest.starts_with(char::is_alphanumeric) {
                        parts.flush(&mut emit);
                    }
                }
                Some(mark @ ('\'' | '\u{2019}')) => {
                    rest = &rest[mark.len_utf8()..];
                    parts.apostrophe(run(&mut rest, char::is_alphanumeric));
                    parts.flush(&mut emit);
                }
                _ => parts.flush(&mut emit),
            }
        } else {
            rest = &rest[c.len_utf8()..];
        }
    }
    parts.flush(&mut emit);
}

/// Takes the longest prefix of `rest` whose characters all belong.
fn run<'a>(rest: &mut &'a str, belongs: impl Fn(char) -> bool) -> &'a str {
    let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    let (run, after) = rest.split_at(end);
    *rest = after;
    run
}

/// The parts of one identifier, concatenated, and where each ends.
#[derive(Default)]
struct IdentifierParts {
    text: String,
    ends: Vec<usize>,
}

impl IdentifierParts {
    fn push(&mut self, c: char) {
        if c.is_ascii() {
            self.text.push(c.to_ascii_lowercase());
        } else {
            self.text.extend(c.to_lowercase());
        }
    }

    fn end(&mut self) {
        self.ends.push(self.text.len());
    }

    /// `user's` is `user`, `don't` is `dont`.
    fn apostrophe(&mut self, ending: &str) {
        if ending != "s" && self.ends.pop().is_some() {
            ending.chars().for_each(|c| self.push(c));
            self.end();
        }
    }

    fn flush(&mut self, emit: &mut impl FnMut(&str, Shape)) {
        let mut start = 0;
        for end in &self.ends {
            let part = &self.text[start..*end];
            if part.len() <= LONGEST {
                emit(part, Shape::Word);
            }
            start = *end;
        }
        if 1 < self.ends.len() && self.text.len() <= LONGEST {
            emit(&self.text, Shape::Compound);
        }
        self.text.clear();
        self.ends.clear();
    }
}

/// The stem under which a lower-case word is indexed.
pub(crate) fn stem<'a>(stemmer: &Stemmer, word: &'a str) -> Cow<'a, str> {
    if 3 < word.len() && word.bytes().all(|b| b.is_ascii_alphabetic()) {
        stemmer.stem(word)
    } else {
        Cow::Borrowed(word)
    }
}

pub(crate) fn stemmer() -> Stemmer {
    Stemmer::create(Algorithm::English)
}

/// Whether a word is a stop word.
pub(crate) fn is_stop(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

/// Whether a word is small talk: `hello, help me send a mail` is about mail. A query that
/// has nothing else is searched for it.
pub(crate) fn is_small_talk(word: &str) -> bool {
    SMALL_TALK.contains(&word)
}

/// Splits `readHTTPFile` into `read`, `http`, `file`; digits stay where they are.
fn split_camel_case(run: &str, parts: &mut IdentifierParts) {
    let mut chars = run.chars().peekable();
    let mut before = None;
    let mut length = 0;
    while let Some(here) = chars.next() {
        let was_upper = before.map(char::is_uppercase);
        if here.is_uppercase() {
            let rises = was_upper == Some(false);
            let falls = was_upper == Some(true) && chars.peek().is_some_and(|c| c.is_lowercase());
            if rises || (falls && 1 < length) {
                parts.end();
                length = 0;
            }
        }
        parts.push(here);
        length += 1;
        before = Some(here);
    }
    parts.end();
}

/// Emits pairs of neighbouring characters; a single character stands for itself.
fn pairs(run: &str, emit: &mut impl FnMut(&str, Shape)) {
    let starts = || run.char_indices().map(|(at, _)| at).chain([run.len()]);
    if starts().count() == 2 {
        emit(run, Shape::Word);
    }
    for (start, end) in starts().zip(starts().skip(2)) {
        emit(&run[start..end], Shape::Word);
    }
}

/// Scripts that are written without spaces between words.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF      // Thai, Lao
        | 0x1000..=0x109F    // Myanmar
        | 0x1780..=0x17FF    // Khmer
        | 0x3040..=0x30FF    // Hiragana, Katakana
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF // Han
        | 0xAC00..=0xD7AF) // Hangul
}

/// Stop words, sorted for the binary search.
#[rustfmt::skip]
pub(crate) const STOP: &[&str] = &[
    "a", "able", "about", "actually", "after", "again", "all", "also", "am", "an", "and", "any",
    "anything", "are", "around", "as", "at", "be", "because", "been", "before", "being", "but",
    "by", "can", "cannot", "could", "couldnt", "did", "do", "does", "doing", "dont", "each",
    "either", "else", "etc", "ever", "every", "few", "for", "from", "further", "get", "give",
    "given", "gonna", "got", "had", "has", "have", "having", "he", "her", "here",
    "hers", "him", "his", "how", "however", "i", "if", "ill", "im", "in", "into",
    "is", "isnt", "it", "its", "itself", "ive", "just", "kindly", "know", "let", "lets", "like",
    "looking", "may", "maybe", "me", "might", "more", "most", "much", "must", "my", "myself",
    "need", "needs", "no", "nor", "not", "now", "of", "off", "on", "once", "one", "only", "or",
    "other", "our", "ours", "out", "over", "own", "please", "provide", "quite", "rather", "really",
    "same", "shall", "she", "should", "since", "so", "some", "something", "specific", "specified",
    "such", "sure", "tell", "than", "that", "thats", "the", "their", "theirs", "them",
    "then", "there", "theres", "these", "they", "theyre", "thing", "things", "this", "those",
    "through", "to", "too", "under", "until", "up", "us", "use", "used", "using", "very", "via",
    "wanna", "want", "wants", "was", "we", "well", "were", "what", "whats", "when", "where",
    "whether", "which", "while", "who", "whom", "whose", "why", "will", "with", "within",
    "without", "wont", "would", "yes", "yet", "you", "your", "yours", "yourself",
];

const SMALL_TALK: &[&str] = &["hello", "help", "hey", "hi", "thanks"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut words = Vec::new();
        each(text, |word, shape| {
            words.push(if shape == Shape::Compound { format!("+{word}") } else { word.to_owned() });
        });
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn identifiers_fall_apart_and_keep_their_joined_form() {
        check("read_file", "read file +readfile");
        check("getHTTPResponse2", "get http response2 +gethttpresponse2");
        check("GitHub", "git hub +github");
        check("list-pull-requests.", "list pull requests +listpullrequests");
        check("S3 buckets", "s3 buckets");
    }

    #[test]
    fn prose_loses_punctuation_and_accents() {
        check("The user's café (naïve) — don't!", "the user cafe naive dont");
    }

    #[test]
    fn unspaced_scripts_become_pairs() {
        check("使用必应搜索", "使用 用必 必应 应搜 搜索");
        check("日 x", "日 x");
        check("한국어 검색", "한국 국어 검색");
    }

    #[test]
    fn noise_is_dropped() {
        check(&"x".repeat(100), "");
        check("🎉🎉 ❤️ \u{0}\u{1}", "");
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP.is_sorted());
        assert!(is_stop("the") && !is_stop("file"));
    }
}
