//! Text becomes terms.
//!
//! The same cutting serves descriptions, identifiers and queries: identifiers
//! fall apart at case and punctuation but keep their joined form, words are
//! stemmed, scripts without spaces become pairs of characters. No language is
//! assumed beyond English stems and stop words; whatever is not English simply
//! passes unstemmed.

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// One term of a text.
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
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    text.nfkd().filter(|c| !is_combining_mark(*c)).nfc().collect()
}

/// Calls `emit` with every word of `text`, in order, lower case, unstemmed.
pub(crate) fn each(text: &str, mut emit: impl FnMut(&str, Shape)) {
    let folded = fold(text);
    let mut parts: Vec<String> = Vec::new();
    let mut chars = folded.chars().peekable();
    while let Some(c) = chars.next() {
        if is_unspaced(c) {
            flush(&mut parts, &mut emit);
            let mut run = vec![c];
            while let Some(next) = chars.next_if(|next| is_unspaced(*next)) {
                run.push(next);
            }
            pairs(&run, &mut emit);
        } else if c.is_alphanumeric() {
            let mut run = String::from(c);
            while let Some(next) = chars.next_if(|n| n.is_alphanumeric() && !is_unspaced(*n)) {
                run.push(next);
            }
            humps(&run, &mut parts);
            match chars.peek() {
                Some('_' | '-') => {
                    chars.next();
                    if !chars.peek().is_some_and(|n| n.is_alphanumeric()) {
                        flush(&mut parts, &mut emit);
                    }
                }
                Some('\'' | '\u{2019}') => {
                    chars.next();
                    skip_ending(&mut chars, &mut parts);
                    flush(&mut parts, &mut emit);
                }
                _ => flush(&mut parts, &mut emit),
            }
        }
    }
    flush(&mut parts, &mut emit);
}

/// The stem under which a lower-case word is indexed.
pub(crate) fn stem(stemmer: &Stemmer, word: &str) -> String {
    if word.is_ascii() && 3 < word.len() && word.bytes().all(|b| b.is_ascii_alphabetic()) {
        stemmer.stem(word).into_owned()
    } else {
        word.to_owned()
    }
}

pub(crate) fn stemmer() -> Stemmer {
    Stemmer::create(Algorithm::English)
}

/// Whether a word carries no meaning of its own.
pub(crate) fn is_stop(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

/// Whether a word is small talk beside others: `hello, help me send a mail` is
/// about mail. Where it stands alone, it is what is meant.
pub(crate) fn is_small_talk(word: &str) -> bool {
    SMALL_TALK.contains(&word)
}

/// `user's` is `user`, `don't` is `dont`.
fn skip_ending(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, parts: &mut [String]) {
    let mut ending = String::new();
    while let Some(next) = chars.next_if(|n| n.is_alphanumeric()) {
        ending.push(next);
    }
    if let (false, Some(last)) = (ending == "s", parts.last_mut()) {
        last.push_str(&ending.to_lowercase());
    }
}

/// Cuts `readHTTPFile` into `read`, `http`, `file`; digits stay where they are.
fn humps(run: &str, parts: &mut Vec<String>) {
    let chars: Vec<char> = run.chars().collect();
    let mut start = 0;
    for at in 1..chars.len() {
        let (before, here) = (chars[at - 1], chars[at]);
        let next_is_lower = chars.get(at + 1).is_some_and(|c| c.is_lowercase());
        let rises = !before.is_uppercase() && here.is_uppercase();
        let falls = before.is_uppercase() && here.is_uppercase() && next_is_lower;
        if rises || (falls && 1 < at - start) {
            parts.push(lower(&chars[start..at]));
            start = at;
        }
    }
    parts.push(lower(&chars[start..]));
}

fn lower(chars: &[char]) -> String {
    chars.iter().flat_map(|c| c.to_lowercase()).collect()
}

fn flush(parts: &mut Vec<String>, emit: &mut impl FnMut(&str, Shape)) {
    for part in parts.iter().filter(|part| part.len() <= LONGEST) {
        emit(part, Shape::Word);
    }
    if 1 < parts.len() {
        let joined = parts.concat();
        if joined.len() <= LONGEST {
            emit(&joined, Shape::Compound);
        }
    }
    parts.clear();
}

/// Pairs of neighbouring characters; a single character stands for itself.
fn pairs(run: &[char], emit: &mut impl FnMut(&str, Shape)) {
    if let [single] = run {
        emit(single.encode_utf8(&mut [0; 4]), Shape::Word);
    }
    for pair in run.windows(2) {
        emit(&pair.iter().collect::<String>(), Shape::Word);
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

/// Sorted, for the binary search.
#[rustfmt::skip]
const STOP: &[&str] = &[
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
