//! All words of an index, and the term (stem) under which each is indexed.
//!
//! A query word that occurs in a document is looked up as it is written; other words are
//! stemmed, and words with an unknown stem are looked up as typos.

use rust_stemmers::Stemmer;

use super::strings::Strings;
use super::typo::TypoIndex;
use super::words::{self, Shape};

/// The words and terms of an index.
#[derive(Clone, Debug)]
pub(crate) struct Lexicon {
    terms: Strings,
    words: Strings,
    /// By word: its term, or [`NONE`] for a stop word.
    term_of: Vec<u32>,
    typos: TypoIndex,
    prefixes: PrefixFilter,
}

/// Collects the words while an index is built.
pub(crate) struct LexiconBuilder {
    stemmer: Stemmer,
    terms: Strings,
    words: Strings,
    term_of: Vec<u32>,
}

/// A Bloom-like filter over the prefixes of all terms: no term begins with a prefix that
/// is not in it.
#[derive(Clone, Debug)]
struct PrefixFilter {
    bits: Vec<u64>,
}

const NONE: u32 = u32::MAX;

impl LexiconBuilder {
    pub(crate) fn new() -> LexiconBuilder {
        LexiconBuilder {
            stemmer: words::stemmer(),
            terms: Strings::new(),
            words: Strings::new(),
            term_of: Vec::new(),
        }
    }

    /// The term of a word; each distinct word is stemmed once.
    pub(crate) fn term(&mut self, word: &str, shape: Shape) -> Option<u32> {
        let (number, is_new) = self.words.intern(word);
        if is_new {
            let counts = shape == Shape::Compound || !words::is_stop(word);
            self.term_of.push(match counts {
                true => self.terms.intern(&words::stem(&self.stemmer, word)).0,
                false => NONE,
            });
        }
        Some(self.term_of[number as usize]).filter(|term| *term != NONE)
    }

    pub(crate) fn finish(self) -> Lexicon {
        let LexiconBuilder { mut terms, mut words, mut term_of, .. } = self;
        terms.shrink();
        words.shrink();
        term_of.shrink_to_fit();
        let typos = TypoIndex::new(&words, |word| term_of[word as usize] != NONE);
        let prefixes = PrefixFilter::new(&terms);
        Lexicon { terms, words, term_of, typos, prefixes }
    }
}

impl Lexicon {
    pub(crate) fn n_terms(&self) -> usize {
        self.terms.len()
    }

    /// The term of a word that occurs in some document. The inner `None` stands for a stop
    /// word.
    pub(crate) fn look_up(&self, word: &str) -> Option<Option<u32>> {
        let term = self.term_of[self.words.find(word)? as usize];
        Some(Some(term).filter(|term| *term != NONE))
    }

    /// The term of a stem.
    pub(crate) fn term(&self, stem: &str) -> Option<u32> {
        self.terms.find(stem)
    }

    /// The term of two words written as one. Few such pairs are a term, so the prefix
    /// filter is asked before the word is stemmed.
    pub(crate) fn joined(&self, word: &str, stemmer: &Stemmer) -> Option<u32> {
        match self.look_up(word) {
            Some(known) => known,
            None if !self.prefixes.may_have(word) => None,
            None => self.term(&words::stem(stemmer, word)),
        }
    }

    /// The words closest to one that is misspelt, with their terms.
    pub(crate) fn nearest(&self, wanted: &str) -> Vec<(&str, u32)> {
        let near = self.typos.nearest(&self.words, wanted);
        near.into_iter().map(|word| (self.words.get(word), self.term_of[word as usize])).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.terms.bytes()
            + self.words.bytes()
            + self.term_of.capacity() * 4
            + self.typos.bytes()
            + self.prefixes.bits.capacity() * 8
    }
}

/// The lengths of the prefixes in the filter, in bytes.
const SHORTEST: usize = 3;
const LONGEST: usize = 8;
/// The longest ending that a stemmer removes, hardly ever exceeded: the word before it is
/// a prefix of the stem.
const ENDING: usize = 6;

impl PrefixFilter {
    fn new(terms: &Strings) -> PrefixFilter {
        // Six prefixes a term and 64 bits for them: one in ten others passes.
        let mut filter = PrefixFilter { bits: vec![0; terms.len().next_power_of_two()] };
        for term in 0..terms.len() as u32 {
            let term = terms.get(term).as_bytes();
            for length in SHORTEST..=LONGEST.min(term.len()) {
                let (word, bit) = filter.bit_of(&term[..length]);
                filter.bits[word] |= bit;
            }
        }
        filter
    }

    fn may_have(&self, word: &str) -> bool {
        let length = word.len().saturating_sub(ENDING).clamp(SHORTEST, LONGEST);
        match word.as_bytes().get(..length) {
            Some(prefix) => {
                let (word, bit) = self.bit_of(prefix);
                self.bits[word] & bit != 0
            }
            None => true,
        }
    }

    /// The word of `bits` and the bit in it for a prefix.
    fn bit_of(&self, prefix: &[u8]) -> (usize, u64) {
        let letters = prefix.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
        let hash = letters.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((hash >> 38) as usize & (self.bits.len() - 1), 1 << (hash >> 32 & 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon(words: &[&str]) -> Lexicon {
        let mut collecting = LexiconBuilder::new();
        for word in words {
            collecting.term(word, Shape::Word);
        }
        collecting.finish()
    }

    #[test]
    fn words_of_one_stem_are_one_term() {
        let lexicon = lexicon(&["files", "filing", "the", "mail"]);
        assert_eq!(lexicon.look_up("files"), lexicon.look_up("filing"));
        assert_eq!(lexicon.look_up("the"), Some(None));
        assert_eq!((lexicon.look_up("file"), lexicon.term("file")), (None, Some(0)));
        assert_eq!(lexicon.nearest("mial"), [("mail", 1)]);
    }

    #[test]
    fn joined_words_are_found_under_every_ending() {
        let lexicon = lexicon(&["pullrequest", "database", "calendarevent"]);
        let stemmer = words::stemmer();
        let joined = |word| lexicon.joined(word, &stemmer);
        assert_eq!((joined("pullrequests"), joined("databases")), (Some(0), Some(1)));
        assert_eq!((joined("calendarevents"), joined("theannual")), (Some(2), None));
    }
}
